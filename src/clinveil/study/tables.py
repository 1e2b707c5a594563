"""Tables of a study: words and the paper's printed numbers from `paper.toml`, our findings in the cells.

A column says which finding it shows and how; a row says of what: together they are all that a finding is told by.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from clinveil.core import words
from clinveil.core.finding import Finding
from clinveil.report.cells import row
from clinveil.report.numerals import NONE, bare, between, decimals, p_value
from clinveil.study.engine import Results


@dataclass(frozen=True)
class Cell:
    """Our number with what stands beside it: interval, chance, control and P, each with its name."""

    text: str
    beside: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """All of it in a line."""
        return f"**{self.text}**" + "".join(f"; {name} {said}" for name, said in self.beside)


Row = tuple[str | Cell, ...]


@dataclass(frozen=True)
class Table:
    """One table, ready to be read.

    Attributes:
        ident: its anchor. title: its number and what it shows. asks: the question that its numbers answer.
        columns: headings; rows: as many cells each, the first of them the row's heading. remarks: sentences below.
        printed: whether the terminal shows it: not what is long, nor what holds words of the notes.
    """

    ident: str
    title: str
    asks: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...] = field(repr=False)
    remarks: tuple[str, ...] = ()
    printed: bool = True


def markdown(tables: Sequence[Table]) -> str:
    """Tables as Markdown, with their questions and remarks."""
    return "\n\n".join(_one(table) for table in tables) + "\n"


def terminal(tables: Sequence[Table]) -> str:
    """Those that the terminal shows."""
    return markdown([table for table in tables if table.printed])


def _one(table: Table) -> str:
    head = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    body = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in table.rows]
    remarks = [f"- {remark}" for remark in table.remarks]
    return "\n".join([f"## {table.title}", "", table.asks, "", *head, *body, *([""] if remarks else []), *remarks])


def _float(finding: Finding, name: str) -> float | None:
    value = finding.detail.get(name)
    return value if isinstance(value, float) else None


# How a column shows a finding, or what of it there is.
SHOWS: Mapping[str, Callable[[Finding, int], str]] = {
    "number": lambda f, digits: between(f.value, f.low, f.high, digits),
    "value (held out)": lambda f, digits: f"{decimals(f.value, digits)} ({decimals(_float(f, 'held_out'), digits)})",
    "value": lambda f, digits: decimals(f.value, digits),
    "chance": lambda f, digits: decimals(f.chance, digits),
    "control": lambda f, digits: decimals(f.control, digits),
    "control (chance)": lambda f, digits: f"{decimals(f.control, digits)} ({decimals(f.chance, digits)})",
    "p": lambda f, _: decimals(f.p, 4),
    "n": lambda f, _: str(f.n),
    "count of n": lambda f, _: f"{f.count} of {f.n}",
    "hits": lambda f, _: cell(f, "count").text,
    "percent": lambda f, _: cell(f, "share").text,
    "difference": lambda f, _: cell(f, "number").text,
}


def shown(finding: Finding | None, digits: int = 3, show: str = "number") -> str:
    """What a cell has of a finding; a dash where there is none."""
    return NONE if finding is None else SHOWS[show](finding, digits)


_KINDS: Mapping[str, words.Kind] = {"count": "share", "share": "share", "number": "number"}


def figure(value: float | None, kind: str) -> str:
    """A number below a heading that says its unit: per cent for `count` and `share`."""
    return NONE if value is None else bare(value, _KINDS[kind])


def cell(finding: Finding | None, kind: str) -> Cell:
    """A finding with interval, chance, control and P beside it: `count` as n (%), `share` in per cent, or `number`.

    The control is what the same measure gave with names permuted over patients with as many notes, where that was
    measured, and else the finding's own.
    """
    if finding is None or finding.value is None:
        return Cell(NONE)
    permuted, adjusted = finding.detail.get("names_permuted"), finding.detail.get("p_over_models")
    said = row(
        replace(finding, control=permuted) if isinstance(permuted, float) else finding, kind=_KINDS[kind], write=bare
    )
    beside = [("95 %", f"{said.ends[0].text} to {said.ends[1].text}")] if said.ends else []
    beside += [("chance", said.chance.text), ("control", said.control.text)]
    beside += [("P", p_value(adjusted))] if isinstance(adjusted, float) else []
    return Cell(f"{hits(finding)} ({said.value.text})" if kind == "count" else said.value.text, tuple(beside))


def hits(finding: Finding) -> int:
    """How many of the n were right."""
    return int(finding.detail["hits"] or 0) if finding.count is None else finding.count


@dataclass(frozen=True)
class Column:
    """A column: its heading, which finding it shows, and how."""

    head: str
    measure: str
    show: str = "number"
    digits: int = 3
    where: Mapping[str, Any] = field(default_factory=dict)

    def of(self, results: Results, **row: Any) -> Finding | None:
        """The finding of a row."""
        return results.of(self.measure, **{**self.where, **row})

    def cell(self, results: Results, **row: Any) -> str:
        """Its cell."""
        return shown(self.of(results, **row), self.digits, self.show)


@dataclass(frozen=True)
class Spec:
    """A table of `paper.toml`: its words, its columns, and what the paper printed."""

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
        """The cells of a row's columns."""
        return [column.cell(results, **row) for column in self.columns]

    def table(self, rows: Iterable[Row], remarks: Iterable[str] = (), heads: Sequence[str] = (), **told: Any) -> Table:
        """The table.

        Args:
            remarks: further ones. heads: those that stand for the file's. told: fills the {braces} of the words.
        """
        asks, own = self.asks.format(**told), [said for remark in self.remarks if (said := remark.format(**told))]
        names = tuple(heads) or (*self.heads, *(column.head for column in self.columns))
        return Table(self.ident, self.title, asks, names, tuple(rows), (*own, *remarks), self.printed)


@dataclass(frozen=True)
class Paper:
    """A paper: the words around its study, its tables, and what else it printed."""

    title: str
    citation: str
    lead: str
    limits: tuple[str, ...]
    tables: Mapping[str, Spec]
    printed: Mapping[str, Any]


@cache
def read_paper(module: str) -> Paper:
    """The `paper.toml` beside a module. Call it with `__file__`."""
    data = tomllib.loads(Path(module).with_name("paper.toml").read_text(encoding="utf-8"))
    tables = MappingProxyType({ident: _spec(ident, told) for ident, told in data.get("table", {}).items()})
    words = (data["title"], data["citation"], data["lead"], tuple(data["limits"]))
    return Paper(*words, tables, MappingProxyType(data.get("printed", {})))


def _spec(ident: str, told: Mapping[str, Any]) -> Spec:
    known = {name: told[name] for name in ("title", "asks", "printed", "paper") if name in told}
    known |= {name: tuple(told.get(name, ())) for name in ("heads", "remarks")}
    columns = tuple(Column(**column) for column in told.get("columns", ()))
    more = {name: value for name, value in told.items() if name not in {*known, "columns"}}
    return Spec(ident, **known, columns=columns, more=more)
