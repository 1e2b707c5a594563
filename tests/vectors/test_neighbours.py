"""Neighbour tables: equal to brute force, with ties, duplicates and zero vectors, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core.errors import InputError
from clinveil.vectors import neighbours as room
from clinveil.vectors.neighbours import load_neighbours, neighbours, save_neighbours
from clinveil.vectors.recall import draw_sample, recall
from clinveil.vectors.search import Space, approximate_search, build_lists
from clinveil.vectors.table import Vectors


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


def assert_equal_to_brute(matrix, k, eligible, **options):
    table = neighbours(vectors(matrix), k, eligible=eligible, threads=2, seed=0, **options)
    ids, cosines = brute(matrix, k, eligible)
    np.testing.assert_allclose(table.similarities, cosines, atol=2e-7)
    np.testing.assert_array_equal(table.ids, ids)
    return table


@pytest.mark.parametrize(("n_words", "dim", "k"), [(40, 3, 5), (700, 20, 14), (3000, 100, 14), (2112, 8, 1)])
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


def test_all_the_same_vector():
    table = neighbours(vectors(np.ones((300, 4))), 3, eligible=np.ones(300, bool), threads=2, seed=0)
    assert table.ids[0].tolist() == [1, 2, 3]
    assert table.ids[299].tolist() == [0, 1, 2]


def test_ties_go_to_the_more_frequent_word():
    matrix = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [1, -1, 0], [-1, 0, 1]]
    table = assert_equal_to_brute(matrix, 4, np.ones(6, bool))
    assert table.ids[3].tolist() == [0, 1, 2, 4]


def test_zero_vectors_are_at_cosine_zero_of_all():
    matrix = np.vstack([np.zeros((3, 2)), [[1, 0], [0.9, 0.1], [-1, 0]]])
    table = assert_equal_to_brute(matrix, 5, np.ones(6, bool))
    assert table.ids[0].tolist() == [1, 2, 3, 4, 5]
    assert (table.similarities[0] == 0).all()
    assert table.ids[3].tolist() == [4, 0, 1, 2, 5]


def test_huge_and_tiny_numbers():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((60, 5)).astype(np.float32)
    matrix[:20] *= 1e30
    matrix[20:40] *= 1e-30
    assert_equal_to_brute(matrix, 4, np.ones(60, bool))


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
            neighbours(vectors(matrix), k, eligible=eligible, threads=1, seed=0)
        return
    assert_equal_to_brute(matrix, k, eligible)


def columns(table):
    return [(column.dtype, column.tobytes()) for column in (table.ids, table.similarities, table.eligible)]


@pytest.mark.parametrize("exact", [True, False])
def test_threads_change_nothing(exact, monkeypatch):
    monkeypatch.setattr("clinveil.vectors.search._QUERIES", 300)
    rng = np.random.default_rng(3)
    matrix = np.round(rng.standard_normal((1500, 12)), 1)
    eligible = rng.random(1500) < 0.5
    tables = [
        neighbours(vectors(matrix), 6, eligible=eligible, threads=threads, seed=5, exact=exact) for threads in (1, 3)
    ]
    assert columns(tables[0]) == columns(tables[1])
    assert tables[0].meta == tables[1].meta


@pytest.mark.parametrize(
    ("k", "eligible", "match"),
    [(3, [1, 1, 1, 0, 0], "more than 3"), (0, [1] * 5, "require"), (1, [0] * 5, "there are 0"), (1, [1] * 4, "mask")],
)
def test_what_cannot_be_is_refused(k, eligible, match):
    with pytest.raises(InputError, match=match):
        neighbours(vectors(np.eye(5)), k, eligible=np.array(eligible, bool), threads=1, seed=0)


def clustered(rng, n_words, dim=24):
    centres = rng.standard_normal((60, dim))
    return centres[rng.integers(0, 60, n_words)] + 0.5 * rng.standard_normal((n_words, dim))


@pytest.mark.slow
def test_the_approximate_table_reports_its_true_recall():
    rng = np.random.default_rng(4)
    matrix, counts = clustered(rng, 3000), np.sort(rng.zipf(1.5, 3000).clip(max=10**6))[::-1].copy()
    eligible = np.ones(3000, bool)
    table = neighbours(vectors(matrix, counts), 10, eligible=eligible, threads=2, seed=7, exact=False)
    _, true = brute(matrix, 10, eligible)
    hits = (table.similarities >= true[:, -1:] - 1e-7).mean(axis=1)
    by_token = (hits * counts).sum() / counts.sum()
    assert table.recall == pytest.approx(by_token, abs=0.02)
    assert by_token >= 0.95
    assert table.meta["method"] == "inverted lists"
    assert table.meta["lists_probed"] < table.meta["lists"]
    bands = table.meta["recall_by_band"]
    assert sum(band["words"] for band in bands) == 3000
    assert sum(band["token_share"] for band in bands) == pytest.approx(1, abs=1e-5)
    assert sum(band["sampled"] for band in bands) == room.SAMPLED


def test_all_lists_probed_is_the_exact_table():
    rng = np.random.default_rng(6)
    space = Space.of(clustered(rng, 900).astype(np.float32))
    candidates, queries = np.arange(0, 900, 2, dtype=np.int32), np.arange(900, dtype=np.int32)
    lists = build_lists(space, candidates, n_lists=12, seed=1)
    assert (len(lists), lists.index.ntotal) == (12, candidates.size)
    ids, _ = approximate_search(space, lists, queries, 9, n_probed=12, threads=2)
    np.testing.assert_array_equal(ids, brute(space.matrix, 9, np.arange(900) % 2 == 0)[0])


def test_a_query_whose_lists_are_too_short_is_searched_exactly():
    rng = np.random.default_rng(8)
    space = Space.of(clustered(rng, 200).astype(np.float32))
    queries = np.arange(200, dtype=np.int32)
    lists = build_lists(space, queries, n_lists=60, seed=1)
    ids, cosines = approximate_search(space, lists, queries, 30, n_probed=1, threads=1)
    assert (cosines > -1.5).all()
    true = brute(space.matrix, 30, np.ones(200, bool))[0]
    short = [lists.index.invlists.list_size(i) <= 30 for i in range(60)]
    assert any(short)
    assert (ids == true).all(axis=1).mean() >= 0.5


def test_the_choice_between_exact_and_approximate(monkeypatch):
    matrix = np.random.default_rng(9).standard_normal((50, 4))
    assert neighbours(vectors(matrix), 3, eligible=np.ones(50, bool), threads=1, seed=0).meta["method"] == "exact"
    monkeypatch.setattr(room, "EXACT_UP_TO", 50 * 50 - 1)
    table = neighbours(vectors(matrix), 3, eligible=np.ones(50, bool), threads=1, seed=0)
    assert table.meta["method"] == "inverted lists"


def test_recall_by_hand():
    counts = np.array([50, 50, 1, 1], np.int64)
    sample = draw_sample(counts, 4, 100, np.random.default_rng(0))
    true = np.array([[0.9, 0.8]] * 4, np.float32)
    found = np.array([[0.9, 0.8], [0.9, 0.7], [0.7, 0.6], [0.9, 0.8]], np.float32)
    share, bands = recall(sample, found, true)
    assert share == pytest.approx((50 * 1 + 50 * 0.5 + 0 + 1) / 102)
    assert [(band["band"], band["words"], band["recall"]) for band in bands] == [
        ("count 1", 2, 0.5),
        ("count 10-99", 2, 0.75),
    ]


def test_without_counts_the_bands_are_places():
    sample = draw_sample(None, 500, 60, np.random.default_rng(0))
    assert sample.names[0] == "place 1"
    assert len(sample.rows) == 60
    assert sample.weight.sum() == pytest.approx(1)


@pytest.fixture
def table():
    rng = np.random.default_rng(10)
    return neighbours(vectors(rng.standard_normal((80, 4))), 5, eligible=rng.random(80) < 0.9, threads=1, seed=0)


def test_a_table_survives_the_disk(table, tmp_path):
    save_neighbours(table, tmp_path / "table")
    back = load_neighbours(tmp_path / "table")
    assert columns(back) == columns(table)
    assert (back.recall, back.meta) == (table.recall, table.meta)
    assert (tmp_path / "table").stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "table").iterdir()} == {0o600}


@pytest.mark.parametrize("broken", ["ids.npy", "similarities.npy", "eligible.npy", "meta.json"])
@pytest.mark.parametrize("how", ["missing", "cut", "other"])
def test_a_broken_table_is_refused(table, tmp_path, broken, how):
    save_neighbours(table, tmp_path / "table")
    file = tmp_path / "table" / broken
    if how == "missing":
        file.unlink()
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:20])
    else:
        np.save(file.with_suffix(".npy"), np.array(["a", "b"]))
        file.with_suffix(".npy").replace(file)
    with pytest.raises(InputError, match=broken):
        load_neighbours(tmp_path / "table")


def test_an_array_of_objects_is_not_unpickled(table, tmp_path):
    save_neighbours(table, tmp_path / "table")
    np.save(tmp_path / "table" / "ids.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="ids"):
        load_neighbours(tmp_path / "table")


def test_the_arrays_are_read_only():
    vectors = Vectors(["a", "b", "c"], np.eye(3, dtype=np.float32), np.array([3, 2, 1]), np.array([2, 1, 1]))
    table = neighbours(vectors, 1, eligible=np.ones(3, dtype=np.bool_), threads=1, seed=0)
    held = [vectors.matrix, vectors.counts, vectors.patients, table.ids, table.similarities, table.eligible]
    assert not any(array.flags.writeable for array in held)
