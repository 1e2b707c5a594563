"""The tables of paper A, and the means over repetitions that they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from clinveil import Finding
from clinveil.report import NONE, between, decimals
from clinveil.stats import NO_EVIDENCE, is_no_evidence, t_interval, unmeasured
from clinveil.utility import Task as ClassificationTask
from papers.jamia_2020.settings import ObfuscationSettings
from papers.tables import CellRow, Paper, Results, Table, TableSpec, shown

SIDE = "utility.classification"
LOSS = "utility.classification_loss"
SIMILARITY = "study.similarity"
LEVEL = 0.9  # level of paper A's intervals
SOURCE = "paper A, Table 3 and Figure 1"
SERIES = ("algorithm", "list", "series")
COMPARISON = ("setting", "model", "vectors", "transfer")
Key = dict[str, str]
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
        detail = task.labelled.detail
        remarks.append(
            f"{detail['classes']} classes; left out: {detail['without_label']} notes without a"
            f" label, {detail['notes_of_small_classes']} of classes under {detail['min_class']}"
            f" notes; {task.parts.duplicates} near-duplicates stay on one side of the split."
        )
    return spec.table(rows, remarks=remarks, values={"max_tokens": settings.max_tokens})


def _similarity_table(spec: TableSpec, settings: ObfuscationSettings, results: Results) -> Table:
    rows: list[CellRow] = []
    for key in _keys(results, SIMILARITY, SERIES):
        means = [results.first(SIMILARITY, {**key, "n": n}) for n in settings.n]
        known = [mean for mean in means if mean is not None]
        scored = ", ".join(str(mean.detail["covered"]) for mean in known)
        name = f"{key['list']}, {key['algorithm']}"
        if key["series"]:
            name += f", {key['series']}"
        rows.append((name, f"{scored} of {known[-1].detail['pairs']}", *map(shown, means)))
    if rows:
        for name, printed in spec.paper.items():
            rows.append((f"{name}, paper", "all", *(printed.get(n, NONE) for n in settings.n)))
    heads = [f"N = {n}" if n != "0" else "original" for n in settings.n]
    return spec.table(rows, heads=(*spec.heads, *heads))


def _keys(results: Results, measure: str, names: Sequence[str]) -> list[Key]:
    """Return the details that identify each row of a measure, in order."""
    rows = [
        tuple(str(finding.detail.get(name) or "") for name in names)
        for finding in results.all(measure)
    ]
    return [dict(zip(names, row, strict=True)) for row in dict.fromkeys(rows)]


def _classified(results: Results) -> list[CellRow]:
    rows: list[CellRow] = []
    for key in _keys(results, LOSS, COMPARISON):
        if key["transfer"]:
            continue
        several = results.first(_measure("micro_f1", "_loss"), key) is not None
        name = f"{key['setting']}; {key['model']}"
        if key["vectors"]:
            name += f" ({key['vectors']})"
        control = shown(results.first(SIDE, {"side": "original", **key}), show="control")
        macro_f1 = _change(results, "macro_f1", key)
        other = _change(results, "micro_f1" if several else "accuracy", key)
        rows.append((name, *macro_f1, *other, control))
    return rows


def _transfers(results: Results) -> list[CellRow]:
    return [
        (f"{key['transfer']}; {key['model']}", *_change(results, "macro_f1", key))
        for key in _keys(results, LOSS, COMPARISON)
        if key["transfer"]
    ]


def _change(results: Results, metric: Metric, key: Key) -> tuple[str, str]:
    """Return the score on the released side, and the paired change in points."""
    loss = results.first(_measure(metric, "_loss"), key)
    assert loss is not None
    change = between(points(loss.value), points(loss.high), points(loss.low), 1)
    return shown(results.first(_measure(metric), {"side": "released", **key})), change


def _measure(metric: Metric, ending: str = "") -> str:
    return f"{SIDE}{MEASURES[metric]}{ending}"


def points(loss: float | None) -> float | None:
    """Return a loss as a change in points."""
    return None if loss is None else 0.0 - 100 * loss


def _token_table(spec: TableSpec, results: Results) -> Table:
    settings = dict.fromkeys(
        str(finding.detail["setting"]) for finding in results.all("attack.inversion")
    )
    return spec.table((setting, *spec.cells(results, {"setting": setting})) for setting in settings)


def means(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield correlations over repetitions: mean, 90 % t interval, and the number of scored pairs.

    A mean that is not above the chance of one repetition is not evidence: it has no value and no
    interval.
    """
    names = (*SERIES, "n")
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        key = tuple(str(finding.detail.get(name) or "") for name in names)
        groups.setdefault(key, []).append(finding)
    for key, group in groups.items():
        mean = _mean(dict(zip(names, key, strict=True)), group)
        if mean is not None:
            yield mean


def _mean(key: Key, findings: Sequence[Finding]) -> Finding | None:
    """Return the mean of the repetitions; None if it cannot be told why there is none."""
    correlated = [(f, value) for f in findings if (value := correlation_of(f)) is not None]
    values = [value for _, value in correlated]
    covered = min(int(f.detail.get("scored") or f.n) for f in findings)
    detail: dict[str, str | float] = {
        **key,
        "repetitions": len(values),
        "covered": covered,
        "pairs": int(findings[0].detail.get("pairs") or 0),
    }
    if len(values) < 2:
        empty = next((f for f in findings if is_no_evidence(f)), None)
        if empty is None:
            return None
        return _undefined(str(empty.detail["why"]), len(findings), detail)
    # Repetitions share the pairs, so their mean is compared with the chance of one repetition.
    mean = float(np.mean(values))
    limit = float(np.mean([float(f.detail["chance_high"] or 0.0) for f, _ in correlated]))
    if mean <= limit:
        why = (
            f"{NO_EVIDENCE}: the mean correlation ({mean:.3f}, {covered} pairs) is not above"
            f" chance ({limit:.3f})"
        )
        undefined = _undefined(why, len(values), {**detail, "correlation": mean})
        return replace(undefined, chance=0.0, chance_is="no correlation")
    low, high = t_interval(values, LEVEL)
    return Finding(
        SIMILARITY,
        mean,
        len(values),
        low=low,
        high=high,
        detail=detail,
        method="t interval over repetitions, 90 %",
        better="higher",
        source=SOURCE,
        unit="repetitions",
        chance=0.0,
        chance_is="no correlation",
    )


def _undefined(why: str, n: int, detail: Mapping[str, str | float]) -> Finding:
    return unmeasured(
        SIMILARITY,
        why,
        n,
        detail=detail,
        better="higher",
        source=SOURCE,
        unit="repetitions",
    )


def correlation_of(finding: Finding) -> float | None:
    """Return the correlation of a finding, also of one that is not evidence; None without any."""
    value = finding.detail.get("correlation") if finding.value is None else finding.value
    return value if isinstance(value, float) else None
