"""A number as the tables show it, with what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from clinveil.core import words
from clinveil.core.finding import Finding
from clinveil.report.cells import row
from clinveil.report.numerals import NONE, bare, p_value

Kind = Literal["count", "share", "difference"]


@dataclass(frozen=True)
class Cell:
    """One number.

    Attributes:
        paper: as printed, or a dash. ours: the number. beside: interval, chance, control and P, each with its name.
        why: why there is none.
    """

    paper: str
    ours: str = NONE
    beside: tuple[tuple[str, str], ...] = ()
    why: str = ""
    finding: Finding | None = field(default=None, repr=False)

    @property
    def line(self) -> str:
        """All of it in a line, for Markdown."""
        return f"**{self.ours}**" + "".join(f"; {name} {said}" for name, said in self.beside)


def cell(finding: Finding | None, printed: str, kind: Kind) -> Cell:
    """The cell of a finding.

    `count` shows n (%), `share` per cent, `difference` a number. The control is what the same measure gave with names
    permuted over patients of like note count, where that was measured, and else the finding's own.
    """
    if finding is None or finding.value is None:
        return Cell(printed, why=str(finding.detail.get("why", "")) if finding else "")
    detail = finding.detail
    permuted = detail.get("names_permuted")
    if isinstance(permuted, float):
        finding = replace(finding, control=permuted)
    adjusted = detail.get("p_over_models")
    said = row(finding, kind=_KINDS[kind], write=bare)
    beside = [("95 %", f"{said.ends[0].text} to {said.ends[1].text}")] if said.ends else []
    beside += [("chance", said.chance.text), ("control", said.control.text)]
    beside += [("P", p_value(adjusted))] if isinstance(adjusted, float) else []
    ours = f"{hits(finding)} ({said.value.text})" if kind == "count" else said.value.text
    return Cell(printed, ours, tuple(beside), finding=finding)


_KINDS: dict[Kind, words.Kind] = {"count": "share", "share": "share", "difference": "number"}


def hits(finding: Finding) -> int:
    """How many of the n were right."""
    return int(finding.detail["hits"] or 0) if finding.count is None else finding.count


def shown(value: float | None, kind: Kind) -> str:
    """A number: per cent with one decimal for shares and counts, two decimals or two digits for differences."""
    return NONE if value is None else bare(value, _KINDS[kind])
