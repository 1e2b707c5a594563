"""Every place of a note that can be looked at, and how suspicious it is: its stratum.

Each letter and digit of a note lies in exactly one place: in a span that was found, in a run of suspicious words or
digits that was not, or in a passage, of which all that lies in other places is left out. So what is missed anywhere is
missed in some place, and nothing is counted twice.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import LexicalClass
from clinveil.lexicons.names import name_form
from clinveil.phi.note import NoteView, Word

SURE = 0.85
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
_MOST_WORDS, _GAP = 4, 2  # words of one run, and characters between two of them
_DIGITS = re.compile(r"(?<!\w)[#]?\d+(?:[./:-]\d+)*(?!\w)|[A-Za-z]{1,3}-?\d{4,}")
_LONG = re.compile(r"(?:\d.*){4}|\d[/-]\d", re.DOTALL)
_NUMBER_CUE = re.compile(
    r"(?:#|\b(?:no|num|number|mrn|mr|id|acct|account|ssn|tel|phone|ph|fax|cell|pager|beeper|ext|x|room|rm|on|dated|date"
    r"|dob|born|age|aged|since|until|license|lic|serial|case|unit|zip)\b)[\s.:#]{0,4}$",
    re.IGNORECASE,
)
_OLD = re.compile(r"(?:9\d|1[01]\d)[\s-]{0,2}(?:y|year|yr)", re.IGNORECASE)
_CUE = re.compile(
    r"\b(?:mrs?|ms|miss|dr|doctor|drs|name[ds]?|called|son|daughter|wife|husband|spouse|partner|mother|father|brother"
    r"|sister|aunt|uncle|friend|nurse|attorney|signed|dictated|attending|resident|referr\w+|seen by|by|lives?|from"
    r"|street|st|ave|road|hospital|clinic|center|school|works?|employ\w+|phone|call|email|contact|january|february"
    r"|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_BREAK = re.compile(r"\n+|(?<=[.;!?])\s+")


class Place(NamedTuple):
    """A half-open place [start, end) of a note, and its stratum (a key of `design.KINDS`)."""

    start: int
    end: int
    stratum: str


def forms(note: NoteView) -> Iterator[str]:
    """The forms of the note's capitalised words that stand in no list: how many patients have each is what is asked."""
    for word in note.words:
        if word.capital and not word.classes:
            yield name_form(word.text)


def places(
    note: NoteView, found: Sequence[Span], *, suspected: Iterable[Span] = (), usual: Set[str] = frozenset(), words: int
) -> list[Place]:
    """All places of one note, in order of stratum and then of the text.

    Args:
        found: what the engine found, sorted, without overlaps. suspected: what some other detector takes for more.
        usual: forms of words that stand in no list and that many patients' notes have.
        words: how many words a passage has.
    """
    made = [Place(span.start, span.end, "found" if span.score >= SURE else "found_unsure") for span in found]
    taken = _Taken(made)
    for more in (_suspected(suspected), _words(note, usual), _numbers(note)):
        made += taken.rest(list(more))
    return made + [place for place in _passages(note.text, words) if taken.leaves(note.text, place)]


def open_parts(text: str, place: Place, others: Sequence[Place]) -> list[tuple[int, int]]:
    """The parts of a passage that lie in no other place; the whole of any other place."""
    if place.stratum not in ("cued", "rest"):
        return [(place.start, place.end)]
    return _Taken([one for one in others if one.stratum not in ("cued", "rest")]).parts(place.start, place.end)


class _Taken:
    """The stretches of a note that lie in places already."""

    def __init__(self, taken: Iterable[Place]) -> None:
        self._ends: list[tuple[int, int]] = sorted((place.start, place.end) for place in taken)

    def parts(self, start: int, end: int) -> list[tuple[int, int]]:
        """What is left of a stretch."""
        left, at = [], start
        first = max(bisect_right(self._ends, (start, 0)) - 1, 0)
        for low, high in self._ends[first:]:
            if low >= end:
                break
            if low > at:
                left.append((at, low))
            at = max(at, high)
        return [*left, (at, end)] if at < end else left

    def rest(self, places: list[Place]) -> list[Place]:
        """What is left of some places; they are taken then too. They do not overlap."""
        left = [place._replace(start=a, end=b) for place in places for a, b in self.parts(place.start, place.end)]
        self._ends = sorted([*self._ends, *((place.start, place.end) for place in left)])
        return left

    def leaves(self, text: str, place: Place) -> bool:
        """Whether a letter or digit of a place is in no other."""
        return any(c.isalnum() for a, b in self.parts(place.start, place.end) for c in text[a:b])


def _suspected(spans: Iterable[Span]) -> Iterator[Place]:
    at = 0
    for span in sorted(spans):
        if span.end > at:
            yield Place(max(span.start, at), span.end, "tagger")
            at = span.end


_ORDER = ("name_like", "unknown_rare", "unknown")


def _words(note: NoteView, usual: Set[str]) -> Iterator[Place]:
    """Runs of suspicious words; a run is as suspicious as its most suspicious word."""
    run: list[tuple[Word, str]] = []
    for word in note.words:
        stratum = _suspicion(word, usual)
        if run and (not stratum or not _beside(note.plain, run[-1][0], word) or len(run) >= _MOST_WORDS):
            yield _run(note, run)
            run = []
        if stratum:
            run.append((word, stratum))
    if run:
        yield _run(note, run)


def _suspicion(word: Word, usual: Set[str]) -> str:
    if word.ordinary or len(word.text) < 2:
        return ""
    if word.listed if word.capital else word.classes & _USUAL:
        return "name_like"
    if not word.capital or word.classes:
        return ""
    return "unknown" if name_form(word.text) in usual else "unknown_rare"


def _beside(plain: str, one: Word, other: Word) -> bool:
    between = plain[one.end : other.start]
    return len(between) <= _GAP and "\n" not in between


def _run(note: NoteView, run: list[tuple[Word, str]]) -> Place:
    start, end = note.aligned.source_offsets(run[0][0].start, run[-1][0].end)
    return Place(start, end, min((stratum for _, stratum in run), key=_ORDER.index))


def _numbers(note: NoteView) -> Iterator[Place]:
    for match in _DIGITS.finditer(note.plain):
        before, after = note.plain[max(0, match.start() - 14) : match.start()], note.plain[match.start() :][:12]
        if _LONG.search(match[0]) or _NUMBER_CUE.search(before) or _OLD.match(after):
            yield Place(*note.aligned.source_offsets(*match.span()), "digits")


def _passages(text: str, words: int) -> Iterator[Place]:
    """The whole text in passages of about so many words: sentences and lines joined, long ones cut."""
    start = count = 0
    for end in _ends(text, words):
        piece = len(text[start:end].split())
        count = piece
        if count >= words:
            yield _passage(text, start, end)
            start, count = end, 0
    if start < len(text):
        yield _passage(text, start, len(text))


def _ends(text: str, words: int) -> Iterator[int]:
    """Where a passage may end: behind sentences and lines, and inside of those that are too long."""
    start = 0
    for end in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        for number, word in enumerate(re.finditer(r"\S+\s*", text[start:end]), 1):
            if number % words == 0:
                yield start + word.end()
        yield end
        start = end


def _passage(text: str, start: int, end: int) -> Place:
    return Place(start, end, "cued" if _CUE.search(text, start, end) else "rest")
