"""The one way from a finding to what anybody prints of it: terminal, page, card and the studies' tables."""

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
    """One finding, ready to be shown.

    Attributes:
        label, short: which variant of its measure it is, and the measure's short name. variants: parts of the label.
        kind: how its numbers are written. ends: its interval. n, unit: how many of what were counted.
        count, p: hits, and the P value; dashes where there are none.
        beside: companions of the value by the keys of `details.COMPANIONS`, count and P among them.
        remarks: what must be read with the number, by kind of remark. more: all other figures (internal edition).
        hidden: whether the number is too small to be printed in this edition.
        finding: for its words (what chance, control, P and interval are) and for charts.
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
    """One finding as cells.

    Args:
        kind: how its numbers are written, where not as the catalogue says.
        write: the way of writing numbers: `numerals.text` (None), `terse` or `bare`.
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
    """What must be read with the number: warnings, what was not checked, why something is missing."""
    return {key: str(finding.detail[key]) for key in REMARKS if finding.detail.get(key)}


def control_words(finding: Finding, otherwise: str) -> str:
    """What the control is, and of which kind; `otherwise` where the finding does not say."""
    words = finding.control_is or otherwise
    if finding.control_kind == "positive":
        return f"{words} (positive: here the attack must find something)"
    return words


def direction(finding: Finding) -> str:
    """Which way is good, in words."""
    if finding.better is None:
        return "a description: no direction is good"
    if finding.measure.startswith("utility"):
        return f"{finding.better} is more useful" if finding.better == "higher" else "lower is more useful"
    return f"{finding.better} is safer"
