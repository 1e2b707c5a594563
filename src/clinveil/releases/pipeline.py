"""The pipeline of `clinveil release`: from notes to release, vault and report, for every kind of
release.

A producer makes the notes of one kind; notes that are added to an earlier release have a producer
of their own. A release of one file and a release of part files differ only in how stages spread
their work (`treatment`, `writing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from clinveil.attacks.threats import gated_only, not_applicable
from clinveil.core.errors import GateError, InputError, UsageError
from clinveil.core.files import owner_only, private_text, read_json, refuse_nested, remove
from clinveil.core.keys import TEST_SEED, Key, SigningKey
from clinveil.core.runfolder import FREE, fingerprint, run_folder, run_hash
from clinveil.core.types import Say
from clinveil.corpus.corpus import NO_PATIENTS, Corpus
from clinveil.corpus.estimate import duration
from clinveil.corpus.held_out import TABLE, HeldOutPatients
from clinveil.corpus.part_facts import digest_of
from clinveil.corpus.part_files import part_files
from clinveil.corpus.uniqueness import Hashes
from clinveil.releases.attack_gates import contents_gate, kept_gates
from clinveil.releases.context import ReleaseContext, StageTimer, hashing
from clinveil.releases.earlier.ledger import Earlier, Entry, Ledger, entry
from clinveil.releases.earlier.parent import NewNotes, ParentRelease
from clinveil.releases.gates import residue_gates, seed_gate, variety_gates
from clinveil.releases.held_out import draw_held_out, draw_independently
from clinveil.releases.measured import attacked, skipped
from clinveil.releases.outcome import KIND, LEARNT, Outcome, Places, finish
from clinveil.releases.preflight import PreparedInput, prepared
from clinveil.releases.producer import Producer, other_kind, producers
from clinveil.releases.producers._added import AddedProducer
from clinveil.releases.record import account_of, record_of
from clinveil.releases.samples import excerpts
from clinveil.releases.settings import ReleaseSettings
from clinveil.scale import Map, serial
from clinveil.scale.executor import opened_for
from clinveil.utility.evaluations.transfer import useful

_NO_MATTER = FREE | {"again", "ledger", "signing_key"}


def dry_run(
    notes: Path,
    settings: ReleaseSettings,
    *,
    vectors: Path | None = None,
    base: ParentRelease | None = None,
) -> Iterator[str]:
    """Yield the plan of a release with estimated times; write nothing. Arguments as `release`.

    Raises InputError for invalid notes, patients or kept words.
    """
    producer, settings = _producer(settings, vectors, base)
    with _opened_for_parts(notes, settings) as over:
        ready = prepared(notes, settings, producer, vectors, over)
    ready.broken.refuse()
    yield from _plan_lines(
        ready, settings, [*producer.plan(ready.found, settings, train=ready.imported is None)]
    )
    if settings.seed is not None:
        yield "TEST SEED: the run will end in vault/refused with exit code 4"


def release(
    notes: Path,
    out: Path,
    settings: ReleaseSettings,
    *,
    vectors: Path | None = None,
    base: ParentRelease | None = None,
    pairs: tuple[Path, ...] = (),
    public: Corpus | None = None,
    say: Say = lambda _: None,
) -> Outcome:
    """Make a release, its vault and its report from notes.

    Args:
        vectors: pretrained word vectors to use instead of training on the notes.
        base: the release to add to; only settings that may differ from it are used.
        pairs: files of word pairs with human scores, for a measure of word vectors.
        public: public texts about the same patients, by source patient id, for a measure of
            linkage.

    Raises:
        InputError: invalid notes or vectors. UsageError: OUT exists. Failed gates raise nothing:
            see `Outcome`.
    Source: paper A, Algorithm 1, with what `docs/design.md` adds.
    """
    producer, settings = _producer(settings, vectors, base)
    ledger = Ledger.at(settings.ledger, base.vault.resolve().parent if base else out)
    refuse_nested(OUT=out, NOTES=notes, the_ledger=ledger.folder, **(base.places if base else {}))
    left = base.refuse_unledgered(ledger, out / KIND.vault) if base else None
    with _opened_for_parts(notes, settings) as over:
        ready = prepared(notes, settings, producer, vectors, over, say)
        stages = [*producer.plan(ready.found, settings, train=ready.imported is None)]
        source = fingerprint(notes, hashing(settings, over))
        # Parts are named, not hashed: a run may go on after a part was corrected.
        words = settings.channel.keep_words, settings.channel.drop_words
        people = settings.identifiers.files
        places = *settings.vectors.places().values(), *settings.synthetic.places
        read = *people, *words, vectors, *places, *([base.seal] if base else [])
        asked = run_hash(settings, "\n".join(ready.names) or source, *read, free=_NO_MATTER)
        for line in _plan_lines(ready, settings, stages):
            say(line)
        with owner_only(), run_folder(out, KIND, asked, force=settings.force) as run:
            if base is not None:
                base.copy_to(run.vault)
            key = run.key(settings.seed)
            held_out = _held_out(ready, settings, producer, key, run.vault, base, vectors)
            say(ledger.description)
            job = ReleaseContext(
                **vars(ready),
                folder=Places(run),
                key=key,
                settings=settings.resolved(len(held_out.training)),
                held_out=held_out,
                timer=StageTimer(say, plan={stage: seconds for stage, _, seconds in stages}),
                source_sha256=source,
                earlier=_earlier(ledger, ready.found.hashes, key, settings, say),
                pairs=pairs,
                public=public,
            )
            _announce(job, producer)
            return _run(job, producer, partial(_enter, job, ledger, left))


def _producer(
    settings: ReleaseSettings, vectors: Path | None, base: ParentRelease | None
) -> tuple[Producer, ReleaseSettings]:
    """Return the producer and its settings.

    Raises UsageError for arguments of other kinds of release, MissingExtra for missing packages.
    """
    if base and vectors:
        raise UsageError(
            "--vectors cannot differ from the release that is added to", hint="omit --vectors"
        )
    settings = base.settings_for(settings) if base else settings
    producer = AddedProducer(base) if base else producers.get(settings.kind)
    producer.refuse_early(settings)
    if settings.signing_key is not None:
        SigningKey.load(settings.signing_key)
    if vectors is not None and "vectors" not in producer.uses:
        raise other_kind(
            "--vectors", [name for name, one in producers if "vectors" in one.uses], settings.kind
        )
    return producer, settings


def _opened_for_parts(notes: Path, settings: ReleaseSettings) -> AbstractContextManager[Map]:
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
    key: Key,
    vault: Path,
    base: ParentRelease | None,
    vectors: Path | None,
) -> HeldOutPatients:
    """Draw the test patients, and store them in the vault; those of a reused vault or interrupted
    run stay.

    Given vectors may have read any notes, except those of a run with the same test patients.

    Raises InputError for a given model without the test patients of its run.
    """
    source = settings.synthetic.source
    before = HeldOutPatients.read(vault)
    if before is None and base is not None:
        before = HeldOutPatients.read(base.vault)
    if before is None and source is not None:
        before = HeldOutPatients.read(source.parent)
        if before is None:
            hint = "pass OUT/vault/model of a finished run where it is"
            raise InputError(f"has no {TABLE} next to it", where=source.name, hint=hint)
    salt = key.subkey("test patients")
    if settings.synthetic.epsilon is not None:
        drawn = draw_independently(ready.found.split, settings.test_share, salt, before)
    else:
        floor = producer.label_floor(settings)
        drawn = draw_held_out(
            ready.found.split, settings.test_share, salt, floor=floor, before=before
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
    ready: PreparedInput, settings: ReleaseSettings, stages: list[tuple[str, str, float]]
) -> Iterator[str]:
    columns = ready.corpus.columns
    found = ready.found
    yield f"kind {settings.kind}"
    yield f"{found.rows:,} notes of {found.patients:,} patients, about {found.tokens:,} words"
    if columns.patient_id is None:
        yield f"{NO_PATIENTS} (pass --patient COLUMN)"
    kept = ", ".join(columns.keep) or "none"
    roles = f"text {columns.text}, id {columns.note_id}, patient {columns.patient_id or 'none'}"
    share = f"{settings.test_share:.0%} of the patients"
    yield f"{share} are held out of everything that is learned, to test utility on (test_share)"
    yield f"{roles}; kept: {kept}; dropped: {', '.join(columns.dropped) or 'none'}"
    if isinstance(ready.corpus, NewNotes):
        yield from ready.corpus.summary()
    yield from (
        f"  {stage:<17} {what}, about {duration(seconds)}" for stage, what, seconds in stages
    )
    yield (
        f"  in all about {duration(sum(seconds for *_, seconds in stages))} with {settings.workers}"
        " workers"
    )


def _announce(job: ReleaseContext, producer: Producer) -> None:
    """Report what needs attention, and forget what an interrupted run learned from other parts."""
    settings = job.settings
    vault = job.folder.vault
    if job.key.test_seed is not None:
        job.say(TEST_SEED)
    if (
        "identifiers" in producer.uses
        and settings.phi
        and (warning := settings.identifiers.policy().warning)
    ):
        job.say(warning)
    if job.facts and read_json(vault / LEARNT) != {"of": (of := digest_of(job.facts))}:
        for name in producer.learns:
            remove(vault / name)
        private_text(vault / LEARNT, f'{{"of": "{of}"}}')
    if any((vault / name).exists() for name in producer.learns):
        job.say("resuming with the vectors or model of the interrupted run")


def _earlier(
    ledger: Ledger, hashes: Hashes, key: Key, settings: ReleaseSettings, say: Say
) -> list[Earlier]:
    """Return earlier releases of the same notes under another key; raise UsageError for them
    without `--again`.

    A release with a test seed never leaves, so it is neither refused nor entered.
    """
    if key.test_seed is not None:
        return []
    earlier = ledger.earlier(hashes, key.commitment)
    if not settings.again:
        ledger.refuse(earlier)
    for one in earlier:
        say(
            f"again: {one.description} of these notes were released before, in release"
            f" {one.entry.run}"
        )
    return earlier


def _enter(job: ReleaseContext, ledger: Ledger, left: Entry | None, run: str) -> None:
    """Enter a release into the ledger; `left` is the entry of what was released under its key
    before.

    Raises GateError if the same notes were released while this run was in progress, except if both
    are private: the later one has counted what the other spent.
    """
    hashes = job.found.hashes
    vault = job.folder.vault
    commitment = job.key.commitment
    new = (
        left.grown(hashes, run, vault)
        if left
        else entry(hashes, run, commitment, vault, job.settings.kind)
    )
    known = {one.entry.commitment for one in job.earlier}
    with ledger.alone():
        own = ledger.of(commitment)
        now = ledger.earlier(hashes, commitment)
        spent = own.spent if own else {}
        new_ones = (one for one in now if one.entry.commitment not in known)
        ledger.refuse([one for one in new_ones if not (spent and one.entry.spent)], GateError)
        ledger.enter(replace(new, spent=spent), vault)


def _run(job: ReleaseContext, producer: Producer, enter: Callable[[str], None]) -> Outcome:
    """Make the notes, measure and judge them, and write the result."""
    seed = job.seeds["measuring"]
    rng = np.random.default_rng(seed)
    product = producer.make(job)
    with job.timer.stage("measure", "attacks and utility", f"seed {seed}"):
        seen = product.measured(replace(product.context(), public=job.public))
        if seen.drawn:
            job.say(f"measured on {seen.drawn}")
        tried = [*attacked(seen, rng, job.say), *product.findings(seen, rng)]
        kind = job.settings.kind
        listed = job.settings.identifiers.patients is not None
        findings = [*gated_only(tried, product.judged, kind), *not_applicable(kind)]
        tasks = (
            product.for_utility(seen.context),
            product.columns.labels,
            job.settings.model,
            job.pairs,
        )
        findings += seen.marked(useful(*tasks))
        gates = [
            *product.gates(findings),
            *(
                kept_gates(findings, job.settings.max_kept)
                if product.varied and kind != "synthetic"
                else []
            ),
            *(variety_gates(product.check, findings) if product.varied else []),
            contents_gate(job.folder.staging, product.path.name, product.columns),
            *product.accounted(),
            *residue_gates(job.residues, job.settings.identifiers.max_residues),
            seed_gate(product.public_seeds()),
        ]
        findings, more = product.jointly(findings)
    account = account_of(product, [*gates, *more], findings)
    notes = product.sampled(seen.context, rng)
    shown = excerpts(seen.context.released or product.released, job.key)
    job.say("report")
    record = record_of(product, account, skipped(seen.context, kind, listed), shown)
    over = hashing(job.settings, job.over)
    return finish(job.folder, account, record, notes, partial(enter, account.run), over)
