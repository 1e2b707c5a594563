"""Divide the notes into locations, and sample some of each stratum in one pass.

Each letter and digit of a note belongs to exactly one location: a detected span, or a passage, from
which the detected spans are excluded. Every missed identifier is therefore in some location, and
nothing is counted twice. The stratum of a passage follows from how likely it contains a missed
identifier. One mark judges a passage of many words: the upper end of what is missed in notes where
no mark shows a miss depends on the share of the words that was read, not on the number of marks.

In some sampled passages, a detected identifier is replaced by an invented one and is shown like
undetected text. Whether the reviewer finds these planted identifiers measures the reviewer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cache, partial
from typing import NamedTuple

from numpy.random import Generator

from clinveil.core import Span
from clinveil.corpus import KeySample, Note
from clinveil.lexicons import LexicalClass, name_form
from clinveil.phi.detection.detectors import DETECTORS
from clinveil.phi.detection.note import NoteView
from clinveil.phi.validation.design import STRATA, allocation

SURE = 0.85
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
_DIGITS = re.compile(r"(?<!\w)[#]?\d+(?:[./:-]\d+)*(?!\w)|[A-Za-z]{1,3}-?\d{4,}")
_LONG = re.compile(r"(?:\d.*){4}|\d[/-]\d", re.DOTALL)
_NUMBER_CUE = re.compile(
    r"(?:#|\b(?:no|num|number|mrn|mr|id|acct|account|ssn|tel|phone|ph|fax|cell|pager|beeper|ext|x"
    r"|room|rm|on|dated|date"
    r"|dob|born|age|aged|since|until|license|lic|serial|case|unit|zip)\b)[\s.:#]{0,4}$",
    re.IGNORECASE,
)
_OLD = re.compile(r"(?:9\d|1[01]\d)[\s-]{0,2}(?:y|year|yr)", re.IGNORECASE)
_CUE = re.compile(
    r"\b(?:mrs?|ms|miss|dr|doctor|drs|name[ds]?|called|son|daughter|wife|husband|spouse|partner"
    r"|mother|father|brother"
    r"|sister|aunt|uncle|friend|nurse|attorney|signed|dictated|attending|resident|referr\w+|seen"
    r" by|by|lives?|from"
    r"|street|st|ave|road|hospital|clinic|center|school|works?|employ\w+|phone|call|email|contact"
    r"|january|february"
    r"|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_BREAK = re.compile(r"\n+|(?<=[.;!?])\s+")


class Location(NamedTuple):
    """A half-open range [start, end) of a note, and its stratum (a key of `design.STRATA`)."""

    start: int
    end: int
    stratum: str

    @property
    def detected(self) -> bool:
        """Whether the engine detected it; otherwise it is a passage."""
        return STRATA[self.stratum].detected


class Plant(NamedTuple):
    """An invented identifier that is shown instead of the range [start, end) of a note."""

    start: int
    end: int
    text: str


class Sample(NamedTuple):
    """A sampled location, and the parts of it that are to be judged. It contains no text of notes.

    Attributes:
        planted: the identifiers that may be planted in a passage; in the sample at most one, which
            is judged too.
    """

    note_id: str
    start: int
    end: int
    stratum: str
    parts: tuple[tuple[int, int], ...]
    planted: tuple[Plant, ...] = ()


Invent = Callable[[Note, Sequence[Span]], Sequence[str | None]]
"""(note, its detected spans) -> an invented identifier of the same class for each, or None."""


def locations(
    note: NoteView,
    detected: Sequence[Span],
    *,
    suspected: Iterable[Span] = (),
    usual: Set[str] = frozenset(),
    words: int,
) -> list[Location]:
    """Return all locations of one note: the detected spans, then the passages, by position.

    Args:
        detected: detected spans, sorted, without overlaps.
        suspected: low-probability spans of other detectors.
        usual: forms of unlisted words that occur in the notes of many patients.
        words: number of words per passage.
    """
    text = note.text
    result = [
        Location(span.start, span.end, "found" if span.score >= SURE else "found_unsure")
        for span in detected
    ]
    taken = _mask(text, result)
    reasons = _reasons(note, suspected, usual, taken)
    begin = 0
    # Passages: sentences and lines joined up to `words` words, long ones split.
    for stop in _ends(text, words):
        if len(text[begin:stop].split()) < words and not begin < stop == len(text):
            continue
        free = _free(taken, begin, stop)
        if any(character.isalnum() for start, end in free for character in text[start:end]):
            first = bisect_left(reasons, (begin, ""))
            last = bisect_left(reasons, (stop, ""))
            inside = (name for _, name in reasons[first:last])
            other = "cued" if _CUE.search(text, begin, stop) else "rest"
            stratum = min(inside, key=_ORDER.index, default=other)
            result.append(Location(begin, stop, stratum))
        begin = stop
    return result


def _reasons(
    note: NoteView, suspected: Iterable[Span], usual: Set[str], taken: bytearray
) -> list[tuple[int, str]]:
    """Return the offsets of undetected words and numbers that put a passage into a stratum, sorted,
    each with the stratum.
    """
    ranges = [(span.start, span.end, "suspected") for span in suspected]
    ranges += [*_words(note, usual), *_numbers(note)]
    return sorted(
        (free[0][0], stratum)
        for start, end, stratum in ranges
        if (free := _free(taken, start, end))
    )


_ORDER = tuple(name for name, stratum in STRATA.items() if not stratum.detected)


def open_parts(text: str, location: Location, others: Sequence[Location]) -> list[tuple[int, int]]:
    """Return the parts of a passage outside all detected spans, or the whole range of a detected
    span.
    """
    if location.detected:
        return [(location.start, location.end)]
    taken = _mask(text, [other for other in others if other.detected])
    return _free(taken, location.start, location.end)


def _mask(text: str, locations: Iterable[Location]) -> bytearray:
    """Return one byte per character, 1 in a location."""
    mask = bytearray(len(text))
    for start, end, _ in locations:
        mask[start:end] = b"\1" * (end - start)
    return mask


def _free(taken: bytearray, start: int, end: int) -> list[tuple[int, int]]:
    """Return the parts of a range that are in no location."""
    return [
        (start + match.start(), start + match.end())
        for match in re.finditer(rb"\x00+", taken[start:end])
    ]


def _words(note: NoteView, usual: Set[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the source offsets and the stratum of each word that may be a name."""
    for word in note.words:
        if word.ordinary or len(word.text) < 2:
            continue
        if word.listed if word.capital else word.classes & _USUAL:
            yield (*note.aligned.source_offsets(word.start, word.end), "name_like")
        elif word.capital and not word.classes and name_form(word.text) not in usual:
            yield (*note.aligned.source_offsets(word.start, word.end), "rare")


def _numbers(note: NoteView) -> Iterator[tuple[int, int, str]]:
    for match in _DIGITS.finditer(note.plain):
        before = note.plain[max(0, match.start() - 14) : match.start()]
        after = note.plain[match.start() :][:12]
        if _LONG.search(match[0]) or _NUMBER_CUE.search(before) or _OLD.match(after):
            yield (*note.aligned.source_offsets(match.start(), match.end()), "digits")


def _ends(text: str, words: int) -> Iterator[int]:
    """Yield the possible ends of passages: after sentences and lines, and inside those that are too
    long.
    """
    start = 0
    for end in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        for number, word in enumerate(re.finditer(r"\S+\s*", text[start:end]), 1):
            if number % words == 0:
                yield start + word.end()
        yield end
        start = end


def suspected(note: Note) -> list[Span]:
    """Return the spans below the detection threshold of all detectors that provide them
    (`suspect`), as the tagger.
    """
    view = NoteView(note.text, note.note_id)
    able = (detector.suspect for detector in DETECTORS if hasattr(detector, "suspect"))
    return [span for suspect in able for span in suspect(view)]


MANY = 5  # patients; an unlisted word in the notes of this many is more likely a term than a name
AROUND = 80  # characters of context before and after a location
PLANTED = 0.1  # share of the sampled locations with a planted identifier, at most


def usual_forms(notes: Iterable[Note]) -> frozenset[str]:
    """Return the forms of unlisted capitalised words that occur in the notes of at least `MANY`
    patients.
    """
    patients: dict[str, set[str]] = defaultdict(set)
    for note in notes:
        for word in NoteView(note.text).words:
            if (
                word.capital
                and not word.classes
                and len(having := patients[name_form(word.text)]) < MANY
            ):
                having.add(note.patient_id)
    return frozenset(form for form, having in patients.items() if len(having) >= MANY)


class Draw:
    """Count locations and keep a random sample of each stratum.

    Args:
        invent: returns invented identifiers, to plant some; None plants none.
    """

    def __init__(
        self,
        n_locations: int,
        words: int,
        usual: Set[str],
        rng: Generator,
        invent: Invent | None = None,
    ) -> None:
        self.sizes: Counter[str] = Counter()
        self._n_locations = n_locations
        self._words = words
        self._usual = usual
        self._rng = rng
        self._invent = invent
        self._kept: dict[str, KeySample[Sample]] = {
            name: KeySample(n_locations, rng) for name in STRATA
        }

    def add(
        self, note: Note, detected: Sequence[Span], suspected: Iterable[Span] = ()
    ) -> list[Location]:
        """Add the locations of one note and return them."""
        view = NoteView(note.text, note.note_id)
        candidates = locations(
            view, detected, suspected=suspected, usual=self._usual, words=self._words
        )
        invented = cache(lambda: self._plants(note, detected))
        for location in candidates:
            self.sizes[location.stratum] += 1
            key = f"{note.note_id}\0{location.start}\0{location.detected}"
            drawn = partial(sample, note, location, candidates, invented)
            self._kept[location.stratum].offer(key, drawn)
        return candidates

    def _plants(self, note: Note, detected: Sequence[Span]) -> list[Plant]:
        """Return what may be planted in a note: at detected spans of a high score."""
        if self._invent is None:
            return []
        texts = self._invent(note, detected)
        return [
            Plant(span.start, span.end, text)
            for span, text in zip(detected, texts, strict=True)
            if text is not None and span.score >= SURE
        ]

    def drawn(self) -> list[Sample]:
        """Return the sample, sized by `allocation`, in random order, with planted identifiers."""
        taken = allocation(self.sizes, self._n_locations)
        chosen: list[Sample] = []
        for name, number in taken.items():
            kept = self._kept[name].values
            keys = sorted(kept)
            chosen += [kept[keys[i]] for i in self._rng.permutation(len(keys))[:number]]
        chosen = [chosen[i] for i in self._rng.permutation(len(chosen))]
        most = round(PLANTED * len(chosen))
        with_any = [i for i, one in enumerate(chosen) if one.planted]
        planted = {with_any[i] for i in self._rng.permutation(len(with_any))[:most]}
        return [
            one._replace(planted=self._one_of(one.planted) if i in planted else ())
            for i, one in enumerate(chosen)
        ]

    def _one_of(self, plants: Sequence[Plant]) -> tuple[Plant, ...]:
        return (plants[int(self._rng.integers(len(plants)))],)


def sample(
    note: Note,
    location: Location,
    others: Sequence[Location],
    plants: Callable[[], Sequence[Plant]] = tuple,
) -> Sample:
    """Return a location as a sample; a passage with what may be planted in it."""
    parts = tuple(open_parts(note.text, location, others))
    possible = () if location.detected else plants()
    inside = tuple(
        one for one in possible if location.start <= one.start and one.end <= location.end
    )
    return Sample(note.note_id, location.start, location.end, location.stratum, parts, inside)
