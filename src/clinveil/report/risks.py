"""Arrange findings about risk: what each adversary achieved on each target, and whether it is above
the threshold.

Also the three criteria of the Article 29 Working Party, and legal rules with their evidence, from
`rules.toml`.
Source: Article 29 Working Party, Opinion 05/2014 (WP216); EMA/90915/2016 (Policy 0070), chapter 3.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from clinveil.attacks import (
    GATED,
    LABELS,
    AdversaryRow,
    Holding,
    above_chance,
    adversary_table,
    holding_of,
    target_of,
)
from clinveil.core import Cell, Finding
from clinveil.report.cells import FindingRow, row, sentence
from clinveil.report.measures import find, texts_of_classes
from clinveil.report.numerals import Number, number
from clinveil.report.record import ReleaseRecord
from clinveil.stats import clopper_pearson

Verdict = Literal["above the threshold", "below the threshold", "too few cases to tell"]
ONE_SIDED = 1.645  # normal quantile of 95 %
NAMES: Mapping[str, str] = {str(holding): label for holding, label in LABELS.items()}
METHODS = {
    "without the vectors": "words compared, without vectors",
    "own vectors": "words compared by shadow vectors",
    "with the channel": "words compared through the channel",
}
"""Attacks with a name that states what the attacker has; others are printed as they are named."""
RECALL = "known-patient list{} only; what detection missed is not measured"
TARGETS: Mapping[str, str] = {
    "names": "Names of patients recovered",
    "planted names": "Planted names recovered",
    "words": "Words recovered",
    "rare words": "Rare words recovered",
    "note by ten words": "Notes found from ten words in a row",
    "note by the patient's other notes": "Notes found from the patient's other notes",
    "note by its whole text": "Notes found from their whole text",
    "note by public knowledge": "Notes found from public text about the patient",
    "own identifiers": "Patient's own identifiers left",
    "membership": "Training patients told from others (AUC)",
    "copies": "Passages copied from real notes",
    "kept columns": "Kept columns inferred or unique",
}


@dataclass(frozen=True, slots=True)
class Risk:
    """One risk: the strongest judged adversary, its figure and the verdict; without a figure the
    reason why.

    `adversary` is the one who got the figure, with the method. `limit` is the threshold on the
    scale of the figure.
    """

    target: str
    adversary: str = ""
    row: FindingRow | None = None
    verdict: Verdict | None = None
    why: str = ""
    limit: float = 0.0

    @property
    def not_above(self) -> str:
        """What a risk above the threshold does not exceed: chance, or the control where chance is
        unknown; or "".
        """
        if self.row is None or self.verdict != "above the threshold":
            return ""
        found = self.row.finding
        low = found.value if found.low is None else found.low
        control = (
            found.control if found.chance is None and found.control_kind == "negative" else None
        )
        for name, level in (("chance", found.chance), ("the control", control)):
            if level is not None and low is not None and low <= level:
                return name
        return ""

    @property
    def judgement(self) -> str:
        """The verdict, and what the risk does not exceed."""
        return (
            f"{self.verdict}, not above {self.not_above}" if self.not_above else self.verdict or ""
        )


@dataclass(frozen=True, slots=True)
class TableCell:
    """What one adversary achieved on one target.

    Attributes:
        adversary: label of the adversary. row: the strongest attack; None without a figure.
        by: label of the weaker adversary who achieved it, if further knowledge adds nothing.
        gated: whether a gate judges it.
    """

    adversary: str
    row: FindingRow | None = None
    by: str = ""
    gated: bool = False

    @property
    def method(self) -> str:
        """How the attack works, in words."""
        return _method(self.row.finding) if self.row else ""


@dataclass(frozen=True, slots=True)
class TargetLine:
    """One target and a cell per adversary of `Table.adversaries`."""

    target: str
    cells: tuple[TableCell, ...]

    @property
    def rows(self) -> list[FindingRow]:
        """The figures that were measured."""
        return [cell.row for cell in self.cells if cell.row]

    @property
    def cases(self) -> str:
        """Number of cases of all cells, or the range of these numbers."""
        return (
            f"{_range([row.n for row in self.rows])} {self.rows[0].unit}".strip()
            if self.rows
            else ""
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The table: labels of its adversaries, its lines, and why cells have no figure, each reason
    once.
    """

    adversaries: tuple[str, ...]
    lines: tuple[TargetLine, ...]
    reasons: tuple[tuple[str, str], ...]


def _range(numbers: Sequence[Number]) -> str:
    texts = [number.text for number in sorted(numbers, key=lambda number: number.value or 0)]
    return texts[0] if len(set(texts)) == 1 else f"{texts[0]} to {texts[-1]}" if texts else ""


def strongest(
    findings: Iterable[Finding], targets: Collection[str], threshold: float
) -> Finding | None:
    """Return the strongest finding on these targets among adversaries that gates judge; measured
    ones come first.

    For one target, as in the table, it is the one furthest above chance. Among targets, one above
    the threshold comes first, so that "below the threshold" is true of all of them.
    """
    tops: dict[str, Finding] = {}
    for finding in findings:
        target = target_of(finding)
        if target in targets and holding_of(finding) in GATED:
            tops[target] = max(tops.get(target, finding), finding, key=above_chance)

    def rank(finding: Finding) -> tuple[bool, bool, float]:
        above = finding.value is not None and finding.value > limit_of(finding, threshold)
        return (
            above and verdict(finding, threshold) == "above the threshold",
            above,
            above_chance(finding),
        )

    return max(tops.values(), key=rank, default=None)


def risk(name: str, targets: Collection[str], record: ReleaseRecord) -> Risk:
    """Return the strongest result on these targets; `name` names the risk where there is none."""
    finding = strongest(record.findings, targets, record.risk_threshold)
    if finding is None:
        return Risk(name, why="Not measured.")
    adversary = NAMES.get(holding_of(finding), "")
    if finding.value is None:
        return Risk(name, adversary, why=sentence(finding.why))
    target = target_of(finding)
    shown = _shown(finding)
    adversary = "; ".join(part for part in (adversary, _method(finding)) if part)
    if target == "own identifiers":
        listed = finding.known_list.in_release if finding.known_list else 0
        patients = record.corpus.patients
        covers = (
            f" ({number(listed / patients, 'share').text} of the patients)"
            if listed and patients
            else ""
        )
        adversary = f"{adversary}; {RECALL.format(covers)}"
    elif target == "copies":
        runs = f"; runs of {', '.join(finding.labels)}" if finding.labels else ""
        adversary = (
            f"{adversary}{runs}; control {shown.control.text}"
            f" ({finding.control_is.partition(',')[0]})"
        )
    limit = limit_of(finding, record.risk_threshold)
    return Risk(
        TARGETS.get(target, name),
        adversary,
        shown,
        verdict(finding, record.risk_threshold),
        limit=limit,
    )


def _shown(finding: Finding) -> FindingRow:
    """Return the cells of a finding of the adversary table: a share, or an area under the curve."""
    return row(finding, outward=True, kind="score" if _is_area(finding) else "share")


def _method(finding: Finding) -> str:
    """Return how the attack works, in words."""
    return METHODS.get(finding.attack, finding.attack)


def _is_area(finding: Finding) -> bool:
    return target_of(finding) == "membership"


def limit_of(finding: Finding, threshold: float) -> float:
    """Return the threshold on the scale of a finding.

    For an area under the curve A, 2 A - 1 is the success above guessing, so the limit is (1 +
    threshold) / 2.
    """
    return (1 + threshold) / 2 if _is_area(finding) else threshold


def table(record: ReleaseRecord) -> Table:
    """Return the table of a record: a column for each adversary who got a figure, a line for each
    target with one.
    """
    entries = adversary_table(record.findings)
    tagged = [f for f in record.findings if target_of(f) in TARGETS]
    measured = {holding_of(f) for f in tagged if f.value is not None}
    present = measured or {holding_of(f) for f in tagged}
    holdings = [holding for holding in LABELS if holding in present]
    lines = list[TargetLine]()
    reasons = dict[str, dict[str, None]]()
    for target, label in TARGETS.items():
        of_target = [entries.get(Cell(holding, target)) for holding in holdings]
        if any(of_target):
            cells = map(_table_cell, holdings, of_target)
            lines.append(TargetLine(label, tuple(cells)))
        for entry in of_target:
            if entry is not None and entry.finding.value is None:
                reasons.setdefault(entry.finding.why, {})[label] = None
    for finding in tagged:
        if (holding := holding_of(finding)) not in holdings:
            reasons.setdefault(finding.why, {})[NAMES[holding]] = None
    each_once = tuple(("; ".join(targets), why) for why, targets in reasons.items())
    return Table(tuple(LABELS[holding] for holding in holdings), tuple(lines), each_once)


def _table_cell(holding: Holding, entry: AdversaryRow | None) -> TableCell:
    if entry is None or entry.finding.value is None:
        return TableCell(LABELS[holding])
    by = "" if entry.by == holding else NAMES[entry.by]
    return TableCell(LABELS[holding], _shown(entry.finding), by, entry.gated)


def other_attacks(record: ReleaseRecord) -> tuple[FindingRow, ...]:
    """Return the figures of attacks without a target in the table whose class has their texts,
    mostly of other distributions.

    Their remarks are left out, because they could contain words of a note.
    """
    texts = texts_of_classes()
    return tuple(
        row(finding, outward=True)
        for finding in record.findings
        if target_of(finding) not in TARGETS and find(finding.measure)[0] in texts
    )


def verdict(finding: Finding, threshold: float) -> Verdict:
    """Compare a share with the threshold; its interval decides.

    Above: the interval lies above the threshold, or the estimate does and there are enough cases.
    Below: the interval lies below it. A number without an interval is taken as exact. Raises
    ValueError for a finding without a value.
    """
    if finding.value is None:
        raise ValueError("a finding without a value has no verdict")
    low = finding.value if finding.low is None else finding.low
    high = finding.value if finding.high is None else finding.high
    limit = limit_of(finding, threshold)
    chance = 0.5 if _is_area(finding) else 0.0
    if low > limit or (finding.value > limit and effective(finding) >= enough(limit, chance)):
        return "above the threshold"
    return "below the threshold" if high <= limit else "too few cases to tell"


def enough(limit: float, chance: float = 0.0) -> float:
    """Return the number of cases from which a release halfway between chance and limit is refused
    in 5 % at most.
    """
    half = max(limit - chance, 1e-9) / 2
    share = chance + half
    return (ONE_SIDED / half) ** 2 * share * (1 - share)


def effective(finding: Finding) -> float:
    """Return the number of independent cases that gives an interval of this width; at most `n`."""
    value = finding.value or 0.0
    low = finding.low
    high = finding.high
    if low is None or high is None or high <= low:
        return float(finding.n)
    few = 1.0
    many = max(1.0, float(finding.n))
    for _ in range(40):
        middle = (few + many) / 2
        ends = clopper_pearson(value * middle, middle)
        few, many = (middle, many) if ends[1] - ends[0] > high - low else (few, middle)
    return many


@cache
def _text() -> Mapping[str, Any]:
    return tomllib.loads(
        files("clinveil.report").joinpath("rules.toml").read_text(encoding="utf-8")
    )


def criteria(record: ReleaseRecord) -> list[tuple[str, str, Risk]]:
    """Return name, question and strongest result of the three criteria for this record."""
    return [
        (entry["name"], entry["asks"], risk("", entry["targets"], record))
        for entry in _text()["criterion"]
    ]


def rules(record: ReleaseRecord) -> list[dict[str, Any]]:
    """Return the map of rules; `measured` is false where none of the targets that the evidence
    needs was measured.
    """
    measured = {target_of(f) for f in record.findings if f.value is not None}
    return [
        {**e, "measured": not e["targets"] or bool(measured & set(e["targets"]))}
        for e in _text()["rule"]
    ]
