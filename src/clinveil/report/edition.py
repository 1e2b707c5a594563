"""Derive the external edition: the parts of a record that may leave, with small counts hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from clinveil.core.finding import Finding
from clinveil.core.words import Kind
from clinveil.report.measures import COMPANIONS, PARTS, PRINTED, REMARKS, VARIANTS, find
from clinveil.report.numerals import SMALL
from clinveil.report.record import Edition, Fact, Gate, Plain, ReleaseRecord

PEOPLE = frozenset(
    {"patients", "patient", "people", "notes", "note", "names", "name", "rows", "spans", "numbers"}
)


def external_edition(record: ReleaseRecord) -> ReleaseRecord:
    """Return the record of what may leave: without source notes, internal facts and values that
    look like a path.
    """
    return replace(
        record,
        edition="external",
        notes=(),
        settings=_outward(record.settings),
        provenance=_outward(record.provenance),
        corpus=replace(record.corpus, more=_outward(record.corpus.more)),
    )


def hidden(count: float | None, unit: str, edition: Edition) -> bool:
    """Whether this edition may not print a count of people or notes because it is small; zero is
    printed.
    """
    counted = unit.startswith("own ") or any(word in PEOPLE for word in unit.split())
    return edition == "external" and counted and count is not None and 0 < count < SMALL


def kind_of(finding: Finding) -> Kind:
    """Return the number format of a finding."""
    name, measure = find(finding.measure)
    return measure.kind_of(finding.measure[len(name) + 1 :])


def too_small(finding: Finding, edition: Edition) -> bool:
    """Whether the value is, or discloses, a count of people or notes that this edition hides."""
    return finding.value is not None and hidden(
        _successes(finding, finding.value), finding.unit, edition
    )


def _successes(finding: Finding, value: float) -> float | None:
    if finding.count is not None:
        return finding.count
    if finding.measure.startswith("utility."):
        return None  # a share of a gap or a score; it counts nothing
    kind = kind_of(finding)
    # Rounded, because float error would turn 11 into 10.999.
    return round(value * finding.n, 6) if kind == "share" else value if kind == "count" else None


def control_too_small(finding: Finding, edition: Edition) -> bool:
    """The same for the control: a search of the source counts people of the source."""
    if finding.control is None:
        return False
    return hidden(_successes(replace(finding, count=None), finding.control), finding.unit, edition)


def outward_finding(finding: Finding) -> dict[str, Any]:
    """Return a finding as the public manifest contains it, with hidden numbers as null.

    Of the detail, labels, companions of the value, remarks and printed figures are included.
    """
    public = finding.as_dict()
    kept = {*COMPANIONS, *VARIANTS, *PARTS, *REMARKS, *PRINTED}
    if too_small(finding, "external"):
        kept -= {*COMPANIONS, "warning"}
        public |= dict.fromkeys(("value", "low", "high", "count", "p"))
    if control_too_small(finding, "external"):
        public["control"] = None
    if hidden(finding.n, finding.unit, "external"):
        public["n"] = None
    public["hidden"] = public["n"] is None or (
        public["value"] is None and finding.value is not None
    )
    public["detail"] = {k: v for k, v in finding.detail.items() if k in kept}
    return public


def hidden_gate(gate: Gate, rows: int, edition: Edition) -> bool:
    """Whether the value of a gate is a small count, or a share of the rows that discloses one."""
    if not isinstance(gate.value, int | float) or isinstance(gate.value, bool):
        return False
    if gate.unit.split(" ")[0] == "share":
        return hidden(
            round(gate.value * rows, 6), gate.unit.partition(" of ")[2] or "rows", edition
        )
    return hidden(gate.value, gate.unit, edition)


def outward_count(count: int, unit: str) -> int | str:
    """Return a count as the public manifest contains it."""
    return f"<{SMALL}" if hidden(count, unit, "external") else count


def outward_value(gate: Gate, rows: int) -> Plain:
    """Return the value of a gate as the public manifest contains it."""
    return f"<{SMALL}" if hidden_gate(gate, rows, "external") else gate.value


def _outward(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    # A value may look like a path or an address: false positives are acceptable, false negatives
    # are not.
    kept = (
        (fact, isinstance(fact.value, str) and set("/\\~@") & set(fact.value)) for fact in facts
    )
    return tuple(
        replace(fact, value="(given)") if telling else fact
        for fact, telling in kept
        if not fact.internal
    )
