"""`Finder`: where the identifiers of a note stand, by all detectors together and by what other notes say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Literal

from clinveil.core.spans import Span
from clinveil.phi.adapter import those_of
from clinveil.phi.combine import Combination, agreed, off_list
from clinveil.phi.detector import Detector, all_detectors
from clinveil.phi.detectors.tagger import with_tagger
from clinveil.phi.name_index import NameIndex, mentions, names_in
from clinveil.phi.note import NoteView
from clinveil.phi.policy import resolve

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient
    from clinveil.phi.settings import PhiSettings

Revise = Callable[[str, str, list[Span]], list[Span]]
"""(note id, text, spans) -> spans: the last word on what was found in a note, such as a reviewer's decisions."""
Propagate = Literal["patient", "note", "none"]
Seen = Mapping[tuple[str, str, str], list[Span]]
"""(note id, patient id, text) -> what the detectors found there."""


class Finder:
    """Finds identifiers; what becomes of them is another's (`Deidentifier`).

    Args:
        finders: detectors to use in place of all that are registered; then nothing is propagated unless it is said.
        patients: what is known of patients beforehand, by patient id.
        revise: what has the last word on the spans of a note.
        propagate: where a name that was found surely is looked for again: in all notes of its patient (a pass over a
            corpus gathers them; of a single note only its own are known), in its note, or nowhere.
        combine: `union` of all that detectors find; `vote`: what one is sure of or `votes` of them agree on;
            `recall-first`: also every word that is no common or clinical one.
        kept: labels that will stay as they are; another label that touches one of their spans wins.
    """

    def __init__(
        self,
        finders: Sequence[Detector] | None = None,
        *,
        patients: Mapping[str, Patient] | None = None,
        revise: Revise | None = None,
        propagate: Propagate | None = None,
        combine: Combination = "union",
        votes: int = 2,
        kept: Collection[str] = (),
    ) -> None:
        self.detectors = all_detectors() if finders is None else tuple(finders)
        self.patients, self.revise, self.kept = patients or {}, revise, kept
        self.propagate: Propagate = propagate or ("patient" if finders is None else "none")
        self.combine, self.votes = combine, votes
        self.heard, self._seen = NameIndex(), dict[tuple[str, str, str], list[Span]]()

    @classmethod
    def of(
        cls, settings: PhiSettings, patients: Mapping[str, Patient] | None = None, revise: Revise | None = None
    ) -> Finder:
        """The finder that settings ask for."""
        policy = settings.policy()
        return cls(
            [*with_tagger(settings), *those_of(settings.also)],
            patients=patients,
            revise=revise,
            propagate=settings.propagate,
            combine="recall-first" if policy.recall_first else settings.find,
            votes=settings.votes,
            kept=policy.kept,
        )

    @property
    def listens(self) -> bool:
        """Whether what is found in a note depends on other notes."""
        return self.propagate == "patient" or self.combine == "recall-first"

    def find(self, text: str, patient_id: str = "", note_id: str = "") -> list[Span]:
        """The spans of one note: sorted, without overlaps, in code points of `text`."""
        spans = self._seen.get((note_id, patient_id, text))
        view = self.view(text, patient_id, note_id)
        spans = self.detect(view) if spans is None else spans
        spans = self._complete(view, patient_id, spans)
        return spans if self.revise is None else self.revise(note_id, text, spans)

    def view(self, text: str, patient_id: str = "", note_id: str = "") -> NoteView:
        """A note as the detectors see it, with what is known of its patient."""
        return NoteView(text, note_id, self.patients.get(patient_id))

    def detect(self, view: NoteView) -> list[Span]:
        """What the detectors find in one note, before other notes are heard and the last word is said."""
        spans = (span for detector in self.detectors for span in detector.find(view))
        return self._resolved(view, agreed(spans, self.votes) if self.combine == "vote" else spans)

    def _resolved(self, view: NoteView, spans: Iterable[Span]) -> list[Span]:
        return resolve(view.text, spans, self.kept) if self.kept else resolve(view.text, spans)

    def about(self, patient_ids: Iterable[str]) -> Finder:
        """The same finder that knows of these patients only: what a worker needs for its batch."""
        ids, other = set(patient_ids), copy(self)
        other.patients = {patient_id: self.patients[patient_id] for patient_id in ids if patient_id in self.patients}
        other.heard = self.heard.about(ids)
        return other

    def having(self, heard: NameIndex | None = None, seen: Seen | None = None) -> Finder:
        """The same finder that has heard other notes, or has seen some notes already and does not look again."""
        other = copy(self)
        other.heard = self.heard if heard is None else heard
        other._seen = dict(self._seen if seen is None else seen)
        return other

    def _complete(self, view: NoteView, patient_id: str, spans: list[Span]) -> list[Span]:
        """The spans of the detectors, and what follows from them and from other notes."""
        more: list[Span] = []
        if self.propagate != "none":
            names = names_in(view.text, spans) | self.heard.patients.get(patient_id, frozenset())
            more += mentions(view, names, self.heard.staff, spans)
        if self.combine == "recall-first":
            more += off_list(view, self.heard.vocabulary)
        return self._resolved(view, [*spans, *more]) if more else spans
