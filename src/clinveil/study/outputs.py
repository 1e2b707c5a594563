"""Run a study and write its tables, figures, findings and page; all outputs are secret."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from clinveil.core.files import private_folder, private_text
from clinveil.core.finding import document
from clinveil.core.types import Say
from clinveil.report.render import environment
from clinveil.scale.tasks import study_folder
from clinveil.study.chart import Figure, standalone
from clinveil.study.engine import Bench, Results, map_of
from clinveil.study.tables import Paper, Table, markdown, read_paper


class Study(ABC):
    """A study of a paper on some notes."""

    settings: Any
    command: ClassVar[str]

    @property
    def paper(self) -> Paper:
        """The `paper.toml` in the folder of the study's module."""
        return read_paper(str(sys.modules[type(self).__module__].__file__))

    @abstractmethod
    def perform(self, bench: Bench) -> Results:
        """Run unfinished tasks and collect the results; `facts["lead"]` fills the braces of the paper's lead."""

    @abstractmethod
    def tables(self, results: Results) -> Sequence[Table]:
        """Return all tables in the order of the page."""

    @abstractmethod
    def figures(self, results: Results) -> Mapping[str, Sequence[Figure]]:
        """Return the figures that have numbers, by the table above them."""


def run(study: Study, out: Path, say: Say) -> Results:
    """Run a study; the same call again resumes it.

    Args:
        out: the folder of the study, all of which is secret.
        say: receives the plan and a message for each finished task.

    Raises:
        UsageError: the folder is in use, or the study would take too long. InputError: invalid inputs.
        MissingExtra: `--on ray` without Ray, a network without PyTorch.
    """
    with study_folder(out, force=study.settings.force) as store, map_of(study.settings) as over:
        results = study.perform(Bench(store, over, say))
        results = replace(results, tables=tuple(study.tables(results)))
        write(study, results, out)
    return results


def write(study: Study, results: Results, out: Path) -> None:
    """Write `tables.md`, `figures/*.svg`, `findings.json`, `study.html` and additional files, readable by the owner."""
    for old in (*out.glob("units-*.csv"), *(out / "figures").glob("fig-*.svg")):
        old.unlink()  # from a run with other settings
    figures = study.figures(results)
    folder = private_folder(out / "figures")
    for figure in (figure for below in figures.values() for figure in below):
        private_text(folder / f"{figure.ident}.svg", standalone(figure))
    findings = document(study.command, results.findings, seed=study.settings.seed)
    page = _page(study, results, figures)
    written = {"tables.md": markdown(results.tables), "study.html": page, **results.files}
    written["findings.json"] = json.dumps(findings, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    for name, text in written.items():
        private_text(out / name, text)


def _page(study: Study, results: Results, figures: Mapping[str, Sequence[Figure]]) -> str:
    pages = templates()
    style = "".join(pages.get_template(name).render() for name in ("style.css", "study.css"))
    return pages.get_template("study.html").render(
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        paper=study.paper,
        lead=study.paper.lead.format(**results.facts["lead"]),
        tables=results.tables,
        figures=figures,
        settings=study.settings.for_page(),
        version=version("clinveil"),
    )


def templates() -> Environment:
    """Return the templates of the report and of the studies."""
    env = environment()
    assert env.loader is not None
    return env.overlay(loader=ChoiceLoader([PackageLoader("clinveil.study"), env.loader]))
