"""Read and validate the input of a release before anything is written."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from clinveil.core.neural import need_torch
from clinveil.core.types import Say
from clinveil.corpus.corpus import rows as note_rows
from clinveil.corpus.open import OpenedCorpus, PartedCorpus, open_corpus, open_text
from clinveil.corpus.part_facts import PartFacts
from clinveil.corpus.part_files import part_files
from clinveil.corpus.people import Patient, read_patients
from clinveil.releases.new_notes import NewNotes
from clinveil.releases.parent import ParentRelease
from clinveil.releases.parts import preflight_parts
from clinveil.releases.producer import producers
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.stage_timer import nothing
from clinveil.releases.stages import NOTHING_MORE, MeasuredWith, Preflight, preflight
from clinveil.scale import Map, serial
from clinveil.scale.executor import opened_for
from clinveil.scale.pieces import Broken
from clinveil.utility.classifiers import any_neural
from clinveil.vectors.algorithms.cbow import need_gensim
from clinveil.vectors.files import load_vectors
from clinveil.vectors.imported import refuse_foreign
from clinveil.vectors.table import Vectors


@dataclass(frozen=True)
class PreparedInput:
    """Input of a run: notes, preflight, known patients, vectors; for part files the readable parts, facts per part, the
    names of all parts and the errors of the others; and additional input of the measures."""

    corpus: OpenedCorpus | NewNotes
    found: Preflight
    known: dict[str, Patient]
    imported: Vectors | None
    facts: tuple[PartFacts, ...] = ()
    names: tuple[str, ...] = ()
    broken: Broken = field(default_factory=Broken)
    measured_with: MeasuredWith = NOTHING_MORE

    def question(self, source: str) -> str:
        """Return the identity of the notes for resuming: part names (a corrected part may resume), else the hash."""
        return "\n".join(self.names) or source


def ready_for(
    notes: Path,
    settings: ReleaseSettings,
    place: Path | None,
    over: Map,
    base: ParentRelease | None = None,
    *,
    joint: bool = False,
    say: Say = nothing,
) -> PreparedInput:
    """Read and validate the input of a run."""
    producer = producers.get(settings.kind)
    settings.vectors.refuse_beside(place)
    known = read_patients(settings.identifiers.patients) if settings.identifiers.patients else {}
    if any_neural(settings.model):
        need_torch()  # fail now instead of hours later
    if place is None:
        need_gensim(settings.vectors.algorithm)
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    facts, names, broken = tuple[PartFacts, ...](), tuple[str, ...](), Broken()
    if base is not None:
        added = NewNotes(corpus, base, joint)
        found = preflight(added, say)
        base.refuse_same(found.hashes, again=settings.again)
        return PreparedInput(added, found, known, None)
    if isinstance(corpus, PartedCorpus):
        names = tuple(part.name for part in corpus.parts)
        corpus, found, facts = preflight_parts(corpus, over, say, broken)
    else:
        found = preflight(corpus, say)
    if not broken.errors:
        producer.refuse_notes(found, settings)
    if settings.vectors.more_text:
        open_text(settings.vectors.more_text)
    imported = load_vectors(place) if place else None
    if imported is not None:
        refuse_foreign(imported, (note.text for note in note_rows(corpus)))
    return PreparedInput(corpus, found, known, imported, facts, names, broken)


def opened_for_parts(notes: Path, settings: ReleaseSettings) -> AbstractContextManager[Map]:
    """Open one executor for part files; with a single file each stage opens its own."""
    return opened_for(settings) if part_files(notes) else nullcontext(serial)
