"""`NoteView`, what a detector sees of one note: a plain copy of it, and a map back to the code points of the note.

Zero-width characters, full-width digits, curly quotes, composed and decomposed accents and look-alike letters do not
hide an identifier: the copy has none of them, and every span goes back to the note through the map.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from clinveil.core.spans import LABELS, Span
from clinveil.core.tokens import Kind, character_classes
from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.phi.marks import marks
from clinveil.phi.wordtable import Column, Tokens

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient
    from clinveil.phi.matcher import Tables


_STRETCH = re.compile(r"[^\x00-\x7f]+|[\x00-\x7f]+")
_SIGNS = {ord(c): "'" for c in "‘’‚‛′ʼ＇`´"} | {ord(c): "-" for c in "‐‑‒–—―−﹣－"} | {ord(c): '"' for c in "“”„‟″"}
_SIGNS |= {ord(c): "/" for c in "∕⁄⧸"} | {ord(c): "." for c in "·‧∙"} | {ord(c): ":" for c in "∶ː"}
# Letters of Cyrillic and Greek that look like Latin ones; put right inside words that hold Latin letters too.
_LOOKS = str.maketrans("АВЕЅІЈКМНОРСТУХаеіјорсухѕԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοα", "ABESIJKMHOPCTYXaeijopcyxsdqwABEZHIKMNOPTYXoa")
_OF_OTHERS = re.compile(r"[\u0370-\u052f]")
_MIXED = re.compile(r"[A-Za-z\u0370-\u052f]*(?:[A-Za-z][\u0370-\u052f]|[\u0370-\u052f][A-Za-z])[A-Za-z\u0370-\u052f]*")
# Marks of an earlier de-identification: MIMIC's, and the tags that this room writes.
_MASK = re.compile(r"\[\*\*[^\]\n]{0,80}\*\*\]|\[(?:" + "|".join(LABELS) + r")\]|_{3,}")
_CONTRACTED = ("n't", "'re", "'ve", "'ll", "'m", "'d")


class Plain(NamedTuple):
    """The copy, and for each of its characters the half-open place in the note that it stands for.

    `starts` and `ends` are None where each character of the copy stands where it stood in the note.
    """

    text: str
    starts: list[int] | None = None
    ends: list[int] | None = None

    def source_offsets(self, start: int, end: int) -> tuple[int, int]:
        """The place in the note of a non-empty place in the copy."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def plain(text: str) -> Plain:
    """The plain copy: NFKC, ignorables gone, digits, dashes and quotes of any script as ASCII ones."""
    if text.isascii():
        return Plain(text)
    clusters = list(_clusters(text))
    copy = "".join(piece for _, _, piece in clusters)
    if _OF_OTHERS.search(copy):
        copy = _MIXED.sub(lambda match: match[0].translate(_LOOKS), copy)
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
    """Stretches of ASCII as they are; other characters one by one, each with the marks that follow it."""
    start = 0
    for match in _STRETCH.finditer(text):
        if match[0].isascii():
            if match.start() > start:
                yield start, match.start(), _folded(text[start : match.start()])
            # The last character may carry the marks of the next stretch.
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
    """A cluster in its plain form; empty where nothing of it can be seen."""
    shown = "".join(c for c in cluster if not _ignorable(c))
    folded = unicodedata.normalize("NFKC", shown.translate(_SIGNS)).translate(_SIGNS)
    # Marks that make no letter of their own (strokes laid over a name) go.
    return "".join(str(unicodedata.decimal(c, c)) for c in folded if c.isascii() or not unicodedata.combining(c))


def _ignorable(character: str) -> bool:
    return bool(character_classes()[ord(character)] == Kind.IGNORABLE)


def begins_small(word: str) -> bool:
    """Whether a word begins with a small letter and has no part with a capital behind a hyphen or an apostrophe."""
    return word[0].islower() and not (("-" in word or "'" in word) and any(c.isupper() for c in word))


class Word(NamedTuple):
    """A word of the plain copy: its place, itself without a possessive ending, in lower case, and what it may be."""

    start: int
    end: int
    text: str
    lower: str
    classes: int

    @property
    def capital(self) -> bool:
        """Whether it begins with a capital letter, or its second part does (`al-Rashid`)."""
        return not begins_small(self.text)

    @property
    def shouted(self) -> bool:
        """Whether it is written in capitals (two letters or more)."""
        return len(self.text) > 1 and self.text.isupper()

    @property
    def ordinary(self) -> bool:
        """Whether it can be a common or clinical word."""
        return bool(self.classes & LexicalClass.WORD)

    @property
    def listed(self) -> bool:
        """Whether it stands in some list of names."""
        return bool(self.classes & LexicalClass.NAME)


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
    def aligned(self) -> Plain:
        """The plain copy with its map back."""
        return plain(self.text)

    @cached_property
    def plain(self) -> str:
        """The plain copy, with the marks of an earlier de-identification blanked out (same length)."""
        copy = self.aligned.text
        if "[" not in copy and "___" not in copy:
            return copy
        return _MASK.sub(lambda match: "\x00" * len(match[0]), copy)

    @cached_property
    def tokens(self) -> Tokens:
        """The words, numbers, signs and lines of the plain copy."""
        return Tokens(self.plain)

    @cached_property
    def words(self) -> Words:
        """The words of the plain copy in order."""
        return Words(self.tokens)

    @cached_property
    def lower_case(self) -> frozenset[str]:
        """The words that the note writes in lower case."""
        return frozenset(self.words.texts).intersection(self.words.lowers)

    @cached_property
    def candidates(self) -> dict[Tables, dict[int, list[tuple[int, int]]]]:
        """Where patterns may begin and how far they may read, by the tables of those that were known then."""
        return {}

    def span(self, start: int, end: int, label: str, detector: str, score: float = 1.0, why: str = "") -> Span:
        """The span in the note of a place in the plain copy."""
        return Span(*self.aligned.source_offsets(start, end), label, detector, score, why)


class Words(Sequence[Word]):
    """The words of a text: columns for quick passes over all of them, and each one as a `Word` when asked for."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.ids = tokens, tokens.ids[tokens.words]
        self.starts: list[int] = tokens.starts[tokens.words].tolist()
        self._made: dict[int, Word] = {}

    def column(self, of: Column) -> NDArray[Any]:
        """What a column says of each word."""
        return of(self.tokens.table, self.ids)

    def marked(self, mark: int) -> list[int]:
        """The indices of the words that have a mark (`phi/marks.py`)."""
        return np.flatnonzero(self._marks & mark).tolist()

    @cached_property
    def _marks(self) -> NDArray[np.int32]:
        return self.column(marks.column)

    @cached_property
    def written(self) -> list[str]:
        """Each word as it is written."""
        return self.column(_WRITTEN).tolist()

    @cached_property
    def texts(self) -> list[str]:
        """Each word without its possessive ending."""
        return self.column(_TEXTS).tolist()

    @cached_property
    def lowers(self) -> list[str]:
        """The same in lower case."""
        return self.column(_LOWERS).tolist()

    @cached_property
    def classes(self) -> list[int]:
        """What each word may be (`LexicalClass`)."""
        return self.column(_CLASSES).tolist()

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Word: ...
    @overload
    def __getitem__(self, index: slice) -> list[Word]: ...
    def __getitem__(self, index: int | slice) -> Word | list[Word]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        word = self._made.get(index)
        if word is None:
            start, text = self.starts[index], self.texts[index]
            word = self._made[index] = Word(start, start + len(text), text, self.lowers[index], self.classes[index])
        return word


@lru_cache(maxsize=1 << 12)
def look_up(word: str) -> tuple[str, str, int]:
    """A word without its possessive ending, the same in lower case, and its lexical classes."""
    if "'" in word:
        if word[-2:] in ("'s", "'S"):
            word = word[:-2]
        elif word.lower().endswith(_CONTRACTED):
            return word, word.lower(), LexicalClass.WORD
    return word, word.lower(), lexical_classes(word)


_WRITTEN = Column(str)
_TEXTS = Column(lambda word: look_up(word)[0])
_LOWERS = Column(lambda word: look_up(word)[1])
_CLASSES = Column(lambda word: look_up(word)[2], np.int32)
