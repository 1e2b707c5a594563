"""Drawing from a channel's rows with 64 random bits: Walker's alias method, in integers.

Source: Vose, A linear algorithm for generating random numbers with a given distribution (IEEE TSE 17, 1991).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.channel.compiled import compiled, compiled_helper
from clinveil.channel.pages import on_large_pages
from clinveil.channel.scan import readonly

_FULL = np.uint64((1 << 64) - 1)
_SCALE = 2.0**64
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class Draws(NamedTuple):
    """A channel's rows, ready to be drawn from. Rows of equal probabilities share one pattern, which the cache holds.

    Attributes:
        patterns: (n_words + 1,) int64, where each row's pattern begins in `limits` and `others`.
        indices: (n_entries,) int32, the outputs, as in the channel.
        limits, others: (n_pattern_entries,) uint64 and int32: of the part of [0, 1) that falls to entry j of a row, the
            share limits[j] / 2^64 goes to j and the rest to others[j]. Probabilities are off by less than 2^-48.
    """

    patterns: NDArray[np.int64]
    indices: NDArray[np.int32]
    limits: NDArray[np.uint64]
    others: NDArray[np.int32]


def draws(channel: Channel) -> Draws:
    """The drawing table of a channel."""
    starts: dict[bytes, int] = {}
    distinct: list[NDArray[np.float64]] = []
    patterns = np.zeros(len(channel.words) + 1, dtype=np.int64)
    size = 0
    for row, (low, high) in enumerate(zip(channel.indptr[:-1], channel.indptr[1:], strict=True)):
        pattern = channel.probabilities[low:high]
        start = patterns[row] = starts.setdefault(pattern.tobytes(), size)
        if start == size:
            distinct.append(pattern)
            size += high - low
    limits, others = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.int32)
    places = np.cumsum([0, *map(len, distinct)])
    _alias(places, np.concatenate([*distinct, np.zeros(0)]), limits, others, np.empty(size, dtype=np.int64))
    return Draws(readonly(patterns), on_large_pages(channel.indices), readonly(limits), readonly(others))


@compiled
def _alias(
    places: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    limits: NDArray[np.uint64],
    others: NDArray[np.int32],
    order: NDArray[np.int64],
) -> None:
    """Vose's table of each pattern; `probabilities` is used up, and `order` is scratch."""
    for pattern in range(places.size - 1):
        start, size = places[pattern], places[pattern + 1] - places[pattern]
        small, large = 0, size  # of `order`: entries with less than their share from below, the others from above
        for j in range(size):
            probabilities[start + j] *= size
            others[start + j] = j
            limits[start + j] = _FULL
            if probabilities[start + j] < 1.0:
                order[start + small] = j
                small += 1
            else:
                large -= 1
                order[start + large] = j
        while small > 0 and large < size:
            small -= 1
            less, more = order[start + small], order[start + large]
            limits[start + less] = np.uint64(probabilities[start + less] * _SCALE)
            others[start + less] = more
            probabilities[start + more] -= 1.0 - probabilities[start + less]
            if probabilities[start + more] < 1.0:
                large += 1
                order[start + small] = more
                small += 1


@compiled_helper
def part(limits: NDArray[np.uint64], others: NDArray[np.int32], pattern: int, size: np.uint64, bits: np.uint64) -> int:
    """Which entry of a row of `size` entries 64 random bits draw; compiled."""
    # bits * size in 128 bits: above, the entry; below, where in its part.
    low = (bits & _LOW) * size
    middle = (bits >> _HALF) * size + (low >> _HALF)
    entry = np.int64(middle >> _HALF)
    other = np.int64(others[pattern + entry])
    return int(entry if (middle << _HALF | low & _LOW) < limits[pattern + entry] else other)
