"""ICD-9 label tables: each range's first and last code, the published rule beside its plain
statement, spellings.
"""

from __future__ import annotations

import csv
import gzip

from hypothesis import given
from hypothesis import strategies as st
from papers.jamia_2020.icd9 import (
    EXTERNAL,
    FACTORS,
    HOLES,
    LEAVES,
    PUBLISHED,
    first_level,
    leaves,
    plain_code,
)

CORRECTED = first_level()
AS_PUBLISHED = first_level("published")
STEMS = [f"{number:03}" for number in range(1, 1000)]


def stated_rule(code):
    """The published rule in its own words: the first range whose end is not below the first three
    characters.
    """
    for name in PUBLISHED:
        if code[:3] <= name.split("-")[-1]:
            return name
    return None


def holds(name, stem):
    low, _, high = name.partition("-")
    return int(low) <= int(stem) <= int(high or low)


def test_the_published_table_is_the_published_rule():
    codes = [stem + "1" for stem in [*STEMS, "V10", "E87"]]
    assert [AS_PUBLISHED.label(code) for code in codes] == [stated_rule(code) for code in codes]


def test_the_published_table_has_its_two_holes():
    assert AS_PUBLISHED.label("2859") == "290-319"
    assert AS_PUBLISHED.label("7455") == "760-779"
    assert AS_PUBLISHED.label("V3001") is None
    assert AS_PUBLISHED.label("E8788") is None
    assert len(AS_PUBLISHED.classes) == 19


def test_the_corrected_table_puts_every_number_into_the_range_that_holds_it():
    for stem in STEMS:
        (right,) = [name for name in (*PUBLISHED, *HOLES) if holds(name, stem)]
        assert CORRECTED.label(stem) == right


def test_the_corrected_table_has_a_class_for_the_holes_and_the_supplements():
    assert [CORRECTED.label(code) for code in ("2859", "7455", "V3001", "E8788")] == [
        *HOLES,
        FACTORS,
        EXTERNAL,
    ]
    assert len(CORRECTED.classes) == len(set(CORRECTED.classes)) == 23


def test_the_published_leaves_are_twenty_codes_of_which_others_have_no_label():
    table = leaves()
    assert len(set(LEAVES)) == 20
    assert all(table.label(code) == code == plain_code(code) for code in LEAVES)
    assert table.label("401") is None
    assert table.label("40190") is None


@given(st.text(max_size=8))
def test_any_text_is_none_or_a_code_with_a_corrected_label(text):
    code = plain_code(text)
    assert code is None or (code == plain_code(code) and CORRECTED.label(code) in CORRECTED.classes)


def test_every_code_of_the_official_list_has_a_corrected_label(real_data):
    with gzip.open(real_data("codes/icd9cm.csv.gz"), "rt", encoding="utf-8") as file:
        codes = [row["code"] for row in csv.DictReader(file)]
    assert len(codes) > 14_000
    assert all(plain_code(code) == code for code in codes)
    assert {CORRECTED.label(code) for code in codes} == set(CORRECTED.classes)
    assert {AS_PUBLISHED.label(code) for code in codes if code[0].isdigit()} == set(PUBLISHED)
