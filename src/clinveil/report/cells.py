"""Convert findings to printable cells, for the terminal, the report, the card and the tables of
studies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinveil.core import Finding, MeasureText, NumberKind
from clinveil.report.measures import find
from clinveil.report.numerals import Number, Write, interval, number, small
from clinveil.report.outward import control_too_small, hidden, kind_of, too_small
from clinveil.report.record import TokenRow


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding as printable cells.

    Attributes:
        ends: interval. n, unit: number of cases and their unit. p: P value; a dash where there is
            none.
        hidden: whether the value is not printed because it is, or discloses, a small count.
        finding: the finding itself.
    """

    value: Number
    n: Number
    unit: str
    ends: tuple[Number, Number] | None
    chance: Number
    control: Number
    p: Number
    hidden: bool
    finding: Finding

    @property
    def variants(self) -> tuple[str, ...]:
        """What tells the finding from others of its measure, in a few words each."""
        finding = self.finding
        cell = (finding.cell.holding, finding.cell.target) if finding.cell else ()
        metric = finding.scores.metric if finding.scores else ""
        words = (*cell, *finding.labels, finding.attack, metric, finding.series)
        return tuple(filter(None, words))

    @property
    def text(self) -> MeasureText:
        """Description of the measure."""
        return find(self.finding.measure)[1]

    @property
    def reference(self) -> str:
        """Chance as text, or the control where no guess is possible."""
        if self.finding.chance is not None:
            return f"chance {self.chance.text}"
        return "no chance level" if self.finding.control is None else f"control {self.control.text}"


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
