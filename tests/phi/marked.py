"""Notes with their identifiers marked in the text: `Dr. {NAME:Foley} placed it.`"""

from __future__ import annotations

import re

from clinveil.core import Key
from clinveil.phi import NoteDeidentifier

_MARK = re.compile(r"\{([A-Z_]+):((?:[^{}])*)\}")
KEY = Key.from_seed(7)
DEIDENTIFIER = NoteDeidentifier(KEY, mode="tag")

Truth = list[tuple[int, int, str]]


def unmark(marked: str) -> tuple[str, Truth]:
    """The note without its marks, and the places and labels of what was marked."""
    text = ""
    truth = []
    position = 0
    for match in _MARK.finditer(marked):
        text += marked[position : match.start()]
        truth.append((len(text), len(text) + len(match[2]), match[1]))
        text += match[2]
        position = match.end()
    return text + marked[position:], truth


def found(text: str, deidentifier: NoteDeidentifier = DEIDENTIFIER, patient_id: str = "p") -> Truth:
    """What is found in a text."""
    return [(span.start, span.end, span.label) for span in deidentifier.find(text, patient_id)]


def marked_again(text: str, spans: Truth) -> str:
    """The text with marks around spans: what `unmark` undoes, and what a failing test shows
    best.
    """
    out = ""
    position = 0
    for start, end, label in spans:
        out += f"{text[position:start]}{{{label}:{text[start:end]}}}"
        position = end
    return out + text[position:]
