"""Co-occurrence counts: against a ten-line loop, and by hand."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from clinveil.corpus import memory_corpus
from clinveil.vectors import END, count_pairs, encode

NOTES = st.lists(st.lists(st.integers(0, 40), max_size=60), max_size=8)


def loop(notes, window):
    """The definition, as a reader would write it."""
    counts = defaultdict(Fraction)
    for note in notes:
        for here, word in enumerate(note):
            for before in range(max(0, here - window), here):
                weight = Fraction(1, here - before)
                counts[note[before], word] += weight
                counts[word, note[before]] += weight
    return counts


def encoded(notes):
    return np.array([i for note in notes for i in [*note, END]], dtype=np.int32)


def counted(notes, *, window=3, workers=1, batches=1):
    """All counts as a dictionary, both orders of a symmetric pair; every pair must come once, in
    order.
    """
    parts = [encoded(notes[k::batches]) for k in range(batches)]
    counts = count_pairs(parts, window, workers=workers)
    found = list(zip(*(column.tolist() for column in counts), strict=True))
    keys = [(r, c) for r, c, _ in found]
    assert keys == sorted(set(keys))
    assert all(r <= c for r, c in keys)
    found += [(c, r, x) for r, c, x in found]
    return {(r, c): x for r, c, x in found}


@given(notes=NOTES, window=st.integers(1, 22))
@hypothesis_settings(deadline=None, max_examples=60)
def test_counts_are_those_of_the_loop(notes, window):
    found = counted(notes, window=window)
    assert found == {pair: float(x) for pair, x in loop(notes, window).items()}


@given(notes=NOTES, window=st.sampled_from([23, 40, 100]))
@hypothesis_settings(deadline=None, max_examples=20)
def test_beyond_window_22_counts_are_right_to_seven_digits(notes, window):
    found = counted(notes, window=window)
    wanted = loop(notes, window)
    assert found.keys() == wanted.keys()
    assert all(found[pair] == pytest.approx(float(x), rel=1e-7) for pair, x in wanted.items())


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_and_workers_change_no_bit(workers):
    rng = np.random.default_rng(1)
    notes = [(rng.zipf(1.3, 100) % 5000).tolist() for _ in range(40)]
    assert counted(notes, window=10, workers=workers, batches=20) == counted(notes, window=10)


def test_the_largest_ids_do_not_collide():
    top = 2**31 - 1
    found = counted([[top, 0, top - 1]], window=1)
    assert found == dict.fromkeys([(top, 0), (0, top), (0, top - 1), (top - 1, 0)], 1.0)


def test_encoding_skips_null_texts_and_closes_over_words_without_an_id():
    corpus = memory_corpus(
        [
            ("1", "p", "Ünder the NEEDLE's eye 12"),
            ("2", "p", None),
            ("3", "q", ""),
            ("4", "q", "eye"),
        ]
    )
    (ids,) = encode(corpus, {"ünder": 4, "needle": 7, "eye": 0})
    assert ids.tolist() == [4, 7, 0, END, END, 0, END]
    assert ids.dtype == np.int32
