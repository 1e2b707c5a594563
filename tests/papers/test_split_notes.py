"""The parts of paper C's notes: no patient on two sides, and the sizes asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.clinicalnlp_2019.split import PARTS, SplitSizes, split_notes

from clinveil.core import InputError

LENGTH = 10


def split(patients, sizes, seed=0, **more):
    return split_notes(
        patients, [LENGTH] * len(patients), sizes, np.random.default_rng(seed), **more
    )


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 10)),
    st.integers(0, 99),
)
def test_no_patient_is_on_two_sides(owners, valid, test, train, seed):
    patients = [f"p{owner}" for owner in owners]
    sizes = SplitSizes(valid, test, train)
    try:
        parts = split(patients, sizes, seed)
    except InputError:
        return
    rows = [row for part in PARTS for row in parts[part]]
    assert len(rows) == len(set(rows))
    sides = [{patients[row] for row in parts[part]} for part in PARTS]
    assert sum(map(len, sides)) == len(set.union(*sides))
    assert all(
        len(parts[part]) >= wanted
        for part, wanted in zip(PARTS, (train or 1, valid, test), strict=True)
    )
    if train is None:
        assert sorted(rows) == list(range(len(patients)))
    else:  # with its last patient less, training would be too small
        last = max(patients.count(patient) for patient in set(patients))
        assert len(parts["train"]) < train + last
    assert split(patients, sizes, seed) == parts


def test_a_split_by_note_puts_patients_on_both_sides():
    patients = ["one"] * 40
    parts = split(patients, SplitSizes(5, 5), by_note=True)
    assert [len(parts[name]) for name in PARTS] == [30, 5, 5]
    with pytest.raises(InputError, match="40 notes are too few"):
        split(patients, SplitSizes(5, 5))


def test_small_is_in_large_and_both_share_the_rest():
    patients = [str(i // 2) for i in range(100)]
    small, large = (split(patients, sizes) for sizes in (SplitSizes(6, 8, 20), SplitSizes(6, 8)))
    assert set(small["train"]) < set(large["train"])
    assert (len(small["train"]), len(large["train"])) == (20, 86)
    assert all(small[name] == large[name] for name in ("valid", "test"))


def test_words_say_where_training_stops():
    patients = [str(i) for i in range(50)]
    assert len(split(patients, SplitSizes(5, 5, words=101))["train"]) == 11
    assert len(split(patients, SplitSizes(5, 5, words=100))["train"]) == 10
    with pytest.raises(InputError, match="only 400 of 401 words are left for training"):
        split(patients, SplitSizes(5, 5, words=401))


def test_too_few_notes_say_how_many_are_needed():
    with pytest.raises(
        InputError, match=r"19 notes are too few; the parts need 20 \(reduce --train"
    ):
        split([str(i) for i in range(19)], SplitSizes(5, 5, 10))
    assert len(split([str(i) for i in range(20)], SplitSizes(5, 5, 10))["train"]) == 10
