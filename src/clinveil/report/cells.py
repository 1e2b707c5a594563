"""Convert findings to printable cells, for the terminal, the report, the card and the tables of
studies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinveil.core import Finding, NumberKind
from clinveil.report.measures import REMARKS, variants
from clinveil.report.numerals import Number, Write, interval, number, small
from clinveil.report.outward import control_too_small, hidden, kind_of, too_small
from clinveil.report.record import TokenRow


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding as printable cells.

    Attributes:
        variants: what tells the finding from others of its measure. ends: interval.
        n, unit: number of cases and their unit. p: P value; a dash where there is none.
        hidden: whether the value is not printed because it is, or discloses, a small count.
        finding: the finding itself.
    """

    variants: tuple[str, ...]
    value: Number
    n: Number
    unit: str
    ends: tuple[Number, Number] | None
    chance: Number
    control: Number
    p: Number
    hidden: bool
    finding: Finding


def row(
    finding: Finding,
    *,
    outward: bool = False,
    kind: NumberKind | None = None,
    write: Write | None = None,
) -> FindingRow:
    """Return one finding as cells.

    Args:
        outward: whether small counts of people and notes are hidden, as in a report.
        kind: number format, if other than the catalogue's.
        write: number formatter: `numerals.text` (None), `terse` or `bare`.
    """
    kind = kind or kind_of(finding)
    hide = outward and too_small(finding)
    few = outward and hidden(finding.n, finding.unit)
    few_in_control = outward and control_too_small(finding)
    return FindingRow(
        variants=tuple(variants(finding)),
        value=small() if hide else number(finding.value, kind, write),
        n=small() if few else number(finding.n, "count"),
        unit=finding.unit,
        ends=None if hide else interval(finding.low, finding.high, kind, write),
        chance=number(finding.chance, kind, write),
        control=small() if few_in_control else number(finding.control, kind, write),
        p=number(None if hide else finding.p, "p", write),
        hidden=hide,
        finding=finding,
    )


def sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def remarks(finding: Finding) -> dict[str, str]:
    """Return texts that must be read with the number: warnings, unchecked assumptions, reasons for
    a missing value.
    """
    return {key: str(finding.detail[key]) for key in REMARKS if finding.detail.get(key)}


def accounting(rows: Sequence[TokenRow]) -> list[TokenRow]:
    """Return the token accounting with the total last; empty where the kind has none."""
    if not rows:
        return []
    total = TokenRow(
        "all",
        seen=sum(row.seen for row in rows),
        replaced=sum(row.replaced for row in rows),
        masked=sum(row.masked for row in rows),
        dropped=sum(row.dropped for row in rows),
        kept=sum(row.kept for row in rows),
        unknown=sum(row.unknown for row in rows),
        self_replaced=sum(row.self_replaced for row in rows),
    )
    return [*rows, total]
