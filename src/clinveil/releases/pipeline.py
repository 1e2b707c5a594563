"""The main job from beginning to end: notes in; a release, a vault and a report out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Context
from clinveil.attacks.channel.channel_figures import single_names
from clinveil.attacks.channel.inversion import Inversion
from clinveil.channel.build import build_channel, mechanism_of
from clinveil.channel.channel import Channel
from clinveil.channel.files import load_channel
from clinveil.channel.tally import Tally
from clinveil.core.errors import GateError, InputError
from clinveil.core.files import owner_only, refuse_nested
from clinveil.core.finding import Finding
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.progress import shown, steps
from clinveil.core.runfolder import FREE, fingerprint, run_folder, run_hash
from clinveil.core.types import Say
from clinveil.corpus.corpus import NO_PATIENTS, Accounting, Corpus
from clinveil.corpus.parts import PartedCorpus
from clinveil.phi.heard import Heard
from clinveil.releases.added import met_lines, unknown_line
from clinveil.releases.attack_gates import contents_gate, linkage_gates, reading_gates, single_gates
from clinveil.releases.both import Both, gates_of_both, of_both, together
from clinveil.releases.check import OutputCheck, check_output
from clinveil.releases.clock import Clock, nothing
from clinveil.releases.crosswalk import ledger_batches
from clinveil.releases.earlier_release import Base
from clinveil.releases.gates import accounting_gates, output_gates, patient_gates, seed_gate
from clinveil.releases.ledger import Earlier, Entry, Hashes, Ledger, entry
from clinveil.releases.measured import attacked, measured, not_tried, useful
from clinveil.releases.new_notes import NewNotes
from clinveil.releases.parts import draw_parts, forget_others, opened, protect_parts
from clinveil.releases.publish import KIND, Outcome, Places, publish
from clinveil.releases.ready import Ready, opened_for_parts, ready_for
from clinveil.releases.record import Obfuscation, record_of
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.side_by_side import aligned, demo_side_by_side, sources
from clinveil.releases.stages import (
    Job,
    Preflight,
    channel_of,
    plan,
    protect,
    released_in_order,
    vectors_of,
    write_notes,
)
from clinveil.report.record import Gate
from clinveil.scale import Map
from clinveil.vectors.count import WordCounts, count_parts, count_words
from clinveil.vectors.table import Vectors

_NO_MATTER = FREE | {"again", "ledger"}


def dry_run(
    notes: Path, settings: ReleaseSettings, *, vectors: Path | None = None, base: Base | None = None
) -> Iterator[str]:
    """The plan of a release: what it would do and how long that should take. Makes nothing; arguments as `release`.

    Raises InputError where the run itself would, for notes, patients or kept words that do not fit.
    """
    settings = base.settings_for(settings) if base else settings
    with opened_for_parts(notes, settings) as over:
        ready = ready_for(notes, settings, vectors, over, base)
    ready.broken.refuse()
    yield from _plan_lines(ready.corpus, ready.found, settings, train=ready.imported is None)
    if settings.seed is not None:
        yield "TEST SEED: such a run ends in vault/refused, with exit code 4"


def _plan_lines(corpus: Corpus, found: Preflight, settings: ReleaseSettings, *, train: bool) -> Iterator[str]:
    columns = corpus.columns
    yield f"{found.rows:,} notes of {found.patients:,} patients, about {found.tokens:,} words"
    if columns.patient_id is None:
        yield f"{NO_PATIENTS} (name one with --patient)"
    kept = ", ".join(columns.keep) or "none"
    yield f"text {columns.text}, id {columns.note_id}; kept: {kept}; dropped: {', '.join(columns.dropped) or 'none'}"
    added = corpus if isinstance(corpus, NewNotes) else None
    if added is not None:
        yield from met_lines(added)
    steps = plan(found, settings, train=train and added is None)
    yield from (f"  {stage:<17} {what}, about {seconds:,.0f} s" for stage, what, seconds in steps)
    yield f"  in all about {sum(seconds for *_, seconds in steps):,.0f} s with {settings.workers} workers"


def release(
    notes: Path,
    out: Path,
    settings: ReleaseSettings,
    *,
    vectors: Path | None = None,
    base: Base | None = None,
    before: Sequence[Path] = (),
    say: Say = nothing,
) -> Outcome:
    """The main job: notes in; a release, a vault and a report out.

    Args:
        vectors: word vectors of elsewhere, to take instead of training some on the notes.
        base: the release that the notes are added to; of the settings those that may differ are looked at.
        before: the notes that left until then, so that both are looked at together.

    Raises:
        InputError: notes or vectors do not fit. UsageError: OUT is taken. GateError never: a refusal is an `Outcome`.
    Source: paper A, Algorithm 1, with what `docs/design.md` adds.
    """
    settings = base.settings_for(settings) if base else settings
    ledger = Ledger.at(settings.ledger, out)
    refuse_nested(OUT=out, NOTES=notes, the_ledger=ledger.folder, **(base.places if base else {}))
    left = base.refuse_unledgered(ledger, out / KIND.vault) if base else None
    with opened_for_parts(notes, settings) as over:
        ready = ready_for(notes, settings, vectors, over, base, beside=bool(before), say=say)
        return _made(notes, out, settings, ready, _Added.to(base, before, left, ready), ledger, over, vectors, say)


@dataclass(frozen=True)
class _Added:
    """The release that is added to, what left under its key, and the notes that did."""

    base: Base
    before: Sequence[Path]
    left: Entry | None
    both: Both | None

    @classmethod
    def to(cls, base: Base | None, before: Sequence[Path], left: Entry | None, ready: Ready) -> _Added | None:
        return cls(base, before, left, Both.of(base, before, ready.corpus.columns.keep)) if base else None


def _made(
    notes: Path,
    out: Path,
    settings: ReleaseSettings,
    ready: Ready,
    added: _Added | None,
    ledger: Ledger,
    over: Map,
    vectors: Path | None,
    say: Say,
) -> Outcome:
    """Open the run's folder, and make the release in it."""
    more = settings.vectors.places()
    for line in _plan_lines(ready.corpus, ready.found, settings, train=ready.imported is None):
        say(line)
    word_files, source = (settings.channel.keep_words, settings.channel.drop_words), fingerprint(notes)
    read = (settings.identifiers.patients, settings.identifiers.phi_policy, *word_files, vectors, *more.values())
    seal: tuple[Path | str, ...] = (added.base.seal, *added.before) if added else ()
    asked = run_hash(settings, ready.question(source), *read, *seal, free=_NO_MATTER)
    with owner_only(), run_folder(out, KIND, asked, force=settings.force) as run:
        if added is not None:
            added.base.lay_out(run.vault)
        folder, key = Places(run), run.key(settings.seed)
        if key.test_seed is not None:
            say(TEST_SEED)
        earlier = _earlier(ledger, ready.found, key, settings, say)
        if settings.phi and (warning := settings.identifiers.policy().warning):
            say(warning)
        if settings.order == "source":
            say("rows keep the order of the source: somebody who holds that order knows whose note is whose")
        if ready.facts:
            forget_others(folder, ready.facts, ("vectors", "neighbours", "channel"))
        if added is None and (folder.vault / "vectors").exists():
            say("resuming: the vectors of the interrupted run are used")
        parts = ready.facts, over, ready.broken
        job = Job(ready.corpus, folder, key, settings, ready.known, ready.imported, say, *parts)
        of_base = (added.left, added.both) if added else (None, None)
        return _run(job, ready.found, _Before(ledger, earlier, source, *of_base), Clock(say))


@dataclass(frozen=True)
class _Before:
    """What is known of the source: the ledger, earlier releases of the same notes in it, the hash of the notes, and
    what left under the same key."""

    ledger: Ledger
    earlier: Sequence[Earlier]
    source_sha256: str
    left: Entry | None = None
    both: Both | None = None

    def entry(self, hashes: Hashes, run: str, commitment: str, vault: Path) -> Entry:
        """What is written down of a release: with what left under its key before."""
        made = entry(hashes, run, commitment, vault)
        return made if self.left is None else self.left.grown(hashes, run, vault)

    def enter(self, left: Entry, found: Preflight, vault: Path) -> None:
        """Write the release down. Raises GateError for one of the same notes that left while this one was made."""
        known = {one.entry.commitment for one in self.earlier}
        now = self.ledger.earlier(found.hashes, left.commitment)
        self.ledger.refuse([one for one in now if one.entry.commitment not in known], GateError)
        self.ledger.enter(left, vault)

    def channel(self) -> Channel | None:
        """The channel of the earlier release that shares most and whose vault is still there."""
        for one in self.earlier:
            with suppress(InputError):
                return load_channel(one.entry.vault / "channel")
        return None


def _earlier(ledger: Ledger, found: Preflight, key: Key, settings: ReleaseSettings, say: Say) -> list[Earlier]:
    """Earlier releases of the same notes under another key; raises UsageError for them without `--again`.

    What comes of a test seed never leaves, so it is neither refused nor written down.
    """
    if key.test_seed is not None:
        return []
    earlier = ledger.earlier(found.hashes, key.commitment)
    if not settings.again:
        ledger.refuse(earlier)
    for one in earlier:
        say(f"again: {one.said} of these notes left before, in release {one.entry.run}")
    return earlier


def _run(job: Job, found: Preflight, before: _Before, clock: Clock) -> Outcome:
    settings = job.settings
    seeds = {name: job.key.digest(f"{name} seed") % 2**31 for name in ("training", "measuring")}
    rng = np.random.default_rng(seeds["measuring"])
    heard: list[Heard] = []
    protected, identifiers, left_out = _protected(job, before.both, heard, clock)
    with clock.stage("vocabulary", "words and the patients who use them"):
        counts = _counted(job, found, protected)
    learning = settings.vectors.said_of(counts.n_tokens) if job.imported is None else "take those that were given"
    learning = "take those of the release that is added to" if job.added else learning
    with clock.stage("vectors", learning) as row:
        with steps("passes", clock.say) as on_epoch:
            vectors = vectors_of(job, protected, counts, seeds["training"], on_epoch)
        if job.imported is None:
            row["determinism"] = str(vectors.meta.get("determinism", "statistical"))
    with clock.stage("neighbours", "neighbour table and channel"):
        channel = channel_of(job, vectors, counts)
        digests = {name: fingerprint(job.folder.vault / name) for name in ("vectors", "neighbours", "channel")}
    tally, check, path = _written(job, found, protected, channel, clock)
    released = opened(path, job.corpus.columns)
    with clock.stage("measure", "attacks and utility", f"seed {seeds['measuring']}"):
        whole = replace(_context(job, channel, counts, protected, released), earlier=before.channel())
        drawn_by = settings.measure_words, job.key.subkey("measured patients"), job.folder.work / "measured"
        seen = measured(whole, partial(ledger_batches, job.folder.vault, "crosswalk"), *drawn_by)
        if seen.drawn:
            clock.say(f"measured on {seen.drawn.said}")
        context = seen.context
        findings = [*attacked(seen, rng, clock.say), *single_names(context)]
        findings += seen.marked(useful(context, settings.label, settings.model))
        findings += _cost_of_keeping(job, context, vectors, rng)
        shared, on_both = of_both(job, before.both, whole, clock.say)
    rows = Accounting(found.read, check.notes, found.skipped + left_out + tally.skipped)
    what = job, rows, counts, vectors, channel, tally, identifiers
    how = clock.rows, digests, seeds, before.source_sha256, fingerprint(path), before.earlier, on_both
    made = Obfuscation(*what, *how)
    gates = [*_gates(made, check, path.name, findings), *gates_of_both(settings, shared)]
    account = made.account(gates, together(job, findings, shared, seeds["measuring"]))
    sample = sources(job.corpus, rng, job.deidentifier(*heard))
    clock.say("report: two editions")
    record = record_of(made, account, not_tried(context), aligned(sample, job.obfuscator(channel), "Sampled note"))
    left = before.entry(found.hashes, account.run, job.key.commitment, job.folder.vault)
    enter = partial(before.enter, left, found, job.folder.vault)
    return publish(job.folder, account, record, demo_side_by_side(settings), enter)


def _protected(
    job: Job, both: Both | None, heard: list[Heard], clock: Clock
) -> tuple[Corpus, Counter[str] | None, Counter[str]]:
    """The notes as they enter the channel; `heard` gets what they say of one another."""
    settings = job.settings
    removal = f"find PHI, and treat it by {settings.identifiers.policy().name}" if settings.phi else "left out"
    with clock.stage("identifiers", removal, "keyed"):
        beside = both.protect if both and both.given else None
        return (beside or (protect_parts if job.facts else protect))(job, heard.append)


def _counted(job: Job, found: Preflight, protected: Corpus) -> WordCounts:
    """The words of the notes as they enter the channel: of part files each counted where it is read."""
    if job.facts and isinstance(protected, PartedCorpus):
        return count_parts(protected.parts, job.folder.work, job.over, job.say)
    over = shown(found.over(job.settings.workers), "notes counted", job.say, found.rows, lambda part: part.n_notes)
    return count_words(protected, job.folder.work, over=over)


def _written(
    job: Job, found: Preflight, protected: Corpus, channel: Channel, clock: Clock
) -> tuple[Tally, OutputCheck, Path]:
    """Write the release, in staging, and read it back: of part files each where it is written."""
    what = f"replace every word, {mechanism_of(job.settings.channel).said}"
    if job.facts:
        with clock.stage("obfuscate", f"{what}; read each part back", "keyed"):
            return draw_parts(job, protected, channel)
    with clock.stage("obfuscate", what, "keyed"):
        tally, path = write_notes(job, protected, channel)
    if job.added:
        clock.say(unknown_line(job.added, tally))
    with clock.stage("check", "read the release back"):
        over = shown(found.over(job.settings.workers), "notes read back", clock.say, found.rows, lambda one: one.notes)
        released = opened(path, job.corpus.columns)
        return tally, _read_back(job, protected, released, channel, path, over), path


def _gates(made: Obfuscation, check: OutputCheck, name: str, findings: Sequence[Finding]) -> list[Gate]:
    """All gates; `name` is that of the file of notes."""
    job, settings = made.job, made.job.settings
    return [
        *output_gates(check, made.tally, made.channel),
        *patient_gates(
            findings, digits=settings.channel.numbers != "drop", shuffled=settings.channel.shuffle == "note"
        ),
        *reading_gates(findings, settings.max_names),
        *single_gates(findings, settings.max_names),
        *linkage_gates(findings, settings.max_linkage),
        contents_gate(job.folder.staging, name, job.corpus.columns),
        *accounting_gates(made.rows, check, made.tally),
        seed_gate(job.key),
    ]


def _read_back(job: Job, entered: Corpus, released: Corpus, channel: Channel, path: Path, over: Map) -> OutputCheck:
    walk, places = (ledger_batches(job.folder.vault, name) for name in ("crosswalk", "alignment"))
    return check_output(entered.batches(), walk, released_in_order(job, path, released), channel, places, over)


def _context(job: Job, channel: Channel, counts: WordCounts, entered: Corpus, released: Corpus) -> Context:
    """What the attacks look at: both sides of the release, and what made it."""
    return Context(
        channel=channel,
        counts=counts,
        original=job.corpus,
        released=released,
        entered=entered,
        alignment=lambda: ledger_batches(job.folder.vault, "alignment"),
        known=job.known,
        keep=released.columns.keep,
        scratch=job.folder.work,
        workers=job.settings.workers,
    )


def _cost_of_keeping(job: Job, context: Context, vectors: Vectors, rng: Generator) -> list[Finding]:
    """With `--keep-words`, the inversion figures of the same channel with none kept."""
    if not job.settings.channel.keep_words:
        return []
    none_kept = job.settings.channel.but(keep_words=None)
    more: Any = {"threads": job.settings.workers, "counts": context.counts, "names": job.names}
    base, _ = build_channel(vectors, none_kept, key=job.key, **more)
    found = Inversion()(replace(context, channel=base, known=None, entered=None), rng)
    return [replace(finding, measure=f"{finding.measure}_none_kept") for finding in found]
