"""Numbers as people read them: one way to write a count, a share and a score, everywhere in the report.

A `Number` keeps the exact value beside its text, and the page carries both, so that what is shown can be checked
against the record by a machine. Rounding never turns "almost all" into "all", nor "almost none" into "none".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clinveil.report.edition import SMALL

Kind = Literal["share", "count", "score", "difference", "number", "length"]
NONE = "–"
SPACE = "\u202f"  # narrow no-break space


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is shown; `value` is the exact one, or None where nothing was measured or it is hidden."""

    text: str
    value: float | int | None = None


def number(value: float | int | None, kind: Kind) -> Number:
    """The number in the way of its kind; None is a dash."""
    return Number(NONE) if value is None else Number(text(value, kind), value)


def text(value: float | int, kind: Kind) -> str:
    """The text of a number: shares as per cent, counts with separators, scores with three decimals."""
    if kind == "share":
        return share(value)
    if isinstance(value, int) or (kind in ("count", "length") and value.is_integer()):
        return f"{round(value):,}"
    if kind == "difference":
        return f"{value:+.3f}".replace("-", "−")
    if kind == "score":
        return f"{value:.3f}"
    if kind == "length":
        return f"{value:,.2f}"
    return f"{value:,.1f}" if abs(value) >= 10 or kind == "count" else f"{value:.3g}"


def share(value: float) -> str:
    """A share in [0, 1] as per cent; below 1 % with more decimals, and ends that are not reached are not claimed."""
    percent = 100 * value
    if value in (0, 1):
        return f"{percent:.0f}{SPACE}%"
    if 0 < percent < 0.005:
        return f"<0.01{SPACE}%"
    if 99.995 <= percent < 100:
        return f">99.99{SPACE}%"
    size = abs(percent)
    decimals = 3 if size < 0.1 else 2 if size < 1 or 99 < size < 100 else 1
    return f"{percent:.{decimals}f}{SPACE}%".replace("-", "−")


def interval(low: float | None, high: float | None, kind: Kind) -> tuple[Number, Number] | None:
    """Both ends of an interval, or None where there is none, or where it is a point (the number is exact)."""
    return None if low is None or high is None or low == high else (number(low, kind), number(high, kind))


def small() -> Number:
    """The number that stands for a hidden small count."""
    return Number(f"<{SMALL}")
