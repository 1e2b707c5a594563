"""What the marks of the drawn places say: recall, precision, and how full of identifiers each stratum is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clinveil.core.finding import Finding
from clinveil.phi.validation.design import KINDS, METHOD, Seen, recall
from clinveil.phi.validation.sheet import UNSURE, Design, seen
from clinveil.stats import clopper_pearson, sum_of_intervals

SOURCE = "places drawn by stratum with known chances (Horvitz & Thompson 1952)"
EACH, SUMMED = "Clopper-Pearson, 95 %", "Clopper-Pearson by stratum, then MOVER, 95 %"
WORST, BEST = (0, 1), (1, 0)  # what unsure marks count as, of a place that was found and of one that was not


def marked_findings(design: Design, marks: Mapping[str, int]) -> list[Finding]:
    """Recall and precision with their intervals, and the share of places with identifiers of each stratum.

    Places that somebody was unsure of count against the engine in the value and the lower end, for it in the upper.
    Raises InputError where of some stratum nothing is marked.
    """
    worst, best = (seen(design, marks, unsure=unsure) for unsure in (WORST, BEST))
    about = {"marked": len(marks), "unsure": sum(mark == UNSURE for mark in marks.values())}
    return [_recall(worst, best, about), _precision(worst, best, about), *_strata(worst)]


def _recall(worst: Mapping[str, Seen], best: Mapping[str, Seen], about: Mapping[str, int]) -> Finding:
    low, high = recall([*worst.values()]), recall([*best.values()])
    if low is None or high is None:
        why = "no place that the engine found was marked as an identifier"
        return Finding("validate.recall", None, 0, "higher", detail={**about, "why": why})
    detail = {**about, "found": low.found, "missed": low.missed}
    said: dict[str, Any] = {"unit": "places", "method": METHOD, "source": SOURCE, "detail": detail}
    return Finding("validate.recall", low.value, about["marked"], "higher", low.low, high.high, **said)


def _precision(worst: Mapping[str, Seen], best: Mapping[str, Seen], about: Mapping[str, int]) -> Finding:
    places = sum(one.size for one in worst.values() if one.found)
    looked = sum(one.looked for one in worst.values() if one.found)
    if not looked:
        return Finding("validate.precision", None, 0, "higher", detail={**about, "why": "the engine found nothing"})
    (value, low, _), (_, _, high) = _share(worst, places), _share(best, places)
    said: dict[str, Any] = {"unit": "places", "method": SUMMED, "source": SOURCE}
    return Finding("validate.precision", value, looked, "higher", low, high, detail=about, **said)


def _share(strata: Mapping[str, Seen], places: int) -> tuple[float, float, float]:
    found = [one for one in strata.values() if one.found and one.size]
    values = [one.size / places * len(one.hits) / one.looked for one in found]
    ends = [[one.size / places * end for end in clopper_pearson(len(one.hits), one.looked)] for one in found]
    low, high = sum_of_intervals(values, ends)
    return sum(values), max(low, 0.0), min(high, 1.0)


def _strata(strata: Mapping[str, Seen]) -> Iterator[Finding]:
    """The share of marked places that hold an identifier, stratum by stratum."""
    for name, one in strata.items():
        if not one.size:
            continue
        low, high = clopper_pearson(len(one.hits), one.looked)
        detail: dict[str, Any] = {"stratum": KINDS[name].says, "places": one.size, "identifiers": sum(one.hits)}
        said: dict[str, Any] = {
            "count": len(one.hits),
            "unit": "places",
            "method": EACH,
            "source": SOURCE,
        }
        yield Finding("validate.places", len(one.hits) / one.looked, one.looked, None, low, high, detail=detail, **said)
