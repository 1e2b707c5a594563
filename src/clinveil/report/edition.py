"""The external edition: what of a record may leave, and how small counts are hidden in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from clinveil.core.finding import Finding
from clinveil.core.words import Kind
from clinveil.report.measures import COMPANIONS, PARTS, REMARKS, VARIANTS, find
from clinveil.report.numerals import SMALL
from clinveil.report.record import AlignedNote, Edition, Fact, Gate, Plain, ReleaseRecord

PEOPLE = frozenset({"patients", "patient", "people", "notes", "note", "names", "name", "rows", "spans", "numbers"})


def external_edition(record: ReleaseRecord, demo: Sequence[AlignedNote]) -> ReleaseRecord:
    """The record of what may leave: the demo note for the sampled ones, internal facts and path-like values out."""
    return replace(
        record,
        edition="external",
        notes=tuple(demo),
        settings=_outward(record.settings),
        provenance=_outward(record.provenance),
        corpus=replace(record.corpus, more=_outward(record.corpus.more)),
    )


def hidden(count: float | None, unit: str, edition: Edition) -> bool:
    """Whether a count of people or notes is too small to be printed in this edition; zero is printed."""
    counted = unit.startswith("own ") or any(word in PEOPLE for word in unit.split())
    return edition == "external" and counted and count is not None and 0 < count < SMALL


def kind_of(finding: Finding) -> Kind:
    """How the numbers of a finding are written."""
    name, measure = find(finding.measure)
    return measure.kind_of(finding.measure[len(name) + 1 :])


def too_small(finding: Finding, edition: Edition) -> bool:
    """Whether the value is, or gives away, a count of people or notes that this edition hides."""
    return finding.value is not None and hidden(_successes(finding, finding.value), finding.unit, edition)


def _successes(finding: Finding, value: float) -> float | None:
    if finding.count is not None:
        return finding.count
    kind = kind_of(finding)
    # Rounded, for a float's last digits would make 10.999 of 11.
    return round(value * finding.n, 6) if kind == "share" else value if kind == "count" else None


def control_too_small(finding: Finding, edition: Edition) -> bool:
    """The same of the control: a search of the source counts the source's people."""
    if finding.control is None:
        return False
    return hidden(_successes(replace(finding, count=None), finding.control), finding.unit, edition)


def outward_finding(finding: Finding) -> dict[str, Any]:
    """A finding as a public manifest holds it: nothing that the external report does not print.

    What is hidden is null; of the detail, labels, companions of the value and remarks stay.
    """
    said = finding.as_dict()
    kept = {*COMPANIONS, *VARIANTS, *PARTS, *REMARKS}
    if too_small(finding, "external"):
        kept -= {*COMPANIONS, "warning"}
        said |= dict.fromkeys(("value", "low", "high", "count", "p"))
    if control_too_small(finding, "external"):
        said["control"] = None
    if hidden(finding.n, finding.unit, "external"):
        said["n"] = None
    said["hidden"] = said["n"] is None or (said["value"] is None and finding.value is not None)
    said["detail"] = {k: v for k, v in finding.detail.items() if k in kept}
    return said


def hidden_gate(gate: Gate, rows: int, edition: Edition) -> bool:
    """Whether what a gate measured is a small count, or a share of the rows that gives one away."""
    if not isinstance(gate.value, int | float) or isinstance(gate.value, bool):
        return False
    if gate.unit.split(" ")[0] == "share":
        return hidden(round(gate.value * rows, 6), gate.unit.partition(" of ")[2] or "rows", edition)
    return hidden(gate.value, gate.unit, edition)


def outward_count(count: int, unit: str) -> int | str:
    """A count as a public manifest holds it."""
    return f"<{SMALL}" if hidden(count, unit, "external") else count


def outward_value(gate: Gate, rows: int) -> Plain:
    """What a gate measured, as a public manifest holds it."""
    return f"<{SMALL}" if hidden_gate(gate, rows, "external") else gate.value


def _outward(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    kept = [fact for fact in facts if not fact.internal]
    return tuple(replace(fact, value="(given)") if _telling(fact.value) else fact for fact in kept)


def _telling(value: Plain) -> bool:
    """Whether a value looks like a path or an address; better one too many than one too few."""
    return isinstance(value, str) and any(mark in value for mark in "/\\~@")
