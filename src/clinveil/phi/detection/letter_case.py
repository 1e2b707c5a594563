"""Places and institutions in text without letter case: the same rules on a copy with the usual
capitals.

`SEEN AT MERCY HOSPITAL` and `seen at mercy hospital` both become `seen at Mercy Hospital`. Only
segments in capitals, or notes with hardly any capitals, are copied; all other text keeps its case.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from clinveil.core import Span
from clinveil.lexicons import LexicalClass, is_word, lexical_classes, word_list
from clinveil.phi.detection.detector import RuleDetector, words
from clinveil.phi.detection.note import NoteView

_SEGMENT = re.compile(r"[^\n.:;!?]+(?:[.:;!?](?![ \n,])[^\n.:;!?]*)*[.:;!?]?")
_SAINT_OR_DOCTOR = re.compile(
    r"\b(?:ST|DR|MR|MRS|MT|FT|AVE|RD|BLVD|APT|P\.O|st|dr|mr|mrs|mt|ft|ave|rd|blvd|apt|p\.o)\.\Z"
)
_WORD = re.compile(r"[^\W\d_]+(?:['&-][^\W\d_]+)*")
# At least one of these must occur: kinds of institutions and streets, and words before a place.
_TRIGGER = re.compile(
    r"\b(?:hospital|hosp|clinic|cent(?:er|re)|ctr|infirmary|hospice|pharmacy|university|college"
    r"|school|academy|institute"
    r"|health|healthcare|medical|general|memorial|manor|church|court|lodge|residence|home|rehab"
    r"|prison|jail|bank|inc|llc"
    r"|foods|company|street|st|avenue|ave|road|rd|lane|ln|drive|boulevard|blvd|way|place|county"
    r"|parish|township|apt|flat"
    r"|in|at|from|to|near|of|outside|for)\b",
    re.I,
)
# Any words before these kinds may be their name; before the others only words that are not ordinary
# words.
_KINDS = words(
    "hospital hosp hospitals clinic center centre ctr infirmary hospice pharmacy university college"
    " school academy"
    " memorial manor church lodge residence sanatorium street avenue ave road rd lane drive"
    " boulevard blvd county parish"
    " township physicians pediatrics department terrace parkway highway"
)
_WEAK_KINDS = words(
    "general medical health healthcare med institute court home rehab prison jail bank inc llc"
    " foods company st ln dr place"
    " care community system network partners trust group associates facility foundation square"
    " trail crescent close grove"
    " gardens row hill heights village er oncology er's police products services industries"
)
# Words that a name of an institution or a street does not begin with or contain.
_STOPS = words(
    "patient pt patients he she they we i his her their our my this that these those there here who"
    " which seen sent taken"
    " lives lived living works worked born was were is are be been has had have will would did does"
    " went came saw see told"
    " called goes go admitted discharged transferred referred treated evaluated followed"
    " hospitalized presented moved"
    " returned brought visited attends attended history physical exam examination date name address"
    " phone record number"
    " diagnosis procedure day days week weeks month months year years today yesterday emergency"
    " department room icu unit"
    " local outside nearby nursing-home no not none any other same another each every prior"
    " previous current"
)
_HOME = re.compile(
    r"\b(?:live[sd]?|living|resid\w+|moved|born|raised|native|from|relocated|flew|visiting"
    r"|trip)\b[^.\n]{0,24}\Z",
    re.I,
)
# Words after these may be the name of an employer, a school, an institution.
_AT = re.compile(
    r"\b(?:(?:work\w*|employ\w+|job|retired|volunteer\w*|attend\w*|enrolled|student|studies"
    r"|graduated|teacher|goes|nurse"
    r"|manager)[ ](?:[a-z-]+[ ]){0,3}?(?:at|for|by|with|from|in|to)|attends|attended|attending"
    r"|joined"
    r"|(?:seen|treated|evaluated|followed|visit|visited|admitted|operated|living|lives|outpatient"
    r"|care|surgery|stay)[ ]"
    r"(?:[a-z]+[ ]){0,2}?at)[ ](?:the[ ])?",
    re.I,
)
_STATE_AFTER = re.compile(r",[ ]?([A-Za-z]{2})(?![A-Za-z])")
_SAINT = re.compile(r"\b(?:st|mt|ft)\.?[ ](?=[a-z])", re.I)
_STATE_LETTERS = words(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM"
    " NY NC ND OH OK OR PA RI"
    " SC SD TN TX UT VT VA WA WV WI WY DC"
)
_MOST_SMALL = 30  # words for each capitalised one, in a note that is written in lower case
_FEWEST = 3  # words of a segment in capitals


@dataclass(frozen=True)
class Recased:
    """Segments of a plain copy in their usual case, one per line, with their offsets in the copy
    and in the note.
    """

    text: str
    starts: list[int]
    sources: list[int]

    def source(self, offset: int) -> int:
        """Return the offset in the plain copy of an offset in `text`."""
        number = bisect_right(self.starts, offset) - 1
        return self.sources[number] + offset - self.starts[number]


@lru_cache(maxsize=1)
def recased(text: str) -> Recased | None:
    """Return the segments without letter case in their usual case, or None if there are none."""
    pieces = list[str]()
    starts = list[int]()
    sources = list[int]()
    length = 0
    small = _is_small(text)
    for start, end in _segments(text):
        segment = text[start:end]
        if not (small or _is_shouted(segment)) or _TRIGGER.search(segment) is None:
            continue
        pieces.append(_usual(segment))
        starts.append(length)
        sources.append(start)
        length += len(segment) + 1
    return Recased("\n".join(pieces), starts, sources) if pieces else None


def _segments(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of sentences and fields; a dotted abbreviation does not end one."""
    start = -1
    for match in _SEGMENT.finditer(text):
        start = match.start() if start < 0 else start
        if _SAINT_OR_DOCTOR.search(text, start, match.end()):
            continue
        yield start, match.end()
        start = -1
    if start >= 0:
        yield start, len(text)


def _is_small(text: str) -> bool:
    written = _WORD.findall(text[:20_000])
    return len(written) > _FEWEST and sum(
        not word.islower() for word in written
    ) * _MOST_SMALL <= len(written)


def _is_shouted(segment: str) -> bool:
    if not any(map(str.isupper, segment)) or any(map(str.islower, segment)):
        return False
    return len(_WORD.findall(segment)) >= _FEWEST


def _usual(segment: str) -> str:
    """Return a segment with capitals where names and names of institutions have them; the length
    stays.
    """
    matches = list(_WORD.finditer(segment))
    lowers = [match[0].lower() for match in matches]
    spans = [match.span() for match in matches]
    capital = [
        _is_proper(lower, segment[:start]) for lower, (start, _) in zip(lowers, spans, strict=True)
    ]
    for index, lower in enumerate(lowers):
        if lower in _KINDS or lower in _WEAK_KINDS:
            _capitalise_before(index, lowers, capital, spans)
    for match in (*_AT.finditer(segment), *_SAINT.finditer(segment)):
        _capitalise_after(match.end(), lowers, capital, spans, match.re is _SAINT)
    written = [
        _titled(lower) if proper else lower for lower, proper in zip(lowers, capital, strict=True)
    ]
    _write_listed(lowers, written)
    letters = list(segment)
    for (start, end), word in zip(spans, written, strict=True):
        if len(word) == end - start:
            letters[start:end] = word
    usual = "".join(letters)
    for match in (*_STATE_AFTER.finditer(usual), *_SAINT.finditer(usual)):
        state = match.re is _STATE_AFTER
        if not state or match[1].upper() in _STATE_LETTERS:
            piece = match[0].upper() if state else match[0].title()
            usual = usual[: match.start()] + piece + usual[match.end() :]
    return usual


def _titled(lower: str) -> str:
    return "-".join(part[:1].upper() + part[1:] for part in lower.split("-"))


@lru_cache(maxsize=1 << 14)
def _kind_of(lower: str) -> int:
    """Return 0 for an ordinary word, 1 for a name or a word that is in no list, 2 for a town that
    is also a word.
    """
    bare = lower.removesuffix("'s")
    kind = lexical_classes(bare)
    if len(bare) < 3 or kind & LexicalClass.FUNCTION or bare in _STOPS:
        return 0
    if kind & LexicalClass.WORD or is_word(bare) or bare in word_list("shorthand"):
        return 2 if bare.title() in word_list("cities") else 0
    return 1


def _is_proper(lower: str, before: str) -> bool:
    kind = _kind_of(lower)
    return kind == 1 or (kind == 2 and _HOME.search(before) is not None)


def _stops(word: str) -> bool:
    """Return whether a word cannot be part of the name of an institution."""
    kind = lexical_classes(word)
    verb = word.endswith(("ed", "ing")) and not kind & LexicalClass.NAME
    return word in _STOPS or verb or bool(kind & LexicalClass.FUNCTION)


def _capitalise_before(
    index: int, lowers: list[str], capital: list[bool], spans: list[tuple[int, int]]
) -> None:
    """Mark the words before a kind of institution or street: `mercy hospital`, `oak street`."""
    first = index
    strong = lowers[index] in _KINDS
    while first > 0 and index - first < 4 and spans[first][0] - spans[first - 1][1] == 1:
        if _stops(lowers[first - 1]) or not (strong or capital[first - 1]):
            break
        first -= 1
    if first < index:
        capital[first : index + 1] = [True] * (index + 1 - first)


def _capitalise_after(
    end: int, lowers: list[str], capital: list[bool], spans: list[tuple[int, int]], alone: bool
) -> None:
    """Mark up to three words that begin at an offset: an employer, a school; after `St.` only
    one.
    """
    index = next((number for number, (start, _) in enumerate(spans) if start >= end), len(spans))
    last = index
    while last < len(spans) and last - index < (1 if alone else 3) and not _stops(lowers[last]):
        if last > index and spans[last][0] - spans[last - 1][1] != 1:
            break
        capital[last] = True
        last += 1


@cache
def _listed() -> dict[str, list[tuple[str, ...]]]:
    """Return the towns, states and hospitals as they are written, by their first word in lower
    case.
    """
    table: dict[str, list[tuple[str, ...]]] = {}
    for name in word_list("cities") | word_list("hospitals") | word_list("states"):
        row = tuple(name.split())
        if len(row) > 1 or not is_word(name.lower()):
            table.setdefault(row[0].lower(), []).append(row)
    return table


def _write_listed(lowers: list[str], written: list[str]) -> None:
    for index, lower in enumerate(lowers):
        for row in _listed().get(lower, ()):
            if lowers[index : index + len(row)] == [piece.lower() for piece in row]:
                written[index : index + len(row)] = row


@dataclass(frozen=True)
class AnyCase:
    """A rule detector that also reads text without letter case.

    Attributes:
        inner: the detector; its rules read letter case.
    """

    inner: RuleDetector

    @property
    def name(self) -> str:
        """Name of the detector in its spans."""
        return self.inner.name

    @property
    def rules(self) -> tuple[object, ...]:
        """The rules."""
        return self.inner.rules

    @property
    def labels(self) -> frozenset[str]:
        """Labels of the rules."""
        return self.inner.labels

    @property
    def examples(self) -> tuple[str, ...]:
        """Examples of the rules."""
        return self.inner.examples

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield the findings in the note, and those in its segments without letter case."""
        yield from self.inner.find(note)
        copy = recased(note.plain)
        if copy is None:
            return
        for span in self.inner.find(NoteView(copy.text)):
            start = copy.source(span.start)
            end = copy.source(span.end - 1) + 1
            if start < end:
                yield note.span(start, end, span.label, span.detector, span.score, span.why)
