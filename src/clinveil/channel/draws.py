"""Drawing from a channel's rows with 64 random bits: the inverse of the cumulative distribution, in integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.channel.compiled import compiled, compiled_helper
from clinveil.channel.scan import readonly

_LAST = np.uint64((1 << 64) - 1)
_SCALE = 2.0**64


class Draws(NamedTuple):
    """A channel's rows, ready to be drawn from.

    Attributes:
        indptr: (n_words + 2,) int64; indices: (n_entries,) int32, as in the channel.
        limits: (n_entries,) uint64, the cumulative probability of a row up to and with each entry, times 2^64. Entry j
            is drawn by the bits u with limits[j - 1] <= u < limits[j], so each probability is off by less than 2^-50.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    limits: NDArray[np.uint64]


def draws(channel: Channel) -> Draws:
    """The drawing table of a channel."""
    limits = np.empty(channel.probabilities.size, dtype=np.uint64)
    table = Draws(readonly(channel.indptr.view()), readonly(channel.indices.view()), limits)
    _cumulate(table.indptr, channel.probabilities, limits)
    return table._replace(limits=readonly(limits))


@compiled
def _cumulate(indptr: NDArray[np.int64], probabilities: NDArray[np.float64], limits: NDArray[np.uint64]) -> None:
    for row in range(indptr.size - 1):
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            total += probabilities[entry]
            limits[entry] = _LAST if total >= 1.0 else np.uint64(total * _SCALE)
        if indptr[row] < indptr[row + 1]:
            limits[indptr[row + 1] - 1] = _LAST


@compiled_helper
def draw(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], limits: NDArray[np.uint64], row: int, bits: np.uint64
) -> int:
    """The output word that 64 random bits draw from a row; -1 if the row is empty; compiled."""
    low, count = indptr[row], indptr[row + 1] - indptr[row]
    if count == 0:
        return -1
    while count > 1:  # without a branch that depends on the bits
        half = count >> 1
        low += half if limits[low + half - 1] <= bits else 0
        count -= half
    return np.int64(indices[low])
