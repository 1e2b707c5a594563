"""The study as one self-contained HTML page: no script, no request, in the style of the release report."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from clinveil.core.finding import Finding
from clinveil.report.draw import Figure
from clinveil.report.numerals import NONE
from clinveil.report.render import environment
from clinveil.study.jmir_2020 import paper
from clinveil.study.jmir_2020.cells import Kind, cell, shown
from clinveil.study.jmir_2020.results import Results
from clinveil.study.jmir_2020.tables import FARTHEST, MATCHED, PAPERS, Table
from clinveil.study.plain import HIDDEN

Row = tuple[str, ...]
# Columns of the table of all models: heading, measure, series, label, how it is shown.
ALL: tuple[tuple[str, str, str, str, Kind], ...] = (
    ("names, n (%)", "attack.names", "", "", "count"),
    ("in − out", "attack.association_difference", "", "", "difference"),
    ("patients, paper's test", "attack.association_patients", PAPERS, "", "count"),
    ("patients, prevalence kept", "attack.association_patients", MATCHED, "", "count"),
    ("A@1 draws, %", "attack.scenario_draws", FARTHEST, "A@1", "share"),
    ("A@5 draws, %", "attack.scenario_draws", FARTHEST, "A@5", "share"),
)


def page(results: Results, made: Sequence[Table], drawn: Sequence[Figure]) -> str:
    """The page."""
    env = _environment()
    style = "".join(env.get_template(name).render() for name in ("style.css", "study.css"))
    return env.get_template("jmir_2020.html").render(
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        results=results,
        settings=[(name.replace("_", " "), _said(value)) for name, value in _settings(results).items()],
        tables=made,
        figures={figure.ident: figure for figure in drawn},
        chain=list(_chain(results)),
        paper_chain=paper.CHAIN,
        heads=[head for head, *_ in ALL],
        models=list(_all_models(results)),
        version=version("clinveil"),
        none=NONE,
    )


def _environment() -> Environment:
    """The report's templates, and the study's own."""
    env = environment()
    assert env.loader is not None
    return env.overlay(loader=ChoiceLoader([PackageLoader("clinveil.study"), env.loader]))


def _settings(results: Results) -> dict[str, Any]:
    """The settings that shape the numbers; no path, no column name."""
    return results.settings.model_dump(exclude=set(HIDDEN))


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "the default"
    return "the default" if value is None else str(value)


def _chain(results: Results) -> Iterator[Row]:
    """The steps of the chain for the model that attack 1 did best on."""
    best = next((f for f in results.findings if f.measure == "attack.names_best"), None)
    model = best.detail["model"] if best else None
    for found in results.findings:
        if found.measure != "attack.chain" or found.value is None or (model and found.detail["model"] != model):
            continue
        of = [str(found.detail[name]) for name in ("series", "direction", "label", "metric") if found.detail.get(name)]
        interval = f"{shown(found.low, 'count')} to {shown(found.high, 'count')}"
        count = f"{NONE if found.count is None else found.count} of {found.n:,}"
        yield (", ".join(of), count, *(shown(x, "count") for x in (found.value,)), interval, *_expected(found))


def _expected(found: Finding) -> Row:
    return (shown(found.chance, "count"), shown(found.control, "count"))


def _all_models(results: Results) -> Iterator[tuple[str, str, list[str]]]:
    """For each model and metric the numbers of all tables."""
    found = results.by_key
    pairs = dict.fromkeys(
        (str(f.detail["model"]), str(f.detail["metric"])) for f in results.findings if "metric" in f.detail
    )
    for model, metric in pairs:
        shown_cells = [
            cell(found.get((measure, model, metric, series, label)), NONE, kind).ours
            for _, measure, series, label, kind in ALL
        ]
        yield model, metric, shown_cells
