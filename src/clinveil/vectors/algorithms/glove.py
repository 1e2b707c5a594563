"""GloVe: word vectors fitted to the logarithms of co-occurrence counts.

`pair` is the model of Pennington, Socher and Manning (EMNLP 2014): a word and a context vector, summed at the end.
`single` has one vector and bias per word, fitted to unordered pairs of different words, so it ignores word order; a
setting in paper B (Figure 3) suggests that its authors used such a program. It encodes directly which words occur
together.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.random import default_rng

from clinveil.core.errors import InputError
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Floats, SmallInts
from clinveil.vectors.algorithm import Algorithm, Notes, algorithms
from clinveil.vectors.algorithms._adagrad import PAIR, Pairs, Rule, descend, new_parameters
from clinveil.vectors.algorithms._pairs import count_pairs
from clinveil.vectors.sentences import encode, whole_note
from clinveil.vectors.settings import GLOVE_PASSES
from clinveil.vectors.table import Vectors

# Bound of a weighted error of the single-vector model, whose first steps can diverge without it.
_LARGEST_ERROR = 10.0
# Training has diverged if the loss is ten times that of predicting log X = 0 for all pairs.
_DIVERGED = 10.0


@algorithms.register("glove")
class Glove(Algorithm):
    """Fit vectors to co-occurrence counts; settings have the names of the original program."""

    name: ClassVar[str] = "glove"
    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(10, "Context words on either side, within one note.", ge=1, le=1000)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int = flag(GLOVE_PASSES, "Passes over the word pairs.", ge=1, le=1000)
    x_max: float = flag(10.0, "Pairs with this count or more have weight 1.", gt=0, allow_inf_nan=False)
    alpha: float = flag(0.75, "Rarer pairs have weight (count / x_max) to this power.", gt=0, allow_inf_nan=False)
    eta: float = flag(0.05, "AdaGrad's initial learning rate.", gt=0, allow_inf_nan=False)
    variant: Literal["pair", "single"] = flag("pair", "Word and context vectors summed, or one vector per word.")

    def train(self, notes: Notes) -> Vectors:
        """Train the vectors; the same seed gives the same bits on the same machine, for any number of workers.

        Each note is a document: context windows do not cross notes. A word without neighbours keeps its random initial
        vector, close to zero.

        Raises:
            InputError: notes that are split into lines, no two words within a window of each other, or training
                diverges.
        """
        if notes.split is not whole_note:
            raise InputError("GloVe trains on whole notes only", hint="use --algorithm skipgram")
        counts = notes.counts
        n_words = int((counts.counts >= self.min_count).sum())
        ids = {word: row for row, word in enumerate(counts.words[:n_words])}
        counted = count_pairs(encode(notes.corpus, ids), self.window, workers=notes.workers)
        pairs = training_pairs(*counted, self)
        if not pairs.size:
            raise InputError(
                "no two words occur within a window of each other", hint="pass more notes or a smaller --min-count"
            )
        matrix, loss = self._fitted(pairs, n_words, notes)
        meta = {"algorithm": self.name, **self.model_dump(), "seed": notes.seed, "determinism": "bitwise"}
        meta |= {"n_notes": counts.n_notes, "n_tokens": counts.n_tokens}
        return notes.table(matrix, meta | {"n_pairs": pairs.size, "loss": loss / pairs.size})

    def _fitted(self, pairs: Pairs, n_words: int, notes: Notes) -> tuple[Floats, float]:
        """Return the trained matrix and the loss of the last epoch."""
        rng, single = default_rng(notes.seed), self.variant == "single"
        left = new_parameters(n_words, self.dim, rng)
        right = left if single else new_parameters(n_words, self.dim, rng)
        first = 0.5 * float(np.dot(pairs["weight"].astype(np.float64), pairs["target"].astype(np.float64) ** 2))
        rule, loss = self.rule, math.inf
        for epoch in range(self.epochs):
            order = default_rng([notes.seed, epoch]).permutation(pairs.size).astype(np.int32)
            loss = descend(pairs, order, left, right, rule)
            finite = all(np.isfinite(side).all() for side in (left, right))
            if not finite or not loss <= _DIVERGED * max(first, 1.0):
                raise InputError(
                    f"GloVe diverged in epoch {epoch + 1} of {self.epochs} with eta {self.eta:g}",
                    hint="pass a smaller eta",
                )
            if notes.on_epoch:
                notes.on_epoch(epoch + 1, self.epochs)
        vectors = left[:, 0, : self.dim].copy()
        return (vectors if single else vectors + right[:, 0, : self.dim]), loss

    @property
    def rule(self) -> Rule:
        """The update rule of the variant.

        The pair model follows the program of Pennington et al., which sums the squares of eta times the gradient, so
        its steps shrink slowly; the single-vector model sums the squares of the gradient (Duchi et al. 2011).
        """
        eta = np.float32(self.eta)
        if self.variant == "pair":
            return Rule(eta, square_scale=eta, clip=np.float32(np.inf))
        return Rule(eta, square_scale=np.float32(1), clip=np.float32(_LARGEST_ERROR))


def training_pairs(rows: SmallInts, columns: SmallInts, values: Doubles, settings: Glove) -> Pairs:
    """Return targets log X with weights min(1, X / x_max)^alpha (Pennington et al. 2014, equation 9).

    Counts contain each pair once. The pair model gets both orders, adjacent; the single-vector model gets
    each pair once, and no word paired with itself.
    """
    if settings.variant == "single":
        different = rows != columns
        rows, columns, values = rows[different], columns[different], values[different]
    else:
        once = np.stack([np.ones(rows.size, np.bool_), rows != columns], axis=1).ravel()
        both = np.stack([rows, columns], axis=1)
        rows, columns, values = both.ravel()[once], both[:, ::-1].ravel()[once], np.repeat(values, 2)[once]
    pairs = np.empty(rows.size, PAIR)
    pairs["row"], pairs["column"] = rows, columns
    pairs["target"] = np.log(values)
    pairs["weight"] = np.minimum(1.0, values / settings.x_max) ** settings.alpha
    return pairs
