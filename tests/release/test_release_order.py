"""Rows by rank, through files: the same for any batches, and nothing is lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from clinveil.core import Key
from clinveil.corpus import ROLE_FIELDS
from clinveil.releases import crosswalk
from clinveil.releases.crosswalk import Renamer, by_new_id, by_source, reordered


def batches(ids, size):
    rows = [{"note_id": i, "patient_id": "p" + i, "text": f"text of {i}"} for i in ids]
    schema = pa.schema(ROLE_FIELDS)
    return [
        pa.RecordBatch.from_pylist(rows[k : k + size], schema=schema)
        for k in range(0, len(rows), size)
    ]


def ids_of(stream):
    return [note_id for batch in stream for note_id in batch.column("note_id").to_pylist()]


def renamed(count, key, size=7):
    rename = Renamer(key, patients=True)
    return [rename(batch)[0] for batch in batches([f"n{i}" for i in range(count)], size)]


@settings(max_examples=12, deadline=None)
@given(count=st.integers(0, 120), size=st.integers(1, 50), seed=st.integers(0, 99))
def test_new_ids_are_sorted_whatever_the_batches(tmp_path_factory, count, size, seed):
    stream = renamed(count, Key.from_seed(seed), size)
    scratch = tmp_path_factory.mktemp("order") / "work"
    out = list(reordered(stream, by_new_id, scratch))
    assert ids_of(out) == sorted(ids_of(stream))
    assert sorted(text for batch in out for text in batch.column("text").to_pylist()) == sorted(
        text for batch in stream for text in batch.column("text").to_pylist()
    )
    assert not scratch.exists()


def test_the_crosswalk_brings_rows_back_and_unknown_rows_come_last(tmp_path):
    source = [f"{i:016x}0000" for i in np.random.default_rng(3).integers(0, 2**62, 1500)]
    shuffled = batches(["stranger", *sorted(source)], 13)
    ranks = by_source(iter(batches(source, 400)))
    assert ids_of(reordered(shuffled, ranks, tmp_path / "w")) == [*source, "stranger"]
    assert ids_of(reordered(shuffled[:1], by_source(iter(())), tmp_path / "w")) == ids_of(
        shuffled[:1]
    )


def test_another_key_gives_another_order_and_none_that_of_the_source(tmp_path):
    orders = []
    for seed in (1, 2):
        stream = renamed(700, Key.from_seed(seed))
        place = {note_id: number for number, note_id in enumerate(ids_of(stream))}
        orders.append([place[i] for i in ids_of(reordered(stream, by_new_id, tmp_path / "w"))])
    for one, other in ((orders[0], range(700)), (orders[1], range(700)), (orders[0], orders[1])):
        assert abs(spearmanr(one, other).statistic) < 4 / 700**0.5


def test_the_scratch_files_go_when_a_run_fails(tmp_path):
    def broken():
        yield from renamed(20, Key.from_seed(1))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        list(reordered(broken(), by_new_id, tmp_path / "w"))
    assert not (tmp_path / "w").exists()


def test_what_is_too_large_for_memory_is_dealt_again_and_comes_in_the_same_order(
    tmp_path, monkeypatch
):
    stream = renamed(80, Key.from_seed(4))
    whole = ids_of(reordered(stream, by_new_id, tmp_path / "w"))
    monkeypatch.setattr(crosswalk, "MOST", 240)
    dealt = []
    again = reordered(stream, by_new_id, tmp_path / "w")
    for batch in again:
        dealt.append(batch)
        deeper = [path for path in (tmp_path / "w").iterdir() if path.is_dir()]
        assert deeper or batch.num_rows < 10
    assert ids_of(dealt) == whole == sorted(whole)
    assert dealt[0].schema == stream[0].schema
