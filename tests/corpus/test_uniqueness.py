"""What stands twice, on disk as in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core.errors import InputError
from clinveil.corpus import uniqueness
from clinveil.corpus.uniqueness import BUCKETS, HashLog, count_conflicts, count_repeats, hashes, refuse_repeats


def filled(keys: list[int], tags: list[int] | None = None, *, in_memory: int, size: int = 3) -> HashLog:
    log = HashLog(in_memory)
    for start in range(0, len(keys), size):
        part = np.array(keys[start : start + size], dtype=np.uint64)
        log.add(part, None if tags is None else np.array(tags[start : start + size], dtype=np.uint64))
    return log


# Keys from all over the 64 bits, so that they fall into different buckets, and few enough that they meet.
KEYS = st.lists(st.sampled_from([0, 1, 2**56 - 1, 2**56, 2**63, 2**64 - 1, 2**64 - 2, 12345 << 40]), max_size=40)


@settings(max_examples=60, deadline=None, database=None)
@given(KEYS, st.integers(1, 50), st.data())
def test_counts_are_those_of_a_dictionary(keys: list[int], in_memory: int, data: st.DataObject) -> None:
    tags = data.draw(st.lists(st.integers(0, 2), min_size=len(keys), max_size=len(keys)))
    seen: dict[int, set[int]] = {}
    for key, tag in zip(keys, tags, strict=True):
        seen.setdefault(key, set()).add(tag)
    log = filled(keys, tags, in_memory=in_memory)
    assert count_conflicts(log) == sum(len(t) > 1 for t in seen.values())
    log.close()
    log = filled(keys, in_memory=in_memory)
    assert count_repeats(log) == len(keys) - len(seen)
    log.close()


def test_groups_are_sorted_and_hold_a_key_once() -> None:
    keys = [int(k) for k in np.random.default_rng(3).integers(0, 2**64, 5000, dtype=np.uint64)] * 2
    log = filled(keys, in_memory=700, size=100)
    groups = [k.tolist() for k, _ in log.groups()]
    assert len(groups) == BUCKETS
    assert [k for g in groups for k in g] == sorted(keys)
    log.close()


def test_hashes_tell_texts_apart() -> None:
    found = hashes(str(i) for i in range(100_000))
    assert found.dtype == np.uint64
    assert len(np.unique(found)) == 100_000


@pytest.mark.parametrize("in_memory", [1, 4, 1000])
def test_the_row_of_the_second_is_named(in_memory: int) -> None:
    batches = [["a", "b", "c"], ["d", "b"], ["e", "a"]]
    log = HashLog(in_memory)
    for batch in batches:
        log.add(hashes(batch))
    with pytest.raises(InputError) as caught:
        refuse_repeats(log, lambda: iter(batches), "f.csv")
    assert str(caught.value).startswith("f.csv, row 5: duplicate id, already used in row 2")


def test_two_ids_with_one_hash_are_no_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    def collide(values: list[str]) -> np.ndarray:
        return np.array([7 for _ in values], dtype=np.uint64)

    monkeypatch.setattr(uniqueness, "hashes", collide)
    log = HashLog()
    log.add(collide(["a", "b"]))
    refuse_repeats(log, lambda: iter([["a", "b"]]), "f.csv")
    with pytest.raises(InputError, match="row 3"):
        log.add(collide(["a"]))
        refuse_repeats(log, lambda: iter([["a", "b"], ["a"]]), "f.csv")


def test_without_suspicion_the_ids_are_not_read_again() -> None:
    log = HashLog()
    log.add(hashes(["a", "b"]))
    refuse_repeats(log, lambda: pytest.fail("read again"), "f.csv")
