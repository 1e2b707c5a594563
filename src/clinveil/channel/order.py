"""Reorder released words: keyed random orders of windows, sentences or whole notes; compiled.

White space, punctuation and masks between the words keep their position; words exchange positions, so a note keeps its
length.
"""

from __future__ import annotations

import numpy as np

from clinveil.channel.arrays import Bytes, Places, Released, Words64
from clinveil.channel.kernel import numbered
from clinveil.channel.policy import Policy
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Ints, SmallInts

_BY_SENTENCE, _WHOLE = 0, 1 << 62  # special window sizes
_32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def in_order(out: Released, keys: Words64, policy: Policy) -> Released:
    """Return the released notes with words and source offsets in the order of the policy.

    Args:
        out: result of the token loop with `Options.locate`. keys: (n, 2), SipHash key of each note's order.
    """
    window = {"none": 1, "window": policy.window, "sentence": _BY_SENTENCE, "note": _WHOLE}[policy.shuffle]
    order = _order(out.aligned, out.places.sentences, numbered(keys, out.aligned), window)
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
def _order(aligned: Ints, sentences: SmallInts, bits: Words64, window: int) -> Ints:
    """Return the word for each position, (n_words,)."""
    order = np.arange(aligned[-1])
    for note in range(aligned.size - 1):
        first, end = aligned[note], aligned[note + 1]
        while first < end:
            last = min(first + window, end)
            if window == _BY_SENTENCE:
                last = first + 1
                while last < end and sentences[order[last]] == sentences[order[first]]:
                    last += 1
            _shuffle(order, first, last - first, bits, first)
            first = last
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
