"""Names of people: by what stands beside them, by lists of names, and by their other mentions in the note.

A list alone says little (Pain, Drain, Foley and May are surnames): a word that is also an ordinary word or an eponym
counts only with a cue. What was found once is looked for in the rest of the note (section 7 of the tests' cases).
"""

from __future__ import annotations

from collections.abc import Iterator

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import PARTICLES
from clinveil.phi.detector import detectors
from clinveil.phi.detectors import _name_forms
from clinveil.phi.detectors._name_cues import credentials, cues
from clinveil.phi.detectors._name_lists import ListRuns
from clinveil.phi.detectors._name_mentions import Mentions
from clinveil.phi.detectors._name_reading import Reading, Run
from clinveil.phi.detectors._name_runs import CueRuns
from clinveil.phi.note import NoteView

__all__ = ["PARTICLES", "names_of"]


def names_of(note: NoteView) -> tuple[list[Run], list[_name_forms.Place]]:
    """The names of a note, and places that are no whole words: initials, accounts.

    First those of machines' and forms' fields, then those at cues, the surest cue first, then listed ones, then other
    mentions.
    """
    reading = Reading(note)
    by_cue = CueRuns(reading)
    by_list = ListRuns(reading, by_cue)
    places = list(_name_forms.places(note))
    for place in places:
        reading.keep(*_name_forms.word_run(note, place.start, place.end), 0.9, place.why)
    for start, end in _name_forms.headers(reading):
        reading.keep(start, end, 0.85, "header")
    for cue in sorted(set(cues(note)), key=lambda cue: (-cue.trust, cue.word, cue.why)):
        by_cue.take(cue)
    for index in credentials(note):
        by_list.take_before_credential(index)
    for index in by_list.candidates():
        if index not in reading.taken:
            by_list.take(index)
    Mentions(reading).take()
    for index in _name_forms.own_accounts(reading):
        reading.keep(index, index + 1, 0.7, "account of a name of the note")
    return reading.runs, [*places, *_name_forms.initials(reading)]


class _Names:
    """Finds NAME."""

    name = "names"
    labels = frozenset({"NAME"})
    examples = (
        "Dr. {NAME:Foley} placed the Foley catheter; his wife {NAME:Chidinma} drove him here.",
        "{NAME:SMITH,JOHN Q} was admitted. Signed: {NAME:Mary O'Brien}, RN",
        "Mrs. {NAME:Hope Price} came. Today {NAME:Hope} feels better; there is hope.",
    )

    def find(self, note: NoteView) -> Iterator[Span]:
        """Runs of words, one span a run."""
        runs, places = names_of(note)
        for start, end, score, why in runs:
            yield note.span(note.words[start].start, note.words[end - 1].end, "NAME", self.name, score, why)
        for start, end, why in places:
            yield note.span(start, end, "NAME", self.name, 0.9, why)


detectors.register("names")(_Names())
