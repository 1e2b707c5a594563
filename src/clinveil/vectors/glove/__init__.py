"""GloVe: word vectors fitted to the logarithms of co-occurrence counts.

`pair` is the model of Pennington, Socher and Manning (EMNLP 2014): a word and a context vector, summed at the end.
`single` has one vector and bias per word, fitted to unordered pairs of different words; a setting in paper B (Figure 3)
suggests that its authors used such a program. It encodes directly which words occur together.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.files import private_folder
from clinveil.corpus.corpus import Corpus
from clinveil.vectors.count import WordCounts, count_words
from clinveil.vectors.encoded import encode
from clinveil.vectors.glove.adagrad import PAIR, Pairs, Parameters, Rule, descend, new_parameters
from clinveil.vectors.glove.cooccurrence import Cooccurrences, count_pairs
from clinveil.vectors.glove.strata import Strata
from clinveil.vectors.settings import GloveSettings
from clinveil.vectors.table import Vectors

OnEpoch = Callable[[int, int], None]
# Bound of a weighted error of the single-vector model, whose first steps can diverge without it.
_LARGEST_ERROR = 10.0
# Training has diverged if the loss is ten times that of predicting log X = 0 for all pairs.
_DIVERGED = 10.0


def train_glove(
    corpus: Corpus,
    settings: GloveSettings,
    *,
    seed: int,
    workers: int,
    scratch: Path,
    counts: WordCounts | None = None,
    on_epoch: OnEpoch | None = None,
) -> Vectors:
    """Train GloVe vectors on the words of the notes.

    Each note is a document: context windows do not cross notes; null texts are skipped.

    Args:
        corpus: the notes; read once, and a second time without `counts`.
        settings: the model and its parameters.
        seed: public; the same seed gives the same bits on the same machine, for any number of workers.
        workers: threads, of which training uses at most 16.
        scratch: a private folder for word pairs; needs 32 bytes per pair.
        counts: word counts of the same notes, if known.
        on_epoch: called with (epochs done, epochs in all) after each epoch.

    Returns:
        One vector for each word with at least `min_count` occurrences, with counts and patients. A word without
        neighbours keeps its random initial vector, close to zero.

    Raises:
        InputError: no two words within a window of each other, or training diverges.
    """
    counts = counts or count_words(corpus, scratch)
    n_words = int((counts.counts >= settings.min_count).sum())
    with tempfile.TemporaryDirectory(prefix="glove", dir=private_folder(scratch)) as name:
        folder = Path(name)
        ids = {word: row for row, word in enumerate(counts.words[:n_words])}
        pairs = count_pairs(
            encode(corpus, ids),
            window=settings.window,
            symmetric=settings.symmetric,
            memory_mb=settings.memory_mb,
            workers=workers,
            folder=folder,
        )
        strata = Strata(folder, shared=settings.variant == "single")
        n_pairs, first_loss = _fill(strata, pairs, settings)
        if not n_pairs:
            raise InputError(
                "no two words occur within a window of each other", hint="pass more notes or a smaller --min-count"
            )
        matrix, loss = _fitted(strata, n_words, settings, _Run(seed, workers, first_loss, on_epoch))
    return Vectors(
        counts.words[:n_words],
        matrix,
        counts.counts[:n_words],
        counts.patients[:n_words],
        counts.n_patients,
        _meta(settings, counts, seed) | {"n_pairs": n_pairs, "loss": loss / n_pairs},
    )


def _fill(strata: Strata, counts: Cooccurrences, settings: GloveSettings) -> tuple[int, float]:
    """Write the training pairs to their blocks; return their number and the loss of predicting log X = 0."""
    n_pairs, loss = 0, 0.0
    for rows, columns, values in counts.blocks():
        pairs = training_pairs(rows, columns, values, settings)
        strata.add(pairs)
        n_pairs += pairs.size
        loss += 0.5 * float(np.dot(pairs["weight"].astype(np.float64), pairs["target"].astype(np.float64) ** 2))
    return n_pairs, loss


def training_pairs(
    rows: NDArray[np.int32], columns: NDArray[np.int32], values: NDArray[np.float64], settings: GloveSettings
) -> Pairs:
    """Return targets log X with weights min(1, X / x_max)^alpha (Pennington et al. 2014, equation 9).

    Symmetric counts contain each pair once. The pair model gets both orders; the single-vector model gets each pair
    once, and no word paired with itself.
    """
    if settings.variant == "single":
        different = rows != columns
        rows, columns, values = rows[different], columns[different], values[different]
    elif settings.symmetric:
        # Both orders are adjacent, so that the sequence of pairs does not depend on the blocks of counts.
        once = np.stack([np.ones(rows.size, np.bool_), rows != columns], axis=1).ravel()
        both = np.stack([rows, columns], axis=1)
        rows, columns, values = both.ravel()[once], both[:, ::-1].ravel()[once], np.repeat(values, 2)[once]
    pairs = np.empty(rows.size, PAIR)
    pairs["row"], pairs["column"] = rows, columns
    pairs["target"] = np.log(values)
    pairs["weight"] = np.minimum(1.0, values / settings.x_max) ** settings.alpha
    return pairs


class _Run:
    """Parameters of a run that are not settings of the model."""

    def __init__(self, seed: int, workers: int, first_loss: float, on_epoch: OnEpoch | None) -> None:
        self.seed, self.workers, self.first_loss = seed, workers, first_loss
        self.on_epoch = on_epoch or (lambda done, all_: None)


def _fitted(strata: Strata, n_words: int, settings: GloveSettings, run: _Run) -> tuple[NDArray[np.float32], float]:
    """Return the trained matrix and the loss of the last epoch."""
    rng = np.random.default_rng(run.seed)
    left = new_parameters(n_words, settings.dim, rng)
    right = left if settings.variant == "single" else new_parameters(n_words, settings.dim, rng)
    rule = rule_of(settings)
    loss = math.inf
    for epoch in range(settings.epochs):
        loss = strata.epoch(
            lambda pairs, order: descend(pairs, order, left, right, rule),
            seed=run.seed,
            epoch=epoch,
            workers=run.workers,
        )
        _refuse_divergence(loss, epoch, left, right, settings, run)
        run.on_epoch(epoch + 1, settings.epochs)
    vectors = left[:, 0, : settings.dim].copy()
    return (vectors if right is left else vectors + right[:, 0, : settings.dim]), loss


def rule_of(settings: GloveSettings) -> Rule:
    """Return the update rule of the variant.

    The pair model follows the program of Pennington et al., which sums the squares of eta times the gradient, so its
    steps shrink slowly; the single-vector model sums the squares of the gradient (Duchi et al. 2011).
    """
    eta = np.float32(settings.eta)
    if settings.variant == "pair":
        return Rule(eta, square_scale=eta, clip=np.float32(np.inf))
    return Rule(eta, square_scale=np.float32(1), clip=np.float32(_LARGEST_ERROR))


def _refuse_divergence(
    loss: float, epoch: int, left: Parameters, right: Parameters, settings: GloveSettings, run: _Run
) -> None:
    finite = all(np.isfinite(side).all() for side in (left, right))
    if not finite or not loss <= _DIVERGED * max(run.first_loss, 1.0):
        raise InputError(
            f"GloVe diverged in epoch {epoch + 1} of {settings.epochs} with eta {settings.eta:g}",
            hint="pass a smaller eta",
        )


def _meta(settings: GloveSettings, counts: WordCounts, seed: int) -> dict[str, Any]:
    return {
        "algorithm": "glove",
        **settings.model_dump(),
        "seed": seed,
        "determinism": "bitwise",
        "n_notes": counts.n_notes,
        "n_tokens": counts.n_tokens,
    }
