"""`Finder`: detect the identifiers of a note with all detectors and with names found in other notes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Literal

from clinveil.core.spans import Span
from clinveil.phi.detection.adapter import adapters_for
from clinveil.phi.detection.detector import Detector, all_detectors
from clinveil.phi.detection.detectors.tagger import with_tagger
from clinveil.phi.detection.include_list import off_list
from clinveil.phi.detection.note import NoteView
from clinveil.phi.detection.overlaps import resolve
from clinveil.phi.name_index import NameIndex, mentions, names_in

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient
    from clinveil.phi.settings import PhiSettings

Revise = Callable[[str, str, list[Span]], list[Span]]
"""(note id, text, spans) -> final spans of a note, such as those after a reviewer's decisions."""
Propagate = Literal["patient", "note", "none"]
DetectedSpans = Mapping[tuple[str, str, str], list[Span]]
"""(note id, patient id, text) -> spans of the detectors."""


class Finder:
    """Detects identifiers; `Deidentifier` treats them.

    Args:
        finders: detectors to use instead of all registered ones; the default of `propagate` is then `none`.
        patients: known patients by patient id.
        revise: returns the final spans of a note.
        propagate: where to search for a name detected with a high score: in all notes of its patient (collected by a
            pass over the corpus; for a single note, only its own names are known), in its note, or nowhere.
        recall_first: whether every word that is not a common or clinical word is a possible name.
        kept: labels that the policy keeps unchanged; any other label that overlaps one of them wins.
    """

    def __init__(
        self,
        finders: Sequence[Detector] | None = None,
        *,
        patients: Mapping[str, Patient] | None = None,
        revise: Revise | None = None,
        propagate: Propagate | None = None,
        recall_first: bool = False,
        kept: Collection[str] = (),
    ) -> None:
        self.detectors = all_detectors() if finders is None else tuple(finders)
        self.patients, self.revise, self.kept = patients or {}, revise, kept
        self.propagate: Propagate = propagate or ("patient" if finders is None else "none")
        self.recall_first = recall_first
        self.name_index, self._detected = NameIndex(), dict[tuple[str, str, str], list[Span]]()

    @classmethod
    def of(
        cls, settings: PhiSettings, patients: Mapping[str, Patient] | None = None, revise: Revise | None = None
    ) -> Finder:
        """Return the finder for some settings."""
        policy = settings.policy()
        detectors = adapters_for([settings.engine]) if settings.engine else with_tagger(settings)
        return cls(
            [*detectors, *adapters_for(settings.also)],
            patients=patients,
            revise=revise,
            propagate=settings.propagate,
            recall_first=policy.recall_first,
            kept=policy.kept,
        )

    @property
    def uses_other_notes(self) -> bool:
        """Whether the result for a note depends on other notes."""
        return self.propagate == "patient" or self.recall_first

    def find(self, text: str, patient_id: str = "", note_id: str = "") -> list[Span]:
        """Return the spans of one note: sorted, without overlaps, in code points of `text`."""
        spans = self._detected.get((note_id, patient_id, text))
        view = self.view(text, patient_id, note_id)
        spans = self.detect(view) if spans is None else spans
        spans = self._complete(view, patient_id, spans)
        return spans if self.revise is None else self.revise(note_id, text, spans)

    def view(self, text: str, patient_id: str = "", note_id: str = "") -> NoteView:
        """Return the detectors' view of a note, with the known data of its patient."""
        return NoteView(text, note_id, self.patients.get(patient_id))

    def detect(self, view: NoteView) -> list[Span]:
        """Return the spans of the detectors in one note, without names of other notes and without revision."""
        spans = (span for detector in self.detectors for span in detector.find(view))
        return resolve(view.text, spans, self.kept)

    def for_patients(self, patient_ids: Iterable[str]) -> Finder:
        """Return a copy restricted to the data of some patients, as sent to a worker with its batch."""
        ids, other = set(patient_ids), copy(self)
        other.patients = {patient_id: self.patients[patient_id] for patient_id in ids if patient_id in self.patients}
        other.name_index = self.name_index.for_patients(ids)
        return other

    def with_context(self, name_index: NameIndex | None = None, detected: DetectedSpans | None = None) -> Finder:
        """Return a copy with the names of other notes, or with spans that the detectors have already returned."""
        other = copy(self)
        other.name_index = self.name_index if name_index is None else name_index
        other._detected = dict(self._detected if detected is None else detected)
        return other

    def _complete(self, view: NoteView, patient_id: str, spans: list[Span]) -> list[Span]:
        """Add to the detectors' spans those that follow from them and from other notes."""
        more: list[Span] = []
        if self.propagate != "none":
            names = names_in(view.text, spans) | self.name_index.patients.get(patient_id, frozenset())
            more += mentions(view, names, self.name_index.staff, spans)
        if self.recall_first:
            more += off_list(view, self.name_index.vocabulary)
        return resolve(view.text, [*spans, *more], self.kept) if more else spans
