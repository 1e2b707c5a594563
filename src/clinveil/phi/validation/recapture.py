"""Capture-recapture: estimate the identifiers that two detectors both missed, from those that only one detected.

With `both` identifiers detected by both and `first` and `second` by one only, independent detectors both miss
first * second / both (Lincoln 1930, Petersen 1896; nearly unbiased: Chapman 1951, Univ. Calif. Publ. Stat. 1:131).
Detectors are never independent: an unusual name without a title is difficult for all. An odds ratio above 1 between
their detections multiplies the estimate, so the value at 1 is a lower bound. Dependence due to the label alone is
removed by separate counts per label (Sekar & Deming 1949, JASA 44:101). A false positive of one detector has the same
effect as a miss of the other, which increases the estimate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, exp, floor, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.spans import Span
from clinveil.core.types import Doubles
from clinveil.corpus.corpus import Note
from clinveil.phi.detection.detector import Detector, all_detectors
from clinveil.phi.detection.note import NoteView
from clinveil.phi.treatment.policy import resolve
from clinveil.stats import Interval, sum_of_intervals

BOTH, FIRST, SECOND = 0, 1, 2
RULES, TAGGER = "rules", "tagger"
_MIN_COUNT = 20  # minimum identifiers of a label that forms its own stratum
Z = 1.959964
METHOD = "log-normal for expected misses (jackknife over patients), Poisson for actual misses, 95 %"
SOURCE = "Chapman 1951, by label"
LOWER = "a lower bound: both detectors miss the same difficult identifiers; see the rows with dependence"


def side(names_or_rules: str, available: Sequence[Detector] | None = None) -> tuple[Detector, ...]:
    """Return the detectors of one side: names joined by +; `rules` are all except the tagger and known patients.

    Args:
    available: the detectors of the run (`Finder.detectors`), including external libraries; None for all registered
        ones.

    Raises UsageError for an unknown name.
    """
    by_name = {d.name: d for d in (all_detectors() if available is None else available)}
    names = (
        [name for name in by_name if name not in (TAGGER, "known")]
        if names_or_rules == RULES
        else names_or_rules.split("+")
    )
    if unknown := [name for name in names if name not in by_name]:
        hint = f"use one or several of {', '.join((RULES, *sorted(by_name)))}, joined by +"
        raise UsageError(f"unknown detector {unknown[0]}", where="first, second", hint=hint)
    return tuple(by_name[name] for name in names)


class Captures:
    """Identifiers that two sides detected in notes, by patient and label."""

    def __init__(self, first: Sequence[Detector], second: Sequence[Detector]) -> None:
        self.sides = (tuple(first), tuple(second))
        labels = [frozenset[str]().union(*(detector.labels for detector in side)) for side in self.sides]
        self.labels = labels[0] & labels[1]
        self.counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))

    def add(self, note: Note) -> None:
        """Run both sides on a note."""
        view = NoteView(note.text, note.note_id)
        found = [[s for detector in side for s in detector.find(view) if s.label in self.labels] for side in self.sides]
        for label, which in compared(note.text, *found):
            self.counts[label][note.patient_id][which] += 1


def compared(text: str, first: Iterable[Span], second: Iterable[Span]) -> Iterator[tuple[str, int]]:
    """Yield label and detecting side of each identifier; overlapping spans are one identifier."""
    sides = [resolve(text, first), resolve(text, second)]
    for merged in resolve(text, [*sides[0], *sides[1]]):
        by = [any(span.overlaps(merged) for span in side) for side in sides]
        yield merged.label, BOTH if all(by) else FIRST if by[0] else SECOND


class Missed(NamedTuple):
    """Identifiers missed by both sides: estimate, ends of the interval, and number detected by any side."""

    value: float
    low: float
    high: float
    detected: int


def missed(counts: Sequence[Sequence[Sequence[int]]], odds_ratio: float = 1.0) -> Missed:
    """Estimate the identifiers that neither side detected, given the odds ratio between their detections.

    Args:
        counts: per label (or other stratum) and patient, the identifiers detected by both, by the first only and by the
            second only. Patients are in the same order in each stratum.
    """
    tables = np.array(counts, dtype=np.float64)  # strata, patients, three
    detected = int(tables.sum())
    sums, value = tables.sum(axis=1), float(_chapman(tables.sum(axis=1)))
    patients = tables.shape[1]
    without = np.array([_chapman(sums - tables[:, patient]) for patient in range(patients)])
    jackknife = (patients - 1) * float(without.var()) if patients > 1 else 0.0
    # For few events, Poisson variation exceeds the variation observed between patients.
    raised = sums + 0.5
    middle = raised[:, 1] * raised[:, 2] / raised[:, 0]
    poisson = float((middle**2 * (1 / raised).sum(axis=1)).sum())
    centre = max(value, float(middle.sum()))
    spread = exp(Z * sqrt(log(1 + max(jackknife, poisson) / centre**2)))
    expected = Interval(centre / spread * odds_ratio, centre * spread * odds_ratio)
    low, high = sum_of_intervals([centre * odds_ratio, 0.0], [expected, _around(centre * odds_ratio)])
    return Missed(value * odds_ratio, min(max(low, 0.0), value * odds_ratio), high, detected)


def _around(expected: float) -> Interval:
    """Return the deviation of a Poisson count from its expectation, 95 %."""
    low = float(special.pdtrik(0.025, expected)) if special.pdtr(0, expected) < 0.025 else 0.0
    return Interval(floor(low) - expected, ceil(float(special.pdtrik(0.975, expected))) - expected)


def _chapman(sums: Doubles) -> float:
    return float((sums[:, 1] * sums[:, 2] / (sums[:, 0] + 1)).sum())


def strata(counts: Mapping[str, Mapping[str, Sequence[int]]]) -> list[list[Sequence[int]]]:
    """Return counts per label and patient in the format of `missed`. Labels with few identifiers share a stratum."""
    patients = sorted({patient for by_patient in counts.values() for patient in by_patient})
    totals = {label: sum(map(sum, by_patient.values())) for label, by_patient in counts.items()}
    groups = [[label] for label, total in totals.items() if total >= _MIN_COUNT]
    rest = [label for label, total in totals.items() if total < _MIN_COUNT]
    none = (0, 0, 0)
    return [
        [[sum(row) for row in zip(*(counts[label].get(patient, none) for label in group), strict=True)]
         for patient in patients]
        for group in (*groups, *([rest] if rest else []))
    ]  # fmt: skip


def recapture_findings(captures: Captures, names: tuple[str, str], dependence: Sequence[float]) -> list[Finding]:
    """Return the share of identifiers that neither side detected, for each odds ratio of dependence."""
    by_kind = np.array([[sum(row[i] for p in captures.counts.values() for row in p.values()) for i in range(3)]])
    both, first, second = (int(n) for n in by_kind[0])
    detail: dict[str, int | str] = {
        "both": both,
        "first_only": first,
        "second_only": second,
        "first": names[0],
        "second": names[1],
    }
    if not both:
        why = "no identifier was detected by both, so misses cannot be estimated"
        return [Finding("validate.missed_by_both", None, 0, "lower", detail={**detail, "why": why})]
    tables = strata(captures.counts)
    return [_finding(missed(tables, ratio), ratio, detail) for ratio in dependence]


def _finding(estimate: Missed, ratio: float, detail: Mapping[str, int | str]) -> Finding:
    share, low, high = (n / (n + estimate.detected) for n in estimate[:3])
    values: dict[str, Any] = {**detail, "setting": f"odds ratio {ratio:g}", "missed": estimate.value}
    values |= {"warning": LOWER} if ratio == 1 else {}
    about: dict[str, Any] = {"unit": "identifiers", "method": METHOD, "source": SOURCE}
    return Finding("validate.missed_by_both", share, estimate.detected, "lower", low, high, detail=values, **about)
