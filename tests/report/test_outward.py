"""What a released manifest may hold: nothing that the report hides."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invented_release import findings, share

from clinveil.core import Finding, KnownList
from clinveil.report import Gate, outward_count, outward_finding, outward_value, row

FEW = Finding(
    "attack.own_name", 3 / 712, 712, "lower", 0.001, 0.01, 0.004, 9 / 712, 
    numbers={"expected": 3.4}, known_list=KnownList(in_feed=7, in_release=7),
    unit="patients", count=3, p=0.6, control_kind="positive",
)  # fmt: skip


def _gate(value: object, unit: str) -> Gate:
    return Gate("g", "q", "names", within=True, value=value, limit=0, meaning="m", hint="h",
        unit=unit)  # type: ignore[arg-type]  # fmt: skip


def test_a_small_count_leaves_no_trace():
    said = outward_finding(FEW)
    assert said["hidden"] is True
    assert [said[k] for k in ("value", "low", "high", "count", "p", "control")] == [None] * 6
    assert said["numbers"] == {} and said["known_list"] is None
    assert (said["n"], said["chance"]) == (712, 0.004)


def test_counts_that_are_no_labels_stay_inside():
    said = outward_finding(
        replace(
            FEW, value=0.5, low=None, high=None, count=356, numbers={"others": 4}, labels=("x",)
        )
    )
    assert (
        said["numbers"] == {}
        and said["labels"] == ["x"]
        and said["hidden"] is False
        and said["count"] == 356
    )


def test_few_patients_are_not_counted():
    said = outward_finding(Finding("attack.own_name", 0.0, 4, "lower", unit="patients", count=0))
    assert said["n"] is None and said["hidden"] is True and said["value"] == 0


@pytest.mark.parametrize("finding", [FEW, *findings()], ids=lambda f: f.measure)
def test_report_and_manifest_hide_the_same(finding):
    shown = row(finding, outward=True)
    said = outward_finding(finding)
    assert shown.value.value == said["value"]
    assert shown.control.value == said["control"]
    assert shown.n.value == said["n"]
    assert shown.hidden is (said["value"] is None and finding.value is not None)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (3, "patients", "<11"),
        (0, "patients", 0),
        (11, "patients", 11),
        (3, "words", 3),
        (True, "patients", True),
    ],
)
def test_gates_hide_small_counts(value, unit, shown):
    gate = _gate(value, unit)
    assert outward_value(gate, 1000) == shown


def test_a_gate_hides_what_its_finding_hides():
    """A share of 300 tested notes, in a release of 1,000."""
    few = share("note by ten words", "recipient", 3, 300, 0.0, unit="notes")
    more = share("note by ten words", "recipient", 30, 300, 0.0, unit="notes")
    shown = [
        outward_value(replace(_gate(f.value, "share of notes"), finding=f), 10_000)
        for f in (few, more)
    ]
    assert shown == ["<11", 0.1]


def test_a_small_share_of_notes_is_a_small_count():
    few, words = (_gate(0.003, unit) for unit in ("share of notes", "share of words"))
    assert (outward_value(few, 1000), outward_value(words, 1000)) == ("<11", 0.003)
    assert (outward_count(10, "notes"), outward_count(11, "notes")) == ("<11", 11)
