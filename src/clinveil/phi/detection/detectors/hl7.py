"""HL7 version 2 segments pasted into a note: the position of a field determines its label.

Fields follow HL7 2.5.1, chapters 3, 4, 6, 9, 10 and 12. Components are separated by `^`,
repetitions by `~`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clinveil.core import Span
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.note import NoteView

# Type of a field: the label of its first component, or a key of `_COMPONENTS`.
_NAME = "name"
_PERSON = "person"
_ADDRESS = "place"
_FIELDS: dict[str, dict[int, str]] = {
    "PID": {
        2: "MRN",
        3: "MRN",
        4: "MRN",
        5: _NAME,
        6: _NAME,
        7: "DATE",
        9: _NAME,
        11: _ADDRESS,
        13: "PHONE",
        14: "PHONE",
        18: "ACCOUNT",
        19: "SSN",
        20: "LICENSE",
        21: "MRN",
        29: "DATE",
    },
    "NK1": {2: _NAME, 4: _ADDRESS, 5: "PHONE", 6: "PHONE"},
    "GT1": {3: _NAME, 4: _NAME, 5: _ADDRESS, 6: "PHONE", 7: "PHONE", 8: "DATE", 12: "SSN"},
    "IN1": {16: _NAME, 18: "DATE", 19: _ADDRESS, 36: "HEALTH_PLAN"},
    "PV1": {7: _PERSON, 8: _PERSON, 9: _PERSON, 17: _PERSON, 19: "ID", 44: "DATE", 45: "DATE"},
    "ORC": {2: "ID", 3: "ID", 10: _PERSON, 11: _PERSON, 12: _PERSON},
    "OBR": {2: "ID", 3: "ID", 7: "DATE", 16: _PERSON},
    "MRG": {7: _NAME},
    "TXA": {5: _PERSON, 9: _PERSON, 22: _PERSON},
    **{
        segment: {field: _PERSON}
        for segment, field in (("PD1", 4), ("AIP", 3), ("EVN", 5), ("ROL", 4))
    },
    **{segment: {16: _PERSON} for segment in ("DG1", "OBX")},
}
_COMPONENTS = {
    _NAME: {0: "NAME", 1: "NAME", 2: "NAME"},
    _PERSON: {0: "ID", 1: "NAME", 2: "NAME", 3: "NAME"},
    _ADDRESS: {0: "ADDRESS", 1: "ADDRESS", 2: "CITY", 4: "ZIP", 8: "CITY"},
}
_SEGMENT = re.compile(rf"(?<![A-Z0-9])(?P<kind>{'|'.join(_FIELDS)})\|[^\r\n]*")
_DAY = re.compile(r"\d{4,8}")
_NOTHING = words('"" UNKNOWN MD DO RN JR SR DR')


class _Segments:
    """Detector of identifiers in the fields of the segments of `_FIELDS`."""

    name = "hl7"
    labels = frozenset(
        {
            "MRN",
            "NAME",
            "DATE",
            "ADDRESS",
            "CITY",
            "ZIP",
            "PHONE",
            "ACCOUNT",
            "SSN",
            "LICENSE",
            "HEALTH_PLAN",
            "ID",
        }
    )
    examples = (
        (
            "PID|1||{MRN:88123}^^^HOSP^MR||{NAME:DOE}^{NAME:JOHN}||{DATE:19500304}|M|||{ADDRESS:12"
            " OAK ST}^^{CITY:TROY}^NY"
            "^{ZIP:12180}||{PHONE:(518)555-0199}|||||{ACCOUNT:7788}|{SSN:536221234}"
            "|{LICENSE:D12-34}\n"
        ),
        (
            "IN1||||||||||||||||{NAME:DOE}^{NAME:ANN}||{DATE:19510304}||||||||||||||||||"
            "{HEALTH_PLAN:XK77123}\n"
        ),
        "PV1|1|I|2W|||||{ID:4471}^{NAME:OKAFOR}^{NAME:IFE}\r",
    )

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield the identifiers of all segments, in order."""
        if "|" not in note.plain:
            return
        for segment in _SEGMENT.finditer(note.plain):
            kinds = _FIELDS[segment["kind"]]
            for number, (start, field) in enumerate(_pieces(segment[0], "|", segment.start())):
                if (kind := kinds.get(number)) and field.strip():
                    yield from self._of_field(note, kind, start, field)

    def _of_field(self, note: NoteView, kind: str, start: int, field: str) -> Iterator[Span]:
        labels = _COMPONENTS.get(kind, {0: kind})
        for first, repetition in _pieces(field, "~", start):
            for number, (offset, text) in enumerate(_pieces(repetition, "^", first)):
                label = labels.get(number)
                value = text.strip(' "')
                if label is None or not value or value.upper() in _NOTHING:
                    continue
                begin = offset + text.index(value)
                length = (
                    len(day[0]) if label == "DATE" and (day := _DAY.match(value)) else len(value)
                )
                yield note.span(begin, begin + length, label, self.name, 0.95, f"HL7 {label} field")


def _pieces(text: str, separator: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the pieces between separators, each with its offset in the note."""
    for piece in text.split(separator):
        yield start, piece
        start += len(piece) + 1


HL7 = _Segments()
