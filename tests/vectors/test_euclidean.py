"""The nearest word to a point, against brute force in float64, whatever the blocks and threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core.errors import InputError
from clinveil.vectors.search import Candidates, nearest_distances


def brute(points, matrix, eligible, own=None):
    distances = ((points[:, None].astype(np.float64) - matrix[None].astype(np.float64)) ** 2).sum(axis=2)
    distances[:, ~eligible] = np.inf
    if own is not None:
        distances[np.arange(len(points)), own] = np.inf
    return distances


def space(n, dim, seed=0, spread=1.0):
    """Vectors whose lengths differ as much as those of frequent and rare words do."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.normal(0, spread, size=(n, 1)))
    return (rng.normal(size=(n, dim)) * lengths).astype(np.float32), rng


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 2048, 2049, 5000])
def test_nearest_equals_brute_force_for_any_number_of_candidates(n):
    matrix, rng = space(n, 7)
    eligible = np.ones(n, dtype=bool)
    eligible[1::3] = False
    points = (matrix[rng.integers(0, n, 60)] + rng.normal(size=(60, 7))).astype(np.float32)
    rows = Candidates.of(matrix, eligible).nearest(points)
    assert rows.tolist() == brute(points, matrix, eligible).argmin(axis=1).tolist()


@pytest.mark.parametrize("far", [0.01, 1.0, 1e3, 1e6])
def test_points_far_away_are_rounded_right(far):
    matrix, rng = space(3000, 12, seed=1)
    points = (rng.normal(size=(80, 12)) * far).astype(np.float32)
    rows = Candidates.of(matrix, np.ones(3000, dtype=bool)).nearest(points)
    exact = points.astype(np.float64) @ matrix.astype(np.float64).T - (matrix.astype(np.float64) ** 2).sum(axis=1) / 2
    best = exact[np.arange(80), rows]
    assert best == pytest.approx(exact.max(axis=1), rel=1e-12)


def test_the_answer_does_not_depend_on_the_block():
    matrix, rng = space(4000, 9, seed=2)
    candidates = Candidates.of(matrix, np.ones(4000, dtype=bool))
    points = (matrix[:300] + rng.normal(size=(300, 9)) * 0.3).astype(np.float32)
    whole = candidates.nearest(points)
    assert whole.tolist() == [int(candidates.nearest(points[i : i + 1])[0]) for i in range(300)]


def test_words_at_the_same_place_give_the_lower_row():
    matrix = np.array([[5, 5], [1, 0], [1, 0], [0, 0]], dtype=np.float32)
    candidates = Candidates.of(matrix, np.array([True, False, True, True]))
    assert candidates.nearest(np.array([[1, 0]], dtype=np.float32)).tolist() == [2]
    every = Candidates.of(matrix, np.ones(4, dtype=bool))
    assert every.nearest(np.array([[1, 0], [0.5, 0]], dtype=np.float32)).tolist() == [1, 1]


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 99))
def test_distances_equal_brute_force(n, dim, seed):
    matrix, rng = space(n, dim, seed)
    eligible = rng.random(n) < 0.7
    eligible[rng.integers(n)] = True
    expected = np.sqrt(brute(matrix, matrix, eligible, np.arange(n)).min(axis=1))
    assert nearest_distances(matrix, eligible) == pytest.approx(expected, rel=1e-6)


def test_distances_are_the_same_for_any_threads():
    matrix, _ = space(1500, 5, seed=3)
    eligible = np.arange(1500) % 2 == 0
    assert (nearest_distances(matrix, eligible, threads=1) == nearest_distances(matrix, eligible, threads=3)).all()


def test_a_lone_word_has_no_neighbour():
    assert nearest_distances(np.ones((1, 3), np.float32), np.array([True])).tolist() == [np.inf]
    one, other = nearest_distances(np.array([[0.0], [3.0]], np.float32), np.array([True, False])).tolist()
    assert (one, other) == (np.inf, 3.0)


def test_no_candidate_is_refused():
    with pytest.raises(InputError, match="no word may be an output"):
        Candidates.of(np.ones((3, 2), np.float32), np.zeros(3, dtype=bool))
