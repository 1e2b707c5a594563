from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_release import CANARIES, area, gate, of_kind, record, with_findings

from clinveil.core import InputError
from clinveil.report import (
    AUDIENCES,
    SMALL,
    CorpusFacts,
    Fact,
    TokenRow,
    from_json,
    outward_facts,
    to_json,
)
from clinveil.report.outward import hidden
from clinveil.report.page_one import KINDS
from clinveil.report.record import SCHEMA

COUNTS = st.integers(min_value=0, max_value=10**12)


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_record_comes_back_equal(kind, audience):
    named = {"recipient": "Ward 7", "purpose": "tests", "review_on": "2027-11-20", "listed": 0.5}
    original = replace(of_kind(kind, audience), **named)
    back = from_json(to_json(original))
    assert back == original
    assert back.verdict.audience == audience and back.gates == original.gates


def test_the_finding_of_a_gate_comes_back_with_it():
    original = with_findings(of_kind("synthetic"), area(0.7, 0.65, 0.75))
    stored = {g.name: g.finding for g in from_json(to_json(original)).gates}
    assert stored["training patients recognized"] == area(0.7, 0.65, 0.75)


def test_a_record_without_a_gate_that_refuses_is_not_refused():
    assert not record().refused
    assert record(failed=True).refused and record(audience="public").refused


@pytest.mark.parametrize("value", [0, 1, 3.0, 0.25, True, False, "yes", None, 10**15])
def test_the_type_of_a_plain_value_survives(value):
    back = from_json(to_json(replace(record(), settings=(Fact("x", value),)))).settings[0].value
    assert back == value and type(back) is type(value)


def _broken() -> list[str]:
    whole = json.loads(to_json(record()))
    less = {k: v for k, v in whole.items() if k != "verdicts"}
    gates = [{"name": "Zanzibarovich", "within": "x", "finding": None}]
    marks = whole | {"verdicts": [{"audience": "agreement", "gates": gates}]}
    return ["", "null", "[]", "{", '{"schema": 3}', *(json.dumps(x) for x in (less, marks))]


@pytest.mark.parametrize("text", _broken())
def test_what_is_no_record_is_refused_without_a_word_of_it(text):
    with pytest.raises(InputError, match="report record") as caught:
        from_json(text)
    assert not any(word in str(caught.value) for word in CANARIES)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_another_schema_is_refused():
    with pytest.raises(InputError, match=SCHEMA):
        from_json(to_json(record()).replace(SCHEMA, "clinveil.report/99"))


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_an_accounting_row_balances_or_is_refused(replaced, masked, dropped, kept):
    total = replaced + masked + dropped + kept
    made = TokenRow("words", total, replaced, masked, dropped, kept)
    assert made.released == replaced + masked + kept
    with pytest.raises(ValueError, match="does not balance"):
        TokenRow("words", total + 1, replaced, masked, dropped, kept)


@pytest.mark.parametrize(
    "counts",
    [
        {"replaced": 3, "self_replaced": 4},
        {"replaced": 3, "unknown": 4},
        {"replaced": 3, "unknown": -1},
    ],
)
def test_no_part_is_larger_than_its_whole(counts):
    with pytest.raises(ValueError, match="larger than its whole"):
        TokenRow("words", 3, **counts)


def test_rows_read_must_be_accounted_for():
    with pytest.raises(ValueError, match="row accounting"):
        CorpusFacts(read=10, notes=8, patients=None, tokens=1, types=1, skipped={"null": 1})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_nan_or_infinity_gets_into_a_record(value):
    for make in (
        lambda: Fact("x", value),
        lambda: replace(gate("names", "held"), value=value),
        lambda: replace(gate("names", "held"), limit=value),
    ):
        with pytest.raises(ValueError, match="NaN"):
            make()


@pytest.mark.parametrize(
    "value", ["/home/anna/n.csv", "C:\\notes", "~/n.csv", "anna@ward7", "data/n.csv"]
)
def test_values_that_look_like_places_are_only_said_to_be_given(value):
    facts = (Fact("a", value), Fact("b", "plain"), Fact("c", 3))
    assert [fact.value for fact in outward_facts(facts)] == ["(given)", "plain", 3]


@pytest.mark.parametrize("unit", ["patients", "notes", "test notes", "own record numbers", "spans"])
def test_small_counts_of_people_are_hidden(unit):
    assert [n for n in range(15) if hidden(n, unit)] == list(range(1, SMALL))


def test_counts_of_words_and_no_counts_are_not_hidden():
    assert not hidden(3, "tokens")
    assert not hidden(3, "")
    assert not hidden(None, "patients")
