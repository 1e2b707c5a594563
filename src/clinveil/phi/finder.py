"""`Finder`: where the identifiers of a note stand, by all detectors together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from clinveil.core.spans import Span
from clinveil.phi.detector import Detector, all_detectors
from clinveil.phi.note import NoteView
from clinveil.phi.policy import resolve

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient
    from clinveil.phi.settings import PhiSettings

Revise = Callable[[str, str, list[Span]], list[Span]]
"""(note id, text, spans) -> spans: the last word on what was found in a note, such as a reviewer's decisions."""


class Finder:
    """Finds identifiers; what becomes of them is another's (`Deidentifier`).

    Args:
        finders: detectors to use in place of all that are registered.
        patients: what is known of patients beforehand, by patient id.
        revise: what has the last word on the spans of a note.
    """

    def __init__(
        self,
        finders: Sequence[Detector] | None = None,
        *,
        patients: Mapping[str, Patient] | None = None,
        revise: Revise | None = None,
    ) -> None:
        self.detectors = all_detectors() if finders is None else tuple(finders)
        self.patients, self.revise = patients or {}, revise

    @classmethod
    def of(
        cls, settings: PhiSettings, patients: Mapping[str, Patient] | None = None, revise: Revise | None = None
    ) -> Finder:
        """The finder that settings ask for."""
        return cls(patients=patients, revise=revise)

    def find(self, text: str, patient_id: str = "", note_id: str = "") -> list[Span]:
        """The spans of one note: sorted, without overlaps, in code points of `text`."""
        view = NoteView(text, note_id, self.patients.get(patient_id))
        spans = resolve(text, (span for detector in self.detectors for span in detector.find(view)))
        return spans if self.revise is None else self.revise(note_id, text, spans)

    def about(self, patient_ids: Iterable[str]) -> Finder:
        """The same finder that knows of these patients only: what a worker needs for its batch."""
        known = {patient_id: self.patients[patient_id] for patient_id in patient_ids if patient_id in self.patients}
        return Finder(self.detectors, patients=known, revise=self.revise)
