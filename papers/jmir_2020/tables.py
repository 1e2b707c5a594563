"""Tables 1 to 4 in the paper's layout with the best model, the chain of attacks, and the numbers of
Figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clinveil import Finding
from clinveil.report import NONE, p_value
from papers.jmir_2020.scenario import REPLICATES
from papers.jmir_2020.settings import NAMES, PAPER_WINDOWS, GridSettings, main_models
from papers.tables import CellRow, Paper, Results, Table, TableSpec, cell, figure

LEVEL = 0.05
ALL_NAMES = "all names left in the notes"  # the series of Figure 3
TOP_LABELS = ("A@1", "A@5")
# measures whose findings begin with labels of model and metric
BY_METRIC = frozenset(
    {
        "attack.names",
        "attack.association_difference",
        "attack.association_patients",
        "attack.scenario",
        "attack.scenario_draws",
    }
)


@dataclass(frozen=True)
class GridResults:
    """Findings of all models, the number of pairs that attack 1 guesses, and why models are
    missing.
    """

    findings: Results
    settings: GridSettings
    k: int
    missing: Mapping[str, str]


@dataclass(frozen=True)
class GridCell:
    """The paper's number and the finding in one cell."""

    printed: str
    finding: Finding | None


def tables(results: GridResults, paper: Paper) -> list[Table]:
    """Return all tables; a missing number is a dash, with the reason below the table."""
    specs = paper.tables
    grids = [
        _grid(results, paper, spec) for name, spec in specs.items() if name.startswith("table-")
    ]
    curve = list(_curve(results.findings))
    figure_3 = [specs["figure-3"].table(curve)] if curve else []
    chain = specs["chain"].table(_chain(results.findings))
    return [*grids, *figure_3, chain, _all_models(results.findings, specs["models"])]


def _all_models(findings: Results, spec: TableSpec) -> Table:
    pairs = dict.fromkeys(
        finding.labels[:2]
        for finding in findings.findings
        if finding.measure in BY_METRIC and len(finding.labels) > 1
    )
    return spec.table((*pair, *spec.cells(findings, *pair)) for pair in pairs)


def metric_of(settings: GridSettings, spec: TableSpec) -> str:
    """Return the metric of a table: the paper's, or the first one of the settings."""
    known: tuple[str, ...] = settings.metric
    return spec.metric if spec.metric in known else known[0]


def grid_cells(results: GridResults, spec: TableSpec) -> dict[tuple[int, str], GridCell]:
    """Return the cells by window and heading."""
    cells: dict[tuple[int, str], GridCell] = {}
    metric = metric_of(results.settings, spec)
    for top in TOP_LABELS if TOP_LABELS[0] in spec.paper else ("",):
        printed = spec.paper.get(top, {}) if top else spec.paper
        for model in main_models(results.settings):
            words = (model.label, metric, spec.series, top)
            heading = NAMES[model.algorithm] + (f", {top}" if top else "")
            cells[model.window, heading] = GridCell(
                by_window(printed.get(model.algorithm, ())).get(model.window, NONE),
                results.findings.first(spec.measure, *words),
            )
    return cells


def by_window(column: Sequence[str]) -> dict[int, str]:
    """Return a printed column by window."""
    return dict(zip(PAPER_WINDOWS, column, strict=bool(column)))


def _grid(results: GridResults, paper: Paper, spec: TableSpec) -> Table:
    """Return a table of windows by algorithms with the paper's numbers, if printed, and the
    findings.
    """
    cells = grid_cells(results, spec)
    headings = list(dict.fromkeys(heading for _, heading in cells))
    has_paper = any(grid_cell.printed != NONE for grid_cell in cells.values())
    heads = ["window"]
    for heading in headings:
        heads += [f"{heading}, paper", heading] if has_paper else [heading]
    rows: list[CellRow] = []
    for window in results.settings.window:
        row = [str(window)]
        for heading in headings:
            grid_cell = cells[window, heading]
            measured = cell(grid_cell.finding, spec.kind)
            row += [grid_cell.printed, measured] if has_paper else [measured]
        rows.append(tuple(row))
    metric = metric_of(results.settings, spec)
    findings = [grid_cell.finding for grid_cell in cells.values()]
    why = dict.fromkeys(f.why for f in findings if f is not None and f.value is None)
    values = {"metric": metric, "k": results.k, "draws": results.settings.scenario_draws}
    remarks = [
        *_remarks(results, paper.sentences, spec, metric),
        *why,
        *(f"{label}: {reason}" for label, reason in results.missing.items()),
    ]
    return spec.table(rows, heads=heads, remarks=remarks, values=values)


def _remarks(
    results: GridResults, sentences: Mapping[str, str], spec: TableSpec, metric: str
) -> Iterator[str]:
    """Yield remarks about the best model, with P values adjusted for the selection."""
    findings = results.findings
    if spec.measure == "attack.names":
        yield from best_names(findings, sentences, results.k)
    elif spec.measure == "attack.association_patients":
        yield from best_patients(findings, sentences, spec.series)
    elif spec.measure == "attack.association_difference":
        yield from wilcoxon(findings, sentences, metric)
        yield from best_of(findings, sentences, spec)
    else:
        yield from best_of(findings, sentences, spec)
        yield from draws_floor(findings, sentences, spec.measure)


def best_names(findings: Results, sentences: Mapping[str, str], k: int) -> Iterator[str]:
    """Yield remarks about attack 1: the maximum statistic under the same re-pairings, and the
    ceiling.
    """
    for best in findings.measured("attack.names_best"):
        model, metric, *_ = best.labels
        values = {
            **best.numbers,
            "model": model,
            "metric": metric,
            "value": figure(best.value, "count"),
            "hits": best.count,
            "p": p_value(best.p or 0.0),
            "low": figure(best.low, "count"),
            "high": figure(best.high, "count"),
        }
        yield sentences["best_names"].format_map(values)
    for finding in findings.findings[:1]:
        ceiling = figure(float(finding.numbers["ceiling"] or 0), "count")
        yield sentences["ceiling"].format_map(
            {**finding.numbers, "length": k, "ceiling_percent": ceiling}
        )


def best_of(findings: Results, sentences: Mapping[str, str], spec: TableSpec) -> Iterator[str]:
    """Yield a remark about the model with the smallest P (Holm over models and metrics of its
    measure and series).
    """
    measured = findings.measured(spec.measure)
    if not measured:
        return
    best = min(measured, key=lambda finding: (_p(finding), -abs(finding.value or 0.0)))
    yield sentences["best"].format(
        found=len(measured),
        which=", ".join(filter(None, (*best.labels, best.series))),
        value=figure(best.value, spec.kind),
        chance=figure(best.chance, spec.kind),
        p=p_value(_p(best)),
        family=best.numbers.get("models", len(measured)),
        over=sum(_p(finding) <= LEVEL for finding in measured),
    )


def best_patients(findings: Results, sentences: Mapping[str, str], series: str) -> Iterator[str]:
    """Yield a remark about the model with most significant patients, and its smallest P times
    patients and models.
    """
    measured = findings.measured("attack.association_patients", series)
    if not measured:
        return
    best = max(measured, key=lambda finding: finding.value or 0.0)
    least = float(best.numbers["smallest_p"] or 0.0)
    model, metric, *_ = best.labels
    values = {
        **best.numbers,
        "model": model,
        "metric": metric,
        "found": len(measured),
        "count": best.count,
        "n": best.n,
        "p": p_value(min(1.0, least * best.n * len(measured))),
        "floor": "; its P = 0 is count/n, which is not a valid P value" if least == 0 else "",
        "permuted": figure(best.control, "count"),
    }
    yield sentences["patients"].format_map(values)
    if best.warning:
        yield f"Warning: {best.warning}."


def draws_floor(findings: Results, sentences: Mapping[str, str], measure: str) -> Iterator[str]:
    """Yield a remark if there are too few permutations for Holm to reject."""
    measured = findings.measured(measure)
    families = [int(finding.numbers.get("models") or len(measured)) for finding in measured]
    if families and min(families) / (REPLICATES + 1) > LEVEL:
        yield sentences["floor"].format(orders=REPLICATES, all=REPLICATES + 1, family=min(families))


def wilcoxon(findings: Results, sentences: Mapping[str, str], metric: str) -> Iterator[str]:
    """Yield a remark about the paper's test, and how often it rejects with permuted names."""
    tests = findings.all("attack.association_wilcoxon", metric)
    if tests:
        shares = [float(test.numbers["rejected_with_names_permuted"] or 0.0) for test in tests]
        yield sentences["wilcoxon"].format(
            over=sum(_p(test) <= LEVEL for test in tests),
            found=len(tests),
            share=100 * sum(shares) / len(shares),
        )


def _p(finding: Finding) -> float:
    value = finding.numbers.get("p_over_models")
    return value if isinstance(value, float) else 1.0


def _chain(findings: Results) -> Iterator[CellRow]:
    """Yield the steps of the chain for the model with the best result of attack 1."""
    best = findings.first("attack.names_best")
    model = best.labels[0] if best else ""
    for step in findings.measured("attack.chain", model):
        yield (
            ", ".join((step.series, *step.labels[1:])),
            f"{NONE if step.count is None else step.count} of {step.n:,}",
            figure(step.value, "count"),
            f"{figure(step.low, 'count')} to {figure(step.high, 'count')}",
            figure(step.chance, "count"),
            figure(step.control, "count"),
        )


def _curve(findings: Results) -> Iterator[CellRow]:
    """Yield Figure 3: in-group minus out-group of names below each frequency, with all names in the
    notes.
    """
    for point in findings.measured("attack.association_by_frequency", ALL_NAMES):
        below = point.numbers["below"]
        yield (
            "all" if below is None else str(below),
            figure(point.value, "number"),
            f"{figure(point.low, 'number')} to {figure(point.high, 'number')}",
            figure(point.chance, "number"),
        )
