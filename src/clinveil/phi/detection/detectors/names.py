"""Names of people, detected by context, by name lists, and by further mentions in the note.

Many surnames are also words (Pain, Drain, Foley, May), so a word that is also an ordinary word or
an eponym counts only with a cue. After detection, the rest of the note is searched for the same
names.
"""

from __future__ import annotations

from collections.abc import Iterator

from clinveil.core import Span
from clinveil.phi.detection.names import fields
from clinveil.phi.detection.names.cues import credentials, cues
from clinveil.phi.detection.names.kinds import is_organised, label_of
from clinveil.phi.detection.names.lists import ListRuns
from clinveil.phi.detection.names.mentions import Mentions
from clinveil.phi.detection.names.runs import CueRuns
from clinveil.phi.detection.names.state import NameState
from clinveil.phi.detection.note import NoteView

# Rules that know no cue of a person: what they find may also be a town or an institution.
_WITHOUT_CUE = frozenset(("listed", "listed alone", "two unknown words", "meeting"))


def names_of(note: NoteView) -> tuple[NameState, list[fields.NameSpan]]:
    """Return the names of a note, and spans that are not runs of words: initials, accounts.

    Order: names in structured fields, names at cues (strongest cue first), listed names, further
    mentions.
    """
    state = NameState(note)
    by_cue = CueRuns(state)
    by_list = ListRuns(state, by_cue)
    spans = [*fields.field_names(note), *fields.damaged_names(state)]
    for span in spans:
        state.add(*fields.word_run(note, span.start, span.end), 0.9, span.why)
    for start, end in fields.headers(state):
        state.add(start, end, 0.85, "header")
    for start, end in fields.people_with_dates(state):
        state.add(start, end, 0.85, "dates of a life")
    for cue in sorted(set(cues(note)), key=lambda cue: (-cue.trust, cue.word, cue.why)):
        by_cue.take(cue)
    for index in credentials(note):
        by_list.take_before_credential(index)
    for index in by_list.candidates():
        if index not in state.taken:
            by_list.take(index)
    Mentions(state).take()
    for index in fields.name_accounts(state):
        state.add(index, index + 1, 0.7, "account of a name in the note")
    return state, [*spans, *fields.initials(state)]


class _NamesDetector:
    """Detector of NAME."""

    name = "names"
    labels = frozenset({"NAME", "CITY", "HOSPITAL"})
    examples = (
        "Dr. {NAME:Foley} placed the Foley catheter; his wife {NAME:Chidinma} drove him here.",
        "{NAME:SMITH,JOHN Q} was admitted. Signed: {NAME:Mary O'Brien}, RN",
        "Mrs. {NAME:Hope Price} came. Today {NAME:Hope} feels better; there is hope.",
        (
            "{NAME:Robin Ignico} was admitted; once seen at {HOSPITAL:Munson}, born in"
            " {CITY:Corrales}."
        ),
    )

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield one span per run of words."""
        state, spans = names_of(note)
        for start, end, score, why in state.runs:
            label = label_of(state, start, end) if why in _WITHOUT_CUE else "NAME"
            if why == "found elsewhere in the note" and is_organised(state, start, end):
                label = "HOSPITAL"
            yield note.span(
                note.words[start].start, note.words[end - 1].end, label, self.name, score, why
            )
        for start, end, why in spans:
            yield note.span(start, end, "NAME", self.name, 0.9, why)


NAMES = _NamesDetector()
