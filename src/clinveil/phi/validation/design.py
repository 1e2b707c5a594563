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
from math import ceil, log1p, sqrt
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
CLUMP = 1.25
"""Missed identifiers that a passage with any has on average, as far as no mark shows more."""
METHOD = "stratified sample of locations (Clopper-Pearson, Fay-Feuer, MOVER), 95 %"
WORDS_PER_SECOND = 4  # silent reading of English, Brysbaert 2019, J. Mem. Lang. 109:104047
SECONDS_PER_MARK = 4  # to decide and go on


class Stratum(NamedTuple):
    """A stratum: whether the engine detected its locations, and the assumed number of identifiers
    per location.

    The assumed number affects only the allocation. A wrong one widens the interval but causes no
    bias.
    """

    detected: bool
    guess: float
    description: str


STRATA: Mapping[str, Stratum] = {
    "found": Stratum(True, 0.95, "detected by the engine, high score"),
    "found_unsure": Stratum(True, 0.8, "detected by the engine, lower score"),
    "suspected": Stratum(False, 0.1, "passage with a word that another detector suspects"),
    "name_like": Stratum(False, 0.02, "passage with a listed name that is not an ordinary word"),
    "rare": Stratum(False, 0.015, "passage with an unlisted capitalised word of few patients"),
    "digits": Stratum(False, 0.01, "passage with a long number, or digits near a cue"),
    "cued": Stratum(False, 0.005, "other passage that mentions persons or places"),
    "rest": Stratum(False, 0.003, "other passage"),
}
"""In order: a passage belongs to the first stratum that fits. Together they contain every word."""


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
    """Recall with its interval, and the estimated numbers of detected and missed identifiers;
    `most_missed` is the upper end of the latter.
    """

    value: float
    low: float
    high: float
    detected: float
    missed: float
    most_missed: float


class Planted(NamedTuple):
    """Planted identifiers in the judged passages, and how many of them the reviewer marked."""

    marked: int
    total: int


NONE_PLANTED = Planted(0, 0)


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
    assumed numbers.
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
            most = max(most, _weight_of_none(size, taken[name]))
    spread = (square + most**2) / (total + most) if total + most else 1.0
    high = spread / 2 * float(special.chdtri(2 * (total + most) / spread, 0.025))
    return high / max(detected - 2 * sqrt(variance), 1.0)


def _weight_of_none(size: int, looked: int) -> float:
    """Return what one missed identifier counts in a stratum without any among the judged ones.

    With a share f judged, none of M is seen with probability (1 - f)^M. The weight is the one for
    which a Poisson count has this probability, times `CLUMP`, because missed identifiers are often
    next to each other.
    """
    return CLUMP / -log1p(-looked / size) if looked < size else 0.0


def recall(strata: Sequence[JudgedStratum], planted: Planted = NONE_PLANTED) -> Recall | None:
    """Estimate recall and its 95 % interval.

    Args:
        planted: how many planted identifiers the reviewer found. The missed identifiers that the
            reviewer marked are divided by this share; its uncertainty widens the interval.

    Returns None if no detected location contains an identifier, or if the reviewer found no
    planted one. Raises ValueError for a non-empty stratum without annotations.
    """
    if any(stratum.size and not stratum.looked for stratum in strata):
        raise ValueError("every non-empty stratum needs at least one annotated location")
    detected, of_detected = _detected_total(
        [stratum for stratum in strata if stratum.detected and stratum.size]
    )
    missed, of_missed = _missed_total(
        [stratum for stratum in strata if not stratum.detected and stratum.size]
    )
    if not detected or (planted.total and not planted.marked):
        return None
    missed, of_missed = _by_marker(missed, of_missed, planted)
    ratio = ratio_of_intervals(missed, of_missed, detected, of_detected)
    return Recall(
        value=detected / (detected + missed),
        low=1 / (1 + ratio.high),
        high=1 / (1 + ratio.low),
        detected=detected,
        missed=missed,
        most_missed=of_missed.high,
    )


def _by_marker(missed: float, of_missed: Interval, planted: Planted) -> tuple[float, Interval]:
    """Return the missed identifiers divided by the share that the reviewer finds.

    The lower end is that of a reviewer who finds all.
    """
    if not planted.total:
        return missed, of_missed
    share = planted.marked / planted.total
    of_share = clopper_pearson(planted.marked, planted.total)
    high = ratio_of_intervals(missed, of_missed, share, of_share).high
    return missed / share, Interval(of_missed.low, max(high, of_missed.high))


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
        weights, most=max(_weight_of_none(stratum.size, stratum.looked) for stratum in drawn)
    )
    return sure + sum(weights), Interval(sure + max(low, float(observed)), sure + high)


PASSAGE = 100
"""Words per passage: the default of the setting `passage` of `clinveil validate`."""
LOCATIONS = 200
"""Number of marks: the default of the setting `locations` of `clinveil validate`."""
# Shares of the passages of 100 words in 487 notes (400 of MTSamples, 87 of ACI-Bench).
_SHARES = {"suspected": 0.03, "name_like": 0.22, "rare": 0.12, "digits": 0.17, "cued": 0.22}


def what_marks_prove(n_marks: int, words: int, density: float) -> float:
    """Return the recall that the marks of `clinveil validate` prove if they show no missed
    identifier: the lower end of the 95 % interval.

    Args:
        n_marks: number of marks. words: number of words of the notes.
        density: detected identifiers per 1,000 words.

    Returns 0 if nothing is detected. Raises ValueError for no marks or a negative number.
    """
    if n_marks < 1 or words < 0 or density < 0:
        raise ValueError("marks must be at least 1, words and density at least 0")
    found = round(words * density / 1000)
    if not found:
        return 0.0
    passages = max(1, ceil(words / PASSAGE))
    sizes = {name: round(passages * share) for name, share in _SHARES.items()}
    sizes["rest"] = max(passages - sum(sizes.values()), 1)
    sizes["found"] = found
    taken = allocation(sizes, n_marks)
    judged = [
        JudgedStratum(
            STRATA[name].detected, sizes[name], n, (1,) * n if STRATA[name].detected else ()
        )
        for name, n in taken.items()
        if n
    ]
    proven = recall(judged)
    return proven.low if proven else 0.0


def minutes_of_marks(n_marks: int, words: int, density: float) -> int:
    """Return about how many minutes a person needs for marks, in steps of five; arguments as for
    `what_marks_prove`.
    """
    passages = max(1, ceil(words / PASSAGE))
    sizes = {"rest": passages, "found": round(words * density / 1000)}
    taken = allocation(sizes, n_marks)
    read = min(taken["rest"] * PASSAGE, words)
    seconds = sum(taken.values()) * SECONDS_PER_MARK + read / WORDS_PER_SECOND
    return max(5, 5 * round(seconds / 300))
