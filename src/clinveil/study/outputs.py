"""Run a study and write its tables, findings and page; all outputs are secret."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from clinveil.core.files import private_text
from clinveil.core.finding import document
from clinveil.core.types import Say
from clinveil.report.render import environment
from clinveil.scale.executor import opened_for
from clinveil.scale.tasks import study_folder
from clinveil.study.engine import Bench, Results
from clinveil.study.tables import Paper, Table, markdown, read_paper

AHEAD = 1_000


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


def run(study: Study, out: Path, say: Say) -> Results:
    """Run a study; the same call again resumes it.

    Args:
        out: the folder of the study, all of which is secret.
        say: receives the plan and a message for each finished task.

    Raises:
        UsageError: the folder is in use. InputError: invalid inputs.
        MissingExtra: `--on ray` without Ray, a network without PyTorch.
    """
    # All tasks of a stage are submitted at once, because they are few and of different length.
    with study_folder(out, force=study.settings.force) as store, opened_for(study.settings, ahead=AHEAD) as over:
        results = study.perform(Bench(store, over, say))
        results = replace(results, tables=tuple(study.tables(results)))
        write(study, results, out)
    return results


def write(study: Study, results: Results, out: Path) -> None:
    """Write `tables.md`, `findings.json`, `study.html` and additional files, readable by the owner."""
    for old in out.glob("units-*.csv"):
        old.unlink()  # from a run with other settings
    findings = document(study.command, results.findings, seed=study.settings.seed)
    page = _page(study, results)
    written = {"tables.md": markdown(results.tables), "study.html": page, **results.files}
    written["findings.json"] = json.dumps(findings, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    for name, text in written.items():
        private_text(out / name, text)


def _page(study: Study, results: Results) -> str:
    pages = templates()
    style = "".join(pages.get_template(name).render() for name in ("style.css", "study.css"))
    return pages.get_template("study.html").render(
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        paper=study.paper,
        lead=study.paper.lead.format(**results.facts["lead"]),
        tables=results.tables,
        settings=study.settings.for_page(),
        version=version("clinveil"),
    )


def templates() -> Environment:
    """Return the templates of the report and of the studies."""
    env = environment()
    assert env.loader is not None
    return env.overlay(loader=ChoiceLoader([PackageLoader("clinveil.study"), env.loader]))
