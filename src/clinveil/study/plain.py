"""What a study prints, for any paper: tables as Markdown, and one self-contained page without script or request."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from clinveil.report.draw import Figure
from clinveil.report.numerals import NONE
from clinveil.report.numerals import between as interval
from clinveil.report.numerals import decimals as number
from clinveil.report.render import environment

Row = tuple[str, ...]
# Settings that no page shows: paths, names of columns, and what changes no number.
HIDDEN = frozenset({"notes", "text", "id", "patient", "label", "keep", "preset", "encoding", "max_note_bytes"})
HIDDEN |= {"quiet", "force", "workers", "on", "yes"}


@dataclass(frozen=True)
class Table:
    """One table, ready to be read.

    Attributes:
        ident: its anchor. title: its number and what it shows. asks: the question that its numbers answer.
        columns: headings; rows: as many cells each, the first of them the row's heading. remarks: sentences below.
    """

    ident: str
    title: str
    asks: str
    columns: Row
    rows: tuple[Row, ...] = field(repr=False)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Words:
    """What stands around the tables: head lines, the paper, an introduction, and what the study does not show."""

    title: str
    paper: str
    lead: str
    limits: tuple[str, ...]


def markdown(tables: Sequence[Table]) -> str:
    """All tables as Markdown, with their questions and remarks."""
    return "\n\n".join(_one(table) for table in tables) + "\n"


def _one(table: Table) -> str:
    head = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table.rows]
    remarks = [f"- {remark}" for remark in table.remarks]
    return "\n".join([f"## {table.title}", "", table.asks, "", *head, *body, *([""] if remarks else []), *remarks])


def page(
    said: Words, tables: Sequence[Table], figures: Mapping[str, Sequence[Figure]], settings: Mapping[str, Any]
) -> str:
    """The page.

    Args:
        figures: those that stand below a table, by its ident.
        settings: what the study was told; no path and no column name.
    """
    env = _environment()
    style = "".join(env.get_template(name).render() for name in ("style.css", "study.css"))
    return env.get_template("plain.html").render(
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        said=said,
        tables=tables,
        figures=figures,
        settings=[(name.replace("_", " "), _told(value)) for name, value in settings.items()],
        version=version("clinveil"),
    )


def _environment() -> Environment:
    """The report's templates, and the studies' own."""
    env = environment()
    assert env.loader is not None
    return env.overlay(loader=ChoiceLoader([PackageLoader("clinveil.study"), env.loader]))


def _told(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "the default" if value is None else str(value)


__all__ = ["NONE", "Row", "Table", "Words", "interval", "markdown", "number", "page"]
