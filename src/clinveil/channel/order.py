"""Reorder the released words of each note with its key; compiled.

White space, punctuation and masks between the words keep their position; words exchange positions, so a note keeps its
length.
"""

from __future__ import annotations

import numpy as np

from clinveil.channel.arrays import Bytes, Places, Released, Words64
from clinveil.channel.kernel import numbered
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Ints

_32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def in_order(out: Released, keys: Words64) -> Released:
    """Return the released notes with words and source offsets in a keyed random order.

    Args:
        out: result of the token loop with `Options.locate`. keys: (n, 2), SipHash key of each note's order.
    """
    order = _order(out.aligned, numbered(keys, out.aligned))
    starts, ends = (points[order] if points.size else points for points in out.places[:2])
    places = out.places._replace(starts=starts, ends=ends)
    return out._replace(data=_refilled(out.data, out.places, order), places=places)


@helper
def _shuffle(items: Ints, first: int, size: int, bits: Words64, offset: int) -> None:
    """Shuffle items[first : first + size] uniformly with bits[offset : offset + size].

    Source: Fisher and Yates; Durstenfeld, Algorithm 235 (CACM 7, 1964).
    """
    for i in range(size - 1, 0, -1):
        bound = np.uint64(i + 1)
        # The high half of a 128-bit product: a number below the bound.
        other = np.int64(((bits[offset + i] >> _32) * bound + ((bits[offset + i] & _LOW) * bound >> _32)) >> _32)
        items[first + i], items[first + other] = items[first + other], items[first + i]


@kernel
def _order(aligned: Ints, bits: Words64) -> Ints:
    """Return the word for each position, (n_words,)."""
    order = np.arange(aligned[-1])
    for note in range(aligned.size - 1):
        _shuffle(order, aligned[note], aligned[note + 1] - aligned[note], bits, aligned[note])
    return order


@kernel
def _refilled(data: Bytes, places: Places, order: Ints) -> Bytes:
    """Return the released text with words in the given order."""
    text, written, read = np.empty_like(data), 0, 0
    for slot in range(order.size):
        word = order[slot]
        for piece in ((read, places.firsts[slot]), (places.firsts[word], places.lasts[word])):
            for i in range(piece[0], piece[1]):
                text[written] = data[i]
                written += 1
        read = places.lasts[slot]
    text[written:] = data[read:]
    return text
