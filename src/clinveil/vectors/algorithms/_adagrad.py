"""AdaGrad over weighted log counts, GloVe's inner loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import compiled

# One pair of words: log X(row, column), and the weight f(X).
PAIR = np.dtype([("row", np.int32), ("column", np.int32), ("target", np.float32), ("weight", np.float32)])
Pairs = NDArray[np.void]
# (n_words, 2, dim + 1): vector and bias of each word, then AdaGrad's sums of squared gradients of both. They are
# adjacent because memory access limits the speed: a step reads one row per word.
Parameters = NDArray[np.float32]


class Rule(NamedTuple):
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
    """Return vectors uniform in (-0.5, 0.5) / dim, biases 0, sums of squares 1; shape (n_words, 2, dim + 1)."""
    parameters = np.ones((n_words, 2, dim + 1), dtype=np.float32)
    parameters[:, 0, :dim] = (rng.random((n_words, dim), dtype=np.float32) - np.float32(0.5)) / np.float32(dim)
    parameters[:, 0, dim] = 0
    return parameters


# Sums may be reordered, so that loops over dimensions compile to vector instructions; NaN is still handled.
@compiled(error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def descend(pairs: Pairs, order: NDArray[np.int32], left: Parameters, right: Parameters, rule: Rule) -> float:
    """Update the parameters in place with all pairs in the given order.

    The loss of a pair is f(X) (w·c + b + b' - log X)² / 2 (Pennington et al. 2014, equation 8). A model with one vector
    per word passes the same array twice; then no pair may consist of the same word twice.

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
        u, u_squares = left[pair.row, 0], left[pair.row, 1]
        v, v_squares = right[pair.column, 0], right[pair.column, 1]
        difference = u[dim] + v[dim] - pair.target
        for k in range(dim):
            difference += u[k] * v[k]
        error = pair.weight * difference
        total += 0.5 * error * difference
        error = max(min(error, rule.clip), -rule.clip)
        step, scaled = rule.eta * error, rule.square_scale * error
        for k in range(dim):
            old_u, old_v = u[k], v[k]
            u[k] = old_u - step * old_v / np.sqrt(u_squares[k])
            v[k] = old_v - step * old_u / np.sqrt(v_squares[k])
            u_squares[k] += (scaled * old_v) ** 2
            v_squares[k] += (scaled * old_u) ** 2
        u[dim] -= step / np.sqrt(u_squares[dim])
        v[dim] -= step / np.sqrt(v_squares[dim])
        u_squares[dim] += scaled**2
        v_squares[dim] += scaled**2
    return total
