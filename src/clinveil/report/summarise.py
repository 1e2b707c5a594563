"""Findings to typed blocks and tables: what was asked, the number, what it means, what to do next. No HTML here.

Details that are understood: `unit` (what n counts), `count` (successes), `threshold`, `interval`, `chance` and
`control` (in words, how these were made), `why` (a null number's reason), companions of the value (`COMPANIONS`), and
what tells rows apart (`VARIANTS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinveil.finding import Finding
from clinveil.report.edition import hidden
from clinveil.report.meaning import Verdict, direction, sentences, verdict
from clinveil.report.measures import UNKNOWN, MeasureText, find
from clinveil.report.numerals import Kind, Number, interval, number, small
from clinveil.report.record import Edition, ReleaseRecord, TokenRow

# Details that stand beside the value: head of the column, and how they are written (None: like the value).
COMPANIONS: dict[str, tuple[str, Kind | None]] = {
    "positive_control": ("Unprotected notes", None),
    "fresh": ("With fresh draws", None),
    "count": ("Count", "count"),
    "expected": ("Expected by chance", "number"),
    "p": ("P", "score"),
    "median": ("Median", "number"),
    "most": ("Highest", "count"),
    "chance_most": ("Highest by chance", None),
}
VARIANTS = (
    "side",
    "against",
    "stratum",
    "repeats",
    "m",
    "column",
    "label",
    "task",
    "model",
    "metric",
    "scope",
    "memo",
    "series",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One finding as a table row.

    Attributes:
        label, short: which variant of its measure it is, and the measure's short name.
        kind: how its numbers are written. ends: its interval. n, unit: how many of what were counted.
        beside: companions of the value by the keys of `COMPANIONS`.
        hidden: whether the number is too small to be printed in this edition.

    """

    label: str
    short: str
    kind: Kind
    value: Number
    n: Number
    unit: str
    ends: tuple[Number, Number] | None
    chance: Number
    control: Number
    beside: Mapping[str, Number]
    direction: str
    verdict: Verdict | None
    hidden: bool
    finding: Finding


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph of meaning; `label` names the row that it is about, "" for the whole block."""

    label: str
    words: str


@dataclass(frozen=True, slots=True)
class Block:
    """One measure with its four lines; the number line has a row for each finding of the measure.

    `chance`, `control` and `how` say in words what these stand for and how the intervals were made; `exact` tells that
    numbers without an interval are no estimates.
    """

    name: str
    title: str
    asked: str
    rows: tuple[Row, ...]
    meaning: tuple[Line, ...]
    next: str
    chance: str
    control: str
    exact: bool
    how: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def companions(self) -> dict[str, str]:
        """Heads of the companion columns that some row fills."""
        return {key: head for key, (head, _) in COMPANIONS.items() if any(key in row.beside for row in self.rows)}

    @property
    def ident(self) -> str:
        """The block's anchor in a page."""
        return "m-" + "".join(c if c.isalnum() and c.isascii() else "-" for c in self.name)


def blocks(findings: Sequence[Finding], edition: Edition) -> list[Block]:
    """The findings by catalogue entry, in the order in which the entries first occur."""
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(find(finding.measure)[0], []).append(finding)
    return [_block(name, found, edition) for name, found in grouped.items()]


def of_room(record: ReleaseRecord, room: str) -> list[Block]:
    """The blocks of the findings whose names begin with this room; "" for those of no room that has a section."""
    named = ("attack", "utility", "phi")
    wanted = [f for f in record.findings if (r := f.measure.split(".")[0]) == room or (not room and r not in named)]
    return blocks(wanted, record.edition)


def row(finding: Finding, edition: Edition) -> Row:
    """One finding as a table row."""
    name, measure = find(finding.measure)
    kind = measure.kind_of(finding.measure[len(name) + 1 :])
    unit = str(finding.detail.get("unit", ""))
    hide = _too_small(finding, kind, unit, edition)
    return Row(
        label=_label(finding, name, measure),
        short=measure.short,
        kind=kind,
        value=small() if hide else number(finding.value, kind),
        n=small() if hidden(finding.n, unit, edition) else number(finding.n, "count"),
        unit=unit,
        ends=None if hide else interval(finding.low, finding.high, kind),
        chance=number(finding.chance, kind),
        control=number(finding.control, kind),
        beside={} if hide else _beside(finding, kind),
        direction=direction(finding),
        verdict=verdict(finding),
        hidden=hide,
        finding=finding,
    )


def _beside(finding: Finding, kind: Kind) -> dict[str, Number]:
    found = {key: finding.detail.get(key) for key in COMPANIONS}
    return {k: number(v, COMPANIONS[k][1] or kind) for k, v in found.items() if isinstance(v, float | int)}


def _too_small(finding: Finding, kind: Kind, unit: str, edition: Edition) -> bool:
    """Whether the number is, or gives away, a count of people or notes that this edition hides."""
    if finding.value is None:
        return False
    successes = finding.detail.get("count")
    if not isinstance(successes, int | float):
        successes = finding.value * finding.n if kind == "share" else finding.value if kind == "count" else None
    return hidden(successes, unit, edition)


def _label(finding: Finding, name: str, measure: MeasureText) -> str:
    rest = measure.label_of(finding.measure[len(name) + 1 :])
    variants = [_variant(key, finding.detail[key]) for key in VARIANTS if key in finding.detail]
    return " · ".join(part for part in (rest, *variants) if part) or "all"


def _variant(key: str, value: float | int | str | bool | None) -> str:
    if key in ("repeats", "m"):
        return f"{value} {'place' if value == 1 else 'places'}"
    if key == "side":
        return f"{value} notes"
    if key == "stratum":
        return "all words" if value == "all" else f"words seen {value} times"
    return f"memo {value}" if key == "memo" else str(value)


def _block(name: str, findings: Sequence[Finding], edition: Edition) -> Block:
    measure = find(name)[1]
    rows = tuple(row(finding, edition) for finding in findings)
    said = [
        _line(r, measure, alone=len(rows) == 1) for r in furthest(rows) if r.finding.detail.get("side") != "original"
    ]
    return Block(
        name=name,
        title=measure.title if measure is not UNKNOWN else f"{measure.title}: {name}",
        asked=measure.asked,
        rows=rows,
        meaning=(Line("", measure.means), *(line for line in said if line.words)),
        next=measure.next,
        chance=_said(findings, "chance") or measure.chance,
        control=_said(findings, "control") or measure.control,
        exact=not measure.sampled,
        how=tuple(dict.fromkeys(str(f.detail["interval"]) for f in findings if "interval" in f.detail)),
        sources=tuple(dict.fromkeys(f.source for f in findings if f.source)),
    )


def _said(findings: Sequence[Finding], key: str) -> str:
    """What the findings themselves say of their chance or control."""
    return "; ".join(dict.fromkeys(v for f in findings if isinstance(v := f.detail.get(key), str)))


def furthest(rows: Sequence[Row]) -> list[Row]:
    """For each measure, stratum, column and side the row that looks worst (the last one among equals)."""
    worst: dict[tuple[str, ...], Row] = {}
    for shown in rows:
        parts = (shown.finding.detail.get(key, "") for key in ("stratum", "column", "label", "side"))
        name = (shown.finding.measure, *map(str, parts))
        if name not in worst or badness(shown.finding) >= badness(worst[name].finding):
            worst[name] = shown
    return list(worst.values())


def badness(finding: Finding) -> float:
    """How far a number lies beyond chance on the bad side; what was not measured is worst."""
    if finding.value is None:
        return float("inf")
    beyond = finding.value - (finding.chance or 0.0)
    return -beyond if finding.better == "higher" else beyond


def _line(shown: Row, measure: MeasureText, *, alone: bool) -> Line:
    if shown.hidden:
        parts = [f"The count behind it is {shown.value.text}; this edition does not print it."]
    else:
        parts = sentences(shown.finding, measure, shown.kind)
    return Line("" if alone else shown.label, " ".join(parts))


def accounting(record: ReleaseRecord) -> list[TokenRow]:
    """The token accounting, with the row of all classes last."""
    return [*record.accounting, TokenRow.total(record.accounting)]
