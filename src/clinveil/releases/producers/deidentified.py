"""Kind `deidentified`: readable notes with surrogates instead of identifiers."""

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
from clinveil.releases.crosswalk import vault_batches
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
    """Output of `clinveil deidentify` with new ids and the gates of a release."""

    uses = frozenset({"identifiers", "keep", "label", "order"})

    def plan(
        self, found: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str, float]]:
        """Yield the stages of a run: name, description, estimated seconds."""
        treated = f"find identifiers, policy {settings.identifiers.policy().name}"
        what = "read the notes", treated, "read the release back, attack it, measure utility"
        guess = estimate(found.tokens, 1, workers=settings.workers, train=False, measure_words=settings.measure_words)
        yield from ((name, text, guess.stages[name]) for name, text in zip(STAGES, what, strict=True))

    def make(self, making: Making) -> Product:
        """Replace identifiers, write the notes with new ids, and read them back."""
        job, found, timer = making.job, making.found, making.timer
        indexes: list[NameIndex] = []
        entered, identifiers, left_out = protected(making, indexes.append)
        with timer.stage("vocabulary", "words of the notes"):
            counts = counted(job, found, entered)
        with timer.stage("write", "new ids, keyed order", "keyed"):
            if job.facts:
                check, path = copy_parts(job, entered)
            else:
                path = job.folder.staging / f"notes{job.corpus.suffix}"
                check = _written(job, entered, Target.of(job, path))
        accounting = Accounting(found.read, check.notes, found.skipped + left_out)
        released = opened(path, job.corpus.columns)
        sizes = counts.n_tokens, len(counts), counts.n_patients
        shared = job, path, job.corpus.columns, accounting, check, released, *sizes, identifiers
        return DeidentifiedProduct(*shared, entered=entered, counts=counts, name_indexes=tuple(indexes))


def _written(job: ReleaseContext, entered: Corpus, target: Target) -> OutputCheck:
    notes = track(as_written(entered), "notes", job.say, size=lambda one: one.batch.num_rows)
    target.write(notes, job.key)
    released = released_in_order(job, target.path, opened(target.path, job.corpus.columns))
    return check_copies(entered.batches(), vault_batches(job.folder.vault, "crosswalk"), released)


@dataclass(frozen=True, kw_only=True)
class DeidentifiedProduct(Product):
    """Notes with replaced identifiers.

    Attributes:
        entered: the notes with surrogates, under source ids. name_indexes: names found across notes, at most one index.
    """

    entered: Corpus = field(repr=False)
    counts: WordCounts = field(repr=False)
    name_indexes: tuple[NameIndex, ...] = field(repr=False)

    def context(self) -> Context:
        """Return source and released notes, without channel and alignment."""
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
        """Return all notes, or a keyed sample of patients."""
        job = self.job
        how = job.settings.measure_words, job.key.subkey("measured patients"), job.folder.work / "measured"
        seen = measured(whole, partial(vault_batches, job.folder.vault, "crosswalk"), *how)
        return replace(seen, context=replace(seen.context, alignment=None), whole=replace(seen.whole, alignment=None))

    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """Return the gates that the notes are unchanged after treatment, without patients' own identifiers."""
        return [*copy_gates(self.check), *patient_gates(findings, digits=True, shuffled=False)]

    def sampled(self, rng: Generator) -> list[AlignedNote]:
        """Return sampled source notes aligned with their released versions."""
        return as_treated(sources(self.job.corpus, rng, self.job.deidentifier(*self.name_indexes)), "Sampled note")


producers.register("deidentified")(Deidentified())
