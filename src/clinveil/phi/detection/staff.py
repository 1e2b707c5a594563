"""`StaffNames`: the names of a site's clinicians and other staff, searched for in the notes of all
patients.

A full name matches in both orders, with an initial between its parts. A family name alone matches
if it is capitalised and neither a common or clinical word nor an eponym. The names are kept as
sorted 64-bit hashes, so a list of a million names takes 30 MB, and a worker process reads it once.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core import Span
from clinveil.corpus import read_staff
from clinveil.lexicons import LexicalClass, is_word, lexical_classes, name_form
from clinveil.phi.detection.note import NoteView, Word, look_up
from clinveil.phi.matching.wordtable import WordColumn

_SHORTEST = 4
_SHORTEST_SHOUTED = 5
_BETWEEN = re.compile(r"[ \t]{1,2}|,[ \t]?|\.[ \t]?|-")
_AMBIGUOUS = LexicalClass.WORD | LexicalClass.EPONYM
_MIX = np.uint64(0x9E3779B97F4A7C15)


class StaffNames:
    """Names of the staff list; its repr contains none of them.

    Args:
        path: the list, read again in another process. stamp: its time of modification.
    """

    def __init__(self, path: Path, stamp: int) -> None:
        self._origin = (path, stamp)
        families = set[int]()
        firsts = array("Q")
        seconds = array("Q")
        for name in read_staff(path):
            forms = [form for token in name for form in _forms(token)]
            codes = [_hash(form) for form in forms]
            if forms and len(forms[-1]) >= _SHORTEST and not _is_ambiguous(forms[-1]):
                families.add(codes[-1])
            if len(codes) > 1:
                firsts.extend((codes[0], *codes[:-1]))
                seconds.extend((codes[-1], *codes[1:]))
        self._families = np.array(sorted(families), np.uint64)
        sides = [
            np.frombuffer(side, np.uint64) if side else np.zeros(0, np.uint64)
            for side in (firsts, seconds)
        ]
        self._pairs = np.unique(_pair(*sides))

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, self._origin  # small; a worker reads the list once

    def __repr__(self) -> str:
        return f"StaffNames({len(self._pairs)} full names, {len(self._families)} family names)"

    def spans(self, note: NoteView, detector: str) -> Iterator[Span]:
        """Yield the names in a note."""
        words = note.words
        text = note.plain
        codes = words.column(_CODES)
        families = _is_in(codes, self._families)
        for index in np.flatnonzero(families).tolist():
            word = words[index]
            if word.capital and (not word.shouted or len(word.text) >= _SHORTEST_SHOUTED):
                yield note.span(word.start, word.end, "NAME", detector, 0.8, "staff list")
        for step in (1, 2):
            first = codes[:-step]
            second = codes[step:]
            straight = _is_in(_pair(first, second), self._pairs)
            reverse = _is_in(_pair(second, first), self._pairs)
            for index in np.flatnonzero(straight | reverse).tolist():
                inside = words[index : index + step + 1]
                comma = "," in text[inside[0].end : inside[1].start]
                if (straight[index] or comma) and _is_full_name(text, inside):
                    yield note.span(
                        inside[0].start, inside[-1].end, "NAME", detector, 0.95, "staff list"
                    )


def _is_full_name(text: str, inside: list[Word]) -> bool:
    """Whether words with the parts of one name, and perhaps an initial between them, are that
    name.
    """
    if len(inside) == 3 and len(inside[1].text) > 1:
        return False
    if any(is_word(word.lower) and not word.capital for word in (inside[0], inside[-1])):
        return False
    return all(
        _BETWEEN.fullmatch(text, before.end, after.start) for before, after in pairwise(inside)
    )


def _forms(token: str) -> Iterable[str]:
    """Return the forms of a token of a name, without initials."""
    return (form for part in token.split("-") if len(form := name_form(part)) > 1)


@lru_cache(maxsize=1 << 16)
def _hash(form: str) -> int:
    return int.from_bytes(
        blake2b(form.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )


@lru_cache(maxsize=1 << 16)
def _is_ambiguous(form: str) -> bool:
    return bool(lexical_classes(form) & _AMBIGUOUS) or is_word(form)


_CODES = WordColumn(lambda written: _hash(name_form(look_up(written)[1])), np.uint64)


def _pair(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of two hashes that depends on their order."""
    with np.errstate(over="ignore"):
        mixed: NDArray[np.uint64] = first * _MIX + (second ^ (second >> np.uint64(29)))
    return mixed


def _is_in(codes: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which codes are in a sorted array."""
    if not len(known):
        return np.zeros(len(codes), np.bool_)
    positions = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    result: NDArray[np.bool_] = known[positions] == codes
    return result


def read_staff_names(path: Path) -> StaffNames:
    """Read the staff list of a file. Raises InputError as `read_staff`."""
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    return _read(path.absolute(), stamp)


@lru_cache(maxsize=2)
def _read(path: Path, stamp: int) -> StaffNames:
    return StaffNames(path, stamp)
