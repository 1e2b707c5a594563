from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_release import CANARIES, gates, record

from clinveil.core import InputError
from clinveil.report import (
    SMALL,
    CorpusFacts,
    Fact,
    Gate,
    TokenRow,
    from_json,
    outward_facts,
    tally,
    to_json,
)
from clinveil.report.outward import hidden
from clinveil.report.record import SCHEMA, all_clear

COUNTS = st.integers(min_value=0, max_value=10**12)


def test_a_stored_record_comes_back_equal():
    original = record()
    assert from_json(to_json(original)) == original


@pytest.mark.parametrize("value", [0, 1, 3.0, 0.25, True, False, "yes", None, 10**15])
def test_the_type_of_a_plain_value_survives(value):
    back = from_json(to_json(replace(record(), settings=(Fact("x", value),)))).settings[0].value
    assert back == value and type(back) is type(value)


def _broken() -> list[str]:
    whole = json.loads(to_json(record()))
    less = {k: v for k, v in whole.items() if k != "gates"}
    marks = whole | {"gates": [{"name": "Zanzibarovich", "passed": "x"}]}
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
        lambda: Gate("g", "q", True, value, 0, "m", "r"),
        lambda: Gate("g", "q", True, 0, value, "m", "r"),
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


def test_the_score_counts_every_outcome_once():
    assert tally(gate.outcome for gate in gates()) == "7 of 7 gates passed; 1 had no power"
    assert (
        tally(gate.outcome for gate in gates(failed=True, off=True))
        == "5 of 6 gates passed; 1 switched off; 1 had no power"
    )


def test_a_failed_gate_has_failed_even_where_it_is_switched_off():
    assert replace(gates()[0], passed=False, switched_off=True).outcome == "failed"
    assert not replace(gates()[0], switched_off=True).tested


def test_all_clear_needs_gates_none_failed_and_none_switched_off():
    assert all_clear(gates())
    assert (
        not all_clear(gates(failed=True)) and not all_clear(gates(off=True)) and not all_clear(())
    )
