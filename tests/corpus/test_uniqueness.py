"""Values that occur twice in a stream."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.corpus import Hashes, hashes, n_distinct, positions_of, uniqueness
from clinveil.corpus.uniqueness import repeated


def batches_of(numbers: list[int], size: int = 3) -> list[Hashes]:
    return [
        np.array(numbers[start : start + size], dtype=np.uint64)
        for start in range(0, len(numbers), size)
    ]


KEYS = st.lists(
    st.sampled_from([0, 1, 2**56 - 1, 2**56, 2**63, 2**64 - 1, 2**64 - 2, 12345 << 40]), max_size=40
)


@settings(max_examples=60, deadline=None, database=None)
@given(KEYS)
def test_distinct_keys_are_those_of_a_set(keys: list[int]) -> None:
    assert n_distinct(batches_of(keys)) == len(set(keys))


@given(KEYS, KEYS)
def test_places_are_those_of_a_list(keys: list[int], wanted: list[int]) -> None:
    ascending = sorted(set(keys))
    found = positions_of(np.array(ascending, dtype=np.uint64), np.array(wanted, dtype=np.uint64))
    assert found.tolist() == [ascending.index(key) if key in ascending else -1 for key in wanted]


def test_the_row_of_the_second_is_named() -> None:
    batches = [["a", "b", "c"], ["d", "b"], ["e", "a"]]
    assert repeated([hashes(batch) for batch in batches], lambda: iter(batches)) == (2, 5)


def test_two_ids_with_one_hash_are_no_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    def collide(values: list[str]) -> np.ndarray:
        return np.array([7 for _ in values], dtype=np.uint64)

    monkeypatch.setattr(uniqueness, "hashes", collide)
    assert repeated([collide(["a", "b"])], lambda: iter([["a", "b"]])) is None
    assert repeated([collide(["a", "b"]), collide(["a"])], lambda: iter([["a", "b"], ["a"]])) == (
        1,
        3,
    )


def test_without_suspicion_the_ids_are_not_read_again() -> None:
    assert repeated([hashes(["a", "b"])], lambda: pytest.fail("read again")) is None


def test_hashes_are_the_same_in_every_process() -> None:
    script = "from clinveil.corpus.uniqueness import hashes; print(hashes(['a', 'b']).tolist())"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    ).stdout
    assert found.strip() == str(hashes(["a", "b"]).tolist())
