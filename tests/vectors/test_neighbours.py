"""Neighbour tables: equal to brute force, with ties, duplicates and zero vectors, for any number of
threads.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core import InputError
from clinveil.vectors import Vectors, neighbours, save_neighbours


def name(row):
    return "w" + "".join(chr(97 + int(digit)) for digit in str(row))


def vectors(matrix, counts=None):
    matrix = np.asarray(matrix, dtype=np.float32)
    return Vectors([name(row) for row in range(len(matrix))], matrix, counts)


def brute(matrix, k, eligible):
    """Rows and cosines of the k best, by cosine rounded to float32, then by row."""
    matrix = np.asarray(matrix, np.float32).astype(np.float64)
    lengths = np.sqrt((matrix**2).sum(axis=1))
    scale = np.divide(1, lengths, out=np.zeros(len(matrix)), where=lengths > 0)
    cosines = ((matrix @ matrix.T) * (scale[:, None] * scale[None, :])).astype(np.float32)
    cosines[:, ~eligible] = -5
    np.fill_diagonal(cosines, -5)
    ids = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(cosines, ids, axis=1)


def assert_equal_to_brute(matrix, k, eligible):
    table = neighbours(vectors(matrix), k, eligible=eligible, threads=2)
    ids, cosines = brute(matrix, k, eligible)
    np.testing.assert_allclose(table.similarities, cosines, atol=2e-7)
    np.testing.assert_array_equal(table.ids, ids)
    return table


@pytest.mark.parametrize(
    ("n_words", "dim", "k"), [(40, 3, 5), (700, 20, 14), (3000, 100, 14), (2112, 8, 1)]
)
def test_random_vectors_equal_brute_force(n_words, dim, k):
    rng = np.random.default_rng(n_words)
    assert_equal_to_brute(rng.standard_normal((n_words, dim)), k, rng.random(n_words) < 0.7)


def test_duplicated_vectors_neighbour_each_other_in_order_and_never_themselves():
    rng = np.random.default_rng(1)
    matrix = np.repeat(rng.standard_normal((30, 6)), 40, axis=0)
    matrix[::3] *= 2  # the same direction at another length is a duplicate too
    table = assert_equal_to_brute(matrix, 7, np.ones(len(matrix), bool))
    assert (table.similarities == 1).all()
    assert table.ids[0].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert table.ids[3].tolist() == [0, 1, 2, 4, 5, 6, 7]


def test_zero_vectors_are_at_cosine_zero_of_all():
    matrix = np.vstack([np.zeros((3, 2)), [[1, 0], [0.9, 0.1], [-1, 0]]])
    table = assert_equal_to_brute(matrix, 5, np.ones(6, bool))
    assert table.ids[0].tolist() == [1, 2, 3, 4, 5]
    assert (table.similarities[0] == 0).all()
    assert table.ids[3].tolist() == [4, 0, 1, 2, 5]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_small_whole_numbers_equal_brute_force(data):
    n_words = data.draw(st.integers(3, 40))
    numbers = st.integers(-2, 2)
    matrix = [[data.draw(numbers) for _ in range(2)] for _ in range(n_words)]
    eligible = np.array([data.draw(st.booleans()) for _ in range(n_words)])
    k = data.draw(st.integers(1, 4))
    if eligible.sum() <= k:
        with pytest.raises(InputError, match="eligible"):
            neighbours(vectors(matrix), k, eligible=eligible, threads=1)
        return
    assert_equal_to_brute(matrix, k, eligible)


def columns(table):
    return [
        (column.dtype, column.tobytes())
        for column in (table.ids, table.similarities, table.eligible)
    ]


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("clinveil.vectors.search._PRODUCTS", 225_000)  # blocks of 300
    rng = np.random.default_rng(3)
    matrix = np.round(rng.standard_normal((1500, 12)), 1)
    eligible = rng.random(1500) < 0.5
    tables = [
        neighbours(vectors(matrix), 6, eligible=eligible, threads=threads) for threads in (1, 3)
    ]
    assert columns(tables[0]) == columns(tables[1])
    assert tables[0].meta == tables[1].meta


@pytest.mark.parametrize(
    ("k", "eligible", "match"),
    [
        (3, [1, 1, 1, 0, 0], "more than 3"),
        (0, [1] * 5, "require"),
        (1, [0] * 5, "there are 0"),
        (1, [1] * 4, "mask"),
    ],
)
def test_what_cannot_be_is_refused(k, eligible, match):
    with pytest.raises(InputError, match=match):
        neighbours(vectors(np.eye(5)), k, eligible=np.array(eligible, bool), threads=1)


@pytest.fixture
def table():
    rng = np.random.default_rng(10)
    return neighbours(
        vectors(rng.standard_normal((80, 4))), 5, eligible=rng.random(80) < 0.9, threads=1
    )


def test_a_table_survives_the_disk(table, tmp_path):
    save_neighbours(table, tmp_path / "table")
    for name in ("ids", "similarities", "eligible"):
        read = np.load(tmp_path / "table" / f"{name}.npy")
        assert (read.dtype, read.tobytes()) == (
            getattr(table, name).dtype,
            getattr(table, name).tobytes(),
        )
    meta = json.loads((tmp_path / "table" / "meta.json").read_text())
    assert meta["meta"] == table.meta and meta["secret"]
    assert (tmp_path / "table").stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "table").iterdir()} == {0o600}


def test_the_arrays_are_read_only():
    vectors = Vectors(
        ["a", "b", "c"], np.eye(3, dtype=np.float32), np.array([3, 2, 1]), np.array([2, 1, 1])
    )
    table = neighbours(vectors, 1, eligible=np.ones(3, dtype=np.bool_), threads=1)
    held = [
        vectors.matrix,
        vectors.counts,
        vectors.patients,
        table.ids,
        table.similarities,
        table.eligible,
    ]
    assert not any(array.flags.writeable for array in held)
