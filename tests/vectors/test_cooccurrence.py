"""Co-occurrence counts: against a ten-line loop, by hand, and out of core."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from clinveil.corpus.corpus import memory_corpus
from clinveil.vectors.encoded import END, encode
from clinveil.vectors.glove import cooccurrence
from clinveil.vectors.glove.cooccurrence import Cooccurrences, count_pairs, unit_of

NOTES = st.lists(st.lists(st.integers(0, 40), max_size=60), max_size=8)


def loop(notes, window, symmetric):
    """The definition, as a reader would write it."""
    counts = defaultdict(Fraction)
    for note in notes:
        for here, word in enumerate(note):
            for before in range(max(0, here - window), here):
                weight = Fraction(1, here - before)
                counts[note[before], word] += weight
                if symmetric:
                    counts[word, note[before]] += weight
    return counts


def encoded(notes):
    return np.array([i for note in notes for i in [*note, END]], dtype=np.int32)


def counted(notes, tmp_path, *, window=3, symmetric=True, memory_mb=1.0, workers=1, batches=1):
    parts = [encoded(notes[k::batches]) for k in range(batches)]
    return count_pairs(parts, window=window, symmetric=symmetric, memory_mb=memory_mb, workers=workers, folder=tmp_path)


def table(counts: Cooccurrences):
    """All counts as a dictionary, both orders of a symmetric pair; every pair must come once, in order."""
    found = [(r, c, x) for block in counts.blocks() for r, c, x in zip(*(a.tolist() for a in block), strict=True)]
    keys = [(r, c) for r, c, _ in found]
    assert keys == sorted(set(keys))
    if counts.symmetric:
        assert all(r <= c for r, c in keys)
        found += [(c, r, x) for r, c, x in found]
    return {(r, c): x for r, c, x in found}


@pytest.mark.parametrize("symmetric", [True, False])
@given(notes=NOTES, window=st.integers(1, 22))
@hypothesis_settings(deadline=None, max_examples=60)
def test_counts_are_those_of_the_loop(tmp_path_factory, symmetric, notes, window):
    folder = tmp_path_factory.mktemp("runs")
    found = table(counted(notes, folder, window=window, symmetric=symmetric))
    assert found == {pair: float(x) for pair, x in loop(notes, window, symmetric).items()}


@given(notes=NOTES, window=st.sampled_from([23, 40, 100]))
@hypothesis_settings(deadline=None, max_examples=20)
def test_beyond_window_22_counts_are_right_to_seven_digits(tmp_path_factory, notes, window):
    found = table(counted(notes, tmp_path_factory.mktemp("runs"), window=window))
    wanted = loop(notes, window, True)
    assert found.keys() == wanted.keys()
    assert all(found[pair] == pytest.approx(float(x), rel=1e-7) for pair, x in wanted.items())


@given(notes=st.lists(st.permutations(range(50)), min_size=2, max_size=4))
@hypothesis_settings(deadline=None, max_examples=20)
def test_a_tiny_memory_spills_sorted_private_runs_and_changes_nothing(tmp_path_factory, notes):
    folder = tmp_path_factory.mktemp("runs")
    small = counted(notes, folder, window=5, memory_mb=0.0001, batches=3)
    files = sorted(folder.iterdir())
    assert len(files) >= 2
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert (np.diff(np.fromfile(file, cooccurrence.RECORD)["key"]) > 0).all()
    assert table(small) == {pair: float(x) for pair, x in loop(notes, 5, True).items()}


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
def test_the_merge_does_not_depend_on_how_much_it_reads_at_a_time(tmp_path, chunk):
    rng = np.random.default_rng(0)
    notes = [rng.integers(0, 50, 80).tolist() for _ in range(10)]
    small = counted(notes, tmp_path, memory_mb=0.0001)
    again = Cooccurrences(small.runs, small.unit, small.symmetric, chunk)
    assert table(again) == {pair: float(x) for pair, x in loop(notes, 3, True).items()}


@pytest.mark.parametrize("memory_mb", [0.02, 8.0])
@pytest.mark.parametrize("workers", [1, 3])
def test_memory_and_workers_change_no_bit(tmp_path, memory_mb, workers):
    rng = np.random.default_rng(1)
    notes = [(rng.zipf(1.3, 100) % 5000).tolist() for _ in range(40)]
    one = counted(notes, tmp_path, window=10)
    (tmp_path / "other").mkdir()
    other = counted(notes, tmp_path / "other", window=10, memory_mb=memory_mb, workers=workers, batches=20)
    assert bool(list((tmp_path / "other").iterdir())) == (memory_mb < 1)
    assert table(other) == table(one)


def test_a_table_grows_without_losing_a_pair(tmp_path, monkeypatch):
    monkeypatch.setattr(cooccurrence, "_FIRST_SLOTS", 16)
    notes = [list(range(2000))]
    found = table(counted(notes, tmp_path, window=3, symmetric=False))
    assert found == {(i, i + d): 1 / d for d in (1, 2, 3) for i in range(2000 - d)}
    assert not list(tmp_path.iterdir())


def test_by_hand(tmp_path):
    # "a b a" and "b a": a-b stand side by side three times; the two a's are two apart, seen from either side.
    notes = [[0, 1, 0], [1, 0]]
    assert table(counted(notes, tmp_path, window=2)) == {(0, 1): 3.0, (1, 0): 3.0, (0, 0): 1.0}
    assert table(counted(notes, tmp_path, window=2, symmetric=False)) == {(0, 1): 1.0, (1, 0): 2.0, (0, 0): 0.5}
    assert table(counted(notes, tmp_path, window=1)) == {(0, 1): 3.0, (1, 0): 3.0}


def test_windows_do_not_cross_notes(tmp_path):
    assert table(counted([[0], [1], [], [2]], tmp_path, window=5)) == {}
    assert table(counted([], tmp_path, window=5)) == {}


def test_the_largest_ids_do_not_collide(tmp_path):
    top = 2**31 - 1
    assert table(counted([[top, 0, top - 1]], tmp_path, window=1, symmetric=False)) == {
        (top, 0): 1.0,
        (0, top - 1): 1.0,
    }


def test_the_unit_divides_by_every_distance_up_to_22():
    assert all(unit_of(window) % d == 0 for window in range(1, 23) for d in range(1, window + 1))
    assert unit_of(10) == 2520
    assert unit_of(1000) == 1 << 30


def test_encoding_skips_null_texts_and_closes_over_words_without_an_id():
    corpus = memory_corpus(
        [("1", "p", "Ünder the NEEDLE's eye 12"), ("2", "p", None), ("3", "q", ""), ("4", "q", "eye")]
    )
    (ids,) = encode(corpus, {"ünder": 4, "needle": 7, "eye": 0})
    assert ids.tolist() == [4, 7, 0, END, END, 0, END]
    assert ids.dtype == np.int32


def test_nothing_but_runs_is_written(tmp_path: Path):
    before = os.umask(0)
    try:
        counted([list(range(60))] * 5, tmp_path, window=8, memory_mb=0.0001)
    finally:
        os.umask(before)
    assert {f.suffix for f in tmp_path.iterdir()} == {".run"}
    assert {stat.S_IMODE(f.stat().st_mode) for f in tmp_path.iterdir()} == {0o600}
