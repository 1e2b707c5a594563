from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from association_cases import CODES, NAMES, PLACES, four, vectors
from clinveil.attacks import distance_matrix, groups
from clinveil.core import InputError, UsageError
from clinveil.corpus import Patient
from clinveil.stats import differences
from clinveil.stats.stratified import pairwise_differences
from clinveil.vectors import Vectors


def test_a_name_is_the_mean_of_its_words_and_a_diagnosis_of_its_descriptions():
    found = groups(vectors(), four(), {**CODES, "5": "flu and gas"})
    assert found.names.tolist() == [list(map(float, place)) for place in NAMES.values()]
    assert found.diagnoses.tolist() == [[0, 0], [4, 1], [1, 9], [9, 6], [4.5, 3]]
    assert found.left_out["diagnoses_in_part"] == 1  # "and" has no vector
    assert found.has.sum() == 4 and found.has[[0, 1, 2, 3], [0, 1, 2, 3]].all()
    assert found.frequency.tolist() == [11.5, 9.5, 7.5, 5.5]


@given(st.integers(2, 7), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_crossed_holds_every_name_with_every_patients_diagnoses(n, m, seed):
    rng = np.random.default_rng(seed)
    far = rng.random((n, m))
    has = np.arange(m) < rng.integers(1, m, size=(n, 1))
    table = pairwise_differences(far, has)
    for name in range(n):
        assert table[:, name] == pytest.approx(differences(np.tile(far[name], (n, 1)), has))
    assert np.diag(table) == pytest.approx(differences(far, has))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["cosine", "cityblock", "euclidean"]))
def test_distances_are_scipys(seed, metric):
    rng = np.random.default_rng(seed)
    one = rng.normal(size=(5, 3))
    two = rng.normal(size=(4, 3))
    assert distance_matrix(one, two, metric) == pytest.approx(cdist(one, two, metric))


def test_an_unknown_metric_is_a_wrong_usage():
    with pytest.raises(UsageError, match="unknown metric 'manhattan'"):
        distance_matrix(np.ones((1, 2)), np.ones((1, 2)), "manhattan")


def test_what_cannot_be_used_is_counted():
    people = [
        *four((("1",), ("2", "2"), (), ("1", "2", "3", "4"))),
        Patient("p4", ("Nobody", "Unknown"), ("1",)),
        Patient("p5", ("ANN", "Unknown"), ("1",)),
        Patient("p6", ("Dan",), ("9",)),
        Patient("p7", ("Bob", "T.", "Berg"), ("4",)),
    ]
    found = groups(vectors(), people, {**CODES, "5": "unseen words", "6": "Flu"})
    expected = {
        "patients": 8,
        "names_without_vector": 1,
        "names_in_part": 1,
        "names_of_one_word": 1,
        "shared_names": 2,  # Bob Berg, and the same with an initial
        "diagnoses_without_vector": 1,
        "diagnoses_in_part": 0,
        "diagnoses_alike": 1,
        "codes_without_description": 1,
        "no_diagnosis": 2,
        "all_diagnoses": 0,  # "Flu" is a fifth diagnosis
    }
    assert dict(found.left_out) == expected
    assert found.patients.tolist() == [0, 1, 2, 3, 5, 6, 7]
    assert found.sizes.tolist() == [1, 1, 0, 4, 1, 0, 1]
    assert found.testable.tolist() == [True, True, False, True, True, False, True]


def test_counts_come_from_the_notes_where_the_vectors_have_none():
    known = vectors()
    bare = Vectors(known.words, known.matrix)
    assert groups(bare, four(), CODES).frequency is None
    assert groups(bare, four(), CODES, counts={"ann": 3, "arne": 6}).frequency.tolist() == [
        4.5,
        0,
        0,
        0,
    ]
    assert (
        groups(known, four(), CODES, counts={"ann": 3}).frequency[0] == 11.5
    )  # its own counts win


@pytest.mark.parametrize(
    ("people", "codes", "what"),
    [
        ([], CODES, "no name has a vector"),
        ([Patient("a", ("Xaver",), ("1",))], CODES, "no name has a vector"),
        (four(), {"1": "unheard of"}, "no diagnosis has a vector"),
        (four(), {}, "no diagnosis has a vector"),
    ],
)
def test_nothing_to_compare_is_one_clear_line(people, codes, what):
    with pytest.raises(InputError, match=what):
        groups(vectors(), people, codes)


def test_nan_in_vectors_is_refused_before():
    damaged = {**PLACES, "ann": (float("nan"), 0)}
    with pytest.raises(InputError, match="1 vectors contain NaN"):
        vectors(damaged)
