"""`NoteView`, what a detector sees of one note."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from clinveil.lexicons.ambiguity import Reading, reading
from clinveil.phi.plain import Plain, plain
from clinveil.spans import LABELS, Span

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
# Marks of an earlier de-identification: MIMIC's, and the tags that this room writes.
_MASK = re.compile(r"\[\*\*[^\]\n]{0,80}\*\*\]|\[(?:" + "|".join(LABELS) + r")\]|_{3,}")
_CONTRACTED = ("n't", "'re", "'ve", "'ll", "'m", "'d")


class Word(NamedTuple):
    """A word of the plain copy: its place, itself without a possessive ending, and what it may be."""

    start: int
    end: int
    text: str
    reading: Reading

    @property
    def capital(self) -> bool:
        """Whether it begins with a capital letter."""
        return not self.text[0].islower()

    @property
    def shouted(self) -> bool:
        """Whether it is written in capitals (two letters or more)."""
        return len(self.text) > 1 and self.text.isupper()

    @property
    def ordinary(self) -> bool:
        """Whether it can be a common or clinical word."""
        return bool(self.reading & Reading.WORD)


@dataclass(frozen=True)
class NoteView:
    """One note as the detectors see it; its repr shows no text.

    Attributes:
        text: the note as it is.
        note_id: its id.
        patient: what is known of its patient beforehand, or None.
    """

    text: str = field(repr=False)
    note_id: str = field(default="", repr=False)
    patient: Patient | None = field(default=None, repr=False)

    @cached_property
    def whole(self) -> Plain:
        """The plain copy with its map back."""
        return plain(self.text)

    @cached_property
    def plain(self) -> str:
        """The plain copy, with the marks of an earlier de-identification blanked out (same length)."""
        copy = self.whole.text
        if "[" not in copy and "___" not in copy:
            return copy
        return _MASK.sub(lambda match: "\x00" * len(match[0]), copy)

    @cached_property
    def lower(self) -> str:
        """The plain copy in lower case, for quick looks (its length may differ)."""
        return self.plain.lower()

    @cached_property
    def words(self) -> list[Word]:
        """The words of the plain copy in order."""
        return [_word(match) for match in _WORD.finditer(self.plain)]

    @cached_property
    def lower_case(self) -> frozenset[str]:
        """The words that the note writes in lower case."""
        return frozenset(word.text for word in self.words if word.text.islower())

    def span(self, start: int, end: int, label: str, detector: str, score: float = 1.0) -> Span:
        """The span in the note of a place in the plain copy."""
        return Span(*self.whole.place(start, end), label, detector, score)


def _word(match: re.Match[str]) -> Word:
    text, end = match[0], match.end()
    if "'" in text:
        if text[-2:] in ("'s", "'S"):
            text, end = text[:-2], end - 2
        elif text.lower().endswith(_CONTRACTED):
            return Word(match.start(), end, text, Reading.WORD)
    return Word(match.start(), end, text, reading(text))
