"""The split: nobody and no text on both sides, labels in proportion, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core import InputError
from clinveil.utility.split import splits


def first_split(*given, **how):
    return splits(*given, **how)[0]


def texts_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return [
        " ".join(rng.choice([a + b for a in "bcdfghk" for b in "aeiouy"], 40)) for _ in range(n)
    ]


@given(st.integers(12, 60), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_no_patient_and_no_text_is_on_both_sides(n, seed):
    rng = np.random.default_rng(seed)
    patients = [f"p{i}" for i in rng.integers(0, max(8, n // 2), n)] + [f"q{i}" for i in range(8)]
    texts = texts_of(n + 8, seed)
    texts[1], texts[3] = texts[0].upper(), texts[2]
    labels = [str(x) for x in rng.integers(0, 2, n + 8)]
    parts = first_split(patients, texts, labels, rng)
    train = parts.train.tolist()
    test = parts.test.tolist()
    assert sorted(train + test) == list(range(n + 8)) and test
    assert not {patients[i] for i in train} & {patients[i] for i in test}
    assert not {texts[i].lower() for i in train} & {texts[i].lower() for i in test}
    assert parts.duplicates == 2


def test_labels_keep_their_proportions():
    labels = ["rare"] * 20 + ["common"] * 180
    parts = first_split(
        [f"p{i}" for i in range(200)], texts_of(200), labels, np.random.default_rng(1)
    )
    assert sum(labels[i] == "rare" for i in parts.test) == 5 and len(parts.test) == 50


def test_the_rng_decides():
    patients = [f"p{i // 2}" for i in range(80)]
    labels = ["x", "y"] * 40
    first, again, other = (
        first_split(patients, texts_of(80), labels, np.random.default_rng(s)) for s in (1, 1, 2)
    )
    assert first.test.tolist() == again.test.tolist() != other.test.tolist()


def test_too_few_to_split():
    with pytest.raises(InputError, match="too few independent notes"):
        first_split(["p"] * 9, texts_of(9), ["x", "y", "x"] * 3, np.random.default_rng(1))
    with pytest.raises(InputError, match="no note to split"):
        first_split([], [], [], np.random.default_rng(1))
