from __future__ import annotations

from dataclasses import fields

import pytest
from invented_release import record

from clinveil.core import Cell, Finding, GapScores
from clinveil.report import TokenRow, explanations, row
from clinveil.report.cells import accounting


def one(measure="attack.own_name", value=3 / 712, n=712, **more):
    return Finding(measure, value, n, "lower", chance=0.004, unit="patients", count=3, **more)


def test_the_vault_describes_every_measure():
    described = explanations([one(), one(value=0.1), Finding("moon.phase", 0.25, 40)])
    assert [*described] == ["attack.own_name", "moon.phase"]
    assert "Do not base a decision on it alone" in str(described["moon.phase"]["meaning"])
    assert described["attack.own_name"]["question"]


def test_rows_of_one_measure_have_different_variants():
    made = [one(cell=Cell("pairs-20", "names"), labels=(f"K {k}",)) for k in (1, 5)]
    assert [row(finding).variants for finding in made] == [
        ("pairs-20", "names", "K 1"),
        ("pairs-20", "names", "K 5"),
    ]


def test_a_small_count_hides_everything_that_discloses_it():
    shown = row(one(low=0.001, high=0.01, p=0.6, numbers={"expected": 3.4}), outward=True)
    assert shown.hidden and shown.value.text == "<11"
    assert shown.ends is None and shown.p.value is None


@pytest.mark.parametrize(
    ("count", "hidden"), [(0, False), (1, True), (10, True), (11, False), (700, False)]
)
def test_the_rule_of_eleven(count, hidden):
    finding = Finding("attack.own_name", count / 712, 712, "lower", unit="patients")
    assert row(finding, outward=True).hidden is hidden
    assert not row(finding).hidden


def test_a_small_n_of_people_is_hidden():
    assert (
        row(Finding("attack.own_name", 0.0, 5, "lower", unit="patients"), outward=True).n.text
        == "<11"
    )


def test_a_share_of_a_gap_is_no_count_of_notes():
    finding = Finding(
        "utility.transfer", 0.02, 100, "higher", unit="notes", scores=GapScores("", score=0.4)
    )
    assert not row(finding, outward=True, kind="share").hidden


def test_the_accounting_ends_with_its_total():
    rows = accounting(record().accounting)
    assert rows[:-1] == list(record().accounting) and len(rows) == 5 and accounting(()) == []
    for name in (f.name for f in fields(TokenRow) if f.name != "kind"):
        assert getattr(rows[-1], name) == sum(getattr(row, name) for row in rows[:-1])
