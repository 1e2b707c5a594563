"""Capture-recapture: how many identifiers two detectors both missed, from those that only one of them found.

Of identifiers found by both (`both`), by the first only and by the second only, independent detectors would have missed
first * second / both (Lincoln 1930, Petersen 1896; nearly unbiased: Chapman 1951, Univ. Calif. Publ. Stat. 1:131).
Detectors are never independent: an unusual name without a title is hard for all of them. With an odds ratio above 1
between their finds there are as many times more missed, so the figure at 1 is a lower bound of the misses, and of what
depends on the label alone it is freed by counting each label by itself (Sekar & Deming 1949, JASA 44:101).
What one of them takes for an identifier wrongly is as if the other had missed it, which raises the figure.
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
from clinveil.phi.detector import Detector, all_detectors
from clinveil.phi.note import NoteView
from clinveil.phi.policy import resolve
from clinveil.stats import Interval, sum_of_intervals

BOTH, FIRST, SECOND = 0, 1, 2
RULES, TAGGER = "rules", "tagger"
_FEWEST = 20  # identifiers of a label that is counted by itself
Z = 1.959964
METHOD = "log-normal of the expected misses, variance by leaving out patients, and Poisson of those that were, 95 %"
SOURCE = "Chapman 1951, by label"
LOWER = "a lower bound of what is missed: two detectors miss the same hard identifiers; rows with dependence say more"


def side(named: str, there: Sequence[Detector] | None = None) -> tuple[Detector, ...]:
    """The detectors of one side: names joined by +; `rules` is all that are there but tagger and known patients.

    Args:
        there: what a run detects with (`Finder.detectors`), libraries of `--also` too; None for all registered ones.

    Raises UsageError for a name that is not there.
    """
    by_name = {one.name: one for one in (all_detectors() if there is None else there)}
    names = [name for name in by_name if name not in (TAGGER, "known")] if named == RULES else named.split("+")
    if unknown := [name for name in names if name not in by_name]:
        hint = f"one or several of {', '.join((RULES, *sorted(by_name)))}, joined by +"
        raise UsageError(f"there is no detector {unknown[0]}", where="--first, --second", hint=hint)
    return tuple(by_name[name] for name in names)


class Captures:
    """Identifiers that two sides found in notes, by patient and label."""

    def __init__(self, first: Sequence[Detector], second: Sequence[Detector]) -> None:
        self.sides = (tuple(first), tuple(second))
        labels = [frozenset[str]().union(*(one.labels for one in side)) for side in self.sides]
        self.labels = labels[0] & labels[1]
        self.counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))

    def add(self, note: Note) -> None:
        """Let both sides read a note."""
        view = NoteView(note.text, note.note_id)
        found = [[s for one in side for s in one.find(view) if s.label in self.labels] for side in self.sides]
        for label, which in compared(note.text, *found):
            self.counts[label][note.patient_id][which] += 1


def compared(text: str, first: Iterable[Span], second: Iterable[Span]) -> Iterator[tuple[str, int]]:
    """Of each identifier that somebody found its label, and who found it; spans that overlap are one identifier."""
    sides = [resolve(text, first), resolve(text, second)]
    for whole in resolve(text, [*sides[0], *sides[1]]):
        by = [any(span.overlaps(whole) for span in side) for side in sides]
        yield whole.label, BOTH if all(by) else FIRST if by[0] else SECOND


class Missed(NamedTuple):
    """Identifiers that both missed: how many, the ends of the interval, and how many somebody found."""

    value: float
    low: float
    high: float
    seen: int


def missed(counts: Sequence[Sequence[Sequence[int]]], odds_ratio: float = 1.0) -> Missed:
    """How many identifiers neither side found, if what one finds the other finds with these odds.

    Args:
        counts: of each label (or other stratum) each patient's identifiers found by both, first only, second only.
            A patient is at the same place in each stratum.
    """
    tables = np.array(counts, dtype=np.float64)  # strata, patients, three
    seen = int(tables.sum())
    sums, value = tables.sum(axis=1), float(_chapman(tables.sum(axis=1)))
    patients = tables.shape[1]
    without = np.array([_chapman(sums - tables[:, one]) for one in range(patients)])
    jackknife = (patients - 1) * float(without.var()) if patients > 1 else 0.0
    # For few events the counts themselves vary more than the patients happen to show.
    raised = sums + 0.5
    middle = raised[:, 1] * raised[:, 2] / raised[:, 0]
    poisson = float((middle**2 * (1 / raised).sum(axis=1)).sum())
    centre = max(value, float(middle.sum()))
    spread = exp(Z * sqrt(log(1 + max(jackknife, poisson) / centre**2)))
    expected = Interval(centre / spread * odds_ratio, centre * spread * odds_ratio)
    low, high = sum_of_intervals([centre * odds_ratio, 0.0], [expected, _around(centre * odds_ratio)])
    return Missed(value * odds_ratio, min(max(low, 0.0), value * odds_ratio), high, seen)


def _around(expected: float) -> Interval:
    """How far a Poisson count of some expectation lies from it, in 95 of 100."""
    low = float(special.pdtrik(0.025, expected)) if special.pdtr(0, expected) < 0.025 else 0.0
    return Interval(floor(low) - expected, ceil(float(special.pdtrik(0.975, expected))) - expected)


def _chapman(sums: Doubles) -> float:
    return float((sums[:, 1] * sums[:, 2] / (sums[:, 0] + 1)).sum())


def strata(counts: Mapping[str, Mapping[str, Sequence[int]]]) -> list[list[Sequence[int]]]:
    """Counts by label and patient as `missed` takes them; labels with few identifiers are one stratum."""
    patients = sorted({patient for by_patient in counts.values() for patient in by_patient})
    totals = {label: sum(map(sum, by_patient.values())) for label, by_patient in counts.items()}
    groups = [[label] for label, total in totals.items() if total >= _FEWEST]
    rest = [label for label, total in totals.items() if total < _FEWEST]
    none = (0, 0, 0)
    return [
        [[sum(row) for row in zip(*(counts[label].get(patient, none) for label in group), strict=True)]
         for patient in patients]
        for group in (*groups, *([rest] if rest else []))
    ]  # fmt: skip


def recapture_findings(captures: Captures, names: tuple[str, str], dependence: Sequence[float]) -> list[Finding]:
    """The share of identifiers that neither side found, for each odds ratio of dependence."""
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
        why = "no identifier that both found, so nothing is known of what both missed"
        return [Finding("validate.missed_by_both", None, 0, "lower", detail={**detail, "why": why})]
    tables = strata(captures.counts)
    return [_finding(missed(tables, ratio), ratio, detail) for ratio in dependence]


def _finding(found: Missed, ratio: float, detail: Mapping[str, int | str]) -> Finding:
    share, low, high = (n / (n + found.seen) for n in found[:3])
    said = {**detail, "setting": f"odds ratio {ratio:g}", "missed": found.value}
    said |= {"warning": LOWER} if ratio == 1 else {}
    about: dict[str, Any] = {"unit": "identifiers", "method": METHOD, "source": SOURCE}
    return Finding("validate.missed_by_both", share, found.seen, "lower", low, high, detail=said, **about)
