"""What a de-identifier did to one note, held against its gold spans.

An identifier is found whole where every letter and digit of it is covered, whatever the label: that is what keeps it
from the reader. "Exact" asks for the same ends, "partly" for one letter or digit in common, both whatever the label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from clinveil.core.spans import Span
from clinveil.lexicons.words import word_list

_WORD = re.compile(r"\S+")
_TOKEN = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Hits:
    """How much of one identifier was found: 0 or 1 for the whole, and counts of what it is made of.

    Attributes:
        whole, exact, partly: of the identifier. named: found whole, and every span that covers it has its label.
        tokens, characters: its runs of letters and digits, and single ones, that are covered; `all_` how many it has.
    """

    whole: int
    exact: int
    partly: int
    named: int
    tokens: int
    all_tokens: int
    characters: int
    all_characters: int


HITS = tuple(field.name for field in fields(Hits))


class FoundHits(NamedTuple):
    """Whether a found span has the ends of a gold span, and whether it has a letter or digit in common with one."""

    label: str
    exact: bool
    right: bool


@dataclass(frozen=True, slots=True)
class NoteScore:
    """A note's identifiers with what was found of each, what was found, and the words that are no identifiers.

    Attributes:
        gold: (label, hits) of each gold span. found: of each found span.
        words, touched: words outside gold spans, and those that a found span covers a letter or digit of.
        clinical, clinical_touched: the same of words of the clinical list.
    """

    gold: Sequence[tuple[str, Hits]]
    found: Sequence[FoundHits]
    words: int
    touched: int
    clinical: int
    clinical_touched: int

    @property
    def leaky(self) -> bool:
        """Whether an identifier was not wholly found."""
        return not all(hits.whole for _, hits in self.gold)


def score(text: str, gold: Sequence[Span], found: Sequence[Span]) -> NoteScore:
    """Hold what was found in a note against its gold spans; both sorted or not."""
    covered, marked = mask(text, found), mask(text, gold)
    ends = {(span.start, span.end) for span in gold}
    of_gold = [(span.label, _hits(text, span, found, covered)) for span in gold]
    of_found = [
        FoundHits(span.label, (span.start, span.end) in ends, _any(text, span.start, span.end, marked))
        for span in found
    ]
    return NoteScore(of_gold, of_found, *_words(text, marked, covered))


def mask(text: str, spans: Iterable[Span]) -> bytearray:
    """One byte a code point: 1 where a span lies."""
    made = bytearray(len(text))
    for span in spans:
        made[span.start : span.end] = b"\x01" * (span.end - span.start)
    return made


def _hits(text: str, gold: Span, found: Sequence[Span], covered: bytearray) -> Hits:
    inside = text[gold.start : gold.end]
    places = [gold.start + i for i, c in enumerate(inside) if c.isalnum()] or list(range(gold.start, gold.end))
    hit = sum(covered[i] for i in places)
    tokens = [(gold.start + m.start(), gold.start + m.end()) for m in _TOKEN.finditer(inside)]
    whole_tokens = sum(all(covered[start:end]) for start, end in tokens)
    over = [span for span in found if span.overlaps(gold)]
    whole = hit == len(places)
    return Hits(
        *(whole, any((span.start, span.end) == (gold.start, gold.end) for span in over), hit > 0),
        whole and all(span.label == gold.label for span in over),
        *(whole_tokens, len(tokens), hit, len(places)),
    )


def _any(text: str, start: int, end: int, marked: bytearray) -> bool:
    """Whether a letter or digit of a place is marked."""
    return any(marked[i] and text[i].isalnum() for i in range(start, end))


def _words(text: str, marked: bytearray, covered: bytearray) -> tuple[int, int, int, int]:
    """Words outside gold spans, those of them that are touched, and both for clinical words."""
    clinical, counts = word_list("clinical"), [0, 0, 0, 0]
    for word in _WORD.finditer(text):
        start, end = word.span()
        if any(marked[start:end]) or not any(map(str.isalnum, word[0])):
            continue
        hit = any(covered[start:end]) and _any(text, start, end, covered)
        known = any(form in clinical for form in _LETTERS.findall(word[0].lower()))
        for place, counted in enumerate((True, hit, known, known and hit)):
            counts[place] += counted
    return counts[0], counts[1], counts[2], counts[3]
