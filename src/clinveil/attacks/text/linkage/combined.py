"""Combination of several matchers: standardized scores with weights cross-fitted on halves of the people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.types import Doubles, Ints, Mask

Features = NDArray[np.float32]
FIT_ROWS, FIT_COLUMNS = 500, 500
RIDGE = 0.1
MIN_PEOPLE = 20  # people; with fewer, all matchers have the same weight


def halves(people: Ints, rng: Generator) -> Mask:
    """Return a mask of the rows of a random half of the people, (n,)."""
    numbers = np.unique(people)
    chosen = rng.permutation(numbers)[: (numbers.size + 1) // 2]
    return np.isin(people, chosen)


def combined(scores: Sequence[Doubles], truth: Ints, people: Ints, rng: Generator) -> Doubles:
    """Return weighted sums of scores, (n, n_candidates), standardized by row, and by candidate and row; cross-fitted.

    Weights for each half of the people are fitted on the other half. They maximize the conditional likelihood of the
    true candidate among all (a logistic regression by row). With fewer than 20 people all weights are equal.

    Args:
        scores: matchers, (n, n_candidates) each. truth: (n,) the right candidate. people: (n,) the person of each row.

    Source: McFadden 1974, conditional logit.
    """
    by_row = [np.asarray(_unit(one, axis=1), dtype=np.float32) for one in scores]
    features = np.stack([*by_row, *(standardised(one) for one in scores)], axis=2)
    if np.unique(people).size < MIN_PEOPLE:
        return np.asarray(features.sum(axis=2), dtype=np.float64)
    half, result = halves(people, rng), np.zeros(features.shape[:2])
    for fit in (half, ~half):
        result[~fit] = features[~fit] @ _weights(features, truth, np.flatnonzero(fit), rng).astype(np.float32)
    return result


def standardised(scores: Doubles) -> Features:
    """Standardize by candidate and then by row; 0 where there is no variance."""
    by_candidate = _unit(scores, axis=0)
    return np.asarray(_unit(by_candidate, axis=1), dtype=np.float32)


def _unit(scores: Doubles, axis: int) -> Doubles:
    centred = scores - scores.mean(axis=axis, keepdims=True)
    spread = centred.std(axis=axis, keepdims=True)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12))


def _weights(features: Features, truth: Ints, rows: Ints, rng: Generator) -> Doubles:
    """Fit weights, (n_matchers,), on at most 500 rows, each with its true candidate and at most 500 others."""
    from scipy.optimize import minimize  # slow import

    rows = rng.permutation(rows)[:FIT_ROWS]
    n_candidates = features.shape[1]
    others = rng.permutation(n_candidates)[:FIT_COLUMNS]
    true_features = features[rows, truth[rows]].astype(np.float64)
    differences = features[np.ix_(rows, others)].astype(np.float64) - true_features[:, None, :]
    is_other = truth[rows][:, None] != others[None, :]

    def loss(weights: Doubles) -> tuple[float, Doubles]:
        odds = np.exp(np.clip(differences @ weights, -500, 500)) * is_other
        total = 1 + odds.sum(axis=1)
        slope = np.einsum("rc,rcf->f", odds / total[:, None], differences) / len(rows)
        return float(np.log(total).mean() + RIDGE * weights @ weights), slope + 2 * RIDGE * weights

    start = np.full(features.shape[2], 1 / features.shape[2])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)
