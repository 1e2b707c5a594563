"""Letter case without a model: alphabet, score by hand, floors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.clinicalnlp_2019.case_lines import (
    by_owner,
    count_words,
    permuted,
    restore_usual,
    score,
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


def test_usual_casings_by_hand():
    usual = usual_casings(["The MRI of the pt", "the mri The", "MRI Anna"])
    assert usual == {"the": "The", "mri": "MRI", "of": "of", "pt": "pt", "anna": "Anna"}
    assert restore_usual(["the  mri of zoe"], usual) == ["The MRI of zoe"]


def test_dealing_casings_anew_moves_capitals():
    lines = ["Anna saw bob and Carl there in Delhi"] * 20
    dealt = permuted(lines, np.random.default_rng(0))
    counts = count_words(lines, dealt)
    assert 0.2 < score(counts).recall < 0.6
    assert counts[:, 1].sum() == counts[:, 2].sum()
