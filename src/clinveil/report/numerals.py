"""Numbers as people read them: one way to write a count, a share and a score, everywhere in the report.

The terminal (`terse`) and the studies' tables (`bare`, `decimals`) have narrower columns; they are written here too.
A `Number` keeps the exact value beside its text, and the page carries both, so that what is shown can be checked
against the record by a machine. Rounding never turns "almost all" into "all", nor "almost none" into "none".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clinveil.core.words import Kind

NONE = "–"
SMALL = 11  # counts of people and notes under this are not printed in the external edition
SPACE = "\u202f"  # narrow no-break space


Write = Callable[[float, Kind], str]


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is shown; `value` is the exact one, or None where nothing was measured or it is hidden."""

    text: str
    value: float | int | None = None


def number(value: float | int | None, kind: Kind, write: Write | None = None) -> Number:
    """The number in the way of its kind; None is a dash."""
    return Number(NONE) if value is None else Number((write or text)(value, kind), value)


def text(value: float | int, kind: Kind) -> str:
    """The text of a number: shares as per cent, counts with separators, scores with three decimals."""
    if kind == "share":
        return share(value)
    if kind == "p":
        return p_value(value)
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


def p_value(p: float) -> str:
    """A P value with two digits; never zero, which no P is."""
    return f"{p:.2g}" if p >= 1e-4 else "<0.0001"


def terse(value: float | int, kind: Kind = "number") -> str:
    """For a column of the terminal: four decimals, and for what would be zero in them three digits."""
    if kind == "count" and float(value).is_integer():
        return f"{round(value):,}"
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.2e}"


def bare(value: float | int, kind: Kind) -> str:
    """Under a heading that says %: shares as per cent without the sign, differences with two decimals or digits."""
    if kind in ("share", "count"):
        percent = 100 * value
        return f"{percent:.1f}" if percent == 0 or percent >= 0.05 else f"{percent:.2g}"
    if kind == "p":
        return p_value(value)
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.1 else f"{value:.2g}"


def decimals(value: float | None, digits: int = 3) -> str:
    """A number with so many decimals, or a dash."""
    return NONE if value is None else f"{value:.{digits}f}"


def between(value: float | None, low: float | None, high: float | None, digits: int = 3) -> str:
    """`value (low to high)`, or what of it there is."""
    if low is None or high is None:
        return decimals(value, digits)
    return f"{decimals(value, digits)} ({decimals(low, digits)} to {decimals(high, digits)})"


def interval(
    low: float | None, high: float | None, kind: Kind, write: Write | None = None
) -> tuple[Number, Number] | None:
    """Both ends of an interval, or None where there is none, or where it is a point (the number is exact)."""
    if low is None or high is None or low == high:
        return None
    return number(low, kind, write), number(high, kind, write)


def small() -> Number:
    """The number that stands for a hidden small count."""
    return Number(f"<{SMALL}")
