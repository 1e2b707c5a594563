"""The sample of keys: all where there is room, else the same ones for any order, complete, and
uniform.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clinveil.corpus import KeySample


def gathered(keys, limit, seed=1):
    sample = KeySample(limit, np.random.default_rng(seed))
    for key in keys:
        heard = sample.offer(key, Counter)
        if heard is not None:
            heard[key] += 1
    return sample


@given(st.lists(st.text(max_size=3), max_size=40), st.integers(0, 50), st.randoms())
def test_kept_keys_are_complete_and_the_same_for_any_order(keys, limit, random):
    sample = gathered(keys, limit)
    distinct = set(keys)
    assert len(sample.values) == min(limit, len(distinct)) and sample.left_out == (
        len(distinct) > limit
    )
    assert {key: heard[key] for key, heard in sample.values.items()} == {
        k: keys.count(k) for k in sample.values
    }
    shuffled = random.sample(keys, len(keys))
    assert gathered(shuffled, limit).values == sample.values


def test_every_key_has_the_same_chance():
    kept = Counter(
        key for seed in range(400) for key in gathered(map(str, range(20)), 5, seed).values
    )
    # Binomial(400, 1/4): sd 8.7.
    assert set(kept) == set(map(str, range(20))) and all(60 < n < 140 for n in kept.values())


def test_another_seed_keeps_others_and_lone_surrogates_are_keys():
    keys = [f"k{i}" for i in range(100)]
    assert gathered(keys, 10, 1).values.keys() != gathered(keys, 10, 2).values.keys()
    assert "\ud800" in gathered(["\ud800"], 3).values
