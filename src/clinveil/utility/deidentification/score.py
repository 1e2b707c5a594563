"""Compare the detected spans of one note with its gold spans.

An identifier is detected completely ("whole") if all its letters and digits are covered, regardless
of the label, since this hides it from readers. "Exact" requires the same ends, "partly" one letter
or digit in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clinveil.core import Span
from clinveil.lexicons import word_list

_WORD = re.compile(r"\S+")
_TOKEN = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Hits:
    """Detection of one identifier.

    Attributes:
        whole, exact, partly: 0 or 1. named: `whole`, and all spans that overlap it have its label.
        tokens, characters: covered runs of letters and digits, and covered letters and digits;
            `all_`: their totals.
    """

    whole: int
    exact: int
    partly: int
    named: int
    tokens: int
    all_tokens: int
    characters: int
    all_characters: int


class FoundHits(NamedTuple):
    """Whether a detected span has the ends of a gold span, and whether it shares a letter or digit
    with one.
    """

    label: str
    exact: bool
    right: bool


@dataclass(frozen=True, slots=True)
class NoteScore:
    """Scores of a note.

    Attributes:
        gold: (label, hits) of each gold span. detected: score of each detected span.
        words, touched: words outside gold spans, and those of them with a detected letter or digit.
        clinical, clinical_touched: the same for words of the clinical word list.
    """

    gold: Sequence[tuple[str, Hits]]
    detected: Sequence[FoundHits]
    words: int
    touched: int
    clinical: int
    clinical_touched: int

    @property
    def leaky(self) -> bool:
        """Whether an identifier was not detected completely."""
        return not all(hits.whole for _, hits in self.gold)


def score(text: str, gold: Sequence[Span], detected: Sequence[Span]) -> NoteScore:
    """Compare detected spans with gold spans, in any order."""
    covered = mask(text, detected)
    marked = mask(text, gold)
    ends = {(span.start, span.end) for span in gold}
    of_gold = [(span.label, _hits(text, span, detected, covered)) for span in gold]
    of_found = [
        FoundHits(
            span.label, (span.start, span.end) in ends, _any(text, span.start, span.end, marked)
        )
        for span in detected
    ]
    return NoteScore(of_gold, of_found, *_words(text, marked, covered))


def mask(text: str, spans: Iterable[Span]) -> bytearray:
    """Return one byte per code point, 1 inside spans."""
    covered = bytearray(len(text))
    for span in spans:
        covered[span.start : span.end] = b"\x01" * (span.end - span.start)
    return covered


def _hits(text: str, gold: Span, detected: Sequence[Span], covered: bytearray) -> Hits:
    inside = text[gold.start : gold.end]
    offsets = [gold.start + i for i, c in enumerate(inside) if c.isalnum()] or list(
        range(gold.start, gold.end)
    )
    hit = sum(covered[i] for i in offsets)
    tokens = [(gold.start + m.start(), gold.start + m.end()) for m in _TOKEN.finditer(inside)]
    whole_tokens = sum(all(covered[start:end]) for start, end in tokens)
    overlapping = [span for span in detected if span.overlaps(gold)]
    whole = hit == len(offsets)
    return Hits(
        whole=whole,
        exact=any((span.start, span.end) == (gold.start, gold.end) for span in overlapping),
        partly=hit > 0,
        named=whole and all(span.label == gold.label for span in overlapping),
        tokens=whole_tokens,
        all_tokens=len(tokens),
        characters=hit,
        all_characters=len(offsets),
    )


def _any(text: str, start: int, end: int, marked: bytearray) -> bool:
    """Return whether a letter or digit between two offsets is marked."""
    return any(marked[i] and text[i].isalnum() for i in range(start, end))


def _words(text: str, marked: bytearray, covered: bytearray) -> tuple[int, int, int, int]:
    """Return the words outside gold spans, those of them with a detection, and both for clinical
    words.
    """
    clinical = word_list("clinical")
    counts = [0, 0, 0, 0]
    for word in _WORD.finditer(text):
        start, end = word.span()
        if any(marked[start:end]) or not any(map(str.isalnum, word[0])):
            continue
        hit = any(covered[start:end]) and _any(text, start, end, covered)
        known = any(form in clinical for form in _LETTERS.findall(word[0].lower()))
        for i, counted in enumerate((True, hit, known, known and hit)):
            counts[i] += counted
    return counts[0], counts[1], counts[2], counts[3]
