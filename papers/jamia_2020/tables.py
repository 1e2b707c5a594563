"""The tables of paper A, and the means over repetitions that they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from clinveil import Finding
from clinveil.report import NONE, between, decimals
from clinveil.stats import NO_EVIDENCE, MeasureSpec, is_no_evidence, t_interval
from clinveil.utility import ORIGINAL, RELEASED
from clinveil.utility import Task as ClassificationTask
from papers.jamia_2020.settings import ObfuscationSettings
from papers.tables import CellRow, Paper, Results, Table, TableSpec, shown

SIDE = "utility.classification"
LOSS = "utility.classification_loss"
SIMILARITY = "study.similarity"
LEVEL = 0.9  # level of paper A's intervals
SOURCE = "paper A, Table 3 and Figure 1"
MEAN = MeasureSpec(
    measure=SIMILARITY,
    better="higher",
    source=SOURCE,
    unit="repetitions",
    chance_is="no correlation",
)
ComparisonKey = tuple[str, ...]
"""Labels of a comparison: setting, label column, model, vectors and transfer."""
Metric = Literal["macro_f1", "micro_f1", "accuracy"]
MEASURES: Mapping[Metric, str] = {"macro_f1": "", "micro_f1": "_micro", "accuracy": "_accuracy"}


def tables(
    results: Results,
    paper: Paper,
    settings: ObfuscationSettings,
    *,
    corpus: Mapping[str, int],
    task: ClassificationTask | None,
    examples: Mapping[str, str],
) -> list[Table]:
    """Return all tables that have rows.

    Args:
        corpus: counts of the sampled notes. task: their labels and split. examples: the example
            note by setting.
    """
    specs = paper.tables
    chance = decimals(getattr(results.first(SIDE), "chance", None))
    every_table = [
        specs["table-1"].table(list(examples.items())),
        _corpus_table(specs["table-2"], settings, corpus, task),
        _similarity_table(specs["table-3"], settings, results),
        specs["table-4"].table(_classified(results), values={"chance": chance}),
        specs["transfers"].table(_transfers(results)),
        _token_table(specs["tokens"], results),
    ]
    return [table for table in every_table if table.rows]


def _corpus_table(
    spec: TableSpec,
    settings: ObfuscationSettings,
    corpus: Mapping[str, int],
    task: ClassificationTask | None,
) -> Table:
    counts = (corpus["patients"], corpus["notes"], corpus["tokens"], corpus["types"])
    rows = [
        (name, printed, f"{count:,}")
        for (name, printed), count in zip(spec.paper.items(), counts, strict=True)
    ]
    remarks = []
    if task is not None:
        of = task.labelled.numbers
        remarks.append(
            f"{of['classes']} classes; left out: {of['without_label']} notes without a"
            f" label, {of['notes_of_small_classes']} of classes under"
            f" {of['min_class']}"
            f" notes; {task.parts.duplicates} near-duplicates stay on one side of the split."
        )
    return spec.table(rows, remarks=remarks, values={"max_tokens": settings.max_tokens})


def _similarity_table(spec: TableSpec, settings: ObfuscationSettings, results: Results) -> Table:
    rows: list[CellRow] = []
    found = {_mean_key(mean): mean for mean in results.all(SIMILARITY)}
    for algorithm, pairs, series in dict.fromkeys(key[:3] for key in found):
        means = [found.get((algorithm, pairs, series, n)) for n in settings.n]
        known = [mean for mean in means if mean is not None]
        scored = ", ".join(str(mean.numbers["covered"]) for mean in known)
        name = ", ".join(filter(None, (pairs, algorithm, series)))
        rows.append((name, f"{scored} of {known[-1].numbers['pairs']}", *map(shown, means)))
    if rows:
        for name, printed in spec.paper.items():
            rows.append((f"{name}, paper", "all", *(printed.get(n, NONE) for n in settings.n)))
    heads = [f"N = {n}" if n != "0" else "original" for n in settings.n]
    return spec.table(rows, heads=(*spec.heads, *heads))


def _mean_key(finding: Finding) -> tuple[str, str, str, str]:
    """Return vectors, list, series and N of a mean of similarities, or of one repetition."""
    algorithm, n, pairs, *_ = finding.labels
    return algorithm, pairs, finding.series, n


def _comparisons(results: Results) -> list[ComparisonKey]:
    """Return the comparisons in order."""
    return [*dict.fromkeys(finding.labels[:-1] for finding in results.all(LOSS))]


def _first(results: Results, measure: str, key: ComparisonKey, series: str = "") -> Finding | None:
    """Return the finding of a comparison."""
    of_key = (f for f in results.all(measure, series) if f.labels[:-1] == key)
    return next(of_key, None)


def _classified(results: Results) -> list[CellRow]:
    rows: list[CellRow] = []
    for key in _comparisons(results):
        setting, _, model, vectors, transfer = key
        if transfer:
            continue
        several = _first(results, _measure("micro_f1", "_loss"), key) is not None
        name = f"{setting}; {model}"
        if vectors:
            name += f" ({vectors})"
        control = shown(_first(results, SIDE, key, ORIGINAL), show="control")
        macro_f1 = _change(results, "macro_f1", key)
        other = _change(results, "micro_f1" if several else "accuracy", key)
        rows.append((name, *macro_f1, *other, control))
    return rows


def _transfers(results: Results) -> list[CellRow]:
    return [
        (f"{transfer}; {model}", *_change(results, "macro_f1", key))
        for key in _comparisons(results)
        for _, _, model, _, transfer in (key,)
        if transfer
    ]


def _change(results: Results, metric: Metric, key: ComparisonKey) -> tuple[str, str]:
    """Return the score on the released side, and the paired change in points."""
    loss = _first(results, _measure(metric, "_loss"), key)
    assert loss is not None
    change = between(points(loss.value), points(loss.high), points(loss.low), 1)
    return shown(_first(results, _measure(metric), key, RELEASED)), change


def _measure(metric: Metric, ending: str = "") -> str:
    return f"{SIDE}{MEASURES[metric]}{ending}"


def points(loss: float | None) -> float | None:
    """Return a loss as a change in points."""
    return None if loss is None else 0.0 - 100 * loss


def _token_table(spec: TableSpec, results: Results) -> Table:
    settings = dict.fromkeys(finding.labels[0] for finding in results.all("attack.inversion"))
    return spec.table((setting, *spec.cells(results, setting)) for setting in settings)


def means(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield correlations over repetitions: mean, 90 % t interval, and the number of scored pairs.

    A mean that is not above the chance of one repetition is not evidence: it has no value and no
    interval.
    """
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_mean_key(finding), []).append(finding)
    for (algorithm, pairs, series, n), group in groups.items():
        mean = _mean(group)
        if mean is not None:
            yield replace(mean, labels=(algorithm, n, pairs), series=series)


def _mean(findings: Sequence[Finding]) -> Finding | None:
    """Return the mean of the repetitions; None if it cannot be told why there is none."""
    correlated = [(f, value) for f in findings if (value := correlation_of(f)) is not None]
    values = [value for _, value in correlated]
    covered = min(int(f.numbers.get("scored") or f.n) for f in findings)
    numbers: dict[str, float] = {
        "repetitions": len(values),
        "covered": covered,
        "pairs": int(findings[0].numbers.get("pairs") or 0),
    }
    if len(values) < 2:
        empty = next((f for f in findings if is_no_evidence(f)), None)
        if empty is None:
            return None
        return MEAN.missing(empty.why, len(findings), numbers=numbers)
    # Repetitions share the pairs, so their mean is compared with the chance of one repetition.
    mean = float(np.mean(values))
    limit = float(np.mean([float(f.numbers["chance_high"] or 0.0) for f, _ in correlated]))
    if mean <= limit:
        why = (
            f"{NO_EVIDENCE}: the mean correlation ({mean:.3f}, {covered} pairs) is not above"
            f" chance ({limit:.3f})"
        )
        numbers["correlation"] = mean
        return MEAN.missing(why, len(values), chance=0.0, numbers=numbers)
    low, high = t_interval(values, LEVEL)
    return Finding(
        SIMILARITY,
        mean,
        len(values),
        low=low,
        high=high,
        numbers=numbers,
        method="t interval over repetitions, 90 %",
        better="higher",
        source=SOURCE,
        unit="repetitions",
        chance=0.0,
        chance_is="no correlation",
    )


def correlation_of(finding: Finding) -> float | None:
    """Return the correlation of a finding, also of one that is not evidence; None without any."""
    value = finding.numbers.get("correlation") if finding.value is None else finding.value
    return value if isinstance(value, float) else None
