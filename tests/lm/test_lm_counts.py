"""Models that only count: equation 4 by hand, and the n-gram against a slow reference of its
formula.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_cases import VOCABULARY, encoded_of, texts_of

from clinveil.core import InputError
from clinveil.lm import END, Fit, WordVocabulary, encode, fit_of, train_ngram, train_unigram
from clinveil.lm.models.unigram import Unigram

AB = WordVocabulary(["a", "b"])


def test_equation_4_by_hand():
    notes = encode(
        ["a a", "a b\nz"], AB
    )  # <eon> 2, <eos> 3, <unk> 1, a 3, b 1: 10 tokens of 5 kinds
    model = train_unigram(notes, AB)
    assert model.counts.tolist() == [2, 3, 1, 3, 1]
    expected = np.log(np.array([3, 4, 2, 4, 2]) / 15)
    (found,) = model.score([np.array([0, 1, 2, 3, 4])])
    assert found == pytest.approx(expected, abs=1e-12)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


def test_counts_fit_the_vocabulary():
    with pytest.raises(InputError, match="differ in size"):
        Unigram(AB, np.ones(4, dtype=np.int64))


class Slow:
    """The formula of `lm.ngram`, word for word, over dictionaries."""

    def __init__(self, notes, size, order, discount):
        self.order = order
        self.discount = discount
        self.size = size
        self.unigram = Counter(token for note in notes for token in note)
        self.total = sum(self.unigram.values())
        self.after = {}
        for note in notes:
            row = (END, *note)
            for end in range(1, len(row)):
                for length in range(1, min(order - 1, end) + 1):
                    self.after.setdefault(row[end - length : end], Counter())[row[end]] += 1

    def chance(self, word, history):
        if not history:
            return (self.unigram[word] + 1) / (self.total + self.size)
        below = self.chance(word, history[1:])
        seen = self.after.get(history)
        if seen is None:
            return below
        followed = sum(seen.values())
        return (
            max(seen[word] - self.discount, 0) / followed
            + self.discount * len(seen) / followed * below
        )

    def score(self, note):
        row = (END, *note)
        return np.log(
            [self.chance(row[i], row[max(0, i - self.order + 1) : i]) for i in range(1, len(row))]
        )


@given(
    st.lists(st.text("abcd \n", min_size=1, max_size=12), min_size=1, max_size=6),
    st.sampled_from([2, 3, 4, 5, 6, 12]),
    st.sampled_from([0.1, 0.5, 0.75, 0.9]),
)
def test_ngram_against_the_slow_reference_on_any_notes(texts, order, discount):
    notes = encode(texts, WordVocabulary("abc"))
    rows = [notes.note(i).tolist() for i in range(len(notes))]
    slow = Slow(rows, 6, order, discount)
    wanted = [*rows, [3, 4, 5, 2, 1, 0], [0], [5, 5, 5, 5]]
    found = train_ngram(notes, WordVocabulary("abc"), order, discount).score(
        [np.array(row, dtype=np.int32) for row in wanted]
    )
    for one, row in zip(found, wanted, strict=True):
        assert one == pytest.approx(slow.score(row), abs=1e-12)


def test_ngram_by_hand():
    model = train_ngram(
        encode(["a"], WordVocabulary(["a"])), WordVocabulary(["a"]), order=2, discount=0.5
    )
    low = 2 / 7  # of a, <eos> and <eon> each: (1 + 1) / (3 + 4)
    (found,) = model.score([np.array([3, 1, 0], dtype=np.int32)])
    assert np.exp(found) == pytest.approx([0.5 + 0.5 * low] * 3, abs=1e-12)
    (other,) = model.score([np.array([1, 3], dtype=np.int32)])  # neither pair was seen
    assert np.exp(other) == pytest.approx([0.5 * low] * 2, abs=1e-12)


def test_an_ngram_needs_an_order_and_a_discount():
    for order, discount in ((1, 0.75), (5, 0.0), (5, 1.0), (5, float("nan"))):
        with pytest.raises(ValueError, match="order of 2"):
            train_ngram(encoded_of(), VOCABULARY, order, discount)


def test_perplexity_by_hand():
    fit = Fit(np.log([0.5**4, 0.25]), np.array([3, 2]), np.array([10, 2]))  # 6 bits, 5 tokens
    assert fit.perplexity == pytest.approx(2 ** (6 / 5))


def test_numbers_of_tokens_and_characters_are_those_of_the_notes():
    texts = texts_of(5)
    fit = fit_of(train_unigram(encode(texts, VOCABULARY), VOCABULARY), encode(texts, VOCABULARY))
    assert fit.tokens.tolist() == [len(t.split()) + t.count("\n") + 2 for t in texts]
    assert fit.characters.tolist() == [len(t) + 1 for t in texts]
