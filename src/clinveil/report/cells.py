"""Convert a finding to printable cells, for the terminal, the report, the card and the tables of studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clinveil.core.finding import Finding
from clinveil.core.words import Kind
from clinveil.report.edition import control_too_small, hidden, kind_of, too_small
from clinveil.report.measures import REMARKS, beside, find, more, variants
from clinveil.report.numerals import Number, Write, interval, number, small
from clinveil.report.record import Edition


@dataclass(frozen=True, slots=True)
class Row:
    """One finding as printable cells.

    Attributes:
        label, short: label of the row, and the measure's short name. variants: parts of the label.
        kind: number format. ends: interval. n, unit: number of cases and their unit.
        count, p: hits and P value; a dash where there is none.
        beside: companions of the value by the keys of `measures.COMPANIONS`, count and P included.
        remarks: texts that must be read with the number, by type. more: all other figures (internal edition only).
        hidden: whether this edition hides the value because it is, or discloses, a small count.
        finding: the finding itself.
    """

    label: str
    short: str
    variants: tuple[str, ...]
    kind: Kind
    value: Number
    n: Number
    unit: str
    ends: tuple[Number, Number] | None
    chance: Number
    control: Number
    count: Number
    p: Number
    beside: Mapping[str, Number]
    remarks: Mapping[str, str]
    more: Mapping[str, Number]
    direction: str
    hidden: bool
    finding: Finding


def row(
    finding: Finding, edition: Edition = "internal", *, kind: Kind | None = None, write: Write | None = None
) -> Row:
    """Return one finding as cells.

    Args:
        kind: number format, if other than the catalogue's.
        write: number formatter: `numerals.text` (None), `terse` or `bare`.
    """
    name, measure = find(finding.measure)
    kind = kind or kind_of(finding)
    hide = too_small(finding, edition)
    told = tuple(variants(finding))
    rest = measure.label_of(finding.measure[len(name) + 1 :])
    return Row(
        label=" · ".join(part for part in (rest, *told) if part) or "all",
        short=measure.short,
        variants=told,
        kind=kind,
        value=small() if hide else number(finding.value, kind, write),
        n=small() if hidden(finding.n, finding.unit, edition) else number(finding.n, "count"),
        unit=finding.unit,
        ends=None if hide else interval(finding.low, finding.high, kind, write),
        chance=number(finding.chance, kind, write),
        control=small() if control_too_small(finding, edition) else number(finding.control, kind, write),
        count=small() if hide else number(finding.count, "count"),
        p=number(None if hide else finding.p, "p", write),
        beside={} if hide else beside(finding, kind),
        remarks={} if hide else remarks(finding),
        more=more(finding) if edition == "internal" else {},
        direction=direction(finding),
        hidden=hide,
        finding=finding,
    )


def remarks(finding: Finding) -> dict[str, str]:
    """Return texts that must be read with the number: warnings, unchecked assumptions, reasons for a missing value."""
    return {key: str(finding.detail[key]) for key in REMARKS if finding.detail.get(key)}


def control_words(finding: Finding, otherwise: str) -> str:
    """Return what the control is, and its type; `otherwise` where the finding does not state it."""
    words = finding.control_is or otherwise
    if finding.control_kind == "positive":
        return f"{words} (positive: here the attack must find something)"
    return words


def direction(finding: Finding) -> str:
    """Return which direction is good, in words."""
    if finding.better is None:
        return "a description: no direction is good"
    if finding.measure.startswith("utility"):
        return f"{finding.better} is more useful" if finding.better == "higher" else "lower is more useful"
    return f"{finding.better} is safer"
