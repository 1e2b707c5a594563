"""Near-duplicates: equal but for case and punctuation, a sentence changed, and against exact
Jaccard similarity.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clinveil.utility import groups
from clinveil.utility.split import near_duplicates


def found(*texts):
    return near_duplicates(texts, np.random.default_rng(1)).tolist()


def prose(seed, length=120):
    return " ".join(
        np.random.default_rng(seed).choice([a + b for a in "bcdfg" for b in "aeiouy"], length)
    )


def test_a_changed_word_or_two_make_a_near_duplicate_and_another_text_does_not():
    text = prose(1)
    changed = text.split()
    changed[30] = changed[90] = "zzz"
    assert found(text, prose(2), " ".join(changed), prose(3)) == [0, 1, 0, 2]


def test_recall_and_precision_against_exact_jaccard():
    rng = np.random.default_rng(5)
    bases = [prose(i, 200).split() for i in range(40)]
    texts = [" ".join(base) for base in bases]
    for base in bases:
        copy = base.copy()
        for place in rng.choice(200, 3, replace=False):
            copy[place] = "zzz"
        texts.append(" ".join(copy))
    label = found(*texts)
    assert label[:40] == list(range(40)) and np.mean(np.array(label[40:]) == np.arange(40)) >= 0.95


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=15))
def test_groups_are_the_connected_components(links):
    label = groups(10, np.array(links, dtype=np.int64).reshape(-1, 2))
    sets = [{i} for i in range(10)]
    for a, b in links:
        merged = next(s for s in sets if a in s) | next(s for s in sets if b in s)
        sets = [s for s in sets if not s & merged] + [merged]
    assert {frozenset(np.flatnonzero(label == g).tolist()) for g in set(label.tolist())} == set(
        map(frozenset, sets)
    )
