"""Decide what a report and a manifest may print: small counts of people and notes are hidden."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from clinveil.core import Finding, NumberKind
from clinveil.report.measures import find
from clinveil.report.numerals import SMALL
from clinveil.report.record import Fact
from clinveil.report.verdict import Gate, Plain

PEOPLE = frozenset(
    {"patients", "patient", "people", "notes", "note", "names", "name", "rows", "spans", "numbers"}
)

BY_VALUE = frozenset({"expected", "median", "most", "chance_most"})
"""Further numbers that disclose the value; hidden with it."""
PRINTED = BY_VALUE | {"repeats", "k", "span", "false_alarms", "unknown_share", "at_ceiling", "size"}
"""Further numbers that the report and the manifest may contain."""


def hidden(count: float | None, unit: str) -> bool:
    """Whether a count of people or notes is too small to be printed; zero is printed."""
    counted = unit.startswith("own ") or any(word in PEOPLE for word in unit.split())
    return counted and count is not None and 0 < count < SMALL


def kind_of(finding: Finding) -> NumberKind:
    """Return the number format of a finding."""
    name, measure = find(finding.measure)
    return measure.kind_of(finding.measure[len(name) + 1 :])


def too_small(finding: Finding) -> bool:
    """Whether the value is, or discloses, a count of people or notes that is hidden."""
    return finding.value is not None and hidden(_successes(finding, finding.value), finding.unit)


def _successes(finding: Finding, value: float) -> float | None:
    if finding.count is not None:
        return finding.count
    if finding.measure.startswith("utility."):
        return None  # a share of a gap or a score; it counts nothing
    kind = kind_of(finding)
    # Rounded, because float error would turn 11 into 10.999.
    return round(value * finding.n, 6) if kind == "share" else value if kind == "count" else None


def control_too_small(finding: Finding) -> bool:
    """The same for the control: a search of the source counts people of the source."""
    if finding.control is None:
        return False
    return hidden(_successes(replace(finding, count=None), finding.control), finding.unit)


def outward_finding(finding: Finding) -> dict[str, Any]:
    """Return a finding as the public manifest contains it, with hidden numbers as null.

    Only the further numbers that the report prints are included.
    """
    public = finding.as_dict() | {"knowledge": "", "known_list": None}
    numbers = PRINTED
    if too_small(finding):
        numbers -= BY_VALUE
        public |= dict.fromkeys(("value", "low", "high", "count", "p")) | {"warning": ""}
    if control_too_small(finding):
        public["control"] = None
    if hidden(finding.n, finding.unit):
        public["n"] = None
    public["hidden"] = public["n"] is None or (
        public["value"] is None and finding.value is not None
    )
    public["numbers"] = {k: v for k, v in finding.numbers.items() if k in numbers}
    return public


def hidden_gate(gate: Gate, rows: int) -> bool:
    """Whether the value of a gate is a small count, or a share of the rows that discloses one."""
    if not isinstance(gate.value, int | float) or isinstance(gate.value, bool):
        return False
    if gate.finding is not None and gate.finding.value == gate.value:
        return too_small(gate.finding)
    if gate.unit.split(" ")[0] == "share":
        return hidden(round(gate.value * rows, 6), gate.unit.partition(" of ")[2] or "rows")
    return hidden(gate.value, gate.unit)


def outward_count(count: int, unit: str) -> int | str:
    """Return a count as the public manifest contains it."""
    return f"<{SMALL}" if hidden(count, unit) else count


def outward_value(gate: Gate, rows: int) -> Plain:
    """Return the value of a gate as the public manifest contains it."""
    return f"<{SMALL}" if hidden_gate(gate, rows) else gate.value


def outward_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return facts without values that look like a path or an address.

    False positives are acceptable, false negatives are not.
    """
    return tuple(replace(fact, value="(given)") if _telling(fact.value) else fact for fact in facts)


def _telling(value: Plain) -> bool:
    return isinstance(value, str) and bool(set("/\\~@") & set(value))
