"""Tables 1 to 4 in the paper's layout with the best model, the chain of attacks, and the numbers of
Figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clinveil.attacks.vectors.scenario import REPLICATES
from clinveil.core.finding import Finding
from clinveil.report.numerals import NONE, p_value
from clinveil.study.engine import Results
from clinveil.study.jmir_2020.settings import NAMES, PAPER_WINDOWS, label_of, main_models
from clinveil.study.tables import Paper, Row, Spec, Table, cell, figure, hits

LEVEL = 0.05
ALL_NAMES = "all names left in the notes"  # the series of Figure 3


def tables(results: Results, paper: Paper) -> list[Table]:
    """Return all tables; a missing number is a dash, with the reason below the table."""
    spec = paper.tables
    draws = {"k": results.facts["k"], "draws": results.settings.scenario_draws}
    grids = [_grid(results, paper, spec[name], draws) for name in spec if name.startswith("table-")]
    pairs = dict.fromkeys(
        (str(f.detail["model"]), str(f.detail["metric"]))
        for f in results.findings
        if "metric" in f.detail and f.detail.get("series") != ALL_NAMES
    )
    models = [
        (*pair, *spec["models"].cells(results, model=pair[0], metric=pair[1])) for pair in pairs
    ]
    curve = list(_curve(results))
    more = [spec["figure-3"].table(curve)] if curve else []
    return [*grids, *more, spec["chain"].table(_chain(results)), spec["models"].table(models)]


def metric_of(results: Results, spec: Spec) -> str:
    """Return the metric of a table: the paper's, or the first one of the settings."""
    known = results.settings.metric
    wanted = str(spec.more["metric"])
    return wanted if wanted in known else str(known[0])


def cells(results: Results, spec: Spec) -> dict[tuple[int, str], tuple[str, Finding | None]]:
    """Return the paper's number and the finding for each window and heading."""
    pairs: dict[tuple[int, str], tuple[str, Finding | None]] = {}
    metric = metric_of(results, spec)
    measure = spec.more["measure"]
    series = spec.more.get("series", "")
    for top in ("A@1", "A@5") if "A@1" in spec.paper else ("",):
        printed = spec.paper.get(top, {}) if top else spec.paper
        for model in main_models(results.settings):
            theirs = by_window(printed.get(model.algorithm, ())).get(model.window, NONE)
            ours = results.of(
                measure, model=label_of(model), metric=metric, series=series, label=top
            )
            pairs[model.window, NAMES[model.algorithm] + (f", {top}" if top else "")] = (
                theirs,
                ours,
            )
    return pairs


def by_window(column: Sequence[str]) -> dict[int, str]:
    """Return a printed column by window."""
    return dict(zip(PAPER_WINDOWS, column, strict=bool(column)))


def _grid(results: Results, paper: Paper, spec: Spec, fill: Mapping[str, Any]) -> Table:
    """Return a table of windows by algorithms with the paper's numbers, if printed, and the
    findings.
    """
    pairs = cells(results, spec)
    kind = str(spec.more["kind"])
    names = list(dict.fromkeys(name for _, name in pairs))
    has_paper = any(theirs != NONE for theirs, _ in pairs.values())
    rows: list[Row] = []
    for window in results.settings.window:
        both = [pairs[window, name] for name in names]
        rows.append(
            (
                str(window),
                *(c for t, ours in both for c in ((t,) * has_paper + (cell(ours, kind),))),
            )
        )
    heads = [head for name in names for head in (f"{name}, paper",) * has_paper + (name,)]
    metric = metric_of(results, spec)
    missing = [f.detail.get("why") for _, f in pairs.values() if f is not None and f.value is None]
    why = [*dict.fromkeys(str(reason) for reason in missing if reason)]
    why += [f"{label}: {reason}" for label, reason in results.facts["missing"].items()]
    remarks = [*_remarks(results, paper.printed["says"], spec, metric), *why]
    return spec.table(rows, remarks, ("window", *heads), metric=metric, **fill)


def _remarks(results: Results, says: Mapping[str, str], spec: Spec, metric: str) -> Iterator[str]:
    """Yield remarks about the best model, with P values adjusted for the selection."""
    measure = str(spec.more["measure"])
    kind = str(spec.more["kind"])
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
    """Yield remarks about attack 1: the maximum statistic under the same re-pairings, and the
    ceiling.
    """
    for found in results.all("attack.names_best"):
        if found.value is not None:
            ends = {"low": figure(found.low, "count"), "high": figure(found.high, "count")}
            own = {
                "value": figure(found.value, "count"),
                "hits": hits(found),
                "p": p_value(found.p or 0.0),
                **ends,
            }
            yield says["best_names"].format(**{**found.detail, **own})
    for found in results.findings[:1]:
        most = figure(float(found.detail["ceiling"] or 0), "count")
        yield says["ceiling"].format(
            **found.detail, length=results.facts["k"], ceiling_percent=most
        )


def best_of(results: Results, says: Mapping[str, str], measure: str, kind: str) -> Iterator[str]:
    """Yield a remark about the model with the smallest P (Holm over models and metrics of its
    measure and series).
    """
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
    """Yield a remark about the model with most significant patients, and its smallest P times
    patients and models.
    """
    found = _measured(results, "attack.association_patients", series=series)
    if not found:
        return
    best = max(found, key=lambda finding: finding.value or 0.0)
    least = float(best.detail["smallest_p"] or 0.0)
    own = {
        "found": len(found),
        "count": best.count,
        "n": best.n,
        "p": p_value(min(1.0, least * best.n * len(found))),
    }
    own |= {"floor": "; its P = 0 is count/n, which is not a valid P value" if least == 0 else ""}
    own |= {"permuted": figure(best.control, "count")}
    yield says["patients"].format(**{**best.detail, **own})
    if "warning" in best.detail:
        yield f"Warning: {best.detail['warning']}."


def draws_floor(results: Results, says: Mapping[str, str], measure: str) -> Iterator[str]:
    """Yield a remark if there are too few permutations for Holm to reject."""
    found = _measured(results, measure)
    families = [int(finding.detail.get("models") or len(found)) for finding in found]
    if families and min(families) / (REPLICATES + 1) > LEVEL:
        yield says["floor"].format(orders=REPLICATES, all=REPLICATES + 1, family=min(families))


def wilcoxon(results: Results, says: Mapping[str, str], metric: str) -> Iterator[str]:
    """Yield a remark about the paper's test, and how often it rejects with permuted names."""
    found = results.all("attack.association_wilcoxon", metric=metric)
    if found:
        over = sum(_p(finding) <= LEVEL for finding in found)
        shares = [float(finding.detail["rejected_with_names_permuted"] or 0.0) for finding in found]
        yield says["wilcoxon"].format(
            over=over, found=len(found), share=100 * sum(shares) / len(shares)
        )


def _measured(results: Results, measure: str, **detail: Any) -> list[Finding]:
    return [finding for finding in results.all(measure, **detail) if finding.value is not None]


def _p(finding: Finding) -> float:
    value = finding.detail.get("p_over_models")
    return value if isinstance(value, float) else 1.0


def _chain(results: Results) -> Iterator[Row]:
    """Yield the steps of the chain for the model with the best result of attack 1."""
    best = results.of("attack.names_best")
    of_model = {"model": best.detail["model"]} if best else {}
    for found in _measured(results, "attack.chain", **of_model):
        of = [
            str(found.detail[name])
            for name in ("series", "direction", "label", "metric")
            if found.detail.get(name)
        ]
        value, low, high, chance, control = (
            figure(number, "count")
            for number in (found.value, found.low, found.high, found.chance, found.control)
        )
        count = f"{NONE if found.count is None else found.count} of {found.n:,}"
        yield (", ".join(of), count, value, f"{low} to {high}", chance, control)


def _curve(results: Results) -> Iterator[Row]:
    """Yield Figure 3: in-group minus out-group of names below each frequency, with all names in the
    notes.
    """
    for found in _measured(results, "attack.association_by_frequency", series=ALL_NAMES):
        value, low, high, chance = (
            figure(number, "number")
            for number in (found.value, found.low, found.high, found.chance)
        )
        yield (str(found.detail.get("below", "all")), value, f"{low} to {high}", chance)
