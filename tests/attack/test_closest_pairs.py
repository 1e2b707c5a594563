"""The list of closest pairs, against all pairs sorted: three metrics, ties, any blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist

from clinveil.attacks.vectors import _name_pairs as room
from clinveil.attacks.vectors._name_pairs import METRICS, closest_pairs
from clinveil.core import UsageError


def brute(matrix, k, metric):
    """All pairs, sorted by distance, first row, second row."""
    exact = matrix.astype(np.float64)
    first, second = np.triu_indices(len(matrix), 1)
    if metric == "cosine":
        lengths = np.sqrt((exact**2).sum(axis=1))
        scale = np.divide(1, lengths, out=np.zeros(len(matrix)), where=lengths > 0)
        similarity = (exact @ exact.T) * (scale[:, None] * scale)
        distances = np.float32(1) - similarity[first, second].astype(np.float32)
    else:
        distances = pdist(exact, metric).astype(np.float32)
    order = np.lexsort((second, first, distances))[:k]
    return first[order], second[order], distances[order]


def assert_equal(found, expected):
    first, second, distances = expected
    np.testing.assert_array_equal(found.distances, distances)
    np.testing.assert_array_equal(found.first, first)
    np.testing.assert_array_equal(found.second, second)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows."""
    monkeypatch.setattr(room, "_AT_ONCE", 2_000)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 50, 3000, 10**6])
def test_equals_brute_force(metric, k, small_blocks):
    matrix = np.random.default_rng(1).normal(size=(300, 17)).astype(np.float32)
    assert_equal(closest_pairs(matrix, k, metric), brute(matrix, k, metric))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [7, 900])
def test_ties_go_to_the_lower_rows(metric, k, small_blocks):
    """Few distinct whole-numbered vectors, zero vectors among them: most distances are ties."""
    matrix = np.random.default_rng(2).integers(-1, 2, size=(250, 3)).astype(np.float32)
    found = closest_pairs(matrix, k, metric)
    assert len(np.unique(found.distances)) < 5
    assert_equal(found, brute(matrix, k, metric))


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_far_from_the_origin_and_of_unlike_lengths(metric, small_blocks):
    rng = np.random.default_rng(3)
    matrix = (rng.normal(size=(300, 40)) * rng.lognormal(sigma=2, size=(300, 1)) + 50).astype(
        np.float32
    )
    assert_equal(closest_pairs(matrix, 400, metric), brute(matrix, 400, metric))


@pytest.mark.parametrize("metric", METRICS)
def test_the_usual_blocks_too(metric):
    matrix = np.random.default_rng(4).normal(size=(600, 100)).astype(np.float32)
    assert_equal(closest_pairs(matrix, 600, metric), brute(matrix, 600, metric))


@pytest.mark.parametrize("metric", METRICS)
@given(
    matrix=arrays(
        np.float32, st.tuples(st.integers(2, 12), st.integers(1, 5)), elements=st.integers(-3, 3)
    )
)
def test_any_small_matrix(metric, matrix):
    assert_equal(closest_pairs(matrix, 20, metric), brute(matrix, 20, metric))


def test_fewer_than_two_rows_have_no_pairs():
    for n in (0, 1):
        assert len(closest_pairs(np.ones((n, 3), np.float32), 5, "cosine").first) == 0


def test_bad_questions_are_refused():
    with pytest.raises(UsageError, match="unknown metric"):
        closest_pairs(np.ones((3, 2), np.float32), 5, "manhattan")
    with pytest.raises(ValueError, match="k must be at least 1"):
        closest_pairs(np.ones((3, 2), np.float32), 0, "cosine")
