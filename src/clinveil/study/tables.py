"""Tables and outputs of a study: texts and the paper's printed numbers from `paper.toml`, and
measured findings.

A column defines the measure and its format, and a row defines the details; together they identify a
finding. All outputs are secret.
"""

from __future__ import annotations

import json
import sys
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from clinveil.core import words
from clinveil.core.files import private_text
from clinveil.core.finding import Finding, document
from clinveil.core.types import Say
from clinveil.report.cells import row
from clinveil.report.numerals import NONE, bare, between, decimals, p_value
from clinveil.scale.executor import opened_for
from clinveil.scale.tasks import study_folder
from clinveil.stats.findings import NO_EVIDENCE, is_no_evidence
from clinveil.study.engine import Bench, Results

AHEAD = 1_000
SECRET = (
    "**Secret.** This page and its folder are derived from the notes and show how well attacks on"
    " them work. Do not share them."
)


Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """One table, ready to print.

    Attributes:
        ident: name in `paper.toml`. title: number and subject. asks: the question that the table
            answers.
        columns: headings. rows: cells, the first of which is the heading of the row. remarks:
            sentences below.
        printed: whether the terminal shows it; not for long tables or words of the notes.
    """

    ident: str
    title: str
    asks: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...] = field(repr=False)
    remarks: tuple[str, ...] = ()
    printed: bool = True

    def markdown(self) -> str:
        """Return the table with its question and remarks."""
        head = ["| " + " | ".join(self.columns) + " |", "|" + " --- |" * len(self.columns)]
        body = [
            "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows
        ]
        return "\n".join(
            [f"## {self.title}", "", self.asks, "", *head, *body, "", *listed(self.remarks)]
        ).strip()


def terminal(tables: Iterable[Table]) -> str:
    """Return the tables for the terminal as Markdown."""
    return "\n\n".join(table.markdown() for table in tables if table.printed)


def listed(lines: Iterable[str]) -> list[str]:
    """Return a Markdown list."""
    return [f"- {line}" for line in lines]


def _held_out(finding: Finding) -> float | None:
    value = finding.detail.get("held_out")
    return value if isinstance(value, float) else None


def _without_evidence(finding: Finding, digits: int) -> str:
    """Return the text of a correlation that is not evidence, with its figure if there is one; ""
    for any other.
    """
    if not is_no_evidence(finding):
        return ""
    figure = finding.detail.get("correlation")
    return (
        f"{NO_EVIDENCE} ({decimals(figure, digits)})" if isinstance(figure, float) else NO_EVIDENCE
    )


# Formats of a finding in a column.
SHOWS: Mapping[str, Callable[[Finding, int], str]] = {
    "number": lambda f, digits: (
        _without_evidence(f, digits) or between(f.value, f.low, f.high, digits)
    ),
    "value (held out)": lambda f, digits: (
        f"{decimals(f.value, digits)} ({decimals(_held_out(f), digits)})"
    ),
    "value": lambda f, digits: decimals(f.value, digits),
    "chance": lambda f, digits: decimals(f.chance, digits),
    "control": lambda f, digits: decimals(f.control, digits),
    "p": lambda f, _: decimals(f.p, 4),
    "count of n": lambda f, _: f"{f.count} of {f.n}",
    "hits": lambda f, _: NONE if f.value is None else f"{hits(f)} ({figure(f.value, 'count')})",
    "percent": lambda f, _: figure(f.value, "share"),
    "difference": lambda f, _: figure(f.value, "number"),
}


def shown(finding: Finding | None, digits: int = 3, show: str = "number") -> str:
    """Return the text of a finding in a cell; a dash without a finding."""
    return NONE if finding is None else SHOWS[show](finding, digits)


_KINDS: Mapping[str, words.Kind] = {"count": "share", "share": "share", "number": "number"}


def figure(value: float | None, kind: str) -> str:
    """Format a number without its unit: in percent for `count` and `share`."""
    return NONE if value is None else bare(value, _KINDS[kind])


def cell(finding: Finding | None, kind: str) -> str:
    """Return the cell of a finding with its interval, chance, control and P; `count` is shown as n
    (%).
    """
    if finding is None or finding.value is None:
        return NONE
    adjusted = finding.detail.get("p_over_models")
    parts = row(finding, kind=_KINDS[kind], write=bare)
    more = [("95 %", f"{parts.ends[0].text} to {parts.ends[1].text}")] if parts.ends else []
    more += [("chance", parts.chance.text), ("control", parts.control.text)]
    more += [("P", p_value(adjusted))] if isinstance(adjusted, float) else []
    value = f"{hits(finding)} ({parts.value.text})" if kind == "count" else parts.value.text
    return f"**{value}**" + "".join(f"; {name} {text}" for name, text in more)


def hits(finding: Finding) -> int:
    """Return how many of the n were hits."""
    return int(finding.detail["hits"] or 0) if finding.count is None else finding.count


@dataclass(frozen=True)
class Column:
    """A column: heading, measure and format of its findings."""

    head: str
    measure: str
    show: str = "number"
    digits: int = 3
    where: Mapping[str, Any] = field(default_factory=dict)

    def of(self, results: Results, **row: Any) -> Finding | None:
        """Return the finding of a row."""
        return results.of(self.measure, **{**self.where, **row})

    def cell(self, results: Results, **row: Any) -> str:
        """Return the cell of a row."""
        return shown(self.of(results, **row), self.digits, self.show)


@dataclass(frozen=True)
class Spec:
    """A table of `paper.toml`: texts, columns, and the numbers that the paper printed."""

    ident: str
    title: str
    asks: str = ""
    heads: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    remarks: tuple[str, ...] = ()
    printed: bool = True
    paper: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def cells(self, results: Results, **row: Any) -> list[str]:
        """Return the cells of a row."""
        return [column.cell(results, **row) for column in self.columns]

    def table(
        self,
        rows: Iterable[Row],
        remarks: Iterable[str] = (),
        heads: Sequence[str] = (),
        **fill: Any,
    ) -> Table:
        """Return the table.

        Args:
            remarks: additional remarks. heads: headings that replace those of the file. fill:
                values of the {braces}.
        """
        asks = self.asks.format(**fill)
        own = [text for remark in self.remarks if (text := remark.format(**fill))]
        names = tuple(heads) or (*self.heads, *(column.head for column in self.columns))
        return Table(
            self.ident, self.title, asks, names, tuple(rows), (*own, *remarks), self.printed
        )


@dataclass(frozen=True)
class Paper:
    """A paper: texts of its study, tables, and other printed numbers."""

    title: str
    citation: str
    lead: str
    limits: tuple[str, ...]
    tables: Mapping[str, Spec]
    printed: Mapping[str, Any]


@cache
def read_paper(module: str) -> Paper:
    """Return the `paper.toml` in the folder of a module; call it with `__file__`."""
    data = tomllib.loads(Path(module).with_name("paper.toml").read_text(encoding="utf-8"))
    tables: dict[str, Spec] = {}
    for ident, entry in data.get("table", {}).items():
        known = {
            name: entry[name] for name in ("title", "asks", "printed", "paper") if name in entry
        }
        known |= {name: tuple(entry.get(name, ())) for name in ("heads", "remarks")}
        columns = tuple(Column(**column) for column in entry.get("columns", ()))
        more = {name: value for name, value in entry.items() if name not in {*known, "columns"}}
        tables[ident] = Spec(ident, **known, columns=columns, more=more)
    words = (data["title"], data["citation"], data["lead"], tuple(data["limits"]))
    return Paper(*words, MappingProxyType(tables), MappingProxyType(data.get("printed", {})))


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
        """Run unfinished tasks and collect the results; `facts["lead"]` fills the braces of the
        paper's lead.
        """

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
    settings = study.settings
    opening = opened_for(settings.executor, settings.workers, ahead=AHEAD)
    with study_folder(out, force=settings.force) as store, opening as over:
        results = study.perform(Bench(store, over, say))
        results = replace(results, tables=tuple(study.tables(results)))
        write(study, results, out)
    return results


def write(study: Study, results: Results, out: Path) -> None:
    """Write `tables.md`, `findings.json` and additional files, readable by the owner."""
    for old in out.glob("units-*.csv"):
        old.unlink()  # from a run with other settings
    findings = document(study.command, results.findings, seed=study.settings.seed)
    paper = study.paper
    lead = [f"# {paper.title}", paper.citation, SECRET, paper.lead.format(**results.facts["lead"])]
    settings = [
        "## Settings",
        "\n".join(listed(f"{name}: {v}" for name, v in study.settings.for_page().items())),
    ]
    limits = ["## Limits", "\n".join(listed(paper.limits))]
    page = [*lead, *(table.markdown() for table in results.tables), *settings, *limits]
    written = {"tables.md": "\n\n".join(page) + "\n", **results.files}
    written["findings.json"] = (
        json.dumps(findings, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    )
    for name, text in written.items():
        private_text(out / name, text)
