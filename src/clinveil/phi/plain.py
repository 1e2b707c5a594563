"""A plain copy of a note for detectors to read, with a map back to the code points of the note.

Zero-width characters, full-width digits, curly quotes, composed and decomposed accents and look-alike letters do not
hide an identifier: the copy has none of them, and every span goes back to the note through the map.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from clinveil.core.tokens import Kind, character_classes

_STRETCH = re.compile(r"[^\x00-\x7f]+|[\x00-\x7f]+")
_SIGNS = {ord(c): "'" for c in "‘’‚‛′ʼ＇`´"} | {ord(c): "-" for c in "‐‑‒–—―−﹣－"} | {ord(c): '"' for c in "“”„‟″"}
# Letters of Cyrillic and Greek that look like Latin ones; put right inside words that hold Latin letters too.
_LOOKS = str.maketrans("АВЕЅІЈКМНОРСТУХаеіјорсухѕԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοα", "ABESIJKMHOPCTYXaeijopcyxsdqwABEZHIKMNOPTYXoa")
_MIXED = re.compile(r"[A-Za-z\u0370-\u052f]*(?:[A-Za-z][\u0370-\u052f]|[\u0370-\u052f][A-Za-z])[A-Za-z\u0370-\u052f]*")


class Plain(NamedTuple):
    """The copy, and for each of its characters the half-open place in the note that it stands for.

    `starts` and `ends` are None where the copy is the note itself.
    """

    text: str
    starts: list[int] | None = None
    ends: list[int] | None = None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """The place in the note of a non-empty place in the copy."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def plain(text: str) -> Plain:
    """The plain copy: NFKC, ignorables gone, digits, dashes and quotes of any script as ASCII ones."""
    if text.isascii():
        return Plain(text)
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end, piece in _clusters(text):
        pieces.append(piece)
        if len(piece) == end - start:
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        else:
            starts.extend([start] * len(piece))
            ends.extend([end] * len(piece))
    copy = _MIXED.sub(lambda match: match[0].translate(_LOOKS), "".join(pieces))
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
