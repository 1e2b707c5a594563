"""Which places are looked at, how many of each kind, and recall with its interval from what was seen there.

Places lie in strata. Of each a simple random sample without replacement is looked at, so every place has a known chance
to be drawn, and each that is drawn stands for as many others (Horvitz & Thompson 1952, J. Am. Stat. Assoc. 47:663).
The interval is about these very notes: nothing is assumed of how identifiers lie in them, of patients or of detectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from scipy import special

from clinveil.stats import Interval, clopper_pearson, ratio_of_intervals, sum_of_intervals, weighted_poisson

_POWERS, _FOUND = (0.0, 0.25, 0.5, 0.75, 1.0), (0.05, 0.1, 0.15, 0.2, 0.3)
LEAST = 8  # places of a stratum that are always looked at, where the spots are enough for it
METHOD = "of the places drawn, by stratum (Clopper-Pearson, Fay-Feuer, MOVER), 95 %"


class Kind(NamedTuple):
    """A stratum: whether its places were found by the engine, and how many of them are guessed to hold identifiers.

    The guess decides only how many places are drawn, so a wrong one widens the interval and biases nothing.
    """

    found: bool
    guess: float
    says: str


KINDS: Mapping[str, Kind] = {
    "found": Kind(True, 0.95, "found by the engine, sure of it"),
    "found_unsure": Kind(True, 0.8, "found by the engine, less sure"),
    "tagger": Kind(False, 0.3, "not found; another detector takes it for an identifier"),
    "name_like": Kind(False, 0.2, "not found; a word of the lists of names that is no ordinary word"),
    "unknown_rare": Kind(False, 0.05, "not found; capitalised, in no list, of few patients"),
    "unknown": Kind(False, 0.003, "not found; capitalised, in no list, of many patients"),
    "digits": Kind(False, 0.03, "not found; long numbers, and digits near a cue"),
    "cued": Kind(False, 0.01, "a passage of the rest that speaks of persons or places"),
    "rest": Kind(False, 0.002, "a passage of the rest"),
}


@dataclass(frozen=True)
class Seen:
    """What was seen of a stratum.

    Attributes:
        size: its places; looked: those that were looked at, in random order.
        hits: of each place that held identifiers how many, 1 of a found place.
    """

    found: bool
    size: int
    looked: int
    hits: tuple[int, ...] = ()


class Recall(NamedTuple):
    """Recall with its ends, and the numbers of identifiers that it comes from."""

    value: float
    low: float
    high: float
    found: float
    missed: float


def allocation(sizes: Mapping[str, int], spots: int) -> dict[str, int]:
    """How many places of each stratum are looked at, `spots` in all, or all there are.

    Of allocations between proportional ones and Neyman's (J. R. Stat. Soc. 1934, 97:558), with more or fewer of found
    places, that by which the upper end of misses to identifiers found is expected to be lowest. Neyman's alone gives a
    stratum that is thought to hold next to nothing so few places that what it could still hold is all of the interval.
    """
    sizes = {name: size for name, size in sizes.items() if size}
    tried = (_shared(sizes, spots, power, found) for power in _POWERS for found in _FOUND)
    return min(tried, key=lambda taken: _expected(sizes, taken))


def _shared(sizes: Mapping[str, int], spots: int, power: float, found: float) -> dict[str, int]:
    """Places shared out: the part `found` to what was found, in proportion to size and deviation**power."""
    wanted = {name: size * sqrt(KINDS[name].guess * (1 - KINDS[name].guess)) ** power for name, size in sizes.items()}
    both = {side: sum(w for name, w in wanted.items() if KINDS[name].found == side) or 1.0 for side in (True, False)}
    share = {
        name: w / both[KINDS[name].found] * (found if KINDS[name].found else 1 - found) for name, w in wanted.items()
    }
    least = min(LEAST, max(1, spots // (2 * len(sizes))))
    taken = {name: min(size, least) for name, size in sizes.items()}
    left = min(spots, sum(sizes.values())) - sum(taken.values())
    for _ in range(max(left, 0)):  # the next to whom most is owed
        open_ = (name for name in sizes if taken[name] < sizes[name])
        taken[max(open_, key=lambda name: (share[name] / (taken[name] + 1), name))] += 1
    return taken


def _expected(sizes: Mapping[str, int], taken: Mapping[str, int]) -> float:
    """The upper end of misses to identifiers found that is expected of an allocation, as the guesses have it."""
    total = square = most = found = variance = 0.0
    for name, size in sizes.items():
        guess, weight = KINDS[name].guess, size / taken[name]
        if KINDS[name].found:
            found += size * guess
            variance += size * (weight - 1) * guess * (1 - guess)
        else:
            total += size * guess
            square += size * guess * weight
            most = max(most, weight * (weight > 1))
    spread = (square + most**2) / (total + most)
    high = spread / 2 * float(special.chdtri(2 * (total + most) / spread, 0.025)) if total + most else 0.0
    return high / max(found - 2 * sqrt(variance), 1.0)


def recall(strata: Sequence[Seen]) -> Recall | None:
    """Recall and its 95 % interval from what was seen; None where no found place held an identifier.

    Raises ValueError for a stratum with places of which none was looked at.
    """
    if any(one.size and not one.looked for one in strata):
        raise ValueError("of every stratum some places must be looked at")
    found, of_found = _found([one for one in strata if one.found and one.size])
    missed, of_missed = _missed([one for one in strata if not one.found and one.size])
    if not found:
        return None
    ratio = ratio_of_intervals(missed, of_missed, found, of_found)
    return Recall(found / (found + missed), 1 / (1 + ratio.high), 1 / (1 + ratio.low), found, missed)


def _found(strata: Sequence[Seen]) -> tuple[float, Interval]:
    """How many found places are identifiers."""
    values, ends = [], []
    for one in strata:
        share, left = len(one.hits) / one.looked, sqrt(1 - one.looked / one.size)
        low, high = clopper_pearson(len(one.hits), one.looked)
        values.append(one.size * share)
        ends.append([one.size * (share - (share - low) * left), one.size * (share + (high - share) * left)])
    total = sum(values)
    low, high = sum_of_intervals(values, ends)
    return total, Interval(max(low, 0.0), high)


def _missed(strata: Sequence[Seen]) -> tuple[float, Interval]:
    """How many identifiers were missed: those that were seen, each as often as it stands for others.

    Of a stratum without a hit the weight counts too: what it could hold is part of the upper end.
    """
    sure = sum(sum(one.hits) for one in strata if one.looked == one.size)
    drawn = [one for one in strata if one.looked < one.size]
    weights = [hit * one.size / one.looked for one in drawn for hit in one.hits]
    if not drawn:
        return float(sure), Interval(sure, sure)
    seen = sum(sum(one.hits) for one in drawn)
    low, high = weighted_poisson(weights, most=max(one.size / one.looked for one in drawn))
    return sure + sum(weights), Interval(sure + max(low, float(seen)), sure + high)
