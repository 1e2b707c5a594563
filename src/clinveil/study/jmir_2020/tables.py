"""Tables 1 to 4 in the paper's layout, with what the best model is worth, the chain, and Figures 3, 5, 6 and 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clinveil.attacks.vectors.scenario import REPLICATES
from clinveil.core.finding import Finding
from clinveil.report.numerals import NONE, p_value
from clinveil.stats import smallest_holm_p
from clinveil.study.chart import Axes, Figure, Point, lines
from clinveil.study.engine import Results
from clinveil.study.jmir_2020.settings import NAMES, PAPER_WINDOWS, main_models
from clinveil.study.tables import Paper, Row, Spec, Table, cell, figure, hits

LEVEL = 0.05
ALL_NAMES = "all names left in the notes"  # the series of Figure 3


def tables(results: Results, paper: Paper) -> list[Table]:
    """All tables; a number that could not be had is a dash, and why stands below."""
    spec = paper.tables
    draws = {"k": results.facts["k"], "draws": results.settings.scenario_draws}
    made = [_grid(results, paper, spec[name], draws) for name in spec if name.startswith("table-")]
    pairs = dict.fromkeys(
        (str(f.detail["model"]), str(f.detail["metric"]))
        for f in results.findings
        if "metric" in f.detail and f.detail.get("series") != ALL_NAMES
    )
    models = [(*pair, *spec["models"].cells(results, model=pair[0], metric=pair[1])) for pair in pairs]
    return [*made, spec["chain"].table(_chain(results)), spec["models"].table(models)]


def metric_of(results: Results, spec: Spec) -> str:
    """The metric of a table: the paper's, or the first that was asked for."""
    known, wanted = results.settings.metric, str(spec.more["metric"])
    return wanted if wanted in known else str(known[0])


def cells(results: Results, spec: Spec) -> dict[tuple[int, str], tuple[str, Finding | None]]:
    """Of each window and heading the paper's number, and our finding."""
    made: dict[tuple[int, str], tuple[str, Finding | None]] = {}
    metric, measure, series = metric_of(results, spec), spec.more["measure"], spec.more.get("series", "")
    for top in ("A@1", "A@5") if "A@1" in spec.paper else ("",):
        printed = spec.paper.get(top, {}) if top else spec.paper
        for model in main_models(results.settings):
            theirs = by_window(printed.get(model.algorithm, ())).get(model.window, NONE)
            ours = results.of(measure, model=model.label, metric=metric, series=series, label=top)
            made[model.window, NAMES[model.algorithm] + (f", {top}" if top else "")] = (theirs, ours)
    return made


def by_window(column: Sequence[str]) -> dict[int, str]:
    """A printed column, by window."""
    return dict(zip(PAPER_WINDOWS, column, strict=bool(column)))


def percent(said: str) -> float:
    """The figure of a printed cell: the per cent in brackets, else its first number."""
    return float(said.partition("(")[2].partition(")")[0] or said.split(",")[0])


def _grid(results: Results, paper: Paper, spec: Spec, told: Mapping[str, Any]) -> Table:
    """Windows by algorithms: the paper's number, where it printed such a table, and ours."""
    found, kind = cells(results, spec), str(spec.more["kind"])
    names = list(dict.fromkeys(name for _, name in found))
    has_paper = any(theirs != NONE for theirs, _ in found.values())
    rows: list[Row] = []
    for window in results.settings.window:
        both = [found[window, name] for name in names]
        rows.append((str(window), *(c for t, ours in both for c in ((t,) * has_paper + (cell(ours, kind),)))))
    heads = [head for name in names for head in (f"{name}, paper",) * has_paper + (name,)]
    metric = metric_of(results, spec)
    missing = [f.detail.get("why") for _, f in found.values() if f is not None and f.value is None]
    why = [*dict.fromkeys(str(reason) for reason in missing if reason)]
    why += [f"{label}: {reason}" for label, reason in results.facts["missing"].items()]
    remarks = [*_remarks(results, paper.printed["says"], spec, metric), *why]
    return spec.table(rows, remarks, ("window", *heads), metric=metric, **told)


def _remarks(results: Results, says: Mapping[str, str], spec: Spec, metric: str) -> Iterator[str]:
    """What the best of many models is worth, with a P that pays for the choice."""
    measure, kind = str(spec.more["measure"]), str(spec.more["kind"])
    if measure == "attack.names":
        yield from best_names(results, says)
    elif measure == "attack.association_patients":
        yield from best_patients(results, says, str(spec.more["series"]))
    else:
        if measure == "attack.association_difference":
            yield from wilcoxon(results, says, metric)
        yield from best_of(results, says, measure, kind)
        if measure == "attack.scenario_draws":
            yield from draws_floor(results, says, measure)


def best_names(results: Results, says: Mapping[str, str]) -> Iterator[str]:
    """Attack 1: the maximum statistic under the same re-pairings; and the ceiling."""
    for found in results.all("attack.names_best"):
        if found.value is not None:
            ends = {"low": figure(found.low, "count"), "high": figure(found.high, "count")}
            own = {"value": figure(found.value, "count"), "hits": hits(found), "p": p_value(found.p or 0.0), **ends}
            yield says["best_names"].format(**{**found.detail, **own})
    for found in results.findings[:1]:
        most = figure(float(found.detail["ceiling"] or 0), "count")
        yield says["ceiling"].format(**found.detail, length=results.facts["k"], ceiling_percent=most)


def best_of(results: Results, says: Mapping[str, str], measure: str, kind: str) -> Iterator[str]:
    """The model of the smallest P, adjusted by Holm over the models and metrics of its measure and series."""
    found = _measured(results, measure)
    if not found:
        return
    best = min(found, key=lambda finding: (_p(finding), -abs(finding.value or 0.0)))
    which = (best.detail.get(name) for name in ("model", "metric", "series", "label"))
    yield says["best"].format(
        found=len(found),
        which=", ".join(str(part) for part in which if part),
        value=figure(best.value, kind),
        chance=figure(best.chance, kind),
        p=p_value(_p(best)),
        family=best.detail.get("models", len(found)),
        over=sum(_p(finding) <= LEVEL for finding in found),
    )


def best_patients(results: Results, says: Mapping[str, str], series: str) -> Iterator[str]:
    """The model with most significant patients, and its smallest P times patients and models."""
    found = _measured(results, "attack.association_patients", series=series)
    if not found:
        return
    best = max(found, key=lambda finding: finding.value or 0.0)
    permuted, least = best.detail.get("names_permuted"), float(best.detail["smallest_p"] or 0.0)
    own = {"found": len(found), "count": best.count, "n": best.n, "p": p_value(min(1.0, least * best.n * len(found)))}
    own |= {"floor": "; its P = 0 is count/n, which is no P" if least == 0 else ""}
    own |= {"permuted": figure(permuted if isinstance(permuted, float) else best.control, "count")}
    yield says["patients"].format(**{**best.detail, **own})
    if "warning" in best.detail:
        yield f"Beware: {best.detail['warning']}."


def draws_floor(results: Results, says: Mapping[str, str], measure: str) -> Iterator[str]:
    """Says so where there are too few permuted orders for Holm ever to reject."""
    found = _measured(results, measure)
    families = [int(finding.detail.get("models") or len(found)) for finding in found]
    if families and smallest_holm_p(min(families), 1 / (REPLICATES + 1)) > LEVEL:
        yield says["floor"].format(orders=REPLICATES, all=REPLICATES + 1, family=min(families))


def wilcoxon(results: Results, says: Mapping[str, str], metric: str) -> Iterator[str]:
    """The paper's own test, and how often it rejects where names are permuted."""
    found = results.all("attack.association_wilcoxon", metric=metric)
    if found:
        over = sum(_p(finding) <= LEVEL for finding in found)
        shares = [float(finding.detail["rejected_with_names_permuted"] or 0.0) for finding in found]
        yield says["wilcoxon"].format(over=over, found=len(found), share=100 * sum(shares) / len(shares))


def _measured(results: Results, measure: str, **detail: Any) -> list[Finding]:
    return [finding for finding in results.all(measure, **detail) if finding.value is not None]


def _p(finding: Finding) -> float:
    value = finding.detail.get("p_over_models")
    return value if isinstance(value, float) else 1.0


def _chain(results: Results) -> Iterator[Row]:
    """The steps of the chain for the model that attack 1 did best on."""
    best = results.of("attack.names_best")
    of_model = {"model": best.detail["model"]} if best else {}
    for found in _measured(results, "attack.chain", **of_model):
        of = [str(found.detail[name]) for name in ("series", "direction", "label", "metric") if found.detail.get(name)]
        value, low, high, chance, control = (
            figure(number, "count") for number in (found.value, found.low, found.high, found.chance, found.control)
        )
        count = f"{NONE if found.count is None else found.count} of {found.n:,}"
        yield (", ".join(of), count, value, f"{low} to {high}", chance, control)


def figures(results: Results, paper: Paper) -> dict[str, list[Figure]]:
    """The figures that have numbers: ours with intervals, the paper's as broken lines, chance as fine ones."""
    spec = paper.tables
    five = _by_window(results, spec["table-1"], "fig-5", "Figure 5: name pairs found", "found")
    six = _by_window(results, spec["table-2"], "fig-6", "Figure 6: in-group minus out-group", "difference")
    seven = _by_window(results, spec["table-3"], "fig-7", "Figure 7: significant patients", "patients")
    below = {"table-1": (five,), "table-2": (six, _curve(results)), "table-3": (seven,)}
    return {ident: [drawn for drawn in figures if drawn] for ident, figures in below.items()}


def _by_window(results: Results, spec: Spec, ident: str, title: str, what: str) -> Figure | None:
    """One line an algorithm over the windows."""
    share = spec.more["kind"] == "count"
    printed = [
        Point(NAMES[algorithm], window, percent(said) / (100 if share else 1), kind="reference")
        for algorithm, column in spec.paper.items()
        for window, said in by_window(column).items()
    ]
    ours = [
        point
        for (window, name), (_, found) in cells(results, spec).items()
        if found is not None and found.value is not None
        for point in (
            Point(name, window, found.value, found.low, found.high),
            Point(name, window, found.chance, kind="chance"),
        )
    ]
    axes = Axes("context window", what, share=share, each="window ")
    return lines(ident, title, [*printed, *ours], axes, "the paper's numbers (fine line: our chance)")


def _curve(results: Results) -> Figure | None:
    """Figure 3: in - out of the names below each frequency threshold, all names left in the notes."""
    points: list[Point] = []
    for found in _measured(results, "attack.association_by_frequency", series=ALL_NAMES):
        if isinstance(at := found.detail.get("below"), int):
            points.append(Point("GloVe, one vector a word, window 10", at, found.value, found.low, found.high))
            points.append(Point("GloVe, one vector a word, window 10", at, found.chance, kind="chance"))
    axes = Axes("names seen fewer times than", "difference", log=True, each="names seen fewer times than ")
    return lines("fig-3", "Figure 3: in-group minus out-group by name frequency", points, axes, "chance")
