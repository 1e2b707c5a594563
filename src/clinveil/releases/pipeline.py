"""The pipeline of `clinveil release`: from notes to release, vault and report, for every kind of release.

A release of one file and a release of part files differ only in how stages spread their work (`treatment`, `writing`).
A release that adds to an earlier one starts from a vault with that release's key, vectors, channel and crosswalk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.threats import gated_only, not_applicable
from clinveil.core.errors import GateError
from clinveil.core.files import owner_only, refuse_nested
from clinveil.core.finding import Finding
from clinveil.core.keys import TEST_SEED, Key, SigningKey
from clinveil.core.runfolder import FREE, fingerprint, run_folder, run_hash
from clinveil.core.types import Say
from clinveil.corpus.corpus import NO_PATIENTS
from clinveil.releases.attack_gates import contents_gate, kept_gates
from clinveil.releases.context import ReleaseContext, StageTimer
from clinveil.releases.earlier.ledger import Earlier, Entry, Hashes, Ledger, entry
from clinveil.releases.earlier.parent import ParentRelease
from clinveil.releases.earlier.series import ReleaseSeries, met_lines, series_gates, together
from clinveil.releases.gates import seed_gate, variety_gates
from clinveil.releases.measured import attacked, skipped, useful
from clinveil.releases.outcome import KIND, Outcome, Places, finish
from clinveil.releases.preflight import (
    NOTHING_MORE,
    MeasuredWith,
    PreparedInput,
    forget_others,
    opened_for_parts,
    prepared,
)
from clinveil.releases.producer import Product, other_kind, producers, refuse_adding
from clinveil.releases.record import Made, record_of
from clinveil.releases.samples import excerpts
from clinveil.releases.settings import ReleaseSettings
from clinveil.report.record import Gate

_NO_MATTER = FREE | {"again", "ledger", "signing_key"}


def dry_run(
    notes: Path, settings: ReleaseSettings, *, vectors: Path | None = None, base: ParentRelease | None = None
) -> Iterator[str]:
    """Yield the plan of a release with estimated times; write nothing. Arguments as `release`.

    Raises InputError for invalid notes, patients or kept words.
    """
    settings = base.settings_for(settings) if base else settings
    _refuse_other_kind(settings, vectors, base)
    with opened_for_parts(notes, settings) as over:
        ready = prepared(notes, settings, vectors, over, base)
    ready.broken.refuse()
    yield from _plan_lines(ready, settings)
    if settings.seed is not None:
        yield "TEST SEED: the run will end in vault/refused with exit code 4"


def _plan_lines(ready: PreparedInput, settings: ReleaseSettings) -> Iterator[str]:
    columns, found = ready.corpus.columns, ready.found
    yield f"kind {settings.kind}"
    yield f"{found.rows:,} notes of {found.patients:,} patients, about {found.tokens:,} words"
    if columns.patient_id is None:
        yield f"{NO_PATIENTS} (pass --patient COLUMN)"
    kept = ", ".join(columns.keep) or "none"
    roles = f"text {columns.text}, id {columns.note_id}, patient {columns.patient_id or 'none'}"
    yield f"{roles}; kept: {kept}; dropped: {', '.join(columns.dropped) or 'none'}"
    if ready.added is not None:
        yield from met_lines(ready.added)
    stages = _stages(ready, settings)
    yield from (f"  {stage:<17} {what}, about {seconds:,.0f} s" for stage, what, seconds in stages)
    yield f"  in all about {sum(seconds for *_, seconds in stages):,.0f} s with {settings.workers} workers"


def _stages(ready: PreparedInput, settings: ReleaseSettings) -> list[tuple[str, str, float]]:
    """Return the stages of the kind: name, description, estimated seconds."""
    train = ready.imported is None and ready.added is None
    return [*producers.get(settings.kind).plan(ready.found, settings, train=train)]


def release(
    notes: Path,
    out: Path,
    settings: ReleaseSettings,
    *,
    vectors: Path | None = None,
    base: ParentRelease | None = None,
    before: Sequence[Path] = (),
    measured_with: MeasuredWith = NOTHING_MORE,
    say: Say = lambda _: None,
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
        ready = prepared(notes, settings, vectors, over, base, joint=bool(before), say=say)
        ready = replace(ready, measured_with=measured_with)
        series = ReleaseSeries.of(base, before, ready.corpus.columns.keep) if base else None
        source = fingerprint(notes)
        files = _files_read(settings, vectors, base, before)
        asked = run_hash(settings, ready.question(source), *files, free=_NO_MATTER)
        for line in _plan_lines(ready, settings):
            say(line)
        with owner_only(), run_folder(out, KIND, asked, force=settings.force) as run:
            if base is not None:
                base.copy_to(run.vault)
            timer = StageTimer(say, plan={stage: seconds for stage, _, seconds in _stages(ready, settings)})
            how: dict[str, Any] = {"key": run.key(settings.seed), "settings": settings.resolved(ready.found.patients)}
            job = ReleaseContext(**vars(ready), **how, folder=Places(run), timer=timer, series=series)
            say(ledger.description)
            earlier = _earlier(ledger, ready.found.hashes, job.key, settings, say)
            _announce(job)
            return _run(job, _History(ledger, earlier, source, left))


def _refuse_other_kind(settings: ReleaseSettings, vectors: Path | None, base: ParentRelease | None) -> None:
    """Raise UsageError for arguments of other kinds of release, MissingExtra for missing packages."""
    producer = producers.get(settings.kind)
    producer.refuse_early(settings)
    if settings.signing_key is not None:
        SigningKey.load(settings.signing_key)
    if vectors is not None and "vectors" not in producer.uses:
        raise other_kind("--vectors", [name for name, one in producers if "vectors" in one.uses], settings.kind)
    if base is not None:
        refuse_adding(settings.kind)


def _files_read(
    settings: ReleaseSettings, vectors: Path | None, base: ParentRelease | None, before: Sequence[Path]
) -> list[Path | str | None]:
    """Return everything besides notes and settings that the release depends on."""
    words = settings.channel.keep_words, settings.channel.drop_words
    people = settings.identifiers.patients, settings.identifiers.phi_policy
    earlier: tuple[Path | str, ...] = (base.seal, *before) if base else ()
    return [*people, *words, vectors, *settings.vectors.places().values(), *settings.synthetic.places, *earlier]


def _announce(job: ReleaseContext) -> None:
    """Report what needs attention, and forget what an interrupted run learned from other parts."""
    settings, learns = job.settings, producers.get(job.settings.kind).learns
    if job.key.test_seed is not None:
        job.say(TEST_SEED)
    uses = producers.get(settings.kind).uses
    if "identifiers" in uses and settings.phi and (warning := settings.identifiers.policy().warning):
        job.say(warning)
    if settings.order == "source":
        job.say("rows keep the source order: anyone who knows that order can match notes with patients")
    if job.facts:
        forget_others(job.folder.vault, job.facts, learns)
    if job.added is None and any((job.folder.vault / name).exists() for name in learns):
        job.say("resuming with the vectors or model of the interrupted run")


@dataclass(frozen=True)
class _History:
    """Ledger, earlier releases of the same notes, hash of the source, and the entry of earlier releases of the key."""

    ledger: Ledger
    earlier: Sequence[Earlier]
    source_sha256: str
    left: Entry | None = None

    def enter(self, job: ReleaseContext, run: str) -> None:
        """Enter the release. Raises GateError if the same notes were released while this run was in progress."""
        hashes, vault = job.found.hashes, job.folder.vault
        new = (
            entry(hashes, run, job.key.commitment, vault) if self.left is None else self.left.grown(hashes, run, vault)
        )
        own = self.ledger.of(new.commitment)
        new = replace(new, spent=own.spent if own else {})
        known = {one.entry.commitment for one in self.earlier}
        now = self.ledger.earlier(hashes, new.commitment)
        self.ledger.refuse([one for one in now if one.entry.commitment not in known], GateError)
        self.ledger.enter(new, job.folder.vault)


def _earlier(ledger: Ledger, hashes: Hashes, key: Key, settings: ReleaseSettings, say: Say) -> list[Earlier]:
    """Return earlier releases of the same notes under another key; raise UsageError for them without `--again`.

    A release with a test seed never leaves, so it is neither refused nor entered.
    """
    if key.test_seed is not None:
        return []
    earlier = ledger.earlier(hashes, key.commitment)
    if not settings.again:
        ledger.refuse(earlier)
    for one in earlier:
        say(f"again: {one.description} of these notes were released before, in release {one.entry.run}")
    return earlier


def _run(job: ReleaseContext, before: _History) -> Outcome:
    """Make the notes, measure and judge them, and write the result."""
    seed = job.seeds["measuring"]
    rng = np.random.default_rng(seed)
    product = producers.get(job.settings.kind).make(job)
    with job.timer.stage("measure", "attacks and utility", f"seed {seed}"):
        whole = replace(product.context(), public=job.measured_with.public)
        seen = product.measured(whole)
        if seen.drawn:
            job.say(f"measured on {seen.drawn.description}")
        tried = [*attacked(seen, rng, job.say), *product.findings(seen, rng)]
        findings = [*gated_only(tried, product.judged), *not_applicable(job.settings.kind)]
        tasks = product.for_utility(seen.context), product.columns.labels, job.settings.model, job.measured_with.pairs
        findings += seen.marked(useful(*tasks))
        findings += product.cost_of_keeping(seen.context, rng)
        shared = job.series.findings(job, whole) if job.series else []
    made = Made(product, before.source_sha256, fingerprint(product.path), before.earlier)
    gates = [*_gates(product, findings), *series_gates(job, shared)]
    account = made.account(gates, together(job, findings, shared, seed))
    notes, shown = product.sampled(rng), excerpts(product.released, job.key)
    job.say("report: two editions")
    record = record_of(made, account, skipped(seen.context), notes, shown)
    enter = partial(before.enter, job, account.run)
    return finish(job.folder, account, record, enter, job.settings.switched_off_by)


def _gates(product: Product, findings: Sequence[Finding]) -> list[Gate]:
    """Return the gates of the kind and the gates of every release."""
    job = product.job
    return [
        *product.gates(findings),
        # A few added notes are unique by their number alone; synthetic notes have drawn values.
        *(kept_gates(findings, job.settings.max_kept) if not job.added and job.settings.kind != "synthetic" else []),
        *([] if job.added else variety_gates(product.check, findings)),  # a few added notes may lack variety
        contents_gate(job.folder.staging, product.path.name, product.columns),
        *product.accounted(),
        seed_gate(product.public_seeds()),
    ]
