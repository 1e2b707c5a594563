"""How what several detectors found is put together: all of it, what enough agree on, or more than they found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Literal

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import LexicalClass
from clinveil.lexicons.words import is_word
from clinveil.phi.heard import SURE
from clinveil.phi.note import NoteView, Word

Combination = Literal["union", "vote", "recall-first"]
LISTED = "include-list"
_SCORE = 0.3
_STOPS = frozenset(".!?:;\n-*•")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY


def agreed(spans: Iterable[Span], votes: int) -> list[Span]:
    """Those that are sure by themselves, or on whose place so many detectors agree; a detector has one vote."""
    every = sorted(spans)
    return [span for span in every if span.score >= SURE or _votes(span, every) >= votes]


def _votes(span: Span, every: list[Span]) -> int:
    return len({other.detector for other in every if other.overlaps(span)})


def off_list(note: NoteView, vocabulary: AbstractSet[str]) -> Iterator[Span]:
    """Every word that is no common or clinical one, however it is written, as a name that may be.

    A word that is also a usual name (White, May) goes too where it has a capital within a sentence of small letters.

    Args:
        vocabulary: lower-case words that are let through beside those of the lists.
    """
    for at, lower in enumerate(note.words.lowers):
        if len(lower) > 1 and _is_off(note, at, lower, vocabulary):
            word = note.words[at]
            yield note.span(word.start, word.end, "NAME", LISTED, _SCORE, "no clinical word")


def _is_off(note: NoteView, at: int, lower: str, vocabulary: AbstractSet[str]) -> bool:
    if not (lower in vocabulary or _known(lower)):
        return True
    word = note.words[at]
    return bool(word.classes & _USUAL) and word.capital and not word.shouted and _within(note, at, word)


def _known(lower: str) -> bool:
    """Whether a word is known whole, or all its hyphened parts are."""
    return all(len(part) == 1 or is_word(part.replace("'", "")) for part in lower.split("-") if part)


def _within(note: NoteView, at: int, word: Word) -> bool:
    """Whether a word stands in a sentence of small letters: a capital at its start, or in a heading, says nothing."""
    before = note.plain[: word.start].rstrip(" \t")[-1:]
    if not at or not before or before in _STOPS or note.words[at - 1].capital:
        return False
    return at + 1 == len(note.words) or not note.words[at + 1].capital
