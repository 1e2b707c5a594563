"""Random groups of diagnoses compared with a patient's own: how often do they deviate as much?

Draws are streamed and not stored. Every patient has a separate random stream, so the counts do not depend on threads or
order. `distances` are between names (rows) and diagnoses (columns); `has` is True where a patient has a diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.compiled import at_most_cores, helper, kernel
from clinveil.core.types import Doubles, Ints, Mask

ENOUGH = 200
_BLOCK = 16  # patients per task
_FEW_REPEATS = 0.3
_TIE = 1e-10  # relative: sums of the same distances in another order are equal
_GOLDEN, _MIX1, _MIX2 = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def uniform_counts(distances: Doubles, has: Mask, draws: int, rng: Generator, *, threads: int = 2) -> Ints:
    """Count how many of `draws` groups of equal size deviate as much as a patient's own diagnoses, (n_patients,).

    All groups of one size are equally likely. The test is two-sided: a group deviates by |in - out|, 0 on average.

    Source: JMIR 2020;22(7):e18055, Experiment 2b.
    """
    seeds = rng.integers(2**64, size=len(distances), dtype=np.uint64)
    out = np.zeros(len(distances), dtype=np.int64)

    def block(rows: slice) -> None:
        _uniform(distances[rows], has[rows], draws, seeds[rows], out[rows])

    _run(block, len(distances), threads)
    return out


@dataclass(frozen=True)
class Matching:
    """The distribution of diagnoses similar to a patient's own: as many of each class, in proportion to their odds.

    Attributes:
        members: (n_codes,) codes by class, the most likely first within each.
        starts: (n_classes + 1,) start of each class in `members`.
        odds: (n_codes,) of each code.
    """

    members: Ints
    starts: Ints
    odds: Doubles

    @classmethod
    def of(cls, prevalence: Ints, lengths: Ints, n_patients: int) -> Matching:
        """Create classes of equal description length, with odds from the prevalence among patients."""
        odds = prevalence / (n_patients + 1 - prevalence)
        members = np.lexsort((-odds, lengths)).astype(np.int64)
        starts = np.append(np.unique(lengths[members], return_index=True)[1], len(members))
        return cls(members, starts.astype(np.int64), odds.astype(np.float64))

    @property
    def classes(self) -> list[Ints]:
        """Codes of each class."""
        return [self.members[a:b] for a, b in zip(self.starts, self.starts[1:], strict=False)]


def matched_p(
    distances: Doubles,
    has: Mask,
    matching: Matching,
    draws: int,
    rng: Generator,
    *,
    threads: int = 2,
    enough: int = ENOUGH,
) -> Doubles:
    """Return P that a group similar to a patient's own deviates as much from the mean of such groups.

    A group has as many diagnoses of each class as the patient's own. Within a class, a set's probability is
    proportional to the product of its odds (conditional Bernoulli sampling). Sampling is exact: by rejection of repeats
    if these are rare, otherwise item by item. Drawing stops when `enough` groups deviate as much, because P is then not
    small.

    Returns: (n_patients,) P: enough / (draws so far) if stopped early, else (count + 1) / (draws + 1).
    Sources: Chen & Liu 1997, Statistica Sinica 7:875 (item by item); Besag & Clifford 1991, Biometrika 78:301 (end).
    """
    taken = np.stack([has[:, codes].sum(axis=1) for codes in matching.classes], axis=1).astype(np.int64)
    most = int(taken.max(initial=0))
    chances = np.concatenate([inclusion_steps(matching.odds[codes], most) for codes in matching.classes])
    shares = [matching.odds[codes] / (matching.odds[codes].sum() or 1.0) for codes in matching.classes]
    ends = np.concatenate([np.cumsum(share) for share in shares])
    # At least this share of draws with replacement has no repeat: 1 - (pairs) * sum of squared shares.
    squares = np.array([np.sum(share**2) for share in shares])
    quick = 1 - taken * (taken - 1) / 2 * squares >= _FEW_REPEATS
    seeds = rng.integers(2**64, size=len(distances), dtype=np.uint64)
    out = np.empty(len(distances))

    def block(rows: slice) -> None:
        plan = (matching.members, matching.starts, chances, ends)
        _matched(distances[rows], has[rows], taken[rows], quick[rows], *plan, draws, enough, seeds[rows], out[rows])

    _run(block, len(distances), threads)
    return out


def inclusion_steps(odds: Doubles, most: int) -> Doubles:
    """Return P(item i is taken | r items of i, i + 1, … remain to be taken), shape (n_items, most + 1).

    With e_r the elementary symmetric polynomial of the odds of items i…: odds_i e_(r-1)(i + 1 …) / e_r(i …).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(odds)
        steps = np.zeros((len(odds), most + 1))
        later = np.full(most + 1, -np.inf)
        later[0] = 0.0
        for i in range(len(odds) - 1, -1, -1):
            taking = logs[i] + later[:-1]
            here = later.copy()
            here[1:] = np.logaddexp(later[1:], taking)
            steps[i, 1:] = np.exp(taking - here[1:])
            later = here
    return np.nan_to_num(steps, nan=1.0)  # too few items left, a state that is never reached


def _run(block: Callable[[slice], None], n: int, threads: int) -> None:
    with ThreadPoolExecutor(at_most_cores(threads)) as pool:
        list(pool.map(block, (slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))))


@helper
def _mixed(state: np.uint64) -> np.uint64:
    """Return SplitMix64's output for a state (Steele, Lea & Flood 2014)."""
    z = (state ^ (state >> np.uint64(30))) * _MIX1
    z = (z ^ (z >> np.uint64(27))) * _MIX2
    return z ^ (z >> np.uint64(31))


@kernel
def _uniform(distances: Doubles, has: Mask, draws: int, seeds: NDArray[np.uint64], out: Ints) -> None:
    n_codes = distances.shape[1]
    order = np.arange(n_codes)
    for p in range(len(distances)):
        row, own, total, size = distances[p], 0.0, 0.0, 0
        for code in range(n_codes):
            total += row[code]
            if has[p, code]:
                own += row[code]
                size += 1
        # in - out is a rising function of the in-group's sum, and 0 at its mean over all groups of this size.
        centre = total * size / n_codes
        bar = abs(own - centre) - _TIE * (abs(own) + abs(centre))
        few = min(size, n_codes - size)  # drawing the out-group instead deviates as much
        middle = total * few / n_codes
        state = seeds[p]
        for _ in range(draws):
            drawn = 0.0
            for i in range(few):
                state += _GOLDEN
                j = i + np.int64(((_mixed(state) >> np.uint64(32)) * np.uint64(n_codes - i)) >> np.uint64(32))
                order[i], order[j] = order[j], order[i]
                drawn += row[order[i]]
            out[p] += abs(drawn - middle) >= bar


@kernel
def _centre(row: Doubles, taken: Ints, members: Ints, starts: Ints, chances: Doubles) -> float:
    """Return the mean sum of a drawn group."""
    total = 0.0
    for c in range(len(taken)):
        left = np.zeros(taken[c] + 1)  # P(r remain to be taken)
        left[taken[c]] = 1.0
        for i in range(starts[c], starts[c + 1]):
            for r in range(1, taken[c] + 1):
                took = left[r] * chances[i, r]
                total += took * row[members[i]]
                left[r] -= took
                left[r - 1] += took
    return total


@helper
def _fraction(state: np.uint64) -> float:
    return np.float64(_mixed(state) >> np.uint64(11)) * 2.0**-53


@kernel
def _drawn_with_retries(first: int, ends: Doubles, state: np.uint64, drawn: Ints) -> np.uint64:
    """Fill `drawn` with distinct items of a class: draw with replacement until there are no repeats."""
    fresh = False
    while not fresh:
        fresh = True
        for i in range(len(drawn)):
            state += _GOLDEN
            place = int(np.searchsorted(ends, _fraction(state), side="right"))
            drawn[i] = first + min(place, len(ends) - 1)
            for j in range(i):
                fresh &= drawn[j] != drawn[i]
            if not fresh:
                break
    return state


@kernel
def _drawn_in_turn(first: int, chances: Doubles, state: np.uint64, drawn: Ints) -> np.uint64:
    """Fill `drawn` with distinct items of a class, deciding for each item in turn."""
    left, i = len(drawn), first
    while left > 0:
        state += _GOLDEN
        if _fraction(state) < chances[i, left]:
            left -= 1
            drawn[left] = i
        i += 1
    return state


@kernel
def _matched(
    distances: Doubles,
    has: Mask,
    taken: Ints,
    quick: Mask,
    members: Ints,
    starts: Ints,
    chances: Doubles,
    ends: Doubles,
    draws: int,
    enough: int,
    seeds: NDArray[np.uint64],
    out: Doubles,
) -> None:
    items = np.empty(distances.shape[1], np.int64)
    for p in range(len(distances)):
        row = distances[p]
        own = np.sum(row[has[p]])
        centre = _centre(row, taken[p], members, starts, chances)
        bar = abs(own - centre) - _TIE * (abs(own) + abs(centre))
        state, count, done = seeds[p], 0, 0
        while done < draws and count < enough:
            total = 0.0
            for c in range(taken.shape[1]):
                drawn, first = items[: taken[p, c]], starts[c]
                if quick[p, c]:
                    state = _drawn_with_retries(first, ends[first : starts[c + 1]], state, drawn)
                else:
                    state = _drawn_in_turn(first, chances, state, drawn)
                for item in drawn:
                    total += row[members[item]]
            count += abs(total - centre) >= bar
            done += 1
        out[p] = count / done if count >= enough else (count + 1) / (done + 1)
