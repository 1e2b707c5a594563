"""How much a gate refuses: hits beside those by chance (Fisher's exact test), and own names beside others' names.

Each patient's notes hold certain names. If names were permuted between patients, how often would a patient's own
name stand there? Where no two finds share a patient or a name the answer is a formula; else owners are
permuted. One leak and nothing else has P = 1/n, so that among 100 patients no test can refuse it.

Source: Fisher 1935, The Design of Experiments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import comb, perm

import numpy as np
from numpy.random import Generator

from clinveil.core.types import Ints
from clinveil.stats import hypergeometric_tail, permutation_p

ALPHA = 0.01
POWER = 0.95
CAP = 10  # one in so many of the training patients may be hit, where it came by chance for held-out ones
ORDINARY = 2  # other patients' notes that hold a name which comes by chance, where no test has power
EXACT = "all permutations of owners (no two finds share a patient or a name)"


def allowed(training: int, held_out: int, by_chance: int) -> int:
    """How many of the training patients may be copied where that came by chance for some of the held-out ones.

    None where it came for none of these, nor where they are so few that the test could not refuse everybody; and never
    more than the share of the held-out ones or a tenth, whichever is more: of few held-out patients one would else
    excuse most of the training patients.
    """
    if not by_chance:
        return 0
    first = fisher_from(training, training, held_out, by_chance, ALPHA)
    return 0 if first is None else min(first - 1, max(by_chance * training // held_out, training // CAP))


def fisher_from(most: int, training: int, held_out: int, by_chance: int, level: float) -> int | None:
    """The smallest number of training patients, up to `most`, that Fisher's exact test refuses; None where none is."""
    both = training + held_out
    return _first(most, lambda k: hypergeometric_tail(k, both, k + by_chance, training) < level)


def copies_refused_from(training: int, visible: int, may: int) -> int | None:
    """The smallest number of patients copied whole that is refused with 95 %; None where none is.

    Args:
        visible: how many of the training patients a copy of all their notes would show.
        may: how many may be copied.
    """
    return _first(training, lambda copied: hypergeometric_tail(may + 1, training, visible, copied) >= POWER)


def _first(most: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest number from 1 to `most` of which it holds; where it holds of one it does of all larger ones."""
    found = bisect_left(range(1, most + 1), True, key=holds) + 1
    return found if found <= most else None


def own_name_p(patient: Ints, name: Ints, n: int, rng: Generator, permutations: int) -> tuple[float, str]:
    """P that at least so many own names are found where owners are permuted, and how it was made.

    Args:
        patient, name: (n_finds,) whose notes, and whose name, each pair once; rows of the same n patients.
    """
    count = int((patient == name).sum())
    if np.unique(patient).size == np.unique(name).size == patient.size:
        return _fixed_points(count, patient.size, n), EXACT
    null = [int((rng.permutation(n)[patient] == name).sum()) for _ in range(permutations)]
    return permutation_p(count, null), f"{permutations:,} permutations of owners"


def _fixed_points(count: int, finds: int, n: int) -> float:
    """P that a random permutation of n takes at least `count` of so many places to their mark, one a row and column.

    Source: inclusion and exclusion over rook placements, Riordan 1958, chapter 7.
    """
    if not count:
        return 1.0
    placed = range(count, min(finds, count + 60) + 1)  # terms fall as 1/j!
    terms = ((-1) ** (j - count) * comb(j - 1, count - 1) * comb(finds, j) / perm(n, j) for j in placed)
    return float(min(1.0, max(0.0, sum(terms))))


def alone(patient: Ints, name: Ints, n: int) -> int:
    """Own names found that stand in the notes of fewer than two other patients: no chance explains them."""
    holders = np.bincount(name, minlength=n)
    return int((holders[name[patient == name]] <= ORDINARY).sum())


def has_power(n: int) -> bool:
    """Whether one leaked name among n patients could be refused at all, if no other name were found."""
    return n > 0 and 1 / n < ALPHA


def leaks_refused_from(n: int, expected: float) -> int:
    """The smallest number of leaked names refused with 95 %, beside own names that come by chance.

    Args:
        expected: how many own names chance brings; Poisson, and so are all permutations.
    """
    from scipy.stats import poisson

    if not has_power(n):
        return 1
    by_chance = max(0, int(poisson.ppf(1 - POWER, expected)))  # so many at least, with 95 %
    leaks = 1
    while leaks < n and poisson.sf(by_chance + leaks - 1, expected + leaks / n) >= ALPHA:
        leaks += 1
    return leaks
