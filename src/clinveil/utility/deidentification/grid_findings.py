"""Recall on the grid: overall, by class of name, culture, gender, letter case and kind of context, and its gaps.

Intervals are over contexts where groups of names are compared, because all groups have the same contexts. For kinds of
context, intervals are over groups of names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clinveil.core.finding import Detail, Finding
from clinveil.core.spans import Span
from clinveil.core.types import Ints
from clinveil.stats import jackknife_t
from clinveil.stats.findings import clustered_share
from clinveil.utility.deidentification.grid import GridNote
from clinveil.utility.deidentification.score import score

SOURCE = "Xiao, Pollard & Ghassemi, FAccT 2023: names of many groups in the same contexts"
LEAST = 30  # identifiers that a cell needs to be reported as the worst
Find = Callable[[str], Sequence[Span]]


@dataclass(frozen=True, slots=True)
class Scored:
    """Counts of a note of the grid: identifiers detected completely, identifiers, words with a detection, words."""

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
    def case(self) -> str:
        """Letter case and cue, for tables."""
        cue = "with a cue" if self.note.context.cue else "without a cue"
        return f"{self.note.case}, {cue}"


Key = Callable[[Scored], str]


def scored(notes: Iterable[GridNote], find: Find) -> Iterator[Scored]:
    """Yield the counts of each note of the grid with the detections of `find`."""
    for note in notes:
        done = score(note.text, note.gold, find(note.text))
        whole = sum(hits.whole for _, hits in done.gold)
        yield Scored(note, whole, len(done.gold), done.touched, done.words)


def grid_findings(rows: Sequence[Scored]) -> list[Finding]:
    """Return all findings of the grid. Raises ValueError if there are no notes."""
    findings = [_recall(rows, "all names"), _leaky(rows), _touched(rows), _worst(rows)]
    for key, prefix in _KEYS:
        findings += _by(rows, key, prefix)
    return [*findings, *_gaps(rows)]


_KEYS: tuple[tuple[Key, str], ...] = (
    (lambda row: row.note.kind_of_name, "class"),
    (lambda row: row.note.culture, "culture"),
    (lambda row: row.note.sex, "gender"),
    (lambda row: row.case, "case"),
    (lambda row: row.note.context.kind, "context"),
)


def _by(rows: Sequence[Scored], key: Key, prefix: str) -> list[Finding]:
    """Return the recall of each group of rows, in the order of the grid; rows with an empty key are left out."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    for row in rows:
        if name := key(row):
            groups[name].append(row)
    return [
        _recall(group, f"{prefix}: {name.replace('_', ' ')}", prefix == "context") for name, group in groups.items()
    ]


def _context(row: Scored) -> str:
    return str(row.note.context.number)


def _group(row: Scored) -> str:
    return row.group


def _recall(rows: Sequence[Scored], series: str, by_group: bool = False) -> Finding:
    counts = _counts(rows, _group if by_group else _context, lambda row: (row.whole, row.identifiers))
    over = "groups of names" if by_group else "contexts"
    return clustered_share("phi.grid", counts, over=over, better="higher", unit="identifiers", **_fields(rows, series))


def _leaky(rows: Sequence[Scored]) -> Finding:
    counts = _counts(rows, _context, lambda row: (int(row.whole < row.identifiers), 1))
    return clustered_share("phi.grid_leaky", counts, over="contexts", unit="notes", **_fields(rows, "all names"))


def _touched(rows: Sequence[Scored]) -> Finding:
    counts = _counts(rows, _context, lambda row: (row.touched, row.words))
    return clustered_share("phi.grid_words", counts, over="contexts", unit="words", **_fields(rows, "all names"))


def _fields(rows: Sequence[Scored], series: str) -> dict[str, object]:
    return {"source": SOURCE, "detail": {"series": series, "notes": len(rows)}}


def _counts(rows: Sequence[Scored], cluster: Key, of: Callable[[Scored], tuple[int, int]]) -> Ints:
    """Return hits and totals of each cluster, (n_clusters, 2)."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        hits, total = of(row)
        sums[cluster(row)][0] += hits
        sums[cluster(row)][1] += total
    return np.array(list(sums.values()), dtype=np.int64)


def _worst(rows: Sequence[Scored]) -> Finding:
    """Return the recall of the worst cell of kind of context and group of names."""
    cells: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for row in rows:
        cells[row.note.context.kind, row.group].append(row)
    sizes = Counter({cell: sum(row.identifiers for row in of) for cell, of in cells.items()})
    enough = [cell for cell in cells if sizes[cell] >= LEAST] or [sizes.most_common(1)[0][0]]
    worst = min(enough, key=lambda cell: (sum(row.whole for row in cells[cell]) / sizes[cell], cell))
    recall = _recall(cells[worst], f"worst cell: {worst[0]}, {worst[1].replace('_', ' ')}")
    detail = {**recall.detail, "cells": len(enough)}
    return Finding(**{**recall.as_dict(), "measure": "phi.grid_worst", "detail": detail})


def _gaps(rows: Sequence[Scored]) -> Iterator[Finding]:
    """Yield the differences in recall between groups, in the same contexts."""
    women = [row for row in rows if row.note.sex == "female"]
    yield from _gap(women, [row for row in rows if row.note.sex == "male"], "men less women")
    written = {(row.note.context.number, row.group) for row in rows if row.note.case == "lower"}
    both = [row for row in rows if (row.note.context.number, row.group) in written]
    cased = {case: [row for row in both if row.note.case == case] for case in ("as written", "lower")}
    yield from _gap(cased["lower"], cased["as written"], "as written less lower case")
    census = [row for row in rows if row.note.kind_of_name == "census common"]
    others: dict[str, list[Scored]] = defaultdict(list)
    for row in rows:
        if row.note.culture:
            others[row.note.culture].append(row)
    for culture, of in others.items():
        yield from _gap(of, census, f"census common less {culture.replace('_', ' ')}")


def _gap(low: Sequence[Scored], high: Sequence[Scored], series: str) -> Iterator[Finding]:
    shared = {_context(row) for row in low} & {_context(row) for row in high}
    if len(shared) < 2:
        return
    sides = [[row for row in side if _context(row) in shared] for side in (low, high)]
    counts = [_aligned(side, sorted(shared)) for side in sides]
    values = np.concatenate(counts, axis=1)

    def gap(sums: Ints) -> float:
        return float(sums[2] / sums[3] - sums[0] / sums[1])

    low_end, high_end = jackknife_t(values, gap)
    detail: Detail = {"series": series, "contexts": len(shared)}
    yield Finding(
        *("phi.grid_gap", gap(values.sum(axis=0)), int(values[:, (1, 3)].sum()), "lower"),
        *(max(-1.0, low_end), min(1.0, high_end)),
        source=SOURCE,
        detail=detail,
        unit="identifiers",
        method="jackknife over contexts, t, 95 %",
    )


def _aligned(rows: Sequence[Scored], order: Sequence[str]) -> Ints:
    sums = {name: [0, 0] for name in order}
    for row in rows:
        sums[_context(row)][0] += row.whole
        sums[_context(row)][1] += row.identifiers
    return np.array(list(sums.values()), dtype=np.int64)
