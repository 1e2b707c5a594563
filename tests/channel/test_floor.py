"""The rare-word floor, solved by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.channel.build import output_floor, usable
from clinveil.core import InputError
from clinveil.core import words as words_of
from clinveil.vectors import Vectors, WordCounts


def vectors(words, patients=None, n_patients=None):
    column = None if patients is None else np.array(patients, dtype=np.int64)
    return Vectors(
        words, np.ones((len(words), 2), np.float32), patients=column, n_patients=n_patients
    )


def counts(table, n_patients):
    figures = np.array(list(table.values()), dtype=np.int64)
    return WordCounts(
        list(table), figures * 3, figures, n_patients, n_patients, int(figures.sum() * 3)
    )


def test_words_below_the_floor_do_not_come_out():
    found = output_floor(
        vectors(["pain", "fever", "smith", "zeta"], [60, 5, 4, 1], 60), 5, need=2, allow_small=False
    )
    assert found.tolist() == [True, True, False, False]


def test_the_training_notes_decide_where_they_are_known():
    own = vectors(["pain", "smith"], [60, 1], 60)
    at_hand = counts({"pain": 60, "smith": 60}, 60)
    assert output_floor(own, 5, need=1, allow_small=False, counts=at_hand).tolist() == [True, False]


def test_imported_vectors_are_counted_on_the_notes_at_hand_by_word():
    imported = vectors(["unseen", "fever", "pain", "New_York"])
    at_hand = counts({"pain": 50, "fever": 7, "New_York": 50, "other": 50}, 50)
    assert output_floor(imported, 7, need=2, allow_small=False, counts=at_hand).tolist() == [
        False,
        True,
        True,
        False,
    ]


def test_imported_vectors_without_notes_are_refused():
    with pytest.raises(InputError, match="patient counts"):
        output_floor(vectors(["pain"]), 1, need=1, allow_small=True)


@pytest.mark.parametrize(("n_patients", "refused"), [(49, True), (50, False)])
def test_fewer_than_fifty_patients_are_refused(n_patients, refused):
    few = vectors(["pain", "fever"], [n_patients, n_patients], n_patients)
    if refused:
        with pytest.raises(InputError, match=r"--set channel\.allow_small=true") as caught:
            output_floor(few, 5, need=2, allow_small=False)
        assert caught.value.exit_code == 3
    assert output_floor(few, 5, need=2, allow_small=True).all()


@pytest.mark.parametrize("need", [2, 3])
def test_too_few_eligible_words_are_refused(need):
    two = vectors(["pain", "fever", "smith"], [60, 60, 1], 60)
    if need == 2:
        assert output_floor(two, 5, need=need, allow_small=False).sum() == 2
        return
    with pytest.raises(InputError, match=r"2 words .* 3 are required") as caught:
        output_floor(two, 5, need=need, allow_small=False)
    assert caught.value.exit_code == 3
    assert "pain" not in str(caught.value)


def test_no_word_is_in_a_refusal():
    with pytest.raises(InputError) as caught:
        output_floor(vectors(["secretword"], [1], 60), 5, need=1, allow_small=False)
    assert "secretword" not in str(caught.value)


ODD = [
    "new_york",
    "don't",
    "covid19",
    "",
    "The",
    "a b",
    "x-ray",
    "42",
    "pain.",
    "soft\u00adhyphen",
    "ﬁt",
    "\u00a0",
    "½",
]
FINE = ["pain", "josé", "straße"[:4] + "sse", "боль", "中文", "naïve", "a"]


@pytest.mark.parametrize("word", ODD)
def test_forms_that_fall_apart_are_not_usable(word):
    assert usable([word]).tolist() == [False]


def test_single_lookup_forms_are_usable():
    assert usable(FINE).all()


@given(st.lists(st.text(max_size=8), max_size=5))
def test_usable_words_read_back_as_themselves(texts):
    for text, fine in zip(texts, usable(texts), strict=True):
        assert bool(fine) == (words_of(text) == [text])
        if fine:
            assert words_of(f"3 {text}, {text}") == [text, text]
