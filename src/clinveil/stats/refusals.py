"""Tests of the gates: hits compared with those by chance (Fisher's exact test), and own names with
other names.

Each patient's notes contain certain names. The test permutes names between patients, and asks how
often a patient's notes contain their own name. If no two finds share a patient or a name, P has a
formula; otherwise owners are permuted. A single leak has P = 1/n, so with 100 patients or fewer no
test can reject it.

Source: Fisher 1935, The Design of Experiments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import comb, perm

import numpy as np
from numpy.random import Generator

from clinveil.core import Ints
from clinveil.stats.hypotheses import hypergeometric_tail, permutation_p

ALPHA = 0.01
POWER = 0.95
CAP = 10  # at most 1 in 10 training patients may be hit, if held-out patients are hit by chance
ORDINARY = 2  # a name in the notes of this many patients occurs by chance, if no test has power
EXACT = "all permutations of owners (no two finds share a patient or a name)"


def allowed(training: int, held_out: int, by_chance: int) -> int:
    """Return how many training patients may be copied if some held-out patients are hit by chance.

    The result is 0 if no held-out patient is hit, or if the test has no power. It is at most the
    share among held-out
    patients or a tenth, whichever is larger: otherwise one hit among few held-out patients would
    excuse most training patients.
    """
    if not by_chance:
        return 0
    first = fisher_from(training, training, held_out, by_chance, ALPHA)
    return (
        0
        if first is None
        else min(first - 1, max(by_chance * training // held_out, training // CAP))
    )


def fisher_from(
    most: int, training: int, held_out: int, by_chance: int, level: float
) -> int | None:
    """Return the smallest number of training patients, up to `most`, that Fisher's exact test
    rejects, or None.
    """
    both = training + held_out
    return _first(most, lambda k: hypergeometric_tail(k, both, k + by_chance, training) < level)


def copies_refused_from(training: int, visible: int, may: int) -> int | None:
    """Return the smallest number of completely copied patients that is rejected with 95 % power, or
    None.

    Args:
        visible: number of training patients for whom a copy of all their notes would be detected.
        may: number that may be copied.
    """
    return _first(
        training, lambda copied: hypergeometric_tail(may + 1, training, visible, copied) >= POWER
    )


def _first(most: int, holds: Callable[[int], bool]) -> int | None:
    """Return the smallest number from 1 to `most` that satisfies a monotone condition, or None."""
    smallest = bisect_left(range(1, most + 1), True, key=holds) + 1
    return smallest if smallest <= most else None


def own_name_p(
    patient: Ints, name: Ints, n: int, rng: Generator, permutations: int
) -> tuple[float, str]:
    """Return P that permuted owners give at least as many own names, and a description of the test.

    Args:
        patient, name: (n_finds,) the patient of the notes and the owner of the name, each pair
            once; 0 to n - 1.
    """
    count = int((patient == name).sum())
    if np.unique(patient).size == np.unique(name).size == patient.size:
        return _fixed_points(count, patient.size, n), EXACT
    null = [int((rng.permutation(n)[patient] == name).sum()) for _ in range(permutations)]
    return permutation_p(count, null), f"{permutations:,} permutations of owners"


def _fixed_points(count: int, finds: int, n: int) -> float:
    """Return P that a random permutation of n has at least `count` of `finds` non-attacking cells.

    Source: inclusion and exclusion over rook placements, Riordan 1958, chapter 7.
    """
    if not count:
        return 1.0
    placed = range(count, min(finds, count + 60) + 1)  # terms fall as 1/j!
    terms = (
        (-1) ** (j - count) * comb(j - 1, count - 1) * comb(finds, j) / perm(n, j) for j in placed
    )
    return float(min(1.0, max(0.0, sum(terms))))


def alone(patient: Ints, name: Ints, n: int) -> int:
    """Count own names that occur in the notes of fewer than two other patients, which chance does
    not explain.
    """
    holders = np.bincount(name, minlength=n)
    return int((holders[name[patient == name]] <= ORDINARY).sum())


def has_power(n: int) -> bool:
    """Return whether the test could reject one leaked name among n patients, if no other name were
    found.
    """
    return n > 0 and 1 / n < ALPHA


def leaks_refused_from(n: int, expected: float) -> int:
    """Return the smallest number of leaked names that is rejected with 95 % power, given own names
    by chance.

    Args:
        expected: expected number of own names by chance (Poisson).
    """
    from scipy.stats import poisson

    if not has_power(n):
        return 1
    by_chance = max(0, int(poisson.ppf(1 - POWER, expected)))  # lower bound with 95 %
    leaks = 1
    while leaks < n and poisson.sf(by_chance + leaks - 1, expected + leaks / n) >= ALPHA:
        leaks += 1
    return leaks
