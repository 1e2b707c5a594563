"""Format counts, shares, scores and intervals, for the report, the terminal (`terse`) and studies
(`bare`, `decimals`).

A `Number` stores the exact value with its text; the page contains both, so that a program can check
it against the record. Rounding never returns 0 % or 100 % for a share that is neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clinveil.core import NumberKind

NONE = "–"
SMALL = 11  # counts of people and notes under this are not printed in reports and manifests
SPACE = "\u202f"  # narrow no-break space


Write = Callable[[float, NumberKind], str]


@dataclass(frozen=True, slots=True)
class Number:
    """A formatted number; `value` is exact, or None where nothing was measured or the number is
    hidden.
    """

    text: str
    value: float | int | None = None


def number(value: float | int | None, kind: NumberKind, write: Write | None = None) -> Number:
    """Return the number in the format of its kind; None is a dash."""
    return Number(NONE) if value is None else Number((write or text)(value, kind), value)


def text(value: float | int, kind: NumberKind) -> str:
    """Return a number as text: shares as per cent, counts with separators, scores with three
    decimals.
    """
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
    """Return a share in [0, 1] as per cent, with more decimals below 1 %; 0 and 100 only where
    exact.
    """
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
    """Return a P value with two digits; never zero."""
    return f"{p:.2g}" if p >= 1e-4 else "<0.0001"


def terse(value: float | int, kind: NumberKind = "number") -> str:
    """Return a number for the terminal: four decimals, or three digits where these would be
    zero.
    """
    if kind == "count" and float(value).is_integer():
        return f"{round(value):,}"
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.2e}"


def bare(value: float | int, kind: NumberKind) -> str:
    """Return a number for a column with the heading %: shares without the sign, differences with
    two digits.
    """
    if kind in ("share", "count"):
        percent = 100 * value
        return f"{percent:.1f}" if percent == 0 or percent >= 0.05 else f"{percent:.2g}"
    if kind == "p":
        return p_value(value)
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.1 else f"{value:.2g}"


def decimals(value: float | None, digits: int = 3) -> str:
    """Return a number with this many decimals, or a dash."""
    return NONE if value is None else f"{value:.{digits}f}"


def between(value: float | None, low: float | None, high: float | None, digits: int = 3) -> str:
    """Return `value (low to high)`, or the value alone."""
    if low is None or high is None:
        return decimals(value, digits)
    return f"{decimals(value, digits)} ({decimals(low, digits)} to {decimals(high, digits)})"


def interval(
    low: float | None, high: float | None, kind: NumberKind, write: Write | None = None
) -> tuple[Number, Number] | None:
    """Return both ends of an interval, or None where there is none or it is a point (the number is
    exact).
    """
    if low is None or high is None or low == high:
        return None
    return number(low, kind, write), number(high, kind, write)


def small() -> Number:
    """Return the placeholder of a hidden small count."""
    return Number(f"<{SMALL}")
