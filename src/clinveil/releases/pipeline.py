"""The pipeline of `clinveil release`: from notes to release, vault and report, for every kind of release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from clinveil.attacks.threats import not_applicable
from clinveil.channel.channel import Channel
from clinveil.channel.files import load_channel
from clinveil.core.errors import GateError, InputError
from clinveil.core.files import owner_only, refuse_nested
from clinveil.core.finding import Finding
from clinveil.core.keys import TEST_SEED, Key
from clinveil.core.runfolder import FREE, fingerprint, run_folder, run_hash
from clinveil.core.types import Say
from clinveil.corpus.corpus import NO_PATIENTS, Corpus
from clinveil.releases.added import met_lines
from clinveil.releases.attack_gates import contents_gate
from clinveil.releases.excerpts import excerpts
from clinveil.releases.finish import KIND, Outcome, Places, finish
from clinveil.releases.gates import seed_gate, variety_gates
from clinveil.releases.ledger import Earlier, Entry, Hashes, Ledger, entry
from clinveil.releases.measured import attacked, skipped, useful
from clinveil.releases.new_notes import NewNotes
from clinveil.releases.parent import ParentRelease
from clinveil.releases.parts import forget_others
from clinveil.releases.prepared import PreparedInput, opened_for_parts, ready_for
from clinveil.releases.producer import Producer, Product, other_kind, producers, refuse_adding
from clinveil.releases.record import Made, record_of
from clinveil.releases.series import ReleaseSeries, series_findings, series_gates, together
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.stage_timer import StageTimer, nothing
from clinveil.releases.stages import NOTHING_MORE, Making, MeasuredWith, Preflight, ReleaseContext
from clinveil.report.record import Gate
from clinveil.scale import Map

_NO_MATTER = FREE | {"again", "ledger"}


def dry_run(
    notes: Path, settings: ReleaseSettings, *, vectors: Path | None = None, base: ParentRelease | None = None
) -> Iterator[str]:
    """Yield the plan of a release with estimated times; write nothing. Arguments as `release`.

    Raises InputError for invalid notes, patients or kept words.
    """
    settings = base.settings_for(settings) if base else settings
    _refuse_other_kind(settings, vectors, base)
    with opened_for_parts(notes, settings) as over:
        ready = ready_for(notes, settings, vectors, over, base)
    ready.broken.refuse()
    yield from _plan_lines(ready.corpus, ready.found, settings, train=ready.imported is None)
    if settings.seed is not None:
        yield "TEST SEED: the run will end in vault/refused with exit code 4"


def _plan_lines(corpus: Corpus, found: Preflight, settings: ReleaseSettings, *, train: bool) -> Iterator[str]:
    columns = corpus.columns
    yield f"kind {settings.kind}"
    yield f"{found.rows:,} notes of {found.patients:,} patients, about {found.tokens:,} words"
    if columns.patient_id is None:
        yield f"{NO_PATIENTS} (pass --patient COLUMN)"
    kept = ", ".join(columns.keep) or "none"
    yield f"text {columns.text}, id {columns.note_id}; kept: {kept}; dropped: {', '.join(columns.dropped) or 'none'}"
    added = corpus if isinstance(corpus, NewNotes) else None
    if added is not None:
        yield from met_lines(added)
    steps = [*_steps(corpus, found, settings, train=train)]
    yield from (f"  {stage:<17} {what}, about {seconds:,.0f} s" for stage, what, seconds in steps)
    yield f"  in all about {sum(seconds for *_, seconds in steps):,.0f} s with {settings.workers} workers"


def _steps(
    corpus: Corpus, found: Preflight, settings: ReleaseSettings, *, train: bool
) -> Iterator[tuple[str, str, float]]:
    """Yield the stages of the kind: name, description, estimated seconds."""
    yield from producers.get(settings.kind).plan(found, settings, train=train and not isinstance(corpus, NewNotes))


def _plan(corpus: Corpus, found: Preflight, settings: ReleaseSettings, *, train: bool) -> dict[str, float]:
    """Return the estimated seconds by stage."""
    return {stage: seconds for stage, _, seconds in _steps(corpus, found, settings, train=train)}


def release(
    notes: Path,
    out: Path,
    settings: ReleaseSettings,
    *,
    vectors: Path | None = None,
    base: ParentRelease | None = None,
    before: Sequence[Path] = (),
    measured_with: MeasuredWith = NOTHING_MORE,
    say: Say = nothing,
) -> Outcome:
    """Make a release, its vault and its report from notes.

    Args:
        vectors: pretrained word vectors to use instead of training on the notes.
        base: the release to add to; only settings that may differ from it are used.
        before: source notes of the earlier releases, to detect names and measure jointly.
        measured_with: word pairs and public texts for the measures; without effect on the released notes.

    Raises:
        InputError: invalid notes or vectors. UsageError: OUT exists. Failed gates raise nothing: see `Outcome`.
    Source: paper A, Algorithm 1, with what `docs/design.md` adds.
    """
    settings = base.settings_for(settings) if base else settings
    _refuse_other_kind(settings, vectors, base)
    ledger = Ledger.at(settings.ledger, out)
    refuse_nested(OUT=out, NOTES=notes, the_ledger=ledger.folder, **(base.places if base else {}))
    left = base.refuse_unledgered(ledger, out / KIND.vault) if base else None
    with opened_for_parts(notes, settings) as over:
        ready = ready_for(notes, settings, vectors, over, base, joint=bool(before), say=say)
        ready = replace(ready, measured_with=measured_with)
        return _made(notes, out, settings, ready, _Added.to(base, before, left, ready), ledger, over, vectors, say)


def _refuse_other_kind(settings: ReleaseSettings, vectors: Path | None, base: ParentRelease | None) -> None:
    """Raise UsageError for arguments of other kinds of release, MissingExtra for missing packages."""
    producer = producers.get(settings.kind)
    producer.refuse_early(settings)
    if vectors is not None and "vectors" not in producer.uses:
        raise other_kind("--vectors", [name for name, one in producers if "vectors" in one.uses], settings.kind)
    if base is not None:
        refuse_adding(settings.kind)


@dataclass(frozen=True)
class _Added:
    """The release to add to, its ledger entry, and the series of releases."""

    base: ParentRelease
    before: Sequence[Path]
    left: Entry | None
    series: ReleaseSeries | None

    @classmethod
    def to(
        cls, base: ParentRelease | None, before: Sequence[Path], left: Entry | None, ready: PreparedInput
    ) -> _Added | None:
        return cls(base, before, left, ReleaseSeries.of(base, before, ready.corpus.columns.keep)) if base else None


def _made(
    notes: Path,
    out: Path,
    settings: ReleaseSettings,
    ready: PreparedInput,
    added: _Added | None,
    ledger: Ledger,
    over: Map,
    vectors: Path | None,
    say: Say,
) -> Outcome:
    """Open the run folder and make the release in it."""
    more = settings.vectors.places()
    plan = _plan(ready.corpus, ready.found, settings, train=ready.imported is None)
    for line in _plan_lines(ready.corpus, ready.found, settings, train=ready.imported is None):
        say(line)
    word_files, source = (settings.channel.keep_words, settings.channel.drop_words), fingerprint(notes)
    read = (settings.identifiers.patients, settings.identifiers.phi_policy, *word_files, vectors, *more.values())
    read += (settings.synthetic.source,)
    seal: tuple[Path | str, ...] = (added.base.seal, *added.before) if added else ()
    producer = producers.get(settings.kind)
    asked = run_hash(settings, ready.question(source), *read, *seal, free=_NO_MATTER)
    with owner_only(), run_folder(out, KIND, asked, force=settings.force) as run:
        if added is not None:
            added.base.copy_to(run.vault)
        folder, key = Places(run), run.key(settings.seed)
        if key.test_seed is not None:
            say(TEST_SEED)
        earlier = _earlier(ledger, ready.found, key, settings, say)
        if "identifiers" in producer.uses and settings.phi and (warning := settings.identifiers.policy().warning):
            say(warning)
        if settings.order == "source":
            say("rows keep the source order: anyone who knows that order can match notes with patients")
        if ready.facts:
            forget_others(folder, ready.facts, producer.learns)
        if added is None and any((folder.vault / name).exists() for name in producer.learns):
            say("resuming with the vectors or model of the interrupted run")
        parts = ready.facts, over, ready.broken, ready.measured_with
        job = ReleaseContext(
            ready.corpus, folder, key, settings.resolved(ready.found.patients), ready.known, ready.imported, say, *parts
        )
        of_base = (added.left, added.series) if added else (None, None)
        return _run(
            producer, job, ready.found, _ReleaseHistory(ledger, earlier, source, *of_base), StageTimer(say, plan=plan)
        )


@dataclass(frozen=True)
class _ReleaseHistory:
    """Ledger, earlier releases of the same notes, hash of the source, and the series under the same key."""

    ledger: Ledger
    earlier: Sequence[Earlier]
    source_sha256: str
    left: Entry | None = None
    series: ReleaseSeries | None = None

    def entry(self, hashes: Hashes, run: str, commitment: str, vault: Path) -> Entry:
        """Return the ledger entry of a release, including earlier releases under its key."""
        return entry(hashes, run, commitment, vault) if self.left is None else self.left.grown(hashes, run, vault)

    def enter(self, left: Entry, found: Preflight, vault: Path) -> None:
        """Enter the release. Raises GateError if the same notes were released while this run was in progress."""
        known = {one.entry.commitment for one in self.earlier}
        now = self.ledger.earlier(found.hashes, left.commitment)
        self.ledger.refuse([one for one in now if one.entry.commitment not in known], GateError)
        self.ledger.enter(left, vault)

    def channel(self) -> Channel | None:
        """Return the channel of the most similar earlier release whose vault still exists, or None."""
        for one in self.earlier:
            with suppress(InputError):
                return load_channel(one.entry.vault / "channel")
        return None


def _earlier(ledger: Ledger, found: Preflight, key: Key, settings: ReleaseSettings, say: Say) -> list[Earlier]:
    """Return earlier releases of the same notes under another key; raise UsageError for them without `--again`.

    A release with a test seed never leaves, so it is neither refused nor entered.
    """
    if key.test_seed is not None:
        return []
    earlier = ledger.earlier(found.hashes, key.commitment)
    if not settings.again:
        ledger.refuse(earlier)
    for one in earlier:
        say(f"again: {one.description} of these notes were released before, in release {one.entry.run}")
    return earlier


def _run(
    producer: Producer, job: ReleaseContext, found: Preflight, before: _ReleaseHistory, timer: StageTimer
) -> Outcome:
    seeds = {name: job.key.digest(f"{name} seed") % 2**31 for name in ("training", "measuring")}
    rng = np.random.default_rng(seeds["measuring"])
    making = Making(job, found, timer, seeds, before.series)
    product = producer.make(making)
    with timer.stage("measure", "attacks and utility", f"seed {seeds['measuring']}"):
        earlier = before.channel() if product.channel else None
        whole = replace(product.context(), earlier=earlier, public=job.measured_with.public)
        seen = product.measured(whole)
        if seen.drawn:
            timer.say(f"measured on {seen.drawn.description}")
        findings = [*attacked(seen, rng, timer.say), *product.findings(seen, rng), *not_applicable(job.settings.kind)]
        tasks = product.for_utility(seen.context), product.columns.labels, job.settings.model, job.measured_with.pairs
        findings += seen.marked(useful(*tasks))
        findings += product.cost_of_keeping(seen.context, rng)
        shared, making.coverage = series_findings(job, before.series, whole, timer.say)
    made = Made(product, making, timer.rows, before.source_sha256, fingerprint(product.path), before.earlier)
    gates = [*_gates(product, findings), *series_gates(job.settings, shared)]
    account = made.account(gates, together(job, findings, shared, seeds["measuring"]))
    notes, shown = product.sampled(rng), excerpts(product.released, job.key)
    timer.say("report: two editions")
    record = record_of(made, account, skipped(seen.context), notes, shown)
    left = before.entry(found.hashes, account.run, job.key.commitment, job.folder.vault)
    enter = partial(before.enter, left, found, job.folder.vault)
    return finish(job.folder, account, record, enter, job.settings.switched_off_by)


def _gates(product: Product, findings: Sequence[Finding]) -> list[Gate]:
    """Return the gates of the kind and the gates of every release."""
    job = product.job
    return [
        *product.gates(findings),
        *([] if job.added else variety_gates(product.check, findings)),  # a few added notes may lack variety
        contents_gate(job.folder.staging, product.path.name, product.columns),
        *product.accounted(),
        seed_gate(product.public_seeds()),
    ]
