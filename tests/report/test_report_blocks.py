from __future__ import annotations

from dataclasses import fields

import pytest
from invented_release import findings, record

from clinveil.core.finding import Finding
from clinveil.report.cells import accounting, blocks, row
from clinveil.report.measures import COMPANIONS
from clinveil.report.record import TokenRow


def one(measure="attack.own_name", value=3 / 712, n=712, **more):
    return Finding(measure, value, n, "lower", chance=0.004, unit="patients", count=3, **more)


def test_an_unknown_measure_gets_a_block_that_names_it():
    (block,) = blocks([Finding("moon.phase", 0.25, 40)], "internal")
    assert (
        block.title.endswith("moon.phase") and "Do not base a decision on it alone" in block.means
    )


def test_findings_of_one_measure_share_a_block_in_order():
    shown = blocks(findings(), "internal")
    names = [block.name for block in shown]
    assert len(names) == len(set(names))
    assert sum(len(block.rows) for block in shown) == len(findings())


def test_rows_of_one_measure_have_different_labels():
    made = [one(detail={"adversary": "pairs-20", "target": "names", "k": k}) for k in (1, 5)]
    (block,) = blocks(made, "internal")
    assert [r.label for r in block.rows] == ["pairs-20 · names · K 1", "pairs-20 · names · K 5"]


def test_companions_become_columns_only_where_a_row_has_them():
    (block,) = blocks([one(p=0.2)], "internal")
    assert block.companions == {key: COMPANIONS[key][0] for key in ("count", "p")}


def test_remarks_and_reasons_are_printed_below_the_table():
    (block,) = blocks([one(value=None, detail={"why": "too few", "warning": "a seed"})], "internal")
    assert block.remarks == ("Warning: a seed.", "Not measured: too few.")


def test_a_small_count_hides_everything_that_discloses_it():
    shown = row(one(low=0.001, high=0.01, p=0.6, detail={"expected": 3.4}), "external")
    assert shown.hidden and shown.value.text == "<11"
    assert (shown.ends, dict(shown.beside), dict(shown.remarks)) == (None, {}, {})
    assert shown.p.value is None


@pytest.mark.parametrize(
    ("count", "hidden"), [(0, False), (1, True), (10, True), (11, False), (700, False)]
)
def test_the_rule_of_eleven(count, hidden):
    finding = Finding("attack.own_name", count / 712, 712, "lower", unit="patients")
    assert row(finding, "external").hidden is hidden
    assert not row(finding, "internal").hidden


def test_a_small_n_of_people_is_hidden():
    assert (
        row(Finding("attack.own_name", 0.0, 5, "lower", unit="patients"), "external").n.text
        == "<11"
    )


def test_a_share_of_a_gap_is_no_count_of_notes():
    finding = Finding("utility.transfer", 0.02, 100, "higher", unit="notes", detail={"score": 0.4})
    assert not row(finding, "external", kind="share").hidden


def test_the_accounting_ends_with_its_total():
    rows = accounting(record().accounting)
    assert rows[:-1] == list(record().accounting) and len(rows) == 5 and accounting(()) == []
    for name in (f.name for f in fields(TokenRow) if f.name != "kind"):
        assert getattr(rows[-1], name) == sum(getattr(row, name) for row in rows[:-1])
