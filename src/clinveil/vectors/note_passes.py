"""How many words vectors are trained on, and in how many passes (benchmarks/vectors.md)."""

from __future__ import annotations

TRAIN_WORDS = 4_000_000
"""Above this many words, training uses a sample (setting `train_words`)."""
TRAINING_WORDS = 10_000_000
"""Small corpora need more passes: this many words of training, in this many passes."""
FEWEST_PASSES = 5
MOST_PASSES = 20


def passes(n_words: int) -> int:
    """Return the default number of training passes over this many words."""
    return min(MOST_PASSES, max(FEWEST_PASSES, -(-TRAINING_WORDS // max(n_words, 1))))
