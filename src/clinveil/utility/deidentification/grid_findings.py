"""Recall on the grid: overall, by class of name, culture, gender, letter case and kind of context,
and its gaps.

Intervals are over contexts where groups of names are compared, because all groups have the same
contexts. For kinds of context, intervals are over groups of names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clinveil.core import Better, Finding, Ints, Span
from clinveil.stats import HitCounts, MeasureSpec, jackknife_t
from clinveil.utility.deidentification.grid import GridNote
from clinveil.utility.deidentification.score import score

SOURCE = "Xiao, Pollard & Ghassemi, FAccT 2023: names of many groups in the same contexts"
LEAST = 30  # identifiers that a cell needs to be reported as the worst
Find = Callable[[str], Sequence[Span]]


@dataclass(frozen=True, slots=True)
class Scored:
    """Counts of a note of the grid: identifiers detected completely, identifiers, words with a
    detection, words.
    """

    note: GridNote
    whole: int
    identifiers: int
    touched: int
    words: int

    @property
    def group(self) -> str:
        """Culture of the name, or its class."""
        return self.note.culture or self.note.kind_of_name

    @property
    def context(self) -> str:
        """Number of the context."""
        return str(self.note.context.number)


Key = Callable[[Scored], str]
Count = Callable[[Scored], tuple[int, int]]


def scored(notes: Iterable[GridNote], find: Find) -> Iterator[Scored]:
    """Yield the counts of each note of the grid with the detections of `find`."""
    for note in notes:
        done = score(note.text, note.gold, find(note.text))
        whole = sum(hits.whole for _, hits in done.gold)
        yield Scored(note, whole, len(done.gold), done.touched, done.words)


def grid_findings(rows: Sequence[Scored]) -> list[Finding]:
    """Return all findings of the grid. Raises ValueError if there are no notes."""
    leaky = _share(
        "phi.grid_leaky", rows, lambda row: (int(row.whole < row.identifiers), 1), "notes"
    )
    touched = _share("phi.grid_words", rows, lambda row: (row.touched, row.words), "words")
    findings = [_recall(rows, "all names"), leaky, touched, _worst(rows)]
    for key, prefix in _KEYS:
        groups: dict[str, list[Scored]] = defaultdict(list)  # in the order of the grid
        for row in rows:
            if name := key(row):
                groups[name].append(row)
        for name, group in groups.items():
            findings.append(
                _recall(group, f"{prefix}: {name.replace('_', ' ')}", by_group=prefix == "context")
            )
    return [*findings, *_gaps(rows)]


_KEYS: tuple[tuple[Key, str], ...] = (
    (lambda row: row.note.kind_of_name, "class"),
    (lambda row: row.note.culture, "culture"),
    (lambda row: row.note.sex, "gender"),
    (lambda row: f"{row.note.case}, {'with' if row.note.context.cue else 'without'} a cue", "case"),
    (lambda row: row.note.context.kind, "context"),
)


def _recall(rows: Sequence[Scored], series: str, *, by_group: bool = False) -> Finding:
    return _share("phi.grid", rows, _recalled, "identifiers", series, "higher", by_group=by_group)


def _share(
    measure: str,
    rows: Sequence[Scored],
    of: Count,
    unit: str,
    series: str = "all names",
    better: Better = "lower",
    *,
    by_group: bool = False,
) -> Finding:
    counts = _counts(rows, of, (lambda row: row.group) if by_group else (lambda row: row.context))
    over = "groups of names" if by_group else "contexts"
    values = np.array(list(counts.values()), dtype=np.int64)
    spec = MeasureSpec(
        measure=measure, series=series, over=over, unit=unit, better=better, source=SOURCE
    )
    return spec.share(HitCounts.of_clusters(values), numbers={"notes": len(rows)})


def _recalled(row: Scored) -> tuple[int, int]:
    return row.whole, row.identifiers


def _counts(rows: Sequence[Scored], of: Count, cluster: Key) -> dict[str, list[int]]:
    """Return hits and total of each cluster."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        hits, total = of(row)
        sums[cluster(row)][0] += hits
        sums[cluster(row)][1] += total
    return sums


def _worst(rows: Sequence[Scored]) -> Finding:
    """Return the recall of the worst cell of kind of context and group of names."""
    cells: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for row in rows:
        cells[row.note.context.kind, row.group].append(row)
    sizes = Counter({cell: sum(row.identifiers for row in of) for cell, of in cells.items()})
    enough = [cell for cell in cells if sizes[cell] >= LEAST] or [sizes.most_common(1)[0][0]]
    worst = min(
        enough, key=lambda cell: (sum(row.whole for row in cells[cell]) / sizes[cell], cell)
    )
    recall = _recall(cells[worst], f"worst cell: {worst[0]}, {worst[1].replace('_', ' ')}")
    numbers = {**recall.numbers, "cells": len(enough)}
    return replace(recall, measure="phi.grid_worst", numbers=numbers)


def _gaps(rows: Sequence[Scored]) -> Iterator[Finding]:
    """Yield the differences in recall between groups, in the same contexts."""
    women = [row for row in rows if row.note.sex == "female"]
    yield from _gap(women, [row for row in rows if row.note.sex == "male"], "men less women")
    written = {(row.note.context.number, row.group) for row in rows if row.note.case == "lower"}
    both = [row for row in rows if (row.note.context.number, row.group) in written]
    cased = {
        case: [row for row in both if row.note.case == case] for case in ("as written", "lower")
    }
    yield from _gap(cased["lower"], cased["as written"], "as written less lower case")
    census = [row for row in rows if row.note.kind_of_name == "census common"]
    others: dict[str, list[Scored]] = defaultdict(list)
    for row in rows:
        if row.note.culture:
            others[row.note.culture].append(row)
    for culture, of in others.items():
        yield from _gap(of, census, f"census common less {culture.replace('_', ' ')}")


def _gap(low: Sequence[Scored], high: Sequence[Scored], series: str) -> Iterator[Finding]:
    sides = [_counts(side, _recalled, lambda row: row.context) for side in (low, high)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    if len(shared) < 2:
        return
    values = np.array(
        [[*sides[0][context], *sides[1][context]] for context in shared], dtype=np.int64
    )

    def gap(sums: Ints) -> float:
        return float(sums[2] / sums[3] - sums[0] / sums[1])

    low_end, high_end = jackknife_t(values, gap)
    yield Finding(
        "phi.grid_gap",
        gap(values.sum(axis=0)),
        int(values[:, (1, 3)].sum()),
        "lower",
        low=max(-1.0, low_end),
        high=min(1.0, high_end),
        source=SOURCE,
        series=series,
        numbers={"contexts": len(shared)},
        unit="identifiers",
        method="jackknife over contexts, t, 95 %",
    )
