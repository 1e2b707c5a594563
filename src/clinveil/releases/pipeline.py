"""The pipeline of `clinveil release`: from notes to release, vault and report, for every kind of
release.

A producer makes the notes of one kind. A release of one file and a release of part files differ
only in how stages spread their work (`treatment`, `writing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from clinveil.attacks import applicable, not_applicable
from clinveil.core import (
    TEST_SEED,
    Finding,
    GateError,
    Key,
    Location,
    RunFolder,
    Say,
    SigningKey,
    UsageError,
    fingerprint,
    owner_only,
    private_text,
    read_json,
    refuse_nested,
    remove,
    rough,
    run_folder,
    run_hash,
)
from clinveil.corpus import NO_PATIENTS, Corpus, HeldOutPatients, digest_of, part_files
from clinveil.phi import refuse_other_notes, reviewed_findings, without_marks
from clinveil.releases.attack_gates import (
    absent_gates,
    adversary_gates,
    contents_gate,
    kept_gates,
    missed_gate,
)
from clinveil.releases.context import ReleaseContext, StageTimer, hashing
from clinveil.releases.earlier.ledger import Earlier, Ledger, entry
from clinveil.releases.earlier.note_hashes import NoteHashes
from clinveil.releases.earlier.reuse import ReusedRun
from clinveil.releases.earlier.spending import refused
from clinveil.releases.gates import (
    judged,
    residue_gates,
    seed_gate,
    use_gates,
    variety_gate,
)
from clinveil.releases.held_out import MOST, draw_held_out, draw_independently
from clinveil.releases.kinds import kinds_with, no_kind, other_kind
from clinveil.releases.measured import attacked, skipped
from clinveil.releases.outcome import KIND, LEARNT, Outcome, RunPaths, finish
from clinveil.releases.preflight import prepared
from clinveil.releases.prepared_input import PreparedInput
from clinveil.releases.producer import Producer, Product, producer_of
from clinveil.releases.record import account_of, record_of
from clinveil.releases.samples import excerpts
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.shared_work import SharedWork
from clinveil.report import AUDIENCES, Limits, Verdict
from clinveil.scale import Map, opened_for, serial
from clinveil.utility import useful
from clinveil.vectors import VectorSettings


def dry_run(
    notes: Location,
    settings: ReleaseSettings,
    *,
    vectors: Path | None = None,
    reused: ReusedRun | None = None,
) -> Iterator[str]:
    """Yield the plan of a release ; write nothing. Arguments as `release`.

    Raises InputError for invalid notes, patients or kept words.
    """
    producer, settings = _producer(settings, vectors, reused)
    with _opened_for_parts(notes, settings) as over:
        ready = prepared(notes, settings, producer, vectors, over, reused=reused is not None)
    ready.broken.refuse()
    yield from _plan_lines(ready, settings, producer, _stages(ready, settings, producer, reused))
    if settings.seed is not None:
        yield "TEST SEED: the run will end in vault/refused with exit code 4"


def release(
    notes: Location,
    out: Path,
    settings: ReleaseSettings,
    *,
    vectors: Path | None = None,
    reused: ReusedRun | None = None,
    pairs: tuple[Path, ...] = (),
    public: Corpus | None = None,
    shared: SharedWork | None = None,
    say: Say = lambda _: None,
) -> Outcome:
    """Make a release, its vault and its report from notes.

    Args:
        vectors: pretrained word vectors to use instead of training on the notes.
        reused: an earlier run whose key, vectors, channel and model are reused.
        pairs: files of word pairs with human scores, for a measure of word vectors.
        public: public texts about the same patients, by source patient id, for a measure of
            linkage.
        shared: results of other releases of the same comparison. Such releases are not entered in
            the ledger: none of them is handed over.

    Raises:
        InputError: invalid notes or vectors. UsageError: OUT exists. Failed gates raise nothing:
            see `Outcome`.
    Source: paper A, Algorithm 1, with what `docs/design.md` adds.
    """
    producer, settings = _producer(settings, vectors, reused)
    ledger = _ledger(notes, out, settings, reused)
    before = reused is not None
    with _opened_for_parts(notes, settings) as executor:
        ready = prepared(notes, settings, producer, vectors, executor, say, reused=before)
        if reused is not None:
            reused.refuse(ledger, ready.totals.hashes, again=settings.again)
        source = fingerprint(notes, hashing(settings, executor))
        refuse_other_notes(settings.identifiers, ready.corpus, source)
        planned = _Planned(
            ready, settings, producer, source, vectors, reused, pairs, public, shared, say
        )
        with owner_only(), planned.run_folder(out) as run:
            job = planned.context(run, ledger)
            _announce(job, producer)
            return _run(job, producer, ledger)


def _ledger(
    notes: Location, out: Path, settings: ReleaseSettings, reused: ReusedRun | None
) -> Ledger:
    """Return the ledger. Raises UsageError for nested paths."""
    ledger = Ledger.at(settings.ledger, reused.folder if reused else out)
    refuse_nested(
        OUT=out,
        NOTES=notes,
        the_ledger=ledger.folder,
        the_reused_run=reused.folder if reused else None,
    )
    return ledger


@dataclass(frozen=True)
class _Planned:
    """A validated call of `release`; `source` is the hash of the notes."""

    ready: PreparedInput
    settings: ReleaseSettings
    producer: Producer
    source: str
    vectors: Path | None
    reused: ReusedRun | None
    pairs: tuple[Path, ...]
    public: Corpus | None
    shared: SharedWork | None
    say: Say

    @contextmanager
    def run_folder(self, out: Path) -> Iterator[RunFolder]:
        """Print the plan and open the folder of the run, with what is reused copied into it."""
        for line in _plan_lines(self.ready, self.settings, self.producer, self._stages()):
            self.say(line)
        asked = _asked(self.ready, self.settings, self.source, self.vectors, self.reused)
        # What was copied is not costly: a run that is refused leaves no folder.
        kind = replace(KIND, costly=frozenset()) if self.reused else KIND
        with run_folder(out, kind, asked, force=self.settings.force) as run:
            if self.reused is not None:
                self.reused.copy_to(run.vault)
            yield run

    def _stages(self) -> list[tuple[str, str]]:
        return _stages(self.ready, self.settings, self.producer, self.reused)

    def context(self, run: RunFolder, ledger: Ledger) -> ReleaseContext:
        """Return the context of the stages, with the test patients drawn."""
        ready = self.ready
        settings = self.settings
        key = run.key(settings.seed)
        salt = key.subkey("test patients")
        if self.shared is not None and self.shared.test_salt is not None:
            salt = self.shared.test_salt
        held_out = _held_out(ready, settings, self.producer, salt, run.vault, self.vectors)
        if self.shared is None:
            self.say(ledger.description)
        released = self.reused.entered(ledger) if self.reused else None
        return ReleaseContext(
            corpus=ready.corpus,
            totals=ready.totals,
            known=ready.known,
            imported=ready.imported,
            facts=ready.facts,
            names=ready.names,
            broken=ready.broken,
            executor=ready.executor,
            folder=RunPaths(run),
            key=key,
            settings=settings.resolved(len(held_out.training)),
            held_out=held_out,
            timer=StageTimer(self.say, plan=[stage for stage, _ in self._stages()]),
            source_sha256=self.source,
            earlier=[]
            if self.shared is not None
            else _earlier(ledger, ready.totals.hashes, key, settings, self.say),
            reused=self.reused,
            released=released,
            nth=released.number(run.vault) if released else 1,
            pairs=self.pairs,
            public=self.public,
            shared=self.shared,
        )


def _stages(
    ready: PreparedInput,
    settings: ReleaseSettings,
    producer: Producer,
    reused: ReusedRun | None,
) -> list[tuple[str, str]]:
    """Return name and description of the planned stages."""
    train = ready.imported is None and reused is None
    return [*producer.plan(ready.totals, settings, train=train)]


def _asked(
    ready: PreparedInput,
    settings: ReleaseSettings,
    source: str,
    vectors: Path | None,
    reused: ReusedRun | None,
) -> str:
    """Return the hash of everything that the run depends on.

    Parts are named, not hashed: a run may go on after a part was corrected.
    """
    words = settings.identifiers.policy().files[1:]
    earlier = [reused.seal] if reused else []
    return run_hash(settings, "\n".join(ready.names) or source, *words, vectors, *earlier)


def _producer(
    settings: ReleaseSettings, vectors: Path | None, reused: ReusedRun | None
) -> tuple[Producer, ReleaseSettings]:
    """Return the producer and its settings.

    Raises UsageError for arguments of other kinds of release, MissingExtra for missing packages.
    """
    if reused and vectors:
        raise UsageError("--vectors and --reuse exclude each other", hint="omit one of them")
    settings = reused.settings_for(settings) if reused else settings
    if not settings.kind:
        raise no_kind()
    producer = producer_of(settings.kind)
    Limits.read(settings.limits)
    if settings.audience not in producer.audiences:
        raise UsageError(
            f"{settings.kind} notes are readable, so they cannot leave to the public (--for"
            f" {settings.audience})",
            hint="choose --for agreement, or --as obfuscated or synthetic",
        )
    producer.refuse_early(settings)
    if settings.signing_key is not None:
        SigningKey.load(settings.signing_key)
    if vectors is not None and VectorSettings not in producer.settings:
        raise other_kind("--vectors", kinds_with((VectorSettings,)), settings.kind)
    return producer, settings


def _opened_for_parts(notes: Location, settings: ReleaseSettings) -> AbstractContextManager[Map]:
    """Open one executor for part files; with a single file each stage opens its own."""
    return (
        opened_for(settings.executor, settings.workers)
        if part_files(notes)
        else nullcontext(serial)
    )


def _held_out(
    ready: PreparedInput,
    settings: ReleaseSettings,
    producer: Producer,
    salt: bytes,
    vault: Path,
    vectors: Path | None,
) -> HeldOutPatients:
    """Draw the test patients, and store them in the vault; those of a reused or interrupted run
    stay.

    Given vectors may have read any notes, except those of a run with the same test patients.
    """
    before = HeldOutPatients.read(vault)
    if settings.synthetic.epsilon is not None:
        drawn = draw_independently(ready.totals.split, settings.test_share, salt, before)
    else:
        floor = producer.label_floor(settings)
        drawn = draw_held_out(
            ready.totals.split, settings.test_share, salt, floor=floor, before=before
        )
    sources = [before] if before else []
    if vectors is not None:
        of_vectors = HeldOutPatients.read(vectors.parent)
        sources.append(of_vectors or HeldOutPatients(frozenset(), frozenset(), unread=False))
    drawn = replace(
        drawn, unread=all(one.unread and drawn.patients.isdisjoint(one.training) for one in sources)
    )
    drawn.and_of(before).write(vault)
    return drawn


def _plan_lines(
    ready: PreparedInput,
    settings: ReleaseSettings,
    producer: Producer,
    stages: list[tuple[str, str]],
) -> Iterator[str]:
    columns = ready.corpus.columns
    found = ready.totals
    yield f"kind {settings.kind}"
    yield f"{found.rows:,} notes of {found.patients:,} patients, about {found.tokens:,} words"
    if columns.patient_id is None:
        yield f"{NO_PATIENTS} (pass --patient COLUMN)"
    kept = ", ".join(columns.keep) or "none"
    roles = f"text {columns.text}, id {columns.note_id}, patient {columns.patient_id or 'none'}"
    share = f"{settings.test_share:.0%} of the patients"
    if settings.label and settings.synthetic.epsilon is None and settings.test_share < MOST:
        share = f"{share} (up to {MOST:.0%} where labels have few patients)"
    yield f"{share} are held out of everything that is learned, to test utility on (test_share)"
    yield f"{roles}; kept: {kept}; dropped: {', '.join(columns.dropped) or 'none'}"
    yield from (f"  {stage:<15} {description}" for stage, description in stages)
    seconds = producer.seconds(found, settings)
    if seconds is not None:
        yield f"  in all roughly {rough(seconds)} on two cores"


def _announce(job: ReleaseContext, producer: Producer) -> None:
    """Report what needs attention, and forget what an interrupted run learned from other parts."""
    settings = job.settings
    vault = job.folder.vault
    if job.key.test_seed is not None:
        job.say(TEST_SEED)
    if settings.phi and (warning := settings.identifiers.policy().warning):
        job.say(warning)
    if job.reused is not None:
        parts = ", ".join(("key", "test patients", *job.reused.parts))
        job.say(f"reusing of release {job.reused.run}: {parts}")
        return
    if job.facts and read_json(vault / LEARNT) != {"of": (of := digest_of(job.facts))}:
        for name in producer.learns:
            remove(vault / name)
        private_text(vault / LEARNT, f'{{"of": "{of}"}}')
    if any((vault / name).exists() for name in producer.learns):
        job.say("resuming with the vectors or model of the interrupted run")


def _earlier(
    ledger: Ledger, notes: NoteHashes, key: Key, settings: ReleaseSettings, say: Say
) -> list[Earlier]:
    """Return earlier releases of the same notes under another key; raise UsageError for them
    without `--again`.

    A release with a test seed never leaves, so it is neither refused nor entered.
    """
    if key.test_seed is not None:
        return []
    overlapping = ledger.overlapping(notes, key.commitment)
    earlier = [one for one in overlapping if not one.entry.is_withdrawn]
    if not settings.again:
        ledger.refuse(earlier)
    for one in overlapping:
        for run, withdrawal in one.entry.withdrawn.items():
            say(f"not counted: release {run} of these notes was {withdrawal.description}")
    for one in earlier:
        say(
            f"again: {one.description} of these notes were released before, in release"
            f" {one.entry.run}"
        )
    return earlier


def _enter(job: ReleaseContext, ledger: Ledger, run: str, notes: NoteHashes) -> None:
    """Enter a release into the ledger.

    Raises GateError if the same notes were released while this run was in progress, except if both
    are private: the later one has counted what the other spent.
    """
    if job.shared is not None:
        return
    vault = job.folder.vault
    commitment = job.key.commitment
    known = {one.entry.commitment for one in job.earlier}
    with ledger.alone():
        own = ledger.of(commitment)
        now = ledger.earlier(notes, commitment)
        spent = own.spent if own else {}
        new_ones = (one for one in now if one.entry.commitment not in known)
        ledger.refuse([one for one in new_ones if not (spent and one.entry.spent)], GateError)
        if own is None:
            ledger.enter(entry(notes, run, commitment, vault, job.settings.kind), vault)
            return
        own.refuse(notes, again=job.settings.again, error=GateError)
        ledger.enter(own.grown(notes, run, vault), vault)


def _run(job: ReleaseContext, producer: Producer, ledger: Ledger) -> Outcome:
    """Make the notes, measure and judge them, and write the result."""
    seed = job.seeds["measuring"]
    rng = np.random.default_rng(seed)
    product = producer.make(job)
    with job.timer.stage("measure", "attacks and utility", f"seed {seed}"):
        sample = product.sample_case(replace(product.context(), public=job.public))
        if sample.description:
            job.say(f"measured on {sample.description}")
        tried = [*attacked(sample, rng, job.say), *product.findings(sample, rng)]
        kind = job.settings.kind
        listed = job.settings.identifiers.patients is not None
        findings = [*applicable(tried, kind), *not_applicable(kind)]
        utility = useful(
            product.for_utility(sample.context),
            product.columns.labels,
            job.settings.model,
            job.pairs,
        )
        findings += sample.labelled(utility)
        findings += reviewed_findings(job.settings.identifiers.reviewed)
        verdicts = _verdicts(job, product, findings)
    account = account_of(product, verdicts, findings)
    notes = product.sampled(sample.context, rng)
    shown = excerpts(sample.context.released or product.released, job.key)
    job.say("report")
    record = record_of(product, account, skipped(sample.context, kind, listed), shown)
    enter = partial(_enter, job, ledger, account.run, product.hashes)
    reader = hashing(job.settings, job.executor)
    outcome = finish(job.folder, account, record, notes, enter, reader)
    is_private = job.settings.synthetic.epsilon is not None
    if outcome.refused and is_private and job.key.test_seed is None:
        refused(job)
    return outcome


def _verdicts(
    job: ReleaseContext, product: Product, findings: Sequence[Finding]
) -> tuple[Verdict, ...]:
    """Return the verdict for the audience of the release, then that for the other one."""
    settings = job.settings
    always = [
        *product.gates(findings),
        *product.accounted(),
        variety_gate(product.check),
        contents_gate(job.folder.staging, product.path.name, product.columns),
        seed_gate(product.public_seeds()),
        *use_gates(findings),
    ]
    if not any(one.risk == "copies" for one in always):
        always += absent_gates(findings)
    limits = Limits.read(settings.limits)
    detected = product.identifiers.total() if product.identifiers is not None else 0
    cost = without_marks(job.totals.tokens, detected)
    verdicts = list[Verdict]()
    for audience in sorted(AUDIENCES, key=lambda one: one != settings.audience):
        rules = limits.rules(audience)
        gates = [
            *always,
            missed_gate(findings, rules["identifiers_missed"], settings.kind, cost),
            *residue_gates(job.residues, rules["residues"].most),
            *adversary_gates(findings, rules, settings.kind),
        ]
        gates += kept_gates(findings, rules["kept_columns"].most)
        verdicts.append(Verdict(audience, judged(gates, rules)))
    return tuple(verdicts)
