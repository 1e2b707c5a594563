"""The main job from beginning to end: notes in; a release, a vault and a report out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Context, of_release
from clinveil.attacks.channel.channel_figures import single_names
from clinveil.attacks.channel.inversion import Inversion
from clinveil.channel.build import build_channel, mechanism_of, read_words
from clinveil.channel.channel import Channel
from clinveil.channel.files import load_channel
from clinveil.core.errors import GateError, InputError
from clinveil.core.files import owner_only, refuse_nested
from clinveil.core.finding import Finding
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.neural import need_torch
from clinveil.core.progress import shown, steps
from clinveil.core.runfolder import FREE, fingerprint, run_folder, run_hash
from clinveil.core.types import Say
from clinveil.corpus.beside import open_text
from clinveil.corpus.corpus import NO_PATIENTS, Accounting, Corpus
from clinveil.corpus.corpus import rows as note_rows
from clinveil.corpus.open import OpenedCorpus, PartedCorpus, open_corpus
from clinveil.corpus.part_facts import PartFacts
from clinveil.corpus.part_files import part_files
from clinveil.corpus.people import Patient, read_patients
from clinveil.phi.heard import Heard
from clinveil.releases.attack_gates import contents_gate, linkage_gates, reading_gates, single_gates
from clinveil.releases.check import OutputCheck, check_output
from clinveil.releases.crosswalk import ledger_batches
from clinveil.releases.gates import accounting_gates, output_gates, patient_gates, seed_gate
from clinveil.releases.ledger import Earlier, Entry, Ledger, entry
from clinveil.releases.measured import attacked, measured
from clinveil.releases.parts import draw_parts, forget_others, opened, parts_digest, preflight_parts, protect_parts
from clinveil.releases.publish import KIND, Outcome, Places, publish
from clinveil.releases.record import Obfuscation, record_of
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.side_by_side import aligned, demo_side_by_side, sources
from clinveil.releases.stages import (
    Job,
    Preflight,
    channel_of,
    plan,
    preflight,
    protect,
    released_in_order,
    require_patients,
    vectors_of,
    write_notes,
)
from clinveil.report.record import Gate, StageRow
from clinveil.scale import Map, serial
from clinveil.scale.executor import opened_for
from clinveil.utility.classification import classification
from clinveil.utility.classifiers import any_neural
from clinveil.vectors.count import WordCounts, count_words
from clinveil.vectors.files import load_vectors
from clinveil.vectors.imported import refuse_foreign
from clinveil.vectors.table import Vectors

UTILITY_SEED = 20260101  # of the split and of what is trained; it says nothing of the release
NOT_TRIED = (
    "A reader of context with more text, or a larger model, than word pairs of other notes of this corpus; three words "
    "in a row and what adapts read a few points more (clinveil attack inversion, benchmarks/context.md). One "
    "measurement outside this repository read .77 of the words of N 3-14, memo patient, where one draw gives .48.",
    "An attacker without the vectors, who trains their own on other notes or on the release (clinveil attack inversion "
    "--reader own-vectors, release-vectors, decipher).",
    "Linkage with public texts about the patients, or by vectors trained on them (clinveil attack linkage).",
    "Inference of attributes that are no kept column (clinveil attack inference).",
    "Linkage by the order of the rows, where --order source keeps it.",
)
_AT_HAND = {
    "known": "no known-patient feed was given",
    "keep": "no column is kept",
    "earlier": "the ledger holds no other release, or its vault is gone",
}
_NO_MATTER = FREE | {"again", "ledger"}


def not_tried(context: Context) -> tuple[str, ...]:
    """What no attack of this version tries, and the attacks of every release that lacked what they need here."""
    known = [field.name for field in fields(context)]
    lacking = []
    for attack in of_release():
        missing = [need for need in known if need in attack.needs and not context.has(frozenset({need}))]
        if missing:
            why = " and ".join(_AT_HAND.get(need, f"no {need.replace('_', ' ')}") for need in missing)
            lacking.append(f"{attack.help().rstrip('.')}: {why}.")
    return (*NOT_TRIED, *lacking)


def useful(context: Context, labels: tuple[str, ...], models: tuple[str, ...]) -> list[Finding]:
    """Utility on each label. The seed is public and the same for every key, so that two releases compare."""
    original, released = context.original, context.released
    if original is None or released is None:
        raise ValueError("utility compares the notes of both sides")
    found: list[Finding] = []
    for label in labels:
        rng, sides = np.random.default_rng(UTILITY_SEED), (original.batches(), released.batches())
        found += classification(*sides, label, rng, crosswalk=context.notes, models=models)
    return found


def nothing(line: str) -> None:
    """Say it to nobody."""


@dataclass
class _Clock:
    """Times the stages and says what goes on."""

    say: Say
    rows: list[StageRow] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, what: str, determinism: str = "bitwise") -> Iterator[dict[str, str]]:
        """Time a stage; what it learns of its own determinism, it writes into what is yielded."""
        self.say(f"{name}: {what}")
        said, began = {"determinism": determinism}, time.perf_counter()
        yield said
        seconds = round(time.perf_counter() - began, 2)
        stays: Literal["vault", "release"] = "release" if name == "obfuscate" else "vault"
        self.rows.append(StageRow(name, what, said["determinism"], seconds, stays=stays))


@dataclass(frozen=True)
class _Ready:
    """What a run needs from outside: notes, what one look at them found, known patients, vectors; facts of parts."""

    corpus: OpenedCorpus
    found: Preflight
    known: dict[str, Patient]
    imported: Vectors | None
    facts: tuple[PartFacts, ...] = ()

    def source(self, notes: Path) -> str:
        """The hash of the notes."""
        return parts_digest(self.facts) if self.facts else fingerprint(notes)

    def question(self, source: str) -> str:
        """What a run says of its notes: of parts their names, for one that was mended is still asked the same."""
        return "\n".join(one.name for one in self.facts) or source


def _ready(notes: Path, settings: ReleaseSettings, place: Path | None, over: Map, say: Say = nothing) -> _Ready:
    """Read what a run needs, and find it usable before anything is made."""
    settings.vectors.refuse_beside(place)
    known = read_patients(settings.identifiers.patients) if settings.identifiers.patients else {}
    for file in (settings.channel.keep_words, settings.channel.drop_words):
        if file:
            read_words(file)
    if any_neural(settings.model):
        need_torch()  # now, not after the hours that come before the measuring
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    facts: tuple[PartFacts, ...] = ()
    if isinstance(corpus, PartedCorpus):
        found, facts = preflight_parts(corpus, over, say)
    else:
        found = preflight(corpus, say)
    require_patients(found, settings)
    if settings.vectors.more_text:
        open_text(settings.vectors.more_text)
    imported = load_vectors(place) if place else None
    if imported is not None:
        refuse_foreign(imported, (note.text for note in note_rows(corpus)))
    return _Ready(corpus, found, known, imported, facts)


def _opened_for_parts(notes: Path, settings: ReleaseSettings) -> AbstractContextManager[Map]:
    """Who works on the parts, from the beginning to the end; of one file each stage opens its own."""
    return opened_for(settings) if part_files(notes) else nullcontext(serial)


def dry_run(notes: Path, settings: ReleaseSettings, *, vectors: Path | None = None) -> Iterator[str]:
    """The plan of a release: what it would do and how long that should take. Makes nothing.

    Raises InputError where the run itself would, for notes, patients or kept words that do not fit.
    """
    with _opened_for_parts(notes, settings) as over:
        ready = _ready(notes, settings, vectors, over)
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
    steps = plan(found, settings, train=train)
    yield from (f"  {stage:<17} {what}, about {seconds:,.0f} s" for stage, what, seconds in steps)
    yield f"  in all about {sum(seconds for *_, seconds in steps):,.0f} s with {settings.workers} workers"


def release(
    notes: Path, out: Path, settings: ReleaseSettings, *, vectors: Path | None = None, say: Say = nothing
) -> Outcome:
    """The main job: notes in; a release, a vault and a report out.

    Args:
        vectors: word vectors of elsewhere, to take instead of training some on the notes.

    Raises:
        InputError: notes or vectors do not fit. UsageError: OUT is taken. GateError never: a refusal is an `Outcome`.
    Source: paper A, Algorithm 1, with what `docs/design.md` adds.
    """
    ledger = Ledger.at(settings.ledger, out)
    refuse_nested(OUT=out, NOTES=notes, the_ledger=ledger.folder)
    with _opened_for_parts(notes, settings) as over:
        ready = _ready(notes, settings, vectors, over, say)
        return _made(notes, out, settings, ready, ledger, over, vectors, say)


def _made(
    notes: Path,
    out: Path,
    settings: ReleaseSettings,
    ready: _Ready,
    ledger: Ledger,
    over: Map,
    vectors: Path | None,
    say: Say,
) -> Outcome:
    """Open the run's folder, and make the release in it."""
    more = settings.vectors.places()
    for line in _plan_lines(ready.corpus, ready.found, settings, train=ready.imported is None):
        say(line)
    word_files, source = (settings.channel.keep_words, settings.channel.drop_words), ready.source(notes)
    read = (settings.identifiers.patients, settings.identifiers.phi_policy, *word_files, vectors, *more.values())
    asked = run_hash(settings, ready.question(source), *read, free=_NO_MATTER)
    with owner_only(), run_folder(out, KIND, asked, force=settings.force) as run:
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
        if (folder.vault / "vectors").exists():
            say("resuming: the vectors of the interrupted run are used")
        job = Job(ready.corpus, folder, key, settings, ready.known, ready.imported, say, ready.facts, over)
        return _run(job, ready.found, _Before(ledger, earlier, source), _Clock(say))


@dataclass(frozen=True)
class _Before:
    """What is known of the source: the ledger, earlier releases of the same notes in it, and the hash of the notes."""

    ledger: Ledger
    earlier: Sequence[Earlier]
    source_sha256: str

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


def _run(job: Job, found: Preflight, before: _Before, clock: _Clock) -> Outcome:
    settings = job.settings
    seeds = {name: job.key.digest(f"{name} seed") % 2**31 for name in ("training", "measuring")}
    rng = np.random.default_rng(seeds["measuring"])
    removal = f"find PHI, and treat it by {settings.identifiers.policy().name}" if settings.phi else "left out"
    with clock.stage("identifiers", removal, "keyed"):
        heard: list[Heard] = []
        protected, identifiers, left_out = (protect_parts if job.facts else protect)(job, heard.append)
    with clock.stage("vocabulary", "words and the patients who use them"):
        over = shown(found.over(settings.workers), "notes counted", clock.say, found.rows, lambda part: part.n_notes)
        counts = count_words(protected, job.folder.work, over=over)
    learning = settings.vectors.said_of(counts.n_tokens) if job.imported is None else "take those that were given"
    with clock.stage("vectors", learning) as row:
        with steps("passes", clock.say) as on_epoch:
            vectors = vectors_of(job, protected, counts, seeds["training"], on_epoch)
        if job.imported is None:
            row["determinism"] = str(vectors.meta.get("determinism", "statistical"))
    with clock.stage("neighbours", "neighbour table and channel"):
        channel = channel_of(job, vectors, counts)
        digests = {name: fingerprint(job.folder.vault / name) for name in ("vectors", "neighbours", "channel")}
    with clock.stage("obfuscate", f"replace every word, {mechanism_of(settings.channel).said}", "keyed"):
        if job.facts:  # each part is read back where it is written
            tally, check, path = draw_parts(job, protected, channel)
        else:
            tally, path = write_notes(job, protected, channel)
    released = opened(path, job.corpus.columns)
    if not job.facts:
        with clock.stage("check", "read the release back"):
            back = shown(found.over(settings.workers), "notes read back", clock.say, found.rows, lambda one: one.notes)
            check = _read_back(job, protected, released, channel, path, back)
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
    rows = Accounting(found.read, check.notes, found.skipped + left_out + tally.skipped)
    what = job, rows, counts, vectors, channel, tally, identifiers
    how = clock.rows, digests, seeds, before.source_sha256, fingerprint(path), before.earlier
    made = Obfuscation(*what, *how)
    account = made.account(_gates(made, check, path.name, findings), findings)
    sample = sources(job.corpus, rng, job.deidentifier(*heard))
    clock.say("report: two editions")
    record = record_of(made, account, not_tried(context), aligned(sample, job.obfuscator(channel), "Sampled note"))
    left = entry(found.hashes, account.run, job.key.commitment, job.folder.vault)
    enter = partial(before.enter, left, found, job.folder.vault)
    return publish(job.folder, account, record, demo_side_by_side(settings), enter)


def _gates(made: Obfuscation, check: OutputCheck, name: str, findings: Sequence[Finding]) -> list[Gate]:
    """All gates; `name` is that of the file of notes."""
    job, settings = made.job, made.job.settings
    return [
        *output_gates(check, made.tally, made.channel),
        *patient_gates(findings, digits=settings.channel.numbers != "drop"),
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
