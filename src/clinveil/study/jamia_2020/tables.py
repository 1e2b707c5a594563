"""Tables 1 to 4 of paper A, the transfers, findings on single tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clinveil.report.numerals import NONE, between, decimals
from clinveil.study.engine import Results
from clinveil.study.tables import Paper, Row, Spec, Table, shown

SIDE, LOSS = "utility.classification", "utility.classification_loss"


def tables(results: Results, paper: Paper) -> list[Table]:
    """Return all tables that have numbers."""
    spec = paper.tables
    made = [spec["table-1"].table(list(results.facts["examples"].items())), _corpus(results, spec["table-2"])]
    if results.all("study.similarity"):
        made.append(_similarity(results, spec["table-3"]))
    chance = decimals(getattr(results.of(SIDE), "chance", None))
    settings = dict.fromkeys(f.detail["setting"] for f in results.all("attack.inversion"))
    tokens = ((str(setting), *spec["tokens"].cells(results, setting=setting)) for setting in settings)
    made += [
        spec["table-4"].table(_classified(results), chance=chance),
        spec["transfers"].table(_transfers(results)),
        spec["tokens"].table(tokens),
        spec["tenths"].table(row for setting in settings for row in _tenths(results, str(setting))),
    ]
    return [table for table in made if table.rows]


def _corpus(results: Results, spec: Spec) -> Table:
    corpus = results.facts["corpus"]
    ours = (corpus["patients"], corpus["notes"], corpus["tokens"], corpus["types"])
    rows = [(name, theirs, f"{count:,}") for (name, theirs), count in zip(spec.paper.items(), ours, strict=True)]
    detail, more = corpus.get("detail", {}), []
    if detail:
        more.append(
            f"{detail['classes']} classes; left out: {detail['without_label']} notes without a label, "
            f"{detail['notes_of_small_classes']} of classes under {detail['min_class']} notes; "
            f"{corpus['duplicates']} near-duplicates stay on one side of the split."
        )
    return spec.table(rows, more, max_tokens=results.settings.max_tokens)


def _similarity(results: Results, spec: Spec) -> Table:
    grid = results.settings.n
    rows: list[Row] = []
    keys = ("algorithm", "list", "series")
    for key in dict.fromkeys(tuple(f.detail[name] for name in keys) for f in results.all("study.similarity")):
        own = dict(zip(keys, key, strict=True))
        means = [results.of("study.similarity", **own, n=n) for n in grid]
        known = [mean for mean in means if mean]
        scored = f"{', '.join(str(mean.detail['covered']) for mean in known)} of {known[-1].detail['pairs']}"
        name = f"{own['list']}, {own['algorithm']}" + (f", {own['series']}" if own["series"] else "")
        rows.append((name, scored, *map(shown, means)))
    for name, printed in spec.paper.items():
        rows.append((f"{name}, paper", "all", *(printed.get(n, NONE) for n in grid)))
    heads = (*spec.heads, *(f"N = {n}" if n != "0" else "original" for n in grid))
    return spec.table(rows, heads=heads)


def _groups(results: Results) -> list[dict[str, str]]:
    """Return the details that identify each comparison of classifiers."""
    names = ("setting", "model", "vectors", "transfer")
    rows = (tuple(str(f.detail.get(name) or "") for name in names) for f in results.all(LOSS))
    return [dict(zip(names, row, strict=True)) for row in dict.fromkeys(rows)]


def _change(results: Results, metric: str, own: dict[str, Any]) -> tuple[str, str]:
    """Return the score on the released side, and the paired change in points."""
    loss = results.of(_measure(metric, "_loss"), **own)
    assert loss is not None
    change = between(points(loss.value), points(loss.high), points(loss.low), 1)
    return shown(results.of(_measure(metric), side="released", **own)), change


def _measure(metric: str, end: str = "") -> str:
    return SIDE + ("" if metric == "macro_f1" else f"_{metric}") + end


def points(loss: float | None) -> float | None:
    """Return a loss as a change in points."""
    return None if loss is None else 0.0 - 100 * loss


def _classified(results: Results) -> Iterator[Row]:
    for own in _groups(results):
        if not own["transfer"]:
            other = "micro_f1" if results.of(_measure("micro_f1", "_loss"), **own) else "accuracy"
            name = f"{own['setting']}; {own['model']}" + (f" ({own['vectors']})" if own["vectors"] else "")
            control = shown(results.of(SIDE, side="original", **own), show="control")
            yield (name, *_change(results, "macro_f1", own), *_change(results, other, own), control)


def _transfers(results: Results) -> Iterator[Row]:
    for own in _groups(results):
        if own["transfer"]:
            yield (f"{own['transfer']}; {own['model']}", *_change(results, "macro_f1", own))


def _tenths(results: Results, setting: str) -> Iterator[Row]:
    kept = results.of("attack.unchanged", setting=setting, label="all words")
    if kept and kept.value:  # neighbours never keep a word, so all tenths are 0
        labels = [f"tenth {i} by distance" for i in range(1, 11)]
        found = [results.of("attack.unchanged", setting=setting, label=label) for label in labels]
        yield (setting, *(shown(finding, show="value") for finding in found))
