"""The detector of an emulated remover: every word of the note's own patient's name, wherever it stands, and no more.

Words are told apart as everywhere (an apostrophe or a hyphen splits), and compared by name form, so that case and
accents do not matter. A part of one letter (an initial, the O of O'Brien) counts only beside another word of the name.
A patient called May loses every `may` of her notes, as under paper B's removal of name tokens. Misspellings stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from clinveil.core.spans import Span
from clinveil.core.tokens import Kind, tokenize, words
from clinveil.lexicons.forms import name_form
from clinveil.phi.note import NoteView

# A word never crosses an ASCII character that is no letter.
_RUN = re.compile("[A-Za-z\x80-\U0010ffff]+")
_JOINTS = frozenset("'’-‐‑")
_LETTER = re.compile(r"[^\W_]")
_NEXT = 3  # characters at most between two words that stand beside each other: ", " and the like


class Place(NamedTuple):
    """Where a word of the name stands, and its name form."""

    start: int
    end: int
    form: str


class OwnNames:
    """Finds NAME: the words of the name of the note's patient; nothing where the patient is not known."""

    name = "own name"
    labels = frozenset({"NAME"})

    def find(self, note: NoteView) -> Iterator[Span]:
        """One span a word, or a run of words that only an apostrophe or a hyphen parts."""
        if note.patient is None:
            return
        start = end = -1
        for place in own_words(note.text, note.patient.name):
            if note.text[end : place.start] not in _JOINTS or end < 0:
                if end > 0:
                    yield Span(start, end, "NAME", self.name)
                start = place.start
            end = place.end
        if end > 0:
            yield Span(start, end, "NAME", self.name)


def name_words(name: tuple[str, ...]) -> list[list[str]]:
    """The name forms of the words of each token of a name: `Anne-Marie O'Brien` is [anne, marie], [o, brien]."""
    return [[form for word in words(token) if (form := name_form(word))] for token in name]


def own_words(text: str, name: tuple[str, ...]) -> list[Place]:
    """Where the words of a name stand in a text, in order."""
    forms = _forms(name)
    found = [place for place in _places(text) if place.form in forms]
    return [place for at, place in enumerate(found) if len(place.form) > 1 or _beside(text, found, at)]


@lru_cache(maxsize=1 << 12)
def _forms(name: tuple[str, ...]) -> frozenset[str]:
    return frozenset(form for part in name_words(name) for form in part)


def _beside(text: str, found: list[Place], at: int) -> bool:
    """Whether a longer word of the name stands just before or after, with no more than signs between."""
    near = [(other, found[at]) for other in found[max(0, at - 1) : at]]
    near += [(found[at], other) for other in found[at + 1 : at + 2]]
    return any(
        max(len(one.form), len(two.form)) > 1
        and len(gap := text[one.end : two.start]) <= _NEXT
        and not _LETTER.search(gap)
        for one, two in near
    )


def _places(text: str) -> Iterator[Place]:
    for run in _RUN.finditer(text):
        if run[0].isascii():
            yield Place(run.start(), run.end(), run[0].lower())
            continue
        for token in tokenize(run[0]):
            if token.kind == Kind.WORD:
                start, end = run.start() + token.start, run.start() + token.end
                yield Place(start, end, name_form(text[start:end]))
