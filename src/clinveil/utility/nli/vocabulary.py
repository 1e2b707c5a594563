"""Tokens as rows of a matrix: the words of the training pairs, their vectors, and padding on the left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.tokens import lookup_form
from clinveil.utility.nli.sentence_pairs import Sentence, SentencePairs
from clinveil.vectors.table import Vectors

PADDING = 0
RANDOM = 0.5  # tokens without a vector share one drawn from uniform(-0.5, 0.5)


@dataclass(frozen=True)
class NliVocabulary:
    """The distinct tokens of the training pairs, letter case as it stands; row 0 is padding."""

    ids: dict[str, int] = field(repr=False)

    @classmethod
    def of(cls, pairs: SentencePairs) -> NliVocabulary:
        """Raises InputError where no training sentence holds a token."""
        seen = dict.fromkeys(token for side in (pairs.premises, pairs.hypotheses) for s in side for token in s)
        if not seen:
            raise InputError("its sentences hold no token", where=pairs.name)
        return cls({token: row for row, token in enumerate(seen, start=PADDING + 1)})

    def rows(self, sentences: Sequence[Sentence], length: int, rng: Generator) -> NDArray[np.int64]:
        """(n_sentences, length) rows of tokens: the last ones of a long sentence, padding before a short one.

        Tokens that training does not hold are dropped; a sentence without any other gets one random token.
        """
        table = np.full((len(sentences), length), PADDING, dtype=np.int64)
        for place, sentence in enumerate(sentences):
            known = [self.ids[token] for token in sentence if token in self.ids][-length:]
            known = known or [int(rng.integers(PADDING + 1, len(self.ids) + 1))]
            table[place, length - len(known) :] = known
        return table

    def found(self, vectors: Vectors) -> list[int | None]:
        """(n_tokens) the row of each token in the vectors: of itself, or of its lookup form; None where neither is."""
        forms: Iterable[str] = self.ids
        return [vectors.ids.get(token, vectors.ids.get(lookup_form(token))) for token in forms]

    def matrix(self, vectors: Vectors, rng: Generator) -> NDArray[np.float32]:
        """(n_tokens + 1, dim): padding is zero, tokens without a vector share one random vector."""
        table = np.zeros((len(self.ids) + 1, vectors.dim), dtype=np.float32)
        shared = rng.uniform(-RANDOM, RANDOM, vectors.dim).astype(np.float32)
        for row, place in enumerate(self.found(vectors), start=PADDING + 1):
            table[row] = shared if place is None else vectors.matrix[place]
        return table


def random_vectors(vectors: Vectors, rng: Generator) -> Vectors:
    """The same words with normal random vectors of the same mean square: what the model gets from words alone."""
    scale = float(np.sqrt(np.mean(np.square(vectors.matrix, dtype=np.float64)))) if vectors.matrix.size else 0.0
    return Vectors(vectors.words, (scale * rng.standard_normal(vectors.matrix.shape)).astype(np.float32))
