"""fastText: CBOW over words and character n-grams, with vectors for unknown words (Bojanowski et
al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from clinveil.vectors.algorithms.cbow import Cbow, stable_hash
from clinveil.vectors.table import Subwords

# fastText's own defaults: character n-grams of 3 to 6, hashed into at most two million rows.
_SHORTEST = 3
_LONGEST = 6
_MOST_BUCKETS = 2_000_000


class FastText(Cbow):
    """Predict a word from the mean of the words and character n-grams of its context (gensim)."""

    name: ClassVar[str] = "fasttext"

    def model(self, words: Sequence[str], *, seed: int, workers: int) -> Any:
        """Return gensim's untrained model; `words`: its vocabulary."""
        from gensim.models import FastText as SubwordModel

        return SubwordModel(
            vector_size=self.dim,
            window=self.window,
            negative=self.negative,
            sg=0,
            min_count=1,
            sorted_vocab=0,
            seed=seed,
            workers=workers,
            hashfxn=stable_hash,
            min_n=_SHORTEST,
            max_n=_LONGEST,
            bucket=_buckets(words),
        )

    def subwords(self, model: Any) -> Subwords:
        """Return the n-gram vectors that training updated."""
        reached = np.unique(np.concatenate(model.wv.buckets_word)).astype(np.int64)
        kept = np.ascontiguousarray(model.wv.vectors_ngrams[reached], dtype=np.float32)
        return Subwords(reached, kept, int(model.wv.bucket), _SHORTEST, _LONGEST)


def _buckets(words: Sequence[str]) -> int:
    """Return the number of n-gram buckets: at most one per n-gram, so that small vocabularies stay
    small.
    """
    lengths = np.array([len(word) + 2 for word in words])
    n_grams = sum(int(np.maximum(lengths - n + 1, 0).sum()) for n in range(_SHORTEST, _LONGEST + 1))
    return min(_MOST_BUCKETS, max(1, n_grams))
