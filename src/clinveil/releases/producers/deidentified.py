"""Kind `deidentified`: readable notes with surrogates instead of identifiers.

It is also the base of the kinds that write each source note once (`_channel.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from numpy.random import Generator

from clinveil.attacks import Context
from clinveil.core import Finding
from clinveil.corpus import Accounting, Corpus
from clinveil.phi import NameIndex
from clinveil.releases.attack_gates import patient_gates
from clinveil.releases.context import ReleaseContext
from clinveil.releases.gates import sound
from clinveil.releases.measured import AttackSample, sample_case
from clinveil.releases.prepared_input import Preflight
from clinveil.releases.producer import MEASURE, Producer, Product
from clinveil.releases.samples import as_treated, sources
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.treatment import counted, treated
from clinveil.releases.writing import opened, write_notes
from clinveil.report import AlignedNote, Gate
from clinveil.vectors import WordCounts


class DeidentifiedProducer(Producer):
    """Output of `clinveil deidentify` with new ids and the gates of a release."""

    keeps_markup = True
    audiences = ("agreement",)

    def plan(
        self, totals: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str]]:
        """Yield name and description of the stages of a run."""
        yield "identifiers", f"find identifiers, policy {settings.identifiers.policy().name}"
        yield "vocabulary", "count words and the patients who use them"
        yield "write", "new ids, keyed order; read the release back"
        yield MEASURE

    def make(self, job: ReleaseContext) -> Product:
        """Replace identifiers, write the notes with new ids, and read them back."""
        notes = treated(job)
        counts = counted(job, job.held_out.without(notes.corpus))
        _, check, path = write_notes(job, notes.corpus, None)
        rows = Accounting(job.totals.read, check.notes, job.totals.skipped + notes.skipped)
        return SourcedProduct(
            job=job,
            path=path,
            columns=job.corpus.columns,
            rows=rows,
            check=check,
            released=opened(path, job.corpus.columns),
            tokens=check.words,
            types=len(counts),
            patients=job.totals.patients,
            identifiers=notes.identifiers,
            entered=notes.corpus,
            counts=counts,
            name_index=notes.name_index,
        )


@dataclass(frozen=True, kw_only=True)
class SourcedProduct(Product):
    """Released notes that each have one source note.

    Attributes:
        entered: the notes with surrogates, under source ids. name_index: names found across notes,
            if searched for.
    """

    entered: Corpus = field(repr=False)
    counts: WordCounts = field(repr=False)
    name_index: NameIndex | None = field(repr=False)

    def context(self) -> Context:
        """Return source and released notes."""
        return Context(
            counts=self.counts,
            original=self.job.corpus,
            released=self.released,
            entered=self.entered,
            known=self.job.known,
            keep=self.job.settings.identifiers.unmoved(self.released.columns.keep),
            scratch=self.job.folder.work,
            workers=self.job.settings.workers,
            executor=self.job.notes_executor,
            test_patients=self.job.held_out.patients,
            unread=self.job.held_out.unread,
        )

    def sample_case(self, whole: Context) -> AttackSample:
        """Return all notes, or a keyed sample of patients."""
        job = self.job
        return sample_case(
            whole,
            job.folder.vault,
            words=job.settings.measure_words,
            salt=job.key.subkey("measured patients"),
            scratch=job.folder.work / "measured",
            executor=job.parts_executor,
        )

    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """Return the gates that the notes are unchanged after treatment, without patients' own
        identifiers.
        """
        return [sound("copied_text", self.check.unaligned), *patient_gates(findings)]

    def sampled(self, seen: Context, rng: Generator) -> list[AlignedNote]:
        """Return sampled source notes aligned with their released versions."""
        return as_treated(
            sources(seen.original or self.job.corpus, rng, self.job.deidentifier(self.name_index))
        )


DEIDENTIFIED = DeidentifiedProducer()
