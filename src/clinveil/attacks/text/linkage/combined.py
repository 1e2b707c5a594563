"""Several matchers as one: standardised scores, with weights learnt on half of the people and used on the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.types import Doubles, Ints, Mask

Features = NDArray[np.float32]
LEARN_ROWS, LEARN_COLUMNS = 500, 500
RIDGE = 0.1
FEW = 20  # people; of fewer no weights are learnt


def halves(people: Ints, rng: Generator) -> Mask:
    """(n,) True for the rows of a random half of the people."""
    numbers = np.unique(people)
    chosen = rng.permutation(numbers)[: (numbers.size + 1) // 2]
    return np.isin(people, chosen)


def combined(scores: Sequence[Doubles], truth: Ints, people: Ints, rng: Generator) -> Doubles:
    """(n, n_candidates) weighted sums of scores, standardised by row, and by candidate and row; cross-fitted.

    Weights are learnt on either half of the people for the other. They maximise the conditional likelihood of the true
    candidate among all, a logistic regression by row; of fewer than 20 people all weigh the same.

    Args:
        scores: matchers, (n, n_candidates) each. truth: (n,) the right candidate. people: (n,) whose row it is.

    Source: McFadden 1974, conditional logit.
    """
    by_row = [np.asarray(_unit(one, axis=1), dtype=np.float32) for one in scores]
    features = np.stack([*by_row, *(standardised(one) for one in scores)], axis=2)
    if np.unique(people).size < FEW:
        return np.asarray(features.sum(axis=2), dtype=np.float64)
    half, out = halves(people, rng), np.zeros(features.shape[:2])
    for learn in (half, ~half):
        out[~learn] = features[~learn] @ _weights(features, truth, np.flatnonzero(learn), rng).astype(np.float32)
    return out


def standardised(scores: Doubles) -> Features:
    """By candidate and then by row: less the mean, in standard deviations; 0 where there is no spread."""
    by_candidate = _unit(scores, axis=0)
    return np.asarray(_unit(by_candidate, axis=1), dtype=np.float32)


def _unit(scores: Doubles, axis: int) -> Doubles:
    centred = scores - scores.mean(axis=axis, keepdims=True)
    spread = centred.std(axis=axis, keepdims=True)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12))


def _weights(features: Features, truth: Ints, rows: Ints, rng: Generator) -> Doubles:
    """(n_matchers,) of the rows to learn from, at most 500, each with its true candidate and at most 500 others."""
    from scipy.optimize import minimize  # heavy: a third of a second at import

    rows = rng.permutation(rows)[:LEARN_ROWS]
    n_candidates = features.shape[1]
    others = rng.permutation(n_candidates)[:LEARN_COLUMNS]
    own = features[rows, truth[rows]].astype(np.float64)
    rest = features[np.ix_(rows, others)].astype(np.float64) - own[:, None, :]
    false = truth[rows][:, None] != others[None, :]

    def loss(weights: Doubles) -> tuple[float, Doubles]:
        odds = np.exp(np.clip(rest @ weights, -500, 500)) * false
        total = 1 + odds.sum(axis=1)
        slope = np.einsum("rc,rcf->f", odds / total[:, None], rest) / len(rows)
        return float(np.log(total).mean() + RIDGE * weights @ weights), slope + 2 * RIDGE * weights

    start = np.full(features.shape[2], 1 / features.shape[2])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)
