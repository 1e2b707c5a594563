"""The three criteria (singling out, linkability, inference) by attacker, and EMA Policy 0070's line, of findings.

Which finding answers which question lies in `criteria.toml`. A cell shows the figure that is furthest above chance, or
says why there is none; nothing is added up, and no cell is made of several.
Source: Article 29 Working Party, Opinion 05/2014 (WP216); EMA/90915/2016 (Policy 0070), chapter 3.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from clinveil.attacks.reader import KNOWLEDGE
from clinveil.core.finding import Finding
from clinveil.report.cells import Row, row
from clinveil.report.record import ReleaseRecord
from clinveil.report.summarise import badness


@dataclass(frozen=True, slots=True)
class Cell:
    """One criterion for one attacker: the figure, of how many it is the worst; or, without one, why."""

    row: Row | None = None
    of: int = 0
    words: str = ""


@dataclass(frozen=True, slots=True)
class Attacker:
    """A row of the table: who it is, what they hold, and a cell for each criterion; one cell where all is the same."""

    name: str
    holds: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Risk:
    """The line of EMA Policy 0070 for one attacker: risk on average over patients, and among the rarest of them.

    `small`: whether the upper ends of both lie under the threshold; None where one was not measured.
    """

    attacker: str
    average: Row
    most: Row | None
    small: bool | None


@dataclass(frozen=True, slots=True)
class Risks:
    """What the line says: what is known of people, the risk without protection (None: not measured), the threshold, and
    each attacker's."""

    known: str
    initial: Row | None
    threshold: float
    lines: tuple[Risk, ...]


@cache
def _text() -> Mapping[str, Any]:
    return tomllib.loads(files("clinveil.report").joinpath("criteria.toml").read_text(encoding="utf-8"))


def questions() -> list[tuple[str, str]]:
    """The criteria, and what each asks."""
    return [(one["name"], one["asks"]) for one in _text()["criterion"]]


def table(record: ReleaseRecord) -> list[Attacker]:
    """The three criteria for each attacker."""
    return [_attacker(one, record) for one in _text()["attacker"]]


def _attacker(one: Mapping[str, str], record: ReleaseRecord) -> Attacker:
    if "always" in one:
        return Attacker(one["name"], one["holds"], (Cell(words=one["always"]),))
    cells = tuple(_cell(record, name, one["name"]) for name, _ in questions())
    return Attacker(one["name"], one["holds"], cells)


def _cell(record: ReleaseRecord, criterion: str, attacker: str) -> Cell:
    rules = [c for c in _text()["cell"] if (c["criterion"], c["attacker"]) == (criterion, attacker)]
    found = [f for f in record.findings if any(_fits(f, rule) for rule in rules)]
    measured = [f for f in found if f.value is not None]
    if measured:
        return Cell(row(max(measured, key=badness), record.edition), len(measured))
    said = [str(f.detail["why"]) for f in found] + [rule["otherwise"] for rule in rules if "otherwise" in rule]
    return Cell(words=f"Not measured: {said[0]}.")


def _fits(finding: Finding, rule: Mapping[str, Any]) -> bool:
    """Whether a finding answers a rule: its measure, what its detail says, and what its reader knows."""
    if finding.measure not in rule["measures"]:
        return False
    known = str(finding.detail.get("knowledge", ""))
    knows = all(KNOWLEDGE[name] in known for name in rule.get("knows", ()))
    lacks = not any(KNOWLEDGE[name] in known for name in rule.get("lacks", ()))
    return knows and lacks and all(finding.detail.get(key) == value for key, value in rule.get("where", {}).items())


def risks(record: ReleaseRecord) -> Risks | None:
    """The line of EMA Policy 0070; None where no note was tried to be linked."""
    named = _text()["risk"]
    initial = [f for f in record.findings if f.measure == named["initial"] and f.value is not None]
    before = max(initial, key=lambda f: f.value or 0.0, default=None)
    known = str(before.detail.get("against", "")) if before else ""  # the same attack before and after
    after = [f for f in record.findings if not known or f.detail.get("against") == known]
    average, most = _worst(after, named["average"]), _worst(after, named["most"])
    lines = tuple(_risk(attacker, one, most.get(attacker), record) for attacker, one in average.items())
    shown = row(before, record.edition) if before else None
    return Risks(known or "a text of theirs", shown, record.risk_threshold, lines) if lines else None


def _worst(findings: Sequence[Finding], measure: str) -> dict[str, Finding]:
    """Of each attacker the highest figure of a measure."""
    found: dict[str, Finding] = {}
    for finding in findings:
        attacker = str(finding.detail.get("attacker", ""))
        if finding.measure == measure and finding.value is not None:
            before = found.get(attacker)
            found[attacker] = finding if before is None else max(before, finding, key=lambda f: f.value or 0.0)
    return found


def _risk(attacker: str, average: Finding, most: Finding | None, record: ReleaseRecord) -> Risk:
    ends = [f.value if f.high is None else f.high for f in (average, most) if f is not None]
    under = all(end is not None and end < record.risk_threshold for end in ends)
    shown = row(most, record.edition) if most is not None else None
    return Risk(attacker, row(average, record.edition), shown, under if most is not None or not under else None)
