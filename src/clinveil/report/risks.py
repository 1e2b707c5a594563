"""Arrange findings about risk: what each adversary achieved on each target, and whether it is above the threshold.

Also the three criteria of the Article 29 Working Party, and legal rules with their evidence, from `rules.toml`.
Source: Article 29 Working Party, Opinion 05/2014 (WP216); EMA/90915/2016 (Policy 0070), chapter 3.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from clinveil.attacks import threats
from clinveil.attacks.threats import LABELS, adversary_table
from clinveil.core.finding import Finding
from clinveil.report.cells import Row, row
from clinveil.report.numerals import Number
from clinveil.report.record import ReleaseRecord
from clinveil.stats.intervals import clopper_pearson

Verdict = Literal["above the threshold", "below the threshold", "too few cases to tell"]
ONE_SIDED = 1.645  # normal quantile of 95 %
NAMES: Mapping[str, str] = {str(holding): label for holding, label in LABELS.items()}
UPPER_BOUND, VAULT = "stolen-vectors", "stolen-vault"
RECIPIENTS: tuple[str, ...] = tuple(holding for holding in LABELS if holding not in (UPPER_BOUND, VAULT))
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
    "membership": "Training notes told from other notes",
    "copies": "Passages copied from real notes",
    "kept columns": "Kept columns inferred or unique",
    "layout": "Notes unique by their layout",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one adversary achieved on one target; `row` is None where nothing was measured, with `why` if known."""

    adversary: str
    row: Row | None = None
    gated: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One target and a cell per adversary of `Table.adversaries`."""

    target: str
    cells: tuple[Cell, ...]

    @property
    def rows(self) -> list[Row]:
        """The figures that were measured."""
        return [cell.row for cell in self.cells if cell.row]

    @property
    def shown(self) -> tuple[Cell, ...]:
        """The cells; only the first where every adversary achieved the same."""
        figures = {(cell.row.value, cell.row.ends) if cell.row else None for cell in self.cells}
        return self.cells[:1] if len(figures) == 1 else self.cells

    @property
    def cases(self) -> str:
        """Chance level and number of cases of all cells, or their ranges."""
        chance = _range([row.chance for row in self.rows if row.chance.value is not None])
        n = f"{_range([row.n for row in self.rows])} {self.rows[0].unit}".strip() if self.rows else ""
        return "; ".join(part for part in (f"chance {chance}" if chance else "", n) if part)


@dataclass(frozen=True, slots=True)
class Table:
    """The table: labels of its adversaries, its lines, and why cells have no figure, each reason once."""

    adversaries: tuple[str, ...]
    lines: tuple[Line, ...]
    reasons: tuple[tuple[str, str], ...]


def _range(numbers: Sequence[Number]) -> str:
    texts = [number.text for number in sorted(numbers, key=lambda number: number.value or 0)]
    return texts[0] if len(set(texts)) == 1 else f"{texts[0]} to {texts[-1]}" if texts else ""


def strongest(findings: Iterable[Finding], targets: Collection[str], holdings: Collection[str]) -> Finding | None:
    """Return the finding furthest above chance among these targets and adversaries; measured ones come first."""
    fits = (f for f in findings if f.detail.get("target") in targets and f.detail.get("adversary") in holdings)
    return max(fits, key=lambda f: -2.0 if f.value is None else f.value - (f.chance or 0.0), default=None)


def table(record: ReleaseRecord) -> Table:
    """Return the table of a record; targets and adversaries without any finding are left out."""
    entries = {(str(entry.target), entry.adversary): entry for entry in adversary_table(record.findings)}
    holdings = [
        holding for holding in LABELS if any(entry.target and holding == of for (_, of), entry in entries.items())
    ]
    lines, reasons = list[Line](), dict[str, dict[str, None]]()
    for target, label in TARGETS.items():
        cells = [_cell(LABELS[holding], entries.get((target, holding)), record) for holding in holdings]
        if any(cell.row or cell.why for cell in cells):
            lines.append(Line(label, tuple(cells)))
        for cell in cells:
            if cell.why:
                reasons.setdefault(cell.why, {})[label] = None
    each_once = tuple(("; ".join(targets), why) for why, targets in reasons.items())
    return Table(tuple(LABELS[holding] for holding in holdings), tuple(lines), each_once)


def _cell(label: str, entry: threats.Row | None, record: ReleaseRecord) -> Cell:
    if entry is None or entry.value is None:
        return Cell(label, gated=entry is not None and entry.gated, why=entry.why if entry else "")
    of_cell = (f for f in record.findings if f.value == entry.value and f.detail.get("target") == entry.target)
    finding = next(f for f in of_cell if f.detail.get("adversary") == entry.by)
    return Cell(label, row(finding, record.edition, kind="share"), entry.gated)


def verdict(finding: Finding, threshold: float) -> Verdict:
    """Compare a share with the threshold; its interval decides.

    Above: the interval lies above the threshold, or the estimate does and there are enough cases. Below: the interval
    lies below it. A number without an interval is taken as exact. Raises ValueError for a finding without a value.
    """
    if finding.value is None:
        raise ValueError("a finding without a value has no verdict")
    low = finding.value if finding.low is None else finding.low
    high = finding.value if finding.high is None else finding.high
    if low > threshold or (finding.value > threshold and effective(finding) >= enough(threshold)):
        return "above the threshold"
    return "below the threshold" if high <= threshold else "too few cases to tell"


def enough(limit: float, chance: float = 0.0) -> float:
    """Return the number of cases from which a release halfway between chance and limit is refused in 5 % at most."""
    half = max(limit - chance, 1e-9) / 2
    share = chance + half
    return (ONE_SIDED / half) ** 2 * share * (1 - share)


def effective(finding: Finding) -> float:
    """Return the number of independent cases that gives an interval of this width; at most `n`."""
    value, low, high = finding.value or 0.0, finding.low, finding.high
    if low is None or high is None or high <= low:
        return float(finding.n)
    few, many = 1.0, max(1.0, float(finding.n))
    for _ in range(40):
        middle = (few + many) / 2
        ends = clopper_pearson(value * middle, middle)
        few, many = (middle, many) if ends[1] - ends[0] > high - low else (few, middle)
    return many


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion: its question and the figure furthest above chance among recipients; no row: not measured."""

    name: str
    asks: str
    target: str = ""
    adversary: str = ""
    row: Row | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `measured` is false where none of the targets that its evidence needs was measured."""

    rule: str
    evidence: str
    human: str
    measured: bool


@cache
def _text() -> Mapping[str, Any]:
    return tomllib.loads(files("clinveil.report").joinpath("rules.toml").read_text(encoding="utf-8"))


def criteria(record: ReleaseRecord) -> list[Criterion]:
    """Return the three criteria for this record. The upper bound of stolen vectors does not count."""
    made = []
    for entry in _text()["criterion"]:
        top = strongest(record.findings, entry["targets"], RECIPIENTS)
        if top is None or top.value is None:
            made.append(Criterion(entry["name"], entry["asks"]))
            continue
        names = TARGETS[str(top.detail["target"])], NAMES[str(top.detail["adversary"])]
        shown = row(top, record.edition, kind="share"), verdict(top, record.risk_threshold)
        made.append(Criterion(entry["name"], entry["asks"], *names, *shown))
    return made


def rules(record: ReleaseRecord) -> list[Rule]:
    """Return the map of rules for this record."""
    measured = {f.detail.get("target") for f in record.findings if f.value is not None}
    return [
        Rule(e["rule"], e["evidence"], e["human"], not e["targets"] or bool(measured & set(e["targets"])))
        for e in _text()["rule"]
    ]
