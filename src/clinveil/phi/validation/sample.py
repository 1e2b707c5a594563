"""Divide the notes into locations, and sample some of each stratum in one pass.

Each letter and digit of a note belongs to exactly one location: a detected span, an undetected run of suspicious words
or digits, or a passage, from which the other locations are excluded. Every missed identifier is therefore in some
location, and nothing is counted twice. The stratum of a location follows from how likely it contains an identifier.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple, Protocol, runtime_checkable

from numpy.random import Generator

from clinveil.core.spans import Span
from clinveil.corpus.corpus import Note
from clinveil.corpus.sample import KeySample
from clinveil.lexicons.ambiguity import LexicalClass
from clinveil.lexicons.names import name_form
from clinveil.phi.detection.detector import detectors
from clinveil.phi.detection.note import NoteView, Word
from clinveil.phi.validation.design import KINDS, allocation
from clinveil.phi.validation.sheet import Piece, Sample

SURE = 0.85
PASSAGES = ("cued", "rest")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
_MAX_WORDS, _GAP = 4, 2  # words per run, and characters between two of them
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


class Location(NamedTuple):
    """A half-open range [start, end) of a note, and its stratum (a key of `design.KINDS`)."""

    start: int
    end: int
    stratum: str


def forms(note: NoteView) -> Iterator[str]:
    """Yield the forms of the note's unlisted capitalised words, to count the patients who have each."""
    for word in note.words:
        if word.capital and not word.classes:
            yield name_form(word.text)


def locations(
    note: NoteView, found: Sequence[Span], *, suspected: Iterable[Span] = (), usual: Set[str] = frozenset(), words: int
) -> list[Location]:
    """Return all locations of one note, ordered by stratum and then by position.

    Args:
        found: detected spans, sorted, without overlaps.
        suspected: low-probability spans of other detectors.
        usual: forms of unlisted words that occur in the notes of many patients.
        words: number of words per passage.
    """
    result = [Location(span.start, span.end, "found" if span.score >= SURE else "found_unsure") for span in found]
    taken = _Assigned(result)
    for more in (_suspected(suspected), _words(note, usual), _numbers(note)):
        result += taken.rest(list(more))
    return result + [location for location in _passages(note.text, words) if taken.leaves(note.text, location)]


def open_parts(text: str, location: Location, others: Sequence[Location]) -> list[tuple[int, int]]:
    """Return the parts of a passage outside all other locations, or the whole range of any other location."""
    if location.stratum not in PASSAGES:
        return [(location.start, location.end)]
    return _Assigned([other for other in others if other.stratum not in PASSAGES]).parts(location.start, location.end)


class _Assigned:
    """The ranges of a note that are already assigned."""

    def __init__(self, taken: Iterable[Location]) -> None:
        self._ends: list[tuple[int, int]] = sorted((location.start, location.end) for location in taken)

    def parts(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the unassigned parts of a range."""
        left, at = [], start
        first = max(bisect_right(self._ends, (start, 0)) - 1, 0)
        for low, high in self._ends[first:]:
            if low >= end:
                break
            if low > at:
                left.append((at, low))
            at = max(at, high)
        return [*left, (at, end)] if at < end else left

    def rest(self, locations: list[Location]) -> list[Location]:
        """Return the unassigned parts of non-overlapping locations, and assign them."""
        left = [
            location._replace(start=a, end=b)
            for location in locations
            for a, b in self.parts(location.start, location.end)
        ]
        self._ends = sorted([*self._ends, *((location.start, location.end) for location in left)])
        return left

    def leaves(self, text: str, location: Location) -> bool:
        """Return whether a location has an unassigned letter or digit."""
        return any(c.isalnum() for a, b in self.parts(location.start, location.end) for c in text[a:b])


def _suspected(spans: Iterable[Span]) -> Iterator[Location]:
    at = 0
    for span in sorted(spans):
        if span.end > at:
            yield Location(max(span.start, at), span.end, "tagger")
            at = span.end


_ORDER = ("name_like", "unknown_rare", "unknown")


def _words(note: NoteView, usual: Set[str]) -> Iterator[Location]:
    """Yield runs of suspicious words. A run gets the stratum of its most suspicious word."""
    run: list[tuple[Word, str]] = []
    for word in note.words:
        stratum = _suspicion(word, usual)
        if run and (not stratum or not _adjacent(note.plain, run[-1][0], word) or len(run) >= _MAX_WORDS):
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


def _adjacent(plain: str, first: Word, second: Word) -> bool:
    between = plain[first.end : second.start]
    return len(between) <= _GAP and "\n" not in between


def _run(note: NoteView, run: list[tuple[Word, str]]) -> Location:
    start, end = note.aligned.source_offsets(run[0][0].start, run[-1][0].end)
    return Location(start, end, min((stratum for _, stratum in run), key=_ORDER.index))


def _numbers(note: NoteView) -> Iterator[Location]:
    for match in _DIGITS.finditer(note.plain):
        before, after = note.plain[max(0, match.start() - 14) : match.start()], note.plain[match.start() :][:12]
        if _LONG.search(match[0]) or _NUMBER_CUE.search(before) or _OLD.match(after):
            yield Location(*note.aligned.source_offsets(*match.span()), "digits")


def _passages(text: str, words: int) -> Iterator[Location]:
    """Yield passages of about `words` words that cover the text: sentences and lines joined, long ones split."""
    start = 0
    for end in _ends(text, words):
        if len(text[start:end].split()) >= words:
            yield _passage(text, start, end)
            start = end
    if start < len(text):
        yield _passage(text, start, len(text))


def _ends(text: str, words: int) -> Iterator[int]:
    """Yield the possible ends of passages: after sentences and lines, and inside those that are too long."""
    start = 0
    for end in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        for number, word in enumerate(re.finditer(r"\S+\s*", text[start:end]), 1):
            if number % words == 0:
                yield start + word.end()
        yield end
        start = end


def _passage(text: str, start: int, end: int) -> Location:
    return Location(start, end, "cued" if _CUE.search(text, start, end) else "rest")


@runtime_checkable
class Suspecting(Protocol):
    """A detector that can also return identifiers with a low probability, such as a tagger."""

    def suspect(self, note: NoteView) -> Iterable[Span]:
        """Return spans below the detection threshold."""
        ...


def suspected(note: Note) -> list[Span]:
    """Return the low-probability spans of all detectors that provide them."""
    able = [detector for _, detector in detectors if isinstance(detector, Suspecting)]
    view = NoteView(note.text, note.note_id)
    return [span for detector in able for span in detector.suspect(view)]


MANY = 5  # patients; an unlisted word in the notes of this many is more likely a term than a name
AROUND = 80  # characters of context before and after a location


def usual_forms(notes: Iterable[Note]) -> frozenset[str]:
    """Return the forms of unlisted capitalised words that occur in the notes of at least `MANY` patients."""
    patients: dict[str, set[str]] = defaultdict(set)
    for note in notes:
        for form in set(forms(NoteView(note.text))):
            if len(patients[form]) < MANY:
                patients[form].add(note.patient_id)
    return frozenset(form for form, having in patients.items() if len(having) >= MANY)


class Draw:
    """Count locations and keep a random sample of each stratum."""

    def __init__(self, spots: int, words: int, usual: Set[str], rng: Generator) -> None:
        self.sizes: Counter[str] = Counter()
        self._spots, self._words, self._usual, self._rng = spots, words, usual, rng
        self._kept: dict[str, KeySample[Sample]] = {name: KeySample(spots, rng) for name in KINDS}

    def add(self, note: Note, found: Sequence[Span], suspected: Iterable[Span] = ()) -> list[Location]:
        """Add the locations of one note and return them."""
        view = NoteView(note.text, note.note_id)
        candidates = locations(view, found, suspected=suspected, usual=self._usual, words=self._words)
        for location in candidates:
            self.sizes[location.stratum] += 1
            key = f"{note.note_id}\0{location.start}"
            self._kept[location.stratum].offer(key, lambda p=location: sample(note, p, candidates))  # type: ignore[misc]
        return candidates

    def drawn(self) -> list[Sample]:
        """Return the sample, sized by `allocation`, in random order."""
        taken = allocation(self.sizes, self._spots)
        chosen: list[Sample] = []
        for name, number in taken.items():
            kept = self._kept[name].values
            keys = sorted(kept)
            chosen += [kept[keys[i]] for i in self._rng.permutation(len(keys))[:number]]
        return [chosen[i] for i in self._rng.permutation(len(chosen))]


def sample(note: Note, location: Location, others: Sequence[Location]) -> Sample:
    """Return a location with its text and context."""
    pieces = tuple(_pieces(note.text, location, open_parts(note.text, location, others)))
    before, after = note.text[max(0, location.start - AROUND) : location.start], note.text[location.end :][:AROUND]
    return Sample(note.note_id, location.start, location.end, location.stratum, pieces, before, after)


def _pieces(text: str, location: Location, asked: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    at = location.start
    for start, end in asked:
        if start > at:
            yield text[at:start], False
        yield text[start:end], True
        at = end
    if at < location.end:
        yield text[at : location.end], False


def identifiers_in(text: str, location: Location, others: Sequence[Location], gold: Sequence[Span]) -> int:
    """Return how many gold spans have a letter or digit in a location; at most 1 except for passages."""
    parts = open_parts(text, location, others)
    hit = sum(any(_shares(text, span, part) for part in parts) for span in gold)
    return hit if location.stratum in PASSAGES else min(hit, 1)


def _shares(text: str, span: Span, part: tuple[int, int]) -> bool:
    return any(c.isalnum() for c in text[max(span.start, part[0]) : min(span.end, part[1])])
