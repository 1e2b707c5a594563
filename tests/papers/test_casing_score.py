"""Letter case without a model: alphabet, score by hand, floors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.clinicalnlp_2019.case_lines import (
    NEWLINE,
    UNKNOWN,
    alphabet_of,
    by_owner,
    candidates,
    count_words,
    encoded,
    permuted,
    restore_usual,
    score,
    stream,
    upper_of,
    usual_casings,
)

any_text = st.text(max_size=30)


def test_score_by_hand():
    reference = ["The cat of Anna Smith", "no capitals here", "MRI of iPhone"]
    restored = ["The cat Of anna Smith", "no capitals here", "Mri of iPhone"]
    counts = count_words(reference, restored)
    # right with a capital: The, Smith, iPhone; proposed are also Of and Mri; true ones also Anna
    # and MRI
    assert counts.tolist() == [[2, 3, 3, 5], [0, 0, 0, 3], [1, 2, 2, 3]]
    found = score(counts)
    assert found == pytest.approx((3 / 5, 3 / 5, 3 / 5))
    assert by_owner(counts, ["q", "p", "q"]).tolist() == [[0, 0, 0, 3], [3, 5, 5, 8]]
    assert by_owner(counts, None) is counts


def test_precision_and_recall_differ():
    found = score(count_words(["A b c D"], ["A B c d"]))
    assert (found.precision, found.recall, found.f1) == (0.5, 0.5, 0.5)
    found = score(count_words(["A B C d"], ["A b c d"]))
    assert (found.precision, found.recall, found.f1) == (1, pytest.approx(1 / 3), 0.5)


def test_nothing_to_divide_by_is_nought():
    assert score(count_words(["a b"], ["a b"])) == (0, 0, 0)
    assert score(count_words([], [])) == (0, 0, 0)


def test_a_lost_word_is_refused():
    with pytest.raises(ValueError, match="another number of words"):
        count_words(["a b"], ["ab"])


@given(st.lists(any_text, max_size=5))
def test_the_truth_scores_one_and_lower_case_scores_none(lines):
    lines = [" ".join(line.split()) for line in lines]
    truth = score(count_words(lines, lines))
    lower = score(count_words(lines, [line.lower() for line in lines]))
    assert truth.f1 == truth.precision == truth.recall
    assert truth.f1 == (1 if any(line != line.lower() for line in lines) else 0)
    assert lower.recall == 0


@pytest.mark.parametrize(
    ("character", "upper"),
    [
        ("a", "A"),
        ("é", "É"),
        ("ж", "Ж"),
        ("ß", None),
        ("ŉ", None),
        ("ı", None),
        ("ς", None),
        ("7", None),
        ("A", None),
    ],
)
def test_upper_forms_are_one_to_one(character, upper):
    assert upper_of(character) == upper


@given(st.characters())
def test_upper_forms_come_back(character):
    upper = upper_of(character)
    assert upper is None or (len(upper) == 1 and upper.lower() == character)


def test_alphabet_by_hand():
    characters = alphabet_of(["bA", "a!"])
    assert characters.ids == {"\n": NEWLINE, "!": 2, "A": 3, "a": 4, "b": 5}
    assert len(characters) == 6
    assert encoded(characters, "aAz\n").tolist() == [4, 3, UNKNOWN, NEWLINE]
    assert stream(characters, ["b", "a"]).tolist() == [5, 1, 4, 1]
    # b has an upper form that training does not hold, z is unknown itself
    assert candidates(characters, "ab!z").tolist() == [[4, 3], [5, -1], [2, -1], [0, -1]]


def test_usual_casings_by_hand():
    usual = usual_casings(["The MRI of the pt", "the mri The", "MRI Anna"])
    assert usual == {"the": "The", "mri": "MRI", "of": "of", "pt": "pt", "anna": "Anna"}
    assert restore_usual(["the  mri of zoe"], usual) == ["The MRI of zoe"]


@given(st.lists(any_text, max_size=4), st.integers(0, 5))
def test_dealing_casings_anew_keeps_the_words(lines, seed):
    lines = [" ".join(line.split()) for line in lines]
    dealt = permuted(lines, np.random.default_rng(seed))
    assert [len(line.split()) for line in dealt] == [len(line.split()) for line in lines]
    ascii_only = all(line.isascii() for line in lines)
    if ascii_only:
        assert [line.lower() for line in dealt] == [line.lower() for line in lines]


def test_dealing_casings_anew_moves_capitals():
    lines = ["Anna saw bob and Carl there in Delhi"] * 20
    dealt = permuted(lines, np.random.default_rng(0))
    counts = count_words(lines, dealt)
    assert 0.2 < score(counts).recall < 0.6
    assert counts[:, 1].sum() == counts[:, 2].sum()
