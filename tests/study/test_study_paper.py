"""The paper's numbers as its text prints them, and how numbers and tables are shown."""

from __future__ import annotations

import re

import pytest

from clinveil.core.finding import Finding
from clinveil.report.numerals import NONE, p_value
from clinveil.study.engine import Results
from clinveil.study.jmir_2020 import study
from clinveil.study.jmir_2020.settings import NAMES, PAPER_WINDOWS, StudySettings
from clinveil.study.jmir_2020.tables import best_of, by_window, draws_floor
from clinveil.study.tables import cell, figure, read_paper

PAPER = read_paper(study.__file__)
ALGORITHMS = ("skipgram", "cbow", "glove")
PRINTED = [PAPER.tables[f"table-{n}"].paper for n in (1, 2, 3)]
TABLES = [*PRINTED, *PAPER.tables["table-4"].paper.values()]
SAYS = PAPER.printed["says"]


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_a_number_for_each_algorithm_and_window(table):
    assert set(table) == set(ALGORITHMS) == set(NAMES)
    assert all(tuple(by_window(column)) == (1, 3, 5, 7, 9) for column in table.values())


def test_counts_and_shares_of_table_1_agree():
    for column in PRINTED[0].values():
        for said in column:
            count, percent = map(float, re.match(r"(\d+) \(([\d.]+)\)", said).groups())
            # The paper rounds 393 of 600 (65.5) to 65.6.
            assert percent == pytest.approx(100 * count / 600, abs=0.11)


def test_counts_and_shares_of_table_3_agree_with_638_patients():
    for column in PRINTED[2].values():
        for said in column:
            count, percent = map(float, re.match(r"(\d+) \(([\d.]+)\)", said).groups())
            assert percent == pytest.approx(100 * count / PAPER.printed["patients"], abs=0.06)


def percent(text):
    """The number of a printed cell: the percentage in brackets, or the first number."""
    return float(text.partition("(")[2].partition(")")[0] or text.split(",")[0])


def test_the_order_of_the_algorithms_in_the_paper():
    for window in PAPER_WINDOWS:
        found = [percent(by_window(PRINTED[0][name])[window]) for name in ALGORITHMS]
        assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.685, "count", "68.5"),
        (0.0, "share", "0.0"),
        (0.00012, "count", "0.012"),
        (1.5, "number", "1.50"),
        (-0.034567, "number", "-0.035"),
        (0.0, "number", "0.00"),
        (None, "share", NONE),
    ],
)
def test_numbers_as_they_are_shown(value, kind, text):
    assert figure(value, kind) == text


def test_a_p_value_is_never_nought():
    assert p_value(0.0) == p_value(1e-7) == "<0.0001"
    assert p_value(0.0123) == "0.012"


def test_a_cell_has_our_number_and_what_stands_beside():
    detail = {"hits": 30, "p_over_models": 0.004}
    made = cell(
        Finding("attack.names", 0.05, 600, "lower", 0.03, 0.07, 0.01, 0.02, detail=detail), "count"
    )
    assert made == "**30 (5.0)**; 95 % 3.0 to 7.0; chance 1.0; control 2.0; P 0.004"


def test_a_number_that_could_not_be_had_is_a_dash():
    for finding in (None, Finding("attack.x", None, 0, detail={"why": "too few"})):
        assert cell(finding, "share") == NONE


def _results(*findings):
    return Results(StudySettings(), findings, {"k": 600, "missing": {}})


def _model(label, value, p, models=2):
    detail = {"model": label, "metric": "cosine", "p_over_models": p, "models": models}
    return Finding("attack.x", value, 9, None, value, value, 0.0, 0.0, detail=detail)


def test_the_most_significant_model_is_named_with_its_adjusted_p():
    line, *none = best_of(
        _results(_model("a", 1.0, 0.2), _model("b", 0.5, 0.03)), SAYS, "attack.x", "number"
    )
    assert not none
    assert "of 2: b, cosine: 0.50" in line
    assert "P 0.03 after Holm over 2; 1 of 2 are significant" in line
    assert list(best_of(_results(), SAYS, "attack.x", "number")) == []


def test_the_family_of_a_p_value_is_said_and_not_the_number_of_rows():
    line = next(
        best_of(
            _results(*(_model(str(i), 0.5, 0.9, models=36) for i in range(72))),
            SAYS,
            "attack.x",
            "number",
        )
    )
    assert "Most significant of 72" in line
    assert "after Holm over 36" in line


def test_a_family_that_cannot_reject_says_so():
    said = list(
        draws_floor(
            _results(*(_model(str(i), 0.5, 0.9, models=36) for i in range(72))), SAYS, "attack.x"
        )
    )
    assert len(said) == 1
    assert "no P is below 1/40, so Holm over 36 numbers cannot reject" in said[0]
    assert not list(draws_floor(_results(_model("a", 0.5, 0.9, models=1)), SAYS, "attack.x"))
