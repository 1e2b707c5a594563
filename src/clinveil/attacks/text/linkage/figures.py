"""Figures of a linkage: hits, ranks, and notes singled out with confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core import Doubles, Finding, Ints, Mask, Numbers
from clinveil.stats import HitCounts, MeasureSpec

SHUFFLES = 20
PRECISION = 0.9
MIN_NAMED = 10
CHANCE_IS = "naming one of the candidates at random"
CONTROL_IS = "the same scores, with the known texts shuffled"
SOURCES = {
    "": "linkage: share of notes with a right best match",
    "_rarest": "the same, of the people with the rarest words: maximum risk, ISO/IEC 27559 7.3.2",
    "_singled": (
        "singling out: Art. 29 Working Party 2014, WP216; margin of the best over the second"
        " candidate"
    ),
}
LINKED = MeasureSpec(
    measure="attack.linkage",
    over="people",
    unit="notes",
    chance_is=CHANCE_IS,
    control_is=CONTROL_IS,
    control_kind="negative",
)
Features = NDArray[np.float32]
FIT_ROWS = 500
FIT_COLUMNS = 500
RIDGE = 0.1
MIN_PEOPLE = 20  # people; with fewer, all matchers have the same weight


@dataclass(frozen=True, eq=False)
class Linked:
    """Scores of one attacker, and the truth.

    Attributes:
        scores: (n, n_candidates). truth: (n,) the right candidates. people: (n,) the person of each
            row.
        attacker: name of the attacker. known: what they know. left_out: notes without a known text.
        rarest: (n,) mask of the tenth of the people with the rarest words in their texts; None: no
            such figure.
    """

    scores: Doubles
    truth: Ints
    people: Ints
    attacker: str = ""
    known: str = ""
    left_out: int = 0
    rarest: Mask | None = None

    @cached_property
    def best(self) -> Ints:
        """Return the candidate that each row names, (n,)."""
        return np.asarray(self.scores.argmax(axis=1))

    def ranks(self, rng: Generator) -> Ints:
        """Return the rank of the right candidate from 1, (n,); ties are broken at random."""
        true_scores = self.scores[np.arange(len(self.truth)), self.truth][:, None]
        equal = (self.scores == true_scores).sum(axis=1) - 1
        higher = (self.scores > true_scores).sum(axis=1)
        return np.asarray(1 + higher + rng.integers(0, equal + 1), dtype=np.int64)

    def findings(self, rng: Generator, *, top: int) -> list[Finding]:
        """Return hits, hits among the people with the rarest words, and hits with confidence."""
        ranks = self.ranks(rng)
        rank_numbers = {
            "mean_rank": float(ranks.mean()),
            f"top_{top}": float((ranks <= top).mean()),
            "median": float(np.median(ranks)),
        }
        found = [self._share("", ranks == 1, rank_numbers)]
        if self.rarest is not None:
            found.append(self._share("_rarest", ranks == 1, {}, self.rarest))
        return [*found, self._singled(rng)]

    def confident(self, rng: Generator) -> Mask:
        """Return the rows with a margin that had 90 % precision on ten or more rows of the other
        half, (n,).
        """
        if self.scores.shape[1] < 2:
            return np.zeros(len(self.truth), dtype=np.bool_)
        second, first = np.partition(self.scores, -2, axis=1)[:, -2:].T
        margins = first - second
        right = self.best == self.truth
        half = halves(self.people, rng)
        named = np.zeros(len(self.truth), dtype=np.bool_)
        for fit in (half, ~half):
            named[~fit] = margins[~fit] >= _threshold(margins[fit], right[fit])
        return named

    def _singled(self, rng: Generator) -> Finding:
        named = self.confident(rng)
        hits = named & (self.best == self.truth)
        precision = float(hits.sum() / named.sum()) if named.any() else None
        return self._share("_singled", hits, {"named": int(named.sum()), "precision": precision})

    def _share(
        self, suffix: str, hits: Mask, numbers: Numbers, rows: Mask | None = None
    ) -> Finding:
        """Return the share of hits among all rows, or some."""
        hits, people = (hits, self.people) if rows is None else (hits[rows], self.people[rows])
        candidates = self.scores.shape[1]
        chance = 1 / candidates
        counts = np.zeros((int(people.max()) + 1, 2), dtype=np.int64)
        np.add.at(counts, people, np.column_stack([hits, np.ones_like(hits)]).astype(np.int64))
        spec = replace(LINKED, measure=f"attack.linkage{suffix}", source=SOURCES[suffix])
        finding = spec.share(
            HitCounts.of_clusters(
                counts[counts[:, 1] > 0],
                chance=chance,
                control=None if suffix else self.control(),
            ),
            labels=(self.known,),
            numbers={
                "left_out": self.left_out,
                "candidates": candidates,
                "advantage": float(hits.mean()) - chance,
                **numbers,
            },
        )
        return replace(finding, attack=self.attacker)

    def control(self) -> float:
        """Return the share of hits if known texts are shuffled among people, over 20 shuffles."""
        rng = np.random.default_rng(len(self.truth))
        return float(
            np.mean([(self.best == rng.permutation(self.truth)).mean() for _ in range(SHUFFLES)])
        )


def _threshold(margins: Doubles, right: Mask) -> float:
    """Return the smallest margin with 90 % precision over at least ten rows; infinity if there is
    none.
    """
    order = np.argsort(-margins, kind="stable")
    hits = np.cumsum(right[order])
    n = np.arange(1, margins.size + 1)
    allowed = np.flatnonzero((hits >= PRECISION * n) & (n >= MIN_NAMED))
    return float(margins[order[allowed[-1]]]) if allowed.size else float("inf")


def unprotected(linked: Linked) -> Finding:
    """Return the positive control: the share of hits if the known texts themselves were
    released.
    """
    spec = MeasureSpec(measure="attack.linkage_unprotected", over="notes", better=None)
    hits = int((linked.best == linked.truth).sum())
    numbers = {"candidates": linked.scores.shape[1]}
    counts = HitCounts(hits=hits, tries=len(linked.truth))
    return spec.share(counts, labels=(linked.known,), numbers=numbers)


def halves(people: Ints, rng: Generator) -> Mask:
    """Return a mask of the rows of a random half of the people, (n,)."""
    numbers = np.unique(people)
    chosen = rng.permutation(numbers)[: (numbers.size + 1) // 2]
    return np.isin(people, chosen)


def combined(scores: Sequence[Doubles], truth: Ints, people: Ints, rng: Generator) -> Doubles:
    """Return weighted sums of scores, (n, n_candidates), standardized by row, and by candidate and
    row; cross-fitted.

    Weights for each half of the people are fitted on the other half. They maximize the conditional
    likelihood of the true candidate among all (a logistic regression by row). With fewer than 20
    people all weights are equal.

    Args:
        scores: matchers, (n, n_candidates) each. truth: (n,) the right candidate. people: (n,) the
            person of each row.

    Source: McFadden 1974, conditional logit.
    """
    by_row = [np.asarray(_unit(one, axis=1), dtype=np.float32) for one in scores]
    features = np.stack([*by_row, *(standardised(one) for one in scores)], axis=2)
    if np.unique(people).size < MIN_PEOPLE:
        return np.asarray(features.sum(axis=2), dtype=np.float64)
    half = halves(people, rng)
    result = np.zeros(features.shape[:2])
    for fit in (half, ~half):
        result[~fit] = features[~fit] @ _weights(features, truth, np.flatnonzero(fit), rng).astype(
            np.float32
        )
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
    """Fit weights, (n_matchers,), on at most 500 rows, each with its true candidate and at most 500
    others.
    """
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
