"""Random groups of diagnoses compared with a patient's own: how often do they deviate as much?

Draws are streamed and not stored. Every patient has a separate random stream, so the counts do not
depend on threads or order. `distances` are between names (rows) and diagnoses (columns); `has` is
True where a patient has a diagnosis.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core import Doubles, Ints, Mask, at_most_cores, helper, kernel

_BLOCK = 16  # patients per task
_TIE = 1e-10  # relative: sums of the same distances in another order are equal
_GOLDEN, _MIX1, _MIX2 = (
    np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def uniform_counts(
    distances: Doubles, has: Mask, draws: int, rng: Generator, *, threads: int = 2
) -> Ints:
    """Count how many of `draws` groups of equal size deviate as much as a patient's own diagnoses,
    (n_patients,).

    All groups of one size are equally likely. The test is two-sided: a group deviates by |in -
    out|, 0 on average.

    Source: JMIR 2020;22(7):e18055, Experiment 2b.
    """
    seeds = rng.integers(2**64, size=len(distances), dtype=np.uint64)
    out = np.zeros(len(distances), dtype=np.int64)

    def block(start: int) -> None:
        rows = slice(start, start + _BLOCK)
        _uniform(distances[rows], has[rows], draws, seeds[rows], out[rows])

    with ThreadPoolExecutor(at_most_cores(threads)) as pool:
        list(pool.map(block, range(0, len(distances), _BLOCK)))
    return out


@helper
def _mixed(state: np.uint64) -> np.uint64:
    """Return SplitMix64's output for a state (Steele, Lea & Flood 2014)."""
    z = (state ^ (state >> np.uint64(30))) * _MIX1
    z = (z ^ (z >> np.uint64(27))) * _MIX2
    return z ^ (z >> np.uint64(31))


@kernel
def _uniform(
    distances: Doubles, has: Mask, draws: int, seeds: NDArray[np.uint64], out: Ints
) -> None:
    n_codes = distances.shape[1]
    order = np.arange(n_codes)
    for p in range(len(distances)):
        row = distances[p]
        own = 0.0
        total = 0.0
        size = 0
        for code in range(n_codes):
            total += row[code]
            if has[p, code]:
                own += row[code]
                size += 1
        # in - out is a rising function of the in-group's sum, and 0 at its mean over all groups of
        # this size.
        centre = total * size / n_codes
        bar = abs(own - centre) - _TIE * (abs(own) + abs(centre))
        few = min(size, n_codes - size)  # drawing the out-group instead deviates as much
        middle = total * few / n_codes
        state = seeds[p]
        for _ in range(draws):
            drawn = 0.0
            for i in range(few):
                state += _GOLDEN
                j = i + np.int64(
                    ((_mixed(state) >> np.uint64(32)) * np.uint64(n_codes - i)) >> np.uint64(32)
                )
                order[i], order[j] = order[j], order[i]
                drawn += row[order[i]]
            out[p] += abs(drawn - middle) >= bar
