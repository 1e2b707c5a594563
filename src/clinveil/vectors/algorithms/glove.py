"""GloVe: word vectors fitted to the logarithms of co-occurrence counts.

`pair` is the model of Pennington, Socher and Manning (EMNLP 2014): a word and a context vector,
summed at the end. `single` has one vector and bias per word, fitted to unordered pairs of different
words, so it ignores word order; a setting in paper B (Figure 3) suggests that its authors used such
a program. It encodes directly which words occur together.

Two words at distance d in one note (d up to the window) add 1/d to their pair; windows do not cross
notes. Words without an id are removed first and do not count towards the distance, as in the
programs of word2vec and GloVe. Weights are summed as integers, so the counts do not depend on
workers or order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from clinveil.core import Doubles, Floats, InputError, Ints, SmallInts, compiled, setting
from clinveil.scale import threads
from clinveil.vectors.algorithm import Algorithm, Notes
from clinveil.vectors.sentences import END, Ids, encode, whole_note
from clinveil.vectors.settings import GLOVE_PASSES
from clinveil.vectors.table import Vectors

Counts = tuple[Ints, Ints]  # distinct pairs, row << 32 | column, ascending; and their weights
_LARGEST_UNIT = 1 << 30


def unit_of(window: int) -> int:
    """Return the units of a weight of 1: up to window 22, every 1/d is a whole number of units."""
    return min(math.lcm(*range(1, window + 1)), _LARGEST_UNIT)


def count_pairs(
    batches: Iterable[Ids], window: int, *, workers: int = 1
) -> tuple[SmallInts, SmallInts, Doubles]:
    """Return rows, columns and counts X of all pairs, each once, in order of row and column.

    X(i, j) = X(j, i) is returned once, with i <= j, and X(i, i) counts each co-occurrence twice,
    once per direction.
    Memory: 16 bytes for each distinct pair, up to three times.

    Args:
        batches: word ids with `END` after each note, from `sentences.encode`. workers: threads.
    """
    total: Counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    waiting: list[Counts] = []
    for counts in threads(workers)(partial(_counted, window), batches):
        waiting.append(counts)
        if sum(keys.size for keys, _ in waiting) > total[0].size:
            total = _summed([total, *waiting])
            waiting = []
    keys, units = _summed([total, *waiting])
    rows = (keys >> 32).astype(np.int32)
    columns = (keys & 0xFFFFFFFF).astype(np.int32)
    values = units / unit_of(window)
    return rows, columns, np.where(rows == columns, 2 * values, values)


def _counted(window: int, ids: Ids) -> Counts:
    """Count the pairs of whole notes."""
    notes = np.cumsum(ids == END)
    words = ids.astype(np.int64)
    pairs = list[Counts]()
    for distance in range(1, min(window, ids.size - 1) + 1):
        # An `END` begins a number.
        same = (notes[distance:] == notes[:-distance]) & (words[:-distance] != END)
        left = words[:-distance][same]
        other = words[distance:][same]
        first = np.minimum(left, other)
        second = np.maximum(left, other)
        weight = round(unit_of(window) / distance)
        pairs.append((first << 32 | second, np.full(first.size, weight, dtype=np.int64)))
    return _summed(pairs)


def _summed(parts: list[Counts]) -> Counts:
    """Add the weights of equal pairs."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys, units = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    units = units[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    return keys[firsts], np.add.reduceat(units, firsts) if firsts.size else units


# One pair of words: log X(row, column), and the weight f(X).
PAIR = np.dtype(
    [("row", np.int32), ("column", np.int32), ("target", np.float32), ("weight", np.float32)]
)
Pairs = NDArray[np.void]
# (n_words, 2, dim + 1): vector and bias of each word, then AdaGrad's sums of squared gradients of
# both. They are adjacent because memory access limits the speed: a step reads one row per word.
Parameters = NDArray[np.float32]


class GloveUpdate(NamedTuple):
    """Update rule.

    Attributes:
        eta: the learning rate.
        square_scale: factor of gradients before they are squared and summed.
        clip: the largest weighted error; infinity for no limit.
    """

    eta: np.float32
    square_scale: np.float32
    clip: np.float32


def new_parameters(n_words: int, dim: int, rng: np.random.Generator) -> Parameters:
    """Return vectors uniform in (-0.5, 0.5) / dim, biases 0, sums of squares 1; shape (n_words, 2,
    dim + 1).
    """
    parameters = np.ones((n_words, 2, dim + 1), dtype=np.float32)
    parameters[:, 0, :dim] = (
        rng.random((n_words, dim), dtype=np.float32) - np.float32(0.5)
    ) / np.float32(dim)
    parameters[:, 0, dim] = 0
    return parameters


# Sums may be reordered, so that loops over dimensions compile to vector instructions; NaN is still
# handled.
@compiled(any_order=True)
def descend(
    pairs: Pairs, order: NDArray[np.int32], left: Parameters, right: Parameters, rule: GloveUpdate
) -> float:
    """Update the parameters in place with all pairs in the given order.

    The loss of a pair is f(X) (w·c + b + b' - log X)² / 2 (Pennington et al. 2014, equation 8). A
    model with one vector per word passes the same array twice; then no pair may consist of the same
    word twice.

    Args:
        pairs: (n,) records of `PAIR`.
        order: (n,) permutation.
        left, right: parameters of rows and of columns.
        rule: the update rule.

    Returns:
        The sum of the losses, each before the step of its pair.
    """
    total = 0.0
    dim = left.shape[2] - 1
    for position in order:
        pair = pairs[position]
        u = left[pair.row, 0]
        u_squares = left[pair.row, 1]
        v = right[pair.column, 0]
        v_squares = right[pair.column, 1]
        difference = u[dim] + v[dim] - pair.target
        for k in range(dim):
            difference += u[k] * v[k]
        error = pair.weight * difference
        total += 0.5 * error * difference
        error = max(min(error, rule.clip), -rule.clip)
        step = rule.eta * error
        scaled = rule.square_scale * error
        for k in range(dim):
            old_u = u[k]
            old_v = v[k]
            u[k] = old_u - step * old_v / np.sqrt(u_squares[k])
            v[k] = old_v - step * old_u / np.sqrt(v_squares[k])
            u_squares[k] += (scaled * old_v) ** 2
            v_squares[k] += (scaled * old_u) ** 2
        u[dim] -= step / np.sqrt(u_squares[dim])
        v[dim] -= step / np.sqrt(v_squares[dim])
        u_squares[dim] += scaled**2
        v_squares[dim] += scaled**2
    return total


# Bound of a weighted error of the single-vector model; its first steps can diverge without it.
_LARGEST_ERROR = 10.0
# Training has diverged if the loss is ten times that of predicting log X = 0 for all pairs.
_DIVERGED = 10.0


class Glove(Algorithm):
    """Fit vectors to co-occurrence counts; settings have the names of the original program."""

    name: ClassVar[str] = "glove"
    dim: int = setting(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = setting(10, "Context words on either side, within one note.", ge=1, le=1000)
    min_count: int = setting(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int = setting(GLOVE_PASSES, "Passes over the word pairs.", ge=1, le=1000)
    x_max: float = setting(
        10.0, "Pairs with this count or more have weight 1.", gt=0, allow_inf_nan=False
    )
    alpha: float = setting(
        0.75, "Rarer pairs have weight (count / x_max) to this power.", gt=0, allow_inf_nan=False
    )
    eta: float = setting(0.05, "AdaGrad's initial learning rate.", gt=0, allow_inf_nan=False)
    variant: Literal["pair", "single"] = setting(
        "pair", "Word and context vectors summed, or one vector per word."
    )

    def train(self, notes: Notes) -> Vectors:
        """Train the vectors; the same seed gives the same bits on the same machine, for any number
        of workers.

        Each note is a document: context windows do not cross notes. A word without neighbours keeps
        its random initial vector, close to zero.

        Raises:
            InputError: notes that are split into lines, no two words within a window of each other,
                or training diverges.
        """
        if notes.split is not whole_note:
            raise InputError(
                "GloVe trains on whole notes only", hint="use vectors.algorithm=skipgram"
            )
        counts = notes.counts
        n_words = int((counts.counts >= self.min_count).sum())
        ids = {word: row for row, word in enumerate(counts.words[:n_words])}
        counted = count_pairs(encode(notes.corpus, ids), self.window, workers=notes.workers)
        pairs = training_pairs(*counted, self)
        if not pairs.size:
            raise InputError(
                "no two words occur within a window of each other",
                hint="pass more notes or a smaller vectors.min_count",
            )
        matrix, loss = self._fitted(pairs, n_words, notes)
        meta = {
            "algorithm": self.name,
            **self.model_dump(),
            "seed": notes.seed,
            "determinism": "bitwise",
        }
        meta |= {"n_notes": counts.n_notes, "n_tokens": counts.n_tokens}
        return notes.table(matrix, meta | {"n_pairs": pairs.size, "loss": loss / pairs.size})

    def _fitted(self, pairs: Pairs, n_words: int, notes: Notes) -> tuple[Floats, float]:
        """Return the trained matrix and the loss of the last epoch."""
        rng = default_rng(notes.seed)
        single = self.variant == "single"
        left = new_parameters(n_words, self.dim, rng)
        right = left if single else new_parameters(n_words, self.dim, rng)
        first = 0.5 * float(
            np.dot(pairs["weight"].astype(np.float64), pairs["target"].astype(np.float64) ** 2)
        )
        rule = self.rule
        loss = math.inf
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
    def rule(self) -> GloveUpdate:
        """The update rule of the variant.

        The pair model follows the program of Pennington et al., which sums the squares of eta times
        the gradient, so its steps shrink slowly; the single-vector model sums the squares of the
        gradient (Duchi et al. 2011).
        """
        eta = np.float32(self.eta)
        if self.variant == "pair":
            return GloveUpdate(eta, square_scale=eta, clip=np.float32(np.inf))
        return GloveUpdate(eta, square_scale=np.float32(1), clip=np.float32(_LARGEST_ERROR))


def training_pairs(rows: SmallInts, columns: SmallInts, values: Doubles, settings: Glove) -> Pairs:
    """Return targets log X with weights min(1, X / x_max)^alpha (Pennington et al. 2014, equation
    9).

    Counts contain each pair once. The pair model gets both orders, adjacent; the single-vector
    model gets each pair once, and no word paired with itself.
    """
    if settings.variant == "single":
        different = rows != columns
        rows = rows[different]
        columns = columns[different]
        values = values[different]
    else:
        once = np.stack([np.ones(rows.size, np.bool_), rows != columns], axis=1).ravel()
        both = np.stack([rows, columns], axis=1)
        rows = both.ravel()[once]
        columns = both[:, ::-1].ravel()[once]
        values = np.repeat(values, 2)[once]
    pairs = np.empty(rows.size, PAIR)
    pairs["row"] = rows
    pairs["column"] = columns
    pairs["target"] = np.log(values)
    pairs["weight"] = np.minimum(1.0, values / settings.x_max) ** settings.alpha
    return pairs
