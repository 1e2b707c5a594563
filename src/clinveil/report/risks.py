"""Arrange findings about risk: what each adversary achieved on each target.

Also the three criteria of the Article 29 Working Party, and legal rules with their evidence, from
`rules.toml`.
Source: Article 29 Working Party, Opinion 05/2014 (WP216); EMA/90915/2016 (Policy 0070), chapter 3.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from clinveil.attacks import (
    LABELS,
    AdversaryRow,
    Holding,
    adversary_table,
    holding_of,
    is_area,
    target_of,
)
from clinveil.core import Cell, Finding
from clinveil.report.cells import FindingRow, row
from clinveil.report.measures import find, texts_of_classes
from clinveil.report.numerals import Number
from clinveil.report.record import ReleaseRecord
from clinveil.report.verdict import Gate

NAMES: Mapping[str, str] = {str(holding): label for holding, label in LABELS.items()}
METHODS = {
    "without the vectors": "words compared, without vectors",
    "own vectors": "words compared by shadow vectors",
    "with the channel": "words compared through the channel",
}
"""Attacks with a name that states what the attacker has; others are printed as they are named."""
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


def _shown(finding: Finding) -> FindingRow:
    """Return the cells of a finding of the adversary table: a share, or an area under the curve."""
    return row(finding, outward=True, kind="score" if is_area(finding) else "share")


def _method(finding: Finding) -> str:
    """Return how the attack works, in words."""
    return METHODS.get(finding.attack, finding.attack)


def attacker(finding: Finding) -> str:
    """Return who made an attack of the adversary table, without what they hold."""
    return NAMES.get(holding_of(finding), "").partition(" (")[0]


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


@cache
def _text() -> Mapping[str, Any]:
    return tomllib.loads(
        files("clinveil.report").joinpath("rules.toml").read_text(encoding="utf-8")
    )


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion of the Article 29 Working Party, and the gates on its risks, the worst first."""

    name: str
    asks: str
    gates: tuple[Gate, ...]


def criteria(record: ReleaseRecord) -> list[Criterion]:
    """Return the three criteria for this record."""
    return [
        Criterion(entry["name"], entry["asks"], record.verdict.on(entry["risks"]))
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
