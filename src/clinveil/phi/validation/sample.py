"""Divide the notes into locations, and sample some of each stratum in one pass.

Each letter and digit of a note belongs to exactly one location: a detected span, an undetected run
of suspicious words or digits, or a passage, from which the other locations are excluded. Every
missed identifier is therefore in some location, and nothing is counted twice. The stratum of a
location follows from how likely it contains an identifier.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import partial
from typing import NamedTuple

from numpy.random import Generator

from clinveil.core import Span
from clinveil.corpus import KeySample, Note
from clinveil.lexicons import LexicalClass, name_form
from clinveil.phi.detection.detectors import DETECTORS
from clinveil.phi.detection.note import NoteView, Word
from clinveil.phi.validation.design import STRATA, allocation

SURE = 0.85
PASSAGES = ("cued", "rest")
_USUAL = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
# words per run, and characters between two of them
_MAX_WORDS = 4
_GAP = 2
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


class Sample(NamedTuple):
    """A sampled location, and the parts of it that are to be judged. It contains no text."""

    note_id: str
    start: int
    end: int
    stratum: str
    parts: tuple[tuple[int, int], ...]


def locations(
    note: NoteView,
    detected: Sequence[Span],
    *,
    suspected: Iterable[Span] = (),
    usual: Set[str] = frozenset(),
    words: int,
) -> list[Location]:
    """Return all locations of one note, ordered by stratum and then by position.

    Args:
        detected: detected spans, sorted, without overlaps.
        suspected: low-probability spans of other detectors.
        usual: forms of unlisted words that occur in the notes of many patients.
        words: number of words per passage.
    """
    result = [
        Location(span.start, span.end, "found" if span.score >= SURE else "found_unsure")
        for span in detected
    ]
    taken = _mask(note.text, result)
    for span in sorted(suspected):
        result += _assigned(taken, Location(span.start, span.end, "tagger"))
    for location in (*_words(note, usual), *_numbers(note)):
        result += _assigned(taken, location)
    begin = 0
    # Passages: sentences and lines joined up to `words` words, long ones split.
    for stop in _ends(note.text, words):
        if len(note.text[begin:stop].split()) >= words or begin < stop == len(note.text):
            if any(
                c.isalnum()
                for start, end in _free(taken, begin, stop)
                for c in note.text[start:end]
            ):
                result.append(
                    Location(begin, stop, "cued" if _CUE.search(note.text, begin, stop) else "rest")
                )
            begin = stop
    return result


def open_parts(text: str, location: Location, others: Sequence[Location]) -> list[tuple[int, int]]:
    """Return the parts of a passage outside all other locations, or the whole range of any other
    location.
    """
    if location.stratum not in PASSAGES:
        return [(location.start, location.end)]
    taken = _mask(text, [other for other in others if other.stratum not in PASSAGES])
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


def _assigned(taken: bytearray, location: Location) -> list[Location]:
    """Return the free parts of a location as locations, and mark them as taken."""
    free = _free(taken, location.start, location.end)
    taken[location.start : location.end] = b"\1" * (location.end - location.start)
    return [location._replace(start=start, end=end) for start, end in free]


_ORDER = ("name_like", "unknown_rare", "unknown")


def _words(note: NoteView, usual: Set[str]) -> Iterator[Location]:
    """Yield runs of suspicious words. A run gets the stratum of its most suspicious word."""
    run: list[tuple[Word, str]] = []
    for word in (*note.words, None):
        stratum = ""
        if word and not word.ordinary and len(word.text) > 1:
            if word.listed if word.capital else word.classes & _USUAL:
                stratum = "name_like"
            elif word.capital and not word.classes:
                stratum = "unknown" if name_form(word.text) in usual else "unknown_rare"
        between = note.plain[run[-1][0].end : word.start] if run and word else ""
        if run and (
            not stratum or len(between) > _GAP or "\n" in between or len(run) >= _MAX_WORDS
        ):
            start, end = note.aligned.source_offsets(run[0][0].start, run[-1][0].end)
            yield Location(start, end, min((stratum for _, stratum in run), key=_ORDER.index))
            run = []
        if word and stratum:
            run.append((word, stratum))


def _numbers(note: NoteView) -> Iterator[Location]:
    for match in _DIGITS.finditer(note.plain):
        before = note.plain[max(0, match.start() - 14) : match.start()]
        after = note.plain[match.start() :][:12]
        if _LONG.search(match[0]) or _NUMBER_CUE.search(before) or _OLD.match(after):
            start, end = note.aligned.source_offsets(match.start(), match.end())
            yield Location(start, end, "digits")


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
    """Count locations and keep a random sample of each stratum."""

    def __init__(self, n_locations: int, words: int, usual: Set[str], rng: Generator) -> None:
        self.sizes: Counter[str] = Counter()
        self._n_locations = n_locations
        self._words = words
        self._usual = usual
        self._rng = rng
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
        for location in candidates:
            self.sizes[location.stratum] += 1
            key = f"{note.note_id}\0{location.start}"
            drawn = partial(sample, note, location, candidates)
            self._kept[location.stratum].offer(key, drawn)
        return candidates

    def drawn(self) -> list[Sample]:
        """Return the sample, sized by `allocation`, in random order."""
        taken = allocation(self.sizes, self._n_locations)
        chosen: list[Sample] = []
        for name, number in taken.items():
            kept = self._kept[name].values
            keys = sorted(kept)
            chosen += [kept[keys[i]] for i in self._rng.permutation(len(keys))[:number]]
        return [chosen[i] for i in self._rng.permutation(len(chosen))]


def sample(note: Note, location: Location, others: Sequence[Location]) -> Sample:
    """Return a location as a sample."""
    parts = tuple(open_parts(note.text, location, others))
    return Sample(note.note_id, location.start, location.end, location.stratum, parts)
