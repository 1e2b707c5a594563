"""A number as the tables show it, with what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from clinveil.finding import Finding

Kind = Literal["count", "share", "difference"]
NONE = "–"


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
    control = permuted if isinstance(permuted, float) else finding.control
    adjusted = detail.get("p_over_models")
    beside = [("95 %", f"{shown(finding.low, kind)} to {shown(finding.high, kind)}")] if finding.low is not None else []
    beside += [("chance", shown(finding.chance, kind)), ("control", shown(control, kind))]
    beside += [("P", p_value(adjusted))] if isinstance(adjusted, float) else []
    ours = (
        f"{detail['hits' if 'hits' in detail else 'count']} ({shown(finding.value, kind)})" if kind == "count" else ""
    )
    return Cell(printed, ours or shown(finding.value, kind), tuple(beside), finding=finding)


def shown(value: float | None, kind: Kind) -> str:
    """A number: per cent with one decimal for shares and counts, two decimals or two digits for differences."""
    if value is None:
        return NONE
    if kind != "difference":
        percent = 100 * value
        return f"{percent:.1f}" if percent == 0 or percent >= 0.05 else f"{percent:.2g}"
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.1 else f"{value:.2g}"


def p_value(p: float) -> str:
    """A P-value with two digits; never nought."""
    return f"{p:.2g}" if p >= 1e-4 else "<0.0001"
