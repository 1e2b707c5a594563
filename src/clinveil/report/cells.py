"""Convert findings to printable cells, for the terminal, the report, the card and the tables of
studies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinveil.core.finding import Finding
from clinveil.core.words import Kind
from clinveil.report.edition import control_too_small, hidden, kind_of, too_small
from clinveil.report.measures import (
    COMPANIONS,
    REMARKS,
    UNKNOWN,
    beside,
    distinct,
    find,
    more,
    variants,
)
from clinveil.report.numerals import Number, Write, interval, number, small
from clinveil.report.record import Edition, TokenRow


@dataclass(frozen=True, slots=True)
class Row:
    """One finding as printable cells.

    Attributes:
        label: of the row. variants: parts of the label. ends: interval. n, unit: number of cases
            and their unit.
        p: P value; a dash where there is none.
        beside: companions of the value by the keys of `measures.COMPANIONS`, count and P included.
        remarks: texts that must be read with the number, by type. more: all other figures (internal
            edition only).
        hidden: whether this edition hides the value because it is, or discloses, a small count.
        finding: the finding itself.
    """

    label: str
    variants: tuple[str, ...]
    value: Number
    n: Number
    unit: str
    ends: tuple[Number, Number] | None
    chance: Number
    control: Number
    p: Number
    beside: Mapping[str, Number]
    remarks: Mapping[str, str]
    more: Mapping[str, Number]
    direction: str
    hidden: bool
    finding: Finding


def row(
    finding: Finding,
    edition: Edition = "internal",
    *,
    kind: Kind | None = None,
    write: Write | None = None,
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
        variants=told,
        value=small() if hide else number(finding.value, kind, write),
        n=small() if hidden(finding.n, finding.unit, edition) else number(finding.n, "count"),
        unit=finding.unit,
        ends=None if hide else interval(finding.low, finding.high, kind, write),
        chance=number(finding.chance, kind, write),
        control=small()
        if control_too_small(finding, edition)
        else number(finding.control, kind, write),
        p=number(None if hide else finding.p, "p", write),
        beside={} if hide else beside(finding, kind),
        remarks={} if hide else remarks(finding),
        more=more(finding) if edition == "internal" else {},
        direction=direction(finding),
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


def direction(finding: Finding) -> str:
    """Return which direction is good, in words."""
    if finding.better is None:
        return "a description: no direction is good"
    return (
        f"{finding.better} is {'more useful' if finding.measure.startswith('utility') else 'safer'}"
    )


@dataclass(frozen=True, slots=True)
class Block:
    """One measure: its text, and a row for each of its findings.

    `chance`, `control`, `p` and `methods` describe these columns in words; `questions` are asked by
    single rows only; `remarks` must be read with the numbers.
    """

    name: str
    title: str
    asked: str
    means: str
    questions: tuple[str, ...]
    rows: tuple[Row, ...]
    chance: str
    control: str
    p: str
    methods: tuple[str, ...]
    remarks: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def companions(self) -> dict[str, str]:
        """Headings of the companion columns that at least one row fills."""
        return {
            key: head
            for key, (head, _) in COMPANIONS.items()
            if any(key in row.beside for row in self.rows)
        }

    @property
    def more(self) -> list[tuple[str, Mapping[str, Number]]]:
        """The other figures of each row that has some."""
        return [(row.label, row.more) for row in self.rows if row.more]

    @property
    def ident(self) -> str:
        """The block's anchor in a page."""
        return "m-" + "".join(c if c.isalnum() and c.isascii() else "-" for c in self.name)


def blocks(findings: Sequence[Finding], edition: Edition) -> list[Block]:
    """Return the findings by catalogue entry, in the order in which the entries first occur."""
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(find(finding.measure)[0], []).append(finding)
    return [_block(name, group, edition) for name, group in grouped.items()]


def _block(name: str, findings: Sequence[Finding], edition: Edition) -> Block:
    measure = find(name)[1]
    rows = tuple(row(finding, edition) for finding in findings)
    positive = " (positive: here the attack must find something)"
    controls = (
        (f.control_is or measure.control) + positive * (f.control_kind == "positive")
        for f in findings
        if f.control is not None
    )
    return Block(
        name=name,
        title=measure.title if measure is not UNKNOWN else f"{measure.title}: {name}",
        asked=measure.asked,
        means=measure.means,
        questions=distinct(f.question for f in findings if f.question != measure.asked),
        rows=rows,
        chance="; ".join(distinct(f.chance_is for f in findings if f.chance is not None))
        or measure.chance,
        control="; ".join(distinct(controls)),
        p="; ".join(distinct(f.p_is for f in findings if f.p is not None)),
        methods=distinct(f.method for f in findings),
        remarks=distinct(
            f"{_PREFIXES[key]}{text}".rstrip(".") + "."
            for r in rows
            for key, text in r.remarks.items()
        ),
        sources=distinct(f.source for f in findings),
    )


_PREFIXES = {
    "warning": "Warning: ",
    "why": "Not measured: ",
    "not_checked": "Not checked: ",
    "code": "Code: ",
    "measured_on": "Measured on ",
    "tested_on": "Tested on ",
}


def accounting(rows: Sequence[TokenRow]) -> list[TokenRow]:
    """Return the token accounting with the total last; empty where the kind has none."""
    names = ("seen", "replaced", "masked", "dropped", "kept", "unknown", "self_replaced")
    total = {name: sum(getattr(row, name) for row in rows) for name in names}
    return [*rows, TokenRow("all", **total)] if rows else []
