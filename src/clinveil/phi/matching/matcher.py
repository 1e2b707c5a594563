"""Pattern matching restricted to the offsets at which a match can begin, with the same matches as
`finditer`.

The anchors of all patterns are searched for in one pass over a note, words by an
Aho-Corasick automaton. From the anchors follow the offsets at which each pattern is tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from threading import Lock
from typing import Protocol

import numpy as np
from ahocorasick_rs import AhoCorasick, Implementation
from numpy.typing import NDArray

from clinveil.core import kernel
from clinveil.phi.matching.wordtable import codes

EDGE = "|"
"""Marks a position in a string that is not next to an ASCII letter."""
FAR = 96
"""A match begins at most this many characters before its anchor."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Text that every match contains: one of several words, a run of digits, or one of some signs.

    Declare the rarest. Letters and digits mean ASCII here; other characters are always allowed.

    Attributes:
        words: separated by spaces: `fax` alone, `phone*` with letters after it, `*weg` with letters
            before it. A word in lower case is found in any case.
        digits: smallest length of the run of digits.
        signs: one of these characters.
        within: a match begins at most this many characters before its anchor, `FAR` if unlimited.
        first: class of the first character of a match, as in a pattern: `[A-Z]`. Any if empty.
        after: class of the character before a match, if there is one. Any if empty.
    """

    words: str = ""
    digits: int = 0
    signs: str = ""
    within: int = 0
    first: str = ""
    after: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.words, self.digits, self.signs))) != 1:
            raise ValueError("an anchor needs exactly one of words, digits and signs")

    @property
    def strings(self) -> tuple[str, ...]:
        """The words with an `EDGE` at each side where no letter follows."""
        return tuple(dict.fromkeys(map(_string, self.words.split())))


def _string(word: str) -> str:
    letters = word.strip("*")
    if not (letters.isascii() and letters.isalpha()):
        raise ValueError("a word of an anchor consists of ASCII letters")
    before = "" if word.startswith("*") else EDGE
    after = "" if word.endswith("*") else EDGE
    return before + letters + after


Ints = NDArray[np.int32]
LONGEST_RUN = 64
"""A match begins within the first digits of a run of digits, this many."""
_NO_RUN = 1 << 20  # longer than any run of digits
_CLASSES = 129  # one per ASCII character, and one for all others
_OTHER = _CLASSES - 1
# Characters without a letter, and non-ASCII letters that match an ASCII letter if case is ignored
# (a test checks all).
_LETTERS = {code: EDGE for code in range(128) if not chr(code).isalpha()} | str.maketrans(
    "\u0130\u0131\u017f\u212a", "iisk"
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class _Anchors:
    """Anchors of the patterns of all detectors, so that each note is searched once for all of
    them.
    """

    def __init__(self) -> None:
        self._numbers: dict[Anchor, int] = {}
        self._tables: AnchorTables | None = None
        self._lock = Lock()

    def number(self, anchor: Anchor) -> int:
        """Return the number of an anchor, adding it if it is new."""
        with self._lock:
            if anchor not in self._numbers:
                self._numbers[anchor] = len(self._numbers)
                self._tables = None
        return self._numbers[anchor]

    def tables(self) -> AnchorTables:
        """Return the tables of all patterns so far."""
        tables = self._tables
        if tables is None:
            with self._lock:
                tables = self._tables = AnchorTables(tuple(self._numbers))
        return tables


class AnchorTables:
    """Arrays for all patterns known at one time."""

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        strings: dict[str, list[int]] = {}
        for number, anchor in enumerate(anchors):
            for text in anchor.strings:
                strings.setdefault(text, []).append(number)
        exact = [text for text in strings if text != text.lower()]
        folded = [text for text in strings if text == text.lower()]
        self._exact = _automaton(exact)
        self._folded = _automaton(folded)
        self._n_exact = len(exact)
        ordered = [*exact, *folded]
        # From the begin of a string to its first letter in the note; the searched text has an
        # additional edge before it.
        self._shifts = np.array([(text[0] == EDGE) - 1 for text in ordered], np.int32)
        self._sizes = np.array([len(strings[text]) for text in ordered], np.int32)
        self._owners = np.array([number for text in ordered for number in strings[text]], np.int32)
        self._begins = np.cumsum(self._sizes) - self._sizes
        self._first = _member_table(_members(anchor.first) for anchor in anchors)
        self._after = _member_table(_members(anchor.after) for anchor in anchors)
        self._signs = _member_table(frozenset(map(ord, anchor.signs)) for anchor in anchors)
        self._any_sign = np.logical_or.reduce(self._signs, axis=0)
        self._digits = np.array([anchor.digits or _NO_RUN for anchor in anchors], np.int32)
        self._within = np.array([min(anchor.within, FAR) for anchor in anchors], np.int32)

    def starts(self, plain: str) -> dict[int, list[int]]:
        """Return number of an anchor -> offsets at which a match in a normalised copy can begin."""
        text = np.minimum(codes(plain), _OTHER).astype(np.uint8)
        hits = np.concatenate(
            [self._of_strings(plain), self._of_signs(text), self._of_digits(text)], axis=1
        )
        owners, offsets = _offsets(text, hits, self._within, self._first, self._after)
        order = np.argsort(owners, kind="stable")
        owners = owners[order]
        offsets = offsets[order]
        edges = [0, *(np.flatnonzero(owners[1:] != owners[:-1]) + 1).tolist(), owners.size]
        return {int(owners[a]): offsets[a:b].tolist() for a, b in pairwise(edges) if a < b}

    def _of_strings(self, text: str) -> Ints:
        """Return the strings of a text: anchor, first offset and last offset of each, by offset."""
        letters = f"{EDGE}{_NOT_ASCII.sub(EDGE, text.translate(_LETTERS))}{EDGE}"
        exact = _matches(self._exact, letters)
        folded = _matches(self._folded, letters.lower())
        folded[:, 0] += self._n_exact
        numbers, begins, _ = np.concatenate([exact, folded]).T
        offsets = begins + self._shifts[numbers]
        order = np.argsort(offsets, kind="stable")
        numbers = numbers[order]
        sizes = self._sizes[numbers]
        steps = np.arange(sizes.sum()) - np.repeat(
            np.cumsum(sizes) - sizes - self._begins[numbers], sizes
        )
        offsets = np.repeat(offsets[order], sizes)
        return np.array((self._owners[steps], offsets, offsets), np.int32)

    def _of_signs(self, text: NDArray[np.uint8]) -> Ints:
        """Return the same for signs."""
        offsets = np.flatnonzero(self._any_sign[text])
        anchors, columns = np.nonzero(self._signs[:, text[offsets]])
        return np.array((anchors, offsets[columns], offsets[columns]), np.int32)

    def _of_digits(self, text: NDArray[np.uint8]) -> Ints:
        """Return the same for runs of digits; non-ASCII characters count as digits."""
        numeric = np.zeros(text.size + 2, np.bool_)
        numeric[1:-1] = ((text >= ord("0")) & (text <= ord("9"))) | (text == _OTHER)
        edges = np.flatnonzero(numeric[1:] != numeric[:-1])
        begins = edges[::2]
        ends = edges[1::2]
        runs, anchors = np.nonzero((ends - begins)[:, None] >= self._digits)
        lasts = np.minimum(ends, begins + LONGEST_RUN) - 1
        return np.array((anchors, begins[runs], lasts[runs]), np.int32)


@kernel
def _offsets(
    text: NDArray[np.uint8],
    hits: Ints,
    within: Ints,
    first: NDArray[np.bool_],
    after: NDArray[np.bool_],
) -> tuple[NDArray[np.int16], Ints]:
    """Return numbers of anchors and offsets at which a match can begin, in order for each anchor.

    Args:
        text: character classes. hits: rows of numbers, first and last offsets; in order for each
            anchor.
        within, first, after: `Anchor` attributes by number; the classes as tables of members.
    """
    lows = np.empty(hits.shape[1], np.int32)
    tried = np.zeros(within.size, np.int32)
    size = 0
    for hit in range(lows.size):
        anchor = hits[0, hit]
        lows[hit] = max(hits[1, hit] - within[anchor], tried[anchor])
        tried[anchor] = max(tried[anchor], hits[2, hit] + 1)
        size += max(0, hits[2, hit] + 1 - lows[hit])
    owners = np.empty(size, np.int16)
    offsets = np.empty(size, np.int32)
    count = 0
    for hit in range(lows.size):
        anchor = hits[0, hit]
        for offset in range(lows[hit], hits[2, hit] + 1):
            if first[anchor, text[offset]] and (
                offset == 0 or text[offset] == 128 or after[anchor, text[offset - 1]]
            ):
                owners[count] = anchor
                offsets[count] = offset
                count += 1
    return owners[:count], offsets[:count]


def _automaton(strings: list[str]) -> AhoCorasick:
    """Return an automaton that finds all strings in a text, those that overlap included."""
    return AhoCorasick(strings, store_patterns=False, implementation=Implementation.DFA)


def _matches(automaton: AhoCorasick, text: str) -> Ints:
    """Return the number, the begin and the end of each string in a text, (n, 3)."""
    matches = automaton.find_matches_as_indexes(text, overlapping=True)
    flat = np.fromiter(chain.from_iterable(matches), np.int32, 3 * len(matches))
    return flat.reshape(-1, 3)


def _members(character_class: str) -> frozenset[int]:
    """Return the code points of a class of ASCII characters, all of them if it is empty, and
    `_OTHER`.
    """
    pattern = re.compile(character_class or r"[\s\S]")
    return frozenset(code for code in range(128) if pattern.fullmatch(chr(code))) | {_OTHER}


def _member_table(sets: Iterable[frozenset[int]]) -> NDArray[np.bool_]:
    """Return a row of character classes per set of them."""
    return np.array(
        [[code in members for code in range(_CLASSES)] for members in sets], np.bool_
    ).reshape(-1, _CLASSES)


_anchors = _Anchors()


class SearchedNote(Protocol):
    """A note as the matchers read it: `NoteView`."""

    @property
    def plain(self) -> str:
        """Normalised copy of the text."""
        ...

    @property
    def candidates(self) -> dict[AnchorTables, dict[int, list[int]]]:
        """Cache of `candidates`, by the tables in use when it was computed."""
        ...


@dataclass(frozen=True, slots=True)
class Matcher:
    """A pattern with its anchor and the number of the anchor in the tables; None if it has none."""

    pattern: re.Pattern[str]
    anchor: Anchor | None
    number: int | None

    def matches(self, note: SearchedNote) -> Iterator[re.Match[str]]:
        """Yield the same matches as `finditer` on the normalised note, in order."""
        if self.number is None:
            yield from self.pattern.finditer(note.plain)
            return
        position = 0
        match_at = self.pattern.match
        text = note.plain
        for start in candidates(note).get(self.number, ()):
            if start >= position and (match := match_at(text, start)):
                position = match.end()
                yield match


@cache
def matcher(pattern: re.Pattern[str], anchor: Anchor | None) -> Matcher:
    """Return the matcher of a pattern of which every match contains the anchor."""
    return Matcher(pattern, anchor, None if anchor is None else _anchors.number(anchor))


def candidates(note: SearchedNote) -> dict[int, list[int]]:
    """Return `AnchorTables.starts` of a note, computed once."""
    tables = _anchors.tables()
    if tables not in note.candidates:
        note.candidates[tables] = tables.starts(note.plain)
    return note.candidates[tables]
