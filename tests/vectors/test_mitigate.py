from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clinveil.core.errors import InputError, UsageError
from clinveil.core.keys import Key
from clinveil.vectors.mitigate import _uniform, add_noise, census_names, drop_rare, keep_words, scrub
from clinveil.vectors.table import Vectors

WORDS = ["the", "okonkwo", "pain", "hypertension", "smith", "zyxwv", "fever", "metformin", "xhemali"]


def made(words=WORDS, counts=True, dim=4):
    n = len(words)
    matrix = np.random.default_rng(0).normal(size=(n, dim)).astype(np.float32)
    if not counts:
        return Vectors(words, matrix)
    return Vectors(words, matrix, np.arange(n, 0, -1) * 10, np.arange(n, 0, -1), 40, {"algorithm": "cbow"})


def test_a_word_stays_if_frequent_or_clinical_and_no_name():
    kept = scrub(made(), 2, {"smith", "okonkwo", "pain"})
    # "okonkwo" passes by its frequency, and "pain" does not, being on the list of names.
    assert list(kept.words) == ["the", "okonkwo", "hypertension", "fever", "metformin"]
    assert kept.counts.tolist() == [90, 80, 60, 30, 20] and kept.patients.tolist() == [9, 8, 6, 3, 2]
    assert (kept.matrix == made().matrix[[0, 1, 3, 6, 7]]).all()
    assert kept.meta == {"algorithm": "cbow", "mitigation": {"scrub_top": 2}} and kept.n_patients == 40


def test_counts_decide_what_is_frequent_and_else_the_order():
    shuffled = Vectors(["zyxwv", "qqqq"], made(["a", "b"]).matrix, np.array([1, 5]))
    assert list(scrub(shuffled, 1, ()).words) == ["qqqq"]
    assert list(scrub(made(["zyxwv", "qqqq"], counts=False), 1, ()).words) == ["zyxwv"]


def test_census_names_hold_names_of_many_cultures():
    names = census_names()
    assert {"smith", "mary", "nguyen"} <= names and "metformin" not in names


@given(st.integers(0, 12))
def test_more_frequent_words_never_take_one_away(top):
    assert set(scrub(made(), top, {"smith"}).words) <= set(scrub(made(), top + 1, {"smith"}).words)


def test_rare_words_go_by_patients():
    kept = drop_rare(made(), 5)
    assert list(kept.words) == WORDS[:5] and kept.patients.min() == 5
    with pytest.raises(InputError, match="do not say in how many patients"):
        drop_rare(made(counts=False), 5)


def test_nothing_left_is_refused():
    with pytest.raises(InputError, match="no word would be left"):
        drop_rare(made(), 99)
    with pytest.raises(InputError, match="no word would be left"):
        keep_words(made(), np.zeros(9, dtype=bool))


def test_steps_are_recorded_together():
    after = add_noise(drop_rare(scrub(made(), 9, ()), 3), 0.5, Key.from_seed(1))
    assert set(after.meta["mitigation"]) == {"scrub_top", "min_patients", "noise", "noise_sigma", "noise_test_seed"}


def test_noise_has_the_size_that_was_asked_for():
    before = Vectors([f"w{i}" for i in range(400)], np.random.default_rng(1).normal(0, 7, (400, 50)).astype(np.float32))
    after = add_noise(before, 0.3, Key.from_seed(2))
    noise = (after.matrix - before.matrix).ravel()
    sigma = 0.3 * np.sqrt(np.mean(before.matrix.astype(float) ** 2))
    assert noise.std() == pytest.approx(sigma, rel=0.02) and after.meta["mitigation"]["noise_sigma"] == sigma
    assert stats.kstest(noise[:5_000] / sigma, "norm").pvalue > 0.001
    assert abs(np.corrcoef((after.matrix - before.matrix)[:2])[0, 1]) < 0.5


def test_no_noise_changes_nothing():
    assert (add_noise(made(), 0.0, Key.from_seed(1)).matrix == made().matrix).all()


def test_noise_is_by_word_and_key():
    vectors = made(dim=16)
    order = np.random.default_rng(3).permutation(len(WORDS))
    other = Vectors(
        [WORDS[i] for i in order], vectors.matrix[order], vectors.counts[order], vectors.patients[order], 40
    )
    one, two = (add_noise(v, 0.1, Key.from_seed(1)) for v in (vectors, other))
    assert np.array_equal(one.matrix[order], two.matrix)
    assert (add_noise(vectors, 0.1, Key.from_seed(2)).matrix != one.matrix).any()


def test_numbers_of_noise_lie_within_nought_and_one():
    drawn = _uniform(b"k" * 32, "word", 20_000)
    assert 0 < drawn.min() < 1e-3 and 1 - 1e-3 < drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > 0.001


@pytest.mark.parametrize("share", [-0.1, float("nan")])
def test_noise_that_cannot_be_is_refused(share):
    with pytest.raises(UsageError):
        add_noise(made(), share, Key.from_seed(1))


def test_a_negative_number_of_words_is_refused():
    with pytest.raises(UsageError):
        scrub(made(), -1, ())


# The command
