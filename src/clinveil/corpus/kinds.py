"""How many tokens of each class texts hold, counted for many texts at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clinveil.core.tokens import Kind, character_classes

N_KINDS = 5  # IGNORABLE is a class of characters, never of a token
_BLOCK = 1 << 22


def count_kinds(texts: Sequence[str]) -> NDArray[np.int64]:
    """Tokens by class, shape (5,), indexed by `Kind`: what `tokenize` gives, summed over the texts."""
    total = np.zeros(N_KINDS, dtype=np.int64)
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= _BLOCK:
            total += _count(block)
            block, size = [], 0
    return total + _count(block)


def _count(texts: list[str]) -> NDArray[np.int64]:
    lengths = np.array([len(text) for text in texts if text], dtype=np.int64)
    if not len(lengths):
        return np.zeros(N_KINDS, dtype=np.int64)
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    first = np.zeros(len(codes), dtype=np.bool_)
    first[np.append(0, np.cumsum(lengths)[:-1])] = True
    kinds = _without_ignorables(character_classes()[codes], first)
    starts = first
    starts[1:] |= kinds[1:] != kinds[:-1]
    starts |= (kinds == Kind.PUNCT) | (kinds == Kind.OTHER)  # each such character is a token of its own
    return np.bincount(kinds[starts], minlength=N_KINDS)


def _without_ignorables(kinds: NDArray[np.uint8], first: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Ignorable characters belong to the word before them; elsewhere they are OTHER."""
    ignorable = kinds == Kind.IGNORABLE
    if not ignorable.any():
        return kinds
    # The place of the last character that decides: one that is not ignorable, or the first of a text.
    places = np.maximum.accumulate(np.where(~ignorable | first, np.arange(len(kinds)), 0))
    after_word = kinds[places] == Kind.WORD
    return np.where(ignorable, np.where(after_word, Kind.WORD, Kind.OTHER), kinds).astype(np.uint8)
