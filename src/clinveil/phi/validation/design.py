"""Stratified sampling design: sample size per stratum, and recall with its interval from the
annotated sample.

Locations are divided into strata, and a simple random sample without replacement is drawn from
each. Every location thus has a known inclusion probability, and a sampled location is weighted by
its inverse (Horvitz & Thompson 1952, J. Am. Stat. Assoc. 47:663). The interval refers to these
notes only. It makes no assumption about the distribution of identifiers, about patients or about
detectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from scipy import special

from clinveil.stats import (
    Interval,
    clopper_pearson,
    ratio_of_intervals,
    sum_of_intervals,
    weighted_poisson,
)

_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_DETECTED = (0.05, 0.1, 0.15, 0.2, 0.3)
MIN_SAMPLE = 8  # minimum sample per stratum, if the total allows it
METHOD = "stratified sample of locations (Clopper-Pearson, Fay-Feuer, MOVER), 95 %"


class Stratum(NamedTuple):
    """A stratum: whether the engine detected its locations, and the assumed share of identifiers
    among them.

    The assumed share affects only the allocation. A wrong stratum widens the interval but causes no
    bias.
    """

    detected: bool
    guess: float
    description: str


STRATA: Mapping[str, Stratum] = {
    "found": Stratum(True, 0.95, "detected by the engine, high score"),
    "found_unsure": Stratum(True, 0.8, "detected by the engine, lower score"),
    "tagger": Stratum(False, 0.3, "not detected; suspected by another detector"),
    "name_like": Stratum(False, 0.2, "not detected; a listed name that is not an ordinary word"),
    "unknown_rare": Stratum(False, 0.05, "not detected; capitalised, unlisted, few patients"),
    "unknown": Stratum(False, 0.003, "not detected; capitalised, unlisted, many patients"),
    "digits": Stratum(False, 0.03, "not detected; long numbers, and digits near a cue"),
    "cued": Stratum(False, 0.01, "other passage that mentions persons or places"),
    "rest": Stratum(False, 0.002, "other passage"),
}


@dataclass(frozen=True)
class JudgedStratum:
    """Annotations of the sample of one stratum.

    Attributes:
        detected: whether the engine detected the locations.
        size: number of locations in the stratum.
        looked: number of annotated locations, in random order.
        hits: number of identifiers in each location that contains any; 1 for a detected location.
    """

    detected: bool
    size: int
    looked: int
    hits: tuple[int, ...] = ()


class Recall(NamedTuple):
    """Recall with its interval, and the estimated numbers of detected and missed identifiers."""

    value: float
    low: float
    high: float
    detected: float
    missed: float


def allocation(sizes: Mapping[str, int], n_locations: int) -> dict[str, int]:
    """Return the sample size of each stratum, `n_locations` in total, or all locations.

    The candidates interpolate between proportional and Neyman allocation (J. R. Stat. Soc. 1934,
    97:558), with different shares for detected locations. The result minimises the expected upper
    end of missed per detected identifiers. Neyman allocation alone draws so few locations from a
    stratum with almost no expected identifiers that this stratum dominates the interval.
    """
    sizes = {name: size for name, size in sizes.items() if size}
    candidates = (
        _shared(sizes, n_locations, power, share) for power in _POWERS for share in _DETECTED
    )
    return min(candidates, key=lambda taken: _expected(sizes, taken))


def _shared(
    sizes: Mapping[str, int], n_locations: int, power: float, of_detected: float
) -> dict[str, int]:
    """Distribute samples: the share `of_detected` to detected locations, in proportion to size and
    deviation**power.
    """
    wanted = {
        name: size * sqrt(STRATA[name].guess * (1 - STRATA[name].guess)) ** power
        for name, size in sizes.items()
    }
    totals = {
        side: sum(w for name, w in wanted.items() if STRATA[name].detected == side) or 1.0
        for side in (True, False)
    }
    share = {
        name: w
        / totals[STRATA[name].detected]
        * (of_detected if STRATA[name].detected else 1 - of_detected)
        for name, w in wanted.items()
    }
    least = min(MIN_SAMPLE, max(1, n_locations // (2 * len(sizes))))
    taken = {name: min(size, least) for name, size in sizes.items()}
    left = min(n_locations, sum(sizes.values())) - sum(taken.values())
    for _ in range(max(left, 0)):  # add to the stratum furthest below its share
        unfilled = (name for name in sizes if taken[name] < sizes[name])
        taken[max(unfilled, key=lambda name: (share[name] / (taken[name] + 1), name))] += 1
    return taken


def _expected(sizes: Mapping[str, int], taken: Mapping[str, int]) -> float:
    """Return the expected upper end of missed per detected identifiers for an allocation, under the
    assumed shares.
    """
    total = square = most = detected = variance = 0.0
    for name, size in sizes.items():
        guess = STRATA[name].guess
        weight = size / taken[name]
        if STRATA[name].detected:
            detected += size * guess
            variance += size * (weight - 1) * guess * (1 - guess)
        else:
            total += size * guess
            square += size * guess * weight
            most = max(most, weight * (weight > 1))
    spread = (square + most**2) / (total + most)
    high = (
        spread / 2 * float(special.chdtri(2 * (total + most) / spread, 0.025))
        if total + most
        else 0.0
    )
    return high / max(detected - 2 * sqrt(variance), 1.0)


def recall(strata: Sequence[JudgedStratum]) -> Recall | None:
    """Estimate recall and its 95 % interval; return None if no detected location contains an
    identifier.

    Raises ValueError for a non-empty stratum without annotations.
    """
    if any(stratum.size and not stratum.looked for stratum in strata):
        raise ValueError("every non-empty stratum needs at least stratum annotated location")
    detected, of_detected = _detected_total(
        [stratum for stratum in strata if stratum.detected and stratum.size]
    )
    missed, of_missed = _missed_total(
        [stratum for stratum in strata if not stratum.detected and stratum.size]
    )
    if not detected:
        return None
    ratio = ratio_of_intervals(missed, of_missed, detected, of_detected)
    return Recall(
        detected / (detected + missed), 1 / (1 + ratio.high), 1 / (1 + ratio.low), detected, missed
    )


def _detected_total(strata: Sequence[JudgedStratum]) -> tuple[float, Interval]:
    """Estimate the number of detected locations that are identifiers."""
    values = []
    ends = []
    for stratum in strata:
        share = len(stratum.hits) / stratum.looked
        left = sqrt(1 - stratum.looked / stratum.size)
        low, high = clopper_pearson(len(stratum.hits), stratum.looked)
        values.append(stratum.size * share)
        ends.append(
            [
                stratum.size * (share - (share - low) * left),
                stratum.size * (share + (high - share) * left),
            ]
        )
    total = sum(values)
    low, high = sum_of_intervals(values, ends)
    return total, Interval(max(low, 0.0), high)


def _missed_total(strata: Sequence[JudgedStratum]) -> tuple[float, Interval]:
    """Estimate the number of missed identifiers: the annotated ones, weighted by their inverse
    inclusion probability.

    A stratum without hits also contributes to the upper end, through its weight.
    """
    sure = sum(sum(stratum.hits) for stratum in strata if stratum.looked == stratum.size)
    drawn = [stratum for stratum in strata if stratum.looked < stratum.size]
    weights = [hit * stratum.size / stratum.looked for stratum in drawn for hit in stratum.hits]
    if not drawn:
        return float(sure), Interval(sure, sure)
    observed = sum(sum(stratum.hits) for stratum in drawn)
    low, high = weighted_poisson(
        weights, most=max(stratum.size / stratum.looked for stratum in drawn)
    )
    return sure + sum(weights), Interval(sure + max(low, float(observed)), sure + high)
