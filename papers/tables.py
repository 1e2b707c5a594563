"""Tables of the papers: findings in cells, next to the numbers that the papers print.

The texts and the printed numbers are in the `paper.toml` of each paper. A column names a measure
and its format; a row names labels such as the model. Together they identify a finding.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from clinveil import Finding
from clinveil.core import document, private_text
from clinveil.report import NONE, bare, between, decimals, p_value
from clinveil.stats import NO_EVIDENCE, is_no_evidence

SECRET = (
    "**Secret.** This page and its folder are derived from the notes and show how well attacks on"
    " them work. Do not share them."
)
NumberKind = Literal["count", "share", "number"]
CellRow = tuple[str, ...]
Words = Sequence[str]
"""Labels, a series or an attack that a finding must have; "" is ignored."""


@dataclass(frozen=True)
class Results:
    """Findings of one run, selected by measure and words."""

    findings: tuple[Finding, ...] = field(repr=False)

    @cached_property
    def _by_measure(self) -> dict[str, list[Finding]]:
        by_measure: dict[str, list[Finding]] = {}
        for finding in self.findings:
            by_measure.setdefault(finding.measure, []).append(finding)
        return by_measure

    def all(self, measure: str, *words: str) -> list[Finding]:
        """Return the findings of a measure with these words."""
        wanted = set(filter(None, words))
        return [
            finding
            for finding in self._by_measure.get(measure, [])
            if wanted <= {*finding.labels, finding.series, finding.attack}
        ]

    def first(self, measure: str, *words: str) -> Finding | None:
        """Return the first of these findings, or None."""
        return next(iter(self.all(measure, *words)), None)

    def measured(self, measure: str, *words: str) -> list[Finding]:
        """Return those of these findings that have a value."""
        return [finding for finding in self.all(measure, *words) if finding.value is not None]


def as_dicts(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings in the form that the cache stores."""
    return [finding.as_dict() for finding in findings]


def from_dicts(stored: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Return the findings of `as_dicts`."""
    return [Finding.from_dict(entry) for entry in stored]


def labelled(finding: Finding, *labels: str) -> Finding:
    """Return a finding with labels before its own."""
    return replace(finding, labels=(*labels, *finding.labels))


def figure(value: float | None, kind: NumberKind) -> str:
    """Format a number without its unit: in percent for `count` and `share`."""
    return NONE if value is None else bare(value, "number" if kind == "number" else "share")


def cell(finding: Finding | None, kind: NumberKind) -> str:
    """Return a finding with its interval, chance, control and P; `count` is shown as n (%)."""
    if finding is None or finding.value is None:
        return NONE
    value = figure(finding.value, kind)
    parts = [f"**{finding.count} ({value})**" if kind == "count" else f"**{value}**"]
    if finding.low is not None and finding.high is not None and finding.low != finding.high:
        parts.append(f"95 % {figure(finding.low, kind)} to {figure(finding.high, kind)}")
    parts.append(f"chance {figure(finding.chance, kind)}")
    parts.append(f"control {figure(finding.control, kind)}")
    adjusted_p = finding.numbers.get("p_over_models")
    if isinstance(adjusted_p, float):
        parts.append(f"P {p_value(adjusted_p)}")
    return "; ".join(parts)


def _number(finding: Finding, digits: int) -> str:
    if is_no_evidence(finding):
        correlation = finding.numbers.get("correlation")
        if isinstance(correlation, float):
            return f"{NO_EVIDENCE} ({decimals(correlation, digits)})"
        return NO_EVIDENCE
    return between(finding.value, finding.low, finding.high, digits)


def _with_held_out(finding: Finding, digits: int) -> str:
    held_out = finding.numbers.get("held_out")
    other = held_out if isinstance(held_out, float) else None
    return f"{decimals(finding.value, digits)} ({decimals(other, digits)})"


def _hits(finding: Finding) -> str:
    return NONE if finding.value is None else f"{finding.count} ({figure(finding.value, 'count')})"


# Formats of a finding in a column.
FORMATS: Mapping[str, Callable[[Finding, int], str]] = {
    "number": _number,
    "value (held out)": _with_held_out,
    "value": lambda finding, digits: decimals(finding.value, digits),
    "chance": lambda finding, digits: decimals(finding.chance, digits),
    "control": lambda finding, digits: decimals(finding.control, digits),
    "p": lambda finding, _: decimals(finding.p, 4),
    "count of n": lambda finding, _: f"{finding.count} of {finding.n}",
    "hits": lambda finding, _: _hits(finding),
    "percent": lambda finding, _: figure(finding.value, "share"),
    "difference": lambda finding, _: figure(finding.value, "number"),
}


def shown(finding: Finding | None, digits: int = 3, show: str = "number") -> str:
    """Return the text of a finding in one of `FORMATS`; a dash without a finding."""
    return NONE if finding is None else FORMATS[show](finding, digits)


@dataclass(frozen=True)
class Column:
    """A column: heading, measure, words and format of its findings."""

    head: str
    measure: str
    show: str = "number"
    digits: int = 3
    where: Words = ()

    def finding(self, results: Results, *row: str) -> Finding | None:
        """Return the finding of a row."""
        return results.first(self.measure, *self.where, *row)

    def cell(self, results: Results, *row: str) -> str:
        """Return the cell of a row."""
        return shown(self.finding(results, *row), self.digits, self.show)


@dataclass(frozen=True)
class Table:
    """One table, ready to print.

    Attributes:
        asks: the question that the table answers. rows: cells, the first of which is the heading
            of the row. remarks: sentences below.
        printed: whether the terminal shows it; not for long tables or words of the notes.
    """

    title: str
    asks: str
    columns: tuple[str, ...]
    rows: tuple[CellRow, ...] = field(repr=False)
    remarks: tuple[str, ...] = ()
    printed: bool = True

    def markdown(self) -> str:
        """Return the table with its question and remarks."""
        head = "| " + " | ".join(self.columns) + " |"
        border = "|" + " --- |" * len(self.columns)
        body = [
            "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in self.rows
        ]
        lines = [f"## {self.title}", "", self.asks, "", head, border, *body, ""]
        return "\n".join([*lines, *(f"- {remark}" for remark in self.remarks)]).strip()


@dataclass(frozen=True)
class TableSpec:
    """A table of `paper.toml`: texts, columns, and the numbers that the paper printed.

    Attributes:
        measure, metric, kind, series: of the findings of a table of models. fixed_rows: rows that
            are not measured.
    """

    title: str
    asks: str = ""
    heads: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    remarks: tuple[str, ...] = ()
    printed: bool = True
    paper: Mapping[str, Any] = field(default_factory=dict)
    measure: str = ""
    metric: str = ""
    kind: NumberKind = "number"
    series: str = ""
    fixed_rows: tuple[CellRow, ...] = ()

    def cells(self, results: Results, *row: str) -> list[str]:
        """Return the cells of a row."""
        return [column.cell(results, *row) for column in self.columns]

    def table(
        self,
        rows: Iterable[CellRow],
        *,
        heads: Sequence[str] = (),
        remarks: Iterable[str] = (),
        values: Mapping[str, object] | None = None,
    ) -> Table:
        """Return the table.

        Args:
            heads: headings that replace those of the file. remarks: further remarks. values: of the
                {braces} in the texts.
        """
        filled = [remark.format_map(values or {}) for remark in self.remarks]
        return Table(
            title=self.title,
            asks=self.asks.format_map(values or {}),
            columns=tuple(heads) or (*self.heads, *(column.head for column in self.columns)),
            rows=tuple(rows),
            remarks=(*(remark for remark in filled if remark), *remarks),
            printed=self.printed,
        )


@dataclass(frozen=True)
class Paper:
    """Texts of a paper: title, citation, lead, limits, tables, and sentences below the tables."""

    title: str
    citation: str
    lead: str
    limits: tuple[str, ...]
    tables: Mapping[str, TableSpec]
    sentences: Mapping[str, str]


def read_paper(path: Path) -> Paper:
    """Return the content of a `paper.toml`."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Paper(
        title=data["title"],
        citation=data["citation"],
        lead=data["lead"],
        limits=tuple(data["limits"]),
        tables={name: _spec(entry) for name, entry in data["table"].items()},
        sentences=data.get("sentences", {}),
    )


def _spec(entry: Mapping[str, Any]) -> TableSpec:
    columns = [
        Column(
            head=column["head"],
            measure=column["measure"],
            show=column.get("show", "number"),
            digits=column.get("digits", 3),
            where=tuple(column.get("where", ())),
        )
        for column in entry.get("columns", ())
    ]
    return TableSpec(
        title=entry["title"],
        asks=entry.get("asks", ""),
        heads=tuple(entry.get("heads", ())),
        columns=tuple(columns),
        remarks=tuple(entry.get("remarks", ())),
        printed=entry.get("printed", True),
        paper=entry.get("paper", {}),
        measure=entry.get("measure", ""),
        metric=entry.get("metric", ""),
        kind=entry.get("kind", "number"),
        series=entry.get("series", ""),
        fixed_rows=tuple(tuple(row) for row in entry.get("rows", ())),
    )


def write_results(
    out: Path,
    paper: Paper,
    lead: Mapping[str, object],
    tables: Sequence[Table],
    results: Results,
    settings: Mapping[str, object],
    *,
    name: str,
    seed: int,
) -> None:
    """Write `tables.md` and `findings.json` to a private folder, and print the tables.

    Args:
        lead: values of the {braces} in the paper's lead. settings: those that affect the results.
        name: of the command in `findings.json`.
    """
    page = [
        f"# {paper.title}",
        paper.citation,
        SECRET,
        paper.lead.format_map(lead),
        *(table.markdown() for table in tables),
        "## Settings",
        "\n".join(f"- {key}: {value}" for key, value in settings.items()),
        "## Limits",
        "\n".join(f"- {limit}" for limit in paper.limits),
    ]
    private_text(out / "tables.md", "\n\n".join(page) + "\n")
    findings = document(name, results.findings, seed=seed)
    private_text(
        out / "findings.json", json.dumps(findings, indent=1, ensure_ascii=False, allow_nan=False)
    )
    print("\n\n".join(table.markdown() for table in tables if table.printed))
