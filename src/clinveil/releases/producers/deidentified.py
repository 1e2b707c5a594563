"""Readable notes: identifiers are replaced by surrogates, and everything else stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from numpy.random import Generator

from clinveil.attacks.attack import Context
from clinveil.core.finding import Finding
from clinveil.core.progress import track
from clinveil.corpus.corpus import Accounting, Corpus
from clinveil.corpus.estimate import estimate
from clinveil.phi.name_index import NameIndex
from clinveil.releases.check import OutputCheck, check_copies
from clinveil.releases.crosswalk import ledger_batches
from clinveil.releases.gates import copy_gates, patient_gates
from clinveil.releases.measured import Measured, measured
from clinveil.releases.parts import copy_parts, opened
from clinveil.releases.producer import Producer, Product, producers
from clinveil.releases.protect import counted, protected
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.side_by_side import as_treated, sources
from clinveil.releases.stages import Making, Preflight, ReleaseContext, Target, as_written, released_in_order
from clinveil.report.record import AlignedNote, Gate
from clinveil.vectors.count import WordCounts

STAGES = ("read and count", "replace PHI", "check and report")


class Deidentified(Producer):
    """What `clinveil deidentify` writes, under new ids, behind the gates of a release."""

    uses = frozenset({"identifiers", "keep", "label", "order"})

    def plan(
        self, found: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str, float]]:
        """The stages of a run: name, what is done, estimated seconds."""
        treated = f"find PHI, and treat it by {settings.identifiers.policy().name}"
        what = "read the notes", treated, "read the release back, attack it, measure utility"
        guess = estimate(found.tokens, 1, workers=settings.workers, train=False, measure_words=settings.measure_words)
        yield from ((name, said, guess.stages[name]) for name, said in zip(STAGES, what, strict=True))

    def make(self, making: Making) -> Product:
        """Replace identifiers, write the notes under new ids, and read them back."""
        job, found, clock = making.job, making.found, making.clock
        heard: list[NameIndex] = []
        entered, identifiers, left_out = protected(making, heard.append)
        with clock.stage("vocabulary", "words of the notes"):
            counts = counted(job, found, entered)
        with clock.stage("write", "new ids, keyed order", "keyed"):
            if job.facts:
                check, path = copy_parts(job, entered)
            else:
                path = job.folder.staging / f"notes{job.corpus.suffix}"
                check = _written(job, entered, Target.of(job, path))
        accounting = Accounting(found.read, check.notes, found.skipped + left_out)
        released = opened(path, job.corpus.columns)
        sizes = counts.n_tokens, len(counts), counts.n_patients
        shared = job, path, job.corpus.columns, accounting, check, released, *sizes, identifiers
        return DeidentifiedProduct(*shared, entered=entered, counts=counts, heard=tuple(heard))


def _written(job: ReleaseContext, entered: Corpus, target: Target) -> OutputCheck:
    notes = track(as_written(entered), "notes", job.say, size=lambda one: one.batch.num_rows)
    target.write(notes, job.key)
    released = released_in_order(job, target.path, opened(target.path, job.corpus.columns))
    return check_copies(entered.batches(), ledger_batches(job.folder.vault, "crosswalk"), released)


@dataclass(frozen=True, kw_only=True)
class DeidentifiedProduct(Product):
    """Notes whose identifiers were replaced.

    Attributes:
        entered: the notes with surrogates, under their old ids. heard: what their names were found by.
    """

    entered: Corpus = field(repr=False)
    counts: WordCounts = field(repr=False)
    heard: tuple[NameIndex, ...] = field(repr=False)

    def context(self) -> Context:
        """Both sides of the release; no channel and no alignment."""
        return Context(
            counts=self.counts,
            original=self.job.corpus,
            released=self.released,
            entered=self.entered,
            known=self.job.known,
            keep=self.released.columns.keep,
            scratch=self.job.folder.work,
            workers=self.job.settings.workers,
        )

    def measured(self, whole: Context) -> Measured:
        """All notes, or patients drawn by the key."""
        job = self.job
        how = job.settings.measure_words, job.key.subkey("measured patients"), job.folder.work / "measured"
        seen = measured(whole, partial(ledger_batches, job.folder.vault, "crosswalk"), *how)
        return replace(seen, context=replace(seen.context, alignment=None), whole=replace(seen.whole, alignment=None))

    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """The notes are those that were treated, and patients' own identifiers are not in them."""
        return [*copy_gates(self.check), *patient_gates(findings, digits=True, shuffled=False)]

    def sampled(self, rng: Generator) -> list[AlignedNote]:
        """Sampled notes of the source next to their released ones."""
        return as_treated(sources(self.job.corpus, rng, self.job.deidentifier(*self.heard)), "Sampled note")


producers.register("deidentified")(Deidentified())
