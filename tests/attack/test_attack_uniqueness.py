"""Notes that stand alone: layout skeletons by hand, the fast way against the tokenizer;
combinations of kept values.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.attacks.text.uniqueness import _shape, kept_columns, layout, skeleton
from clinveil.core.tokens import tokenize
from clinveil.corpus.corpus import MemoryCorpus, memory_corpus


def shares(*texts):
    notes = memory_corpus([(str(i), "p", t) for i, t in enumerate(texts)])
    return {f.measure.removeprefix("attack."): f for f in layout(notes)}


def test_skeleton_by_hand():
    assert skeleton("Dr. Who, aged 904:\n\n  fine; q4h") == "a. a, a 0:\n\na; a0a"
    assert skeleton("naïve\u00a0café — 12\n") == "a a — 0\n"
    assert skeleton("") == "" and skeleton("a\x00b") == "aa"


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_fast_way_equals_the_tokenizer(text):
    assert skeleton(text) == "".join(
        _shape(kind, text[start:end]) for start, end, kind in tokenize(text)
    )


def test_equal_layouts_hide_each_other():
    found = shares("no fever today", "see you soon", "no fever.", "well, 12", "sick, 7", "a b")
    unique = found["layout_unique"]
    assert unique.value == 2 / 6 and unique.n == 6  # "no fever." and "a b"
    assert (
        unique.detail["distinct"] == 4
        and unique.detail["largest"] == 2
        and unique.detail["below_5"] == 1.0
    )
    # Tokens: 3, 3, 2, 2, 2, 2.
    assert found["length_unique"].value == 0.0


def test_all_alike_and_all_alone():
    assert shares(*["one two"] * 7)["layout_unique"].value == 0.0
    assert shares(*["x " * i for i in range(5)])["layout_unique"].value == 1.0


def test_nothing_is_a_null_with_why():
    for found in (shares(), shares(None)):
        assert all(f.value is None and f.detail["why"] for f in found.values())


def kept(*rows, keep=("a", "b"), size=2):
    ids = [str(i) for i in range(len(rows))]
    people = [r[2] if len(r) > 2 else None for r in rows]
    roles = {"note_id": pa.array(ids, pa.string()), "patient_id": pa.array(people, pa.string())}
    table = pa.table({**roles, "a": [r[0] for r in rows], "b": [r[1] for r in rows]})
    return kept_columns(MemoryCorpus(table.to_batches(max_chunksize=size)), keep)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_kept_values_by_hand(size):
    """Four notes: (x,1) twice, (x,2) once, (null,1) once: half of them stand alone."""
    rows = [("x", 1), ("x", 2), ("x", 1), (None, 1)]
    (finding,) = kept(*rows, size=size)
    assert (finding.value, finding.n, finding.count, finding.detail["combinations"]) == (
        0.5,
        4,
        2,
        3,
    )
    (one,) = kept(*rows, size=size, keep=["a"])
    assert (one.value, one.detail["smallest"]) == (0.25, 1)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_values_of_one_patient_alone_single_out_all_of_the_patients_notes(size):
    """(x,1) is of two patients; (y,1) three times of one, (y,2) of a note without a patient."""
    rows = [("x", 1, "p"), ("y", 1, "q"), ("y", 1, "q"), ("x", 1, "q"), ("y", 1, "q"), ("y", 2)]
    (finding,) = kept(*rows, size=size)
    assert (finding.count, finding.n, finding.detail["smallest"]) == (4, 6, 1)


def test_kept_values_of_nobody_and_everybody():
    assert kept(("x", 1), ("x", 1))[0].value == 0.0
    assert kept(("x", 1), ("x", 2))[0].value == 1.0


def test_values_do_not_run_together():
    assert kept(("ab", "c"), ("a", "bc"))[0].value == 1.0


def test_nothing_kept_and_nothing_released():
    assert kept(("x", 1), keep=()) == []
    (finding,) = kept(keep=["a"])
    assert finding.value is None
    assert finding.detail["why"]
