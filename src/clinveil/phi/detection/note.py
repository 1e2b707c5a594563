"""`NoteView`: input of the detectors, a normalised ("plain") copy of a note with a map to offsets
in the note.

The copy has no zero-width characters, full-width digits, curly quotes, combining accents,
look-alike letters, tags or character references, so none of them can hide an identifier. Spans are
mapped back to code points of the note.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from clinveil.core import IGNORABLE, LABELS, Markup, Span, read_markup
from clinveil.lexicons import LexicalClass, lexical_classes
from clinveil.phi.matching.matcher import AnchorTables
from clinveil.phi.matching.wordtable import FIRST_WORD, Tokens, WordColumn, marks

if TYPE_CHECKING:
    from clinveil.corpus import Patient


_RUN = re.compile(r"[^\x00-\x7f]+|[\x00-\x7f]+")
_SIGNS = (
    {ord(c): "'" for c in "‘’‚‛′ʼ＇`´"}
    | {ord(c): "-" for c in "‐‑‒–—―−﹣－"}
    | {ord(c): '"' for c in "“”„‟″"}
)
_SIGNS |= {ord(c): "/" for c in "∕⁄⧸"} | {ord(c): "." for c in "·‧∙"} | {ord(c): ":" for c in "∶ː"}
# Cyrillic and Greek letters that look like Latin ones; replaced in words that also contain Latin
# letters.
_LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеіјорсухѕԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοα", "ABESIJKMHOPCTYXaeijopcyxsdqwABEZHIKMNOPTYXoa"
)
_NON_LATIN = re.compile(r"[\u0370-\u052f]")
_MIXED = re.compile(
    r"[A-Za-z\u0370-\u052f]*(?:[A-Za-z][\u0370-\u052f]"
    r"|[\u0370-\u052f][A-Za-z])[A-Za-z\u0370-\u052f]*"
)
# Masks of an earlier de-identification: those of MIMIC, and our tags.
_MASK = re.compile(r"\[\*\*[^\]\n]{0,80}\*\*\]|\[(?:" + "|".join(LABELS) + r")\]|_{3,}")
_CONTRACTED = ("n't", "'re", "'ve", "'ll", "'m", "'d")


class Plain(NamedTuple):
    """Plain copy, with the half-open range of offsets in the note for each of its characters.

    `starts` and `ends` are None if all offsets in the copy and the note are equal. Of a note with
    `markup` they are offsets in its text.
    """

    text: str
    starts: list[int] | None = None
    ends: list[int] | None = None
    markup: Markup | None = None

    def source_offsets(self, start: int, end: int) -> tuple[int, int]:
        """Return the range in the note of a non-empty range in the copy."""
        if self.starts is not None and self.ends is not None:
            start = self.starts[start]
            end = self.ends[end - 1]
        return (start, end) if self.markup is None else self.markup.to_source(start, end)


def plain(text: str) -> Plain:
    """Return the plain copy: NFKC, without ignorable characters, with ASCII digits, dashes and
    quotes.
    """
    if text.isascii():
        return Plain(text)
    clusters = list(_clusters(text))
    copy = "".join(piece for _, _, piece in clusters)
    if _NON_LATIN.search(copy):
        copy = _MIXED.sub(lambda match: match[0].translate(_LOOKALIKES), copy)
    if all(len(piece) == end - start for start, end, piece in clusters):
        return Plain(copy)
    starts: list[int] = []
    ends: list[int] = []
    for start, end, piece in clusters:
        if len(piece) == end - start:
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        else:
            starts.extend([start] * len(piece))
            ends.extend([end] * len(piece))
    return Plain(copy, starts, ends)


def _clusters(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, plain form): runs of ASCII unchanged, other characters with their
    combining marks.
    """
    start = 0
    for match in _RUN.finditer(text):
        if match[0].isascii():
            if match.start() > start:
                yield start, match.start(), _folded(text[start : match.start()])
            # The last character may have combining marks in the next run.
            start = match.end() - 1
            if start > match.start():
                yield match.start(), start, text[match.start() : start]
            continue
        for position in range(match.start(), match.end()):
            if position > start and not _joins(text[position]):
                yield start, position, _folded(text[start:position])
                start = position
    if start < len(text):
        yield start, len(text), _folded(text[start:])


@lru_cache(maxsize=1 << 12)
def _joins(character: str) -> bool:
    return unicodedata.combining(character) != 0 or _ignorable(character)


@lru_cache(maxsize=1 << 12)
def _folded(cluster: str) -> str:
    """Return the plain form of a cluster; empty if it is invisible."""
    visible = "".join(c for c in cluster if not _ignorable(c))
    folded = unicodedata.normalize("NFKC", visible.translate(_SIGNS)).translate(_SIGNS)
    # Combining marks without a composed letter (such as overlaid strokes) are dropped.
    return "".join(
        str(unicodedata.decimal(c, c))
        for c in folded
        if c.isascii() or not unicodedata.combining(c)
    )


def _ignorable(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in IGNORABLE)


def begins_small(word: str) -> bool:
    """Whether a word begins in lower case and has no capital after a hyphen or an apostrophe."""
    return word[0].islower() and not (
        ("-" in word or "'" in word) and any(c.isupper() for c in word)
    )


class Word(NamedTuple):
    """Word of the plain copy: offsets, text without possessive ending, lower case, and lexical
    classes.
    """

    start: int
    end: int
    text: str
    lower: str
    classes: int

    @property
    def capital(self) -> bool:
        """Whether the word or its second part (`al-Rashid`) begins with a capital letter."""
        return not begins_small(self.text)

    @property
    def shouted(self) -> bool:
        """Whether the word has two or more letters, all in capitals."""
        return len(self.text) > 1 and self.text.isupper()

    @property
    def ordinary(self) -> bool:
        """Whether the word can be a common or clinical word."""
        return bool(self.classes & LexicalClass.WORD)

    @property
    def listed(self) -> bool:
        """Whether the word is in a list of names."""
        return bool(self.classes & LexicalClass.NAME)


class StaffList(Protocol):
    """Names of a site's staff: `staff.StaffNames`."""

    def spans(self, note: NoteView, detector: str) -> Iterator[Span]:
        """Yield the names in a note."""
        ...


@dataclass(frozen=True)
class NoteView:
    """One note as input of the detectors; its repr contains no text.

    Attributes:
        text: the original text.
        patient: known data of its patient, or None. staff: names of the staff list, or None.
    """

    text: str = field(repr=False)
    note_id: str = field(default="", repr=False)
    patient: Patient | None = field(default=None, repr=False)
    staff: StaffList | None = field(default=None, repr=False)

    @cached_property
    def aligned(self) -> Plain:
        """The plain copy with its map to the note."""
        markup = read_markup(self.text)
        return plain(self.text) if markup is None else plain(markup.text)._replace(markup=markup)

    def within(self, spans: Sequence[Span]) -> tuple[str, Sequence[Span]]:
        """Return the text without markup, and the spans in it; both unchanged for a plain note."""
        return (
            (self.text, spans)
            if self.aligned.markup is None
            else spans_in(self.aligned.markup, spans)
        )

    @cached_property
    def plain(self) -> str:
        """The plain copy, with masks of an earlier de-identification replaced by NUL (same
        length).
        """
        copy = self.aligned.text
        if "[" not in copy and "___" not in copy:
            return copy
        return _MASK.sub(lambda match: "\x00" * len(match[0]), copy)

    @cached_property
    def tokens(self) -> Tokens:
        """Tokens of the plain copy."""
        return Tokens(self.plain)

    @cached_property
    def words(self) -> Words:
        """Words of the plain copy, in order."""
        return Words(self.tokens)

    @cached_property
    def lower_case(self) -> frozenset[str]:
        """Words that occur in lower case in the note."""
        return frozenset(self.words.texts).intersection(self.words.lowers)

    @cached_property
    def candidates(self) -> dict[AnchorTables, dict[int, list[int]]]:
        """Cache of `matcher.candidates`, by the tables in use when it was computed."""
        return {}

    def span(
        self, start: int, end: int, label: str, detector: str, score: float = 1.0, why: str = ""
    ) -> Span:
        """Return the span in the note of a range in the plain copy."""
        return Span(*self.aligned.source_offsets(start, end), label, detector, score, why)


def spans_in(markup: Markup, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    """Return the text of a marked-up note, and the spans in it, sorted; a span of tags alone is
    left out.
    """
    ranges = [(span, *markup.to_text(span.start, span.end)) for span in spans]
    return markup.text, sorted(
        span.with_range(start, end) for span, start, end in ranges if start < end
    )


class Words(Sequence[Word]):
    """Words of a text: lists for fast access to all of them, and a `Word` for each index.

    Attributes:
        starts: their offsets. texts: without possessive ending. lowers: the same in lower case.
        classes: their lexical classes (`LexicalClass`).
    """

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.ids = tokens.ids[tokens.words]
        self.starts: list[int] = tokens.starts[tokens.words].tolist()
        rows: list[tuple[str, str, int]] = self.column(_LOOKED_UP).tolist()
        self.texts = [text for text, _, _ in rows]
        self.lowers = [lower for _, lower, _ in rows]
        self.classes = [classes for _, _, classes in rows]
        self._cache: dict[int, Word] = {}

    def column(self, of: WordColumn) -> NDArray[Any]:
        """Return the value of a column for each word."""
        return of(self.tokens.table, self.ids)

    def marked(self, mark: int) -> list[int]:
        """Return the indices of the words that have a mark (`phi/matching/wordtable.py`)."""
        return (self._marks & mark).nonzero()[0].tolist()

    @cached_property
    def _marks(self) -> NDArray[np.int32]:
        return self.column(marks.column)

    @cached_property
    def written(self) -> list[str]:
        """Each word as written."""
        words = self.tokens.table.words
        return [words[number] for number in (self.ids - FIRST_WORD).tolist()]

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Word: ...
    @overload
    def __getitem__(self, index: slice) -> list[Word]: ...
    def __getitem__(self, index: int | slice) -> Word | list[Word]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        word = self._cache.get(index)
        if word is None:
            start = self.starts[index]
            text = self.texts[index]
            word = self._cache[index] = Word(
                start, start + len(text), text, self.lowers[index], self.classes[index]
            )
        return word


@lru_cache(maxsize=1 << 12)
def look_up(word: str) -> tuple[str, str, int]:
    """Return a word without its possessive ending, the same in lower case, and its lexical
    classes.
    """
    if "'" in word:
        if word[-2:] in ("'s", "'S"):
            word = word[:-2]
        elif word.lower().endswith(_CONTRACTED):
            return word, word.lower(), LexicalClass.WORD
    return word, word.lower(), lexical_classes(word)


_LOOKED_UP = WordColumn(look_up)
