"""Findings to typed blocks and tables: what was asked, the number, what it means, what to do next. No HTML here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clinveil.core.finding import Finding
from clinveil.core.words import Kind, MeasureText
from clinveil.report.cells import Row, control_words, row
from clinveil.report.measures import COMPANIONS, UNKNOWN, distinct, find
from clinveil.report.numerals import Number, share, text
from clinveil.report.record import Edition, ReleaseRecord, TokenRow


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph of meaning; `label` names the row that it is about, "" for the whole block."""

    label: str
    words: str


@dataclass(frozen=True, slots=True)
class Block:
    """One measure with its four lines; the number line has a row for each finding of the measure.

    `chance`, `control`, `p` and `how` say in words what these stand for and how the intervals were made; `exact` tells
    that numbers without an interval are no estimates. `questions` are what single rows ask, `remarks` what else must be
    read with the numbers, `more` the other figures of each row by its label.
    """

    name: str
    title: str
    asked: str
    questions: tuple[str, ...]
    rows: tuple[Row, ...]
    meaning: tuple[Line, ...]
    next: str
    chance: str
    control: str
    p: str
    exact: bool
    how: tuple[str, ...]
    remarks: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def companions(self) -> dict[str, str]:
        """Heads of the companion columns that some row fills."""
        return {key: head for key, (head, _) in COMPANIONS.items() if any(key in row.beside for row in self.rows)}

    @property
    def more(self) -> list[tuple[str, Mapping[str, Number]]]:
        """The other figures of each row that has some."""
        return [(row.label, row.more) for row in self.rows if row.more]

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
        questions=distinct(f.question for f in findings if f.question != measure.asked),
        rows=rows,
        meaning=(Line("", measure.means), *(line for line in said if line.words)),
        next=measure.next,
        chance="; ".join(distinct(f.chance_is for f in findings if f.chance is not None)) or measure.chance,
        control="; ".join(distinct(control_words(f, measure.control) for f in findings if f.control is not None)),
        p="; ".join(distinct(f.p_is for f in findings if f.p is not None)),
        exact=not measure.sampled,
        how=distinct(f.method for f in findings),
        remarks=distinct(_sentence(key, words) for r in rows for key, words in r.remarks.items() if _told(key, r)),
        sources=distinct(f.source for f in findings),
    )


def _told(key: str, shown: Row) -> bool:
    """Whether a remark is said below the table: the reason of a null number is in its meaning already."""
    return key != "why" or shown.finding.value is not None


_BEGINNINGS = {
    "warning": "Beware: ",
    "not_checked": "Not checked: ",
    "read": "Read: ",
    "code": "Code: ",
    "measured_on": "Measured on ",
}


def _sentence(key: str, words: str) -> str:
    said = _BEGINNINGS.get(key, "")
    return said + (words[:1].upper() + words[1:] if not said else words).rstrip(".") + "."


def furthest(rows: Sequence[Row]) -> list[Row]:
    """For each measure, stratum, label and side the row that looks worst (the last one among equals)."""
    worst: dict[tuple[str, ...], Row] = {}
    for shown in rows:
        parts = (shown.finding.detail.get(key, "") for key in ("stratum", "label", "side"))
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
        # What this edition hides of the control is not said in words either.
        seen = shown.finding if shown.control.value is not None else replace(shown.finding, control=None)
        parts = sentences(seen, measure, shown.kind)
    return Line("" if alone else shown.label, " ".join(parts))


def accounting(record: ReleaseRecord) -> list[TokenRow]:
    """The token accounting, with the row of all classes last."""
    return [*record.accounting, TokenRow.total(record.accounting)]


def sentences(finding: Finding, measure: MeasureText, kind: Kind) -> list[str]:
    """What one finding means: the comparison, what zero of n can show, the power of the attack."""
    if finding.value is None:
        return [f"It was not measured: {finding.detail['why']}. Nothing is shown either way."]
    parts = [_against_zero(finding) if kind == "difference" else _against_chance(finding, measure, kind)]
    if finding.value == 0 and kind == "share" and measure.sampled and finding.n:
        parts.append(_none_found(finding))
    parts += [_uncounted(finding, kind), _power(finding, kind)]
    return [part for part in parts if part]


def _none_found(finding: Finding) -> str:
    """What none of n can show: the interval where there is one (it knows about clusters), else 1 - 0.05^(1/n)."""
    if finding.high is not None:
        return f"None was found; up to {share(finding.high)} cannot be ruled out."
    return f"0 of {finding.n:,} only shows that the rate is below {share(1 - 0.05 ** (1 / finding.n))} (95 % bound)."


def _against_chance(finding: Finding, measure: MeasureText, kind: Kind) -> str:
    value, chance = finding.value, finding.chance
    if value == 0 and finding.better == "lower" and not measure.sampled:
        return measure.good
    if value is None or chance is None or finding.better is None:
        plain = value is not None and finding.better == "lower" and measure.bad
        return "" if not plain else measure.bad if value else measure.good
    low = value if finding.low is None else finding.low
    high = value if finding.high is None else finding.high
    beside = f"{text(value, kind)} against {text(chance, kind)} for {finding.chance_is or measure.chance}"
    higher_is_good = finding.better == "higher"
    if low > chance:
        return f"{measure.good if higher_is_good else measure.bad} ({beside}.)"
    if high < chance or (low == high and value <= chance):
        return f"{measure.bad if higher_is_good else measure.good} ({beside}.)"
    return f"No difference from chance is shown: the interval includes it ({beside}). That is not proof of none."


def _against_zero(finding: Finding) -> str:
    value, low, high = finding.value, finding.low, finding.high
    if value is None or low is None or high is None:
        return "Without an interval, nobody can say whether this difference is more than noise."
    if low <= 0 <= high:
        return "The interval includes zero: no difference is shown with this many. That is not proof of none."
    worse = (value > 0) == (finding.better == "lower")
    return f"The interval lies wholly on one side of zero: the release {'loses' if worse else 'gains'} by this measure."


def _uncounted(finding: Finding, kind: Kind) -> str:
    """What the same attacker reads who does not count."""
    one_draw = finding.detail.get("one_draw")
    return f"Without counting it is {text(one_draw, kind)}." if isinstance(one_draw, float) else ""


def _power(finding: Finding, kind: Kind) -> str:
    """Whether the attack succeeds where it must: what a positive control says of a number beside it."""
    if finding.control_kind != "positive" or finding.control is None:
        return ""
    where = finding.control_is or "where there is something to find"
    found = f"Positive control ({where}): {text(finding.control, kind)}"
    if finding.control <= (finding.chance or 0.0):
        return f"{found}, no more than chance: the attack had no power here, so finding nothing shows nothing."
    return f"{found}, so the attack works where there is something to find."
