"""Figures of a linkage: hits, ranks, one-to-one assignment, and notes singled out with confidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.text.linkage.combined import halves
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.stats.findings import clustered_share, proportion

SHUFFLES, PRECISION, MIN_NAMED = 20, 0.9, 10
MAX_ASSIGNED = 5_000
CHANCE_IS, CONTROL_IS = "naming one of the candidates at random", "the same scores, with the known texts shuffled"
SOURCES = {
    "": "linkage: share of notes with a right best match",
    "_rarest": "the same, of the people with the rarest words: maximum risk, ISO/IEC 27559 7.3.2",
    "_one_to_one": "linear assignment over all notes and candidates: Crouse 2016, IEEE Trans. Aerosp. Electron. Syst.",
    "_singled": "singling out: Art. 29 Working Party 2014, WP216; margin of the best over the second candidate",
}


@dataclass(frozen=True, eq=False)
class Linked:
    """Scores of one attacker, and the truth.

    Attributes:
        scores: (n, n_candidates). truth: (n,) the right candidates. people: (n,) the person of each row.
        labels: labels of every finding's detail: the attacker and the known information.
        rarest: (n,) mask of the tenth of the people with the rarest words in their texts; None: no such figure.
    """

    scores: Doubles
    truth: Ints
    people: Ints
    labels: dict[str, Any] = field(default_factory=dict)
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

    def findings(self, rng: Generator, *, top: int, assign: bool = True) -> list[Finding]:
        """Return hits, one-to-one hits if every candidate is right once, and hits with confidence."""
        ranks = self.ranks(rng)
        rank_detail = {f"top_{top}": float((ranks <= top).mean()), "median": float(np.median(ranks))}
        more = {"mean_rank": float(ranks.mean()), **rank_detail}
        found = [self._share("", ranks == 1, more)]
        if self.rarest is not None:
            found.append(self._share("_rarest", ranks == 1, {}, self.rarest))
        allowed = len(np.unique(self.truth)) == len(self.truth) and max(self.scores.shape) <= MAX_ASSIGNED
        if assign and allowed:
            found.append(self._share("_one_to_one", self.assigned() == self.truth, {}))
        return [*found, self._singled(rng)]

    def assigned(self) -> Ints:
        """Return the one-to-one assignment with the highest sum, (n,); -1 for an unassigned row."""
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(self.scores, maximize=True)
        chosen = np.full(len(self.truth), -1)
        chosen[rows] = columns
        return chosen

    def confident(self, rng: Generator) -> Mask:
        """Return the rows with a margin that had 90 % precision on ten or more rows of the other half, (n,)."""
        if self.scores.shape[1] < 2:
            return np.zeros(len(self.truth), dtype=np.bool_)
        second, first = np.partition(self.scores, -2, axis=1)[:, -2:].T
        margins, right = first - second, self.best == self.truth
        half, named = halves(self.people, rng), np.zeros(len(self.truth), dtype=np.bool_)
        for fit in (half, ~half):
            named[~fit] = margins[~fit] >= _threshold(margins[fit], right[fit])
        return named

    def _singled(self, rng: Generator) -> Finding:
        named = self.confident(rng)
        hits = named & (self.best == self.truth)
        precision = float(hits.sum() / named.sum()) if named.any() else None
        return self._share("_singled", hits, {"named": int(named.sum()), "precision": precision})

    def _share(self, suffix: str, hits: Mask, more: dict[str, Any], rows: Mask | None = None) -> Finding:
        """Return the share of hits among all rows, or some."""
        hits, people = (hits, self.people) if rows is None else (hits[rows], self.people[rows])
        candidates = self.scores.shape[1]
        chance = 1 / candidates
        detail = {**self.labels, "candidates": candidates, "advantage": float(hits.mean()) - chance, **more}
        about: dict[str, Any] = {"chance": chance, "chance_is": CHANCE_IS, "source": SOURCES[suffix]}
        if not suffix:
            about |= {"control": self.control(), "control_is": CONTROL_IS, "control_kind": "negative"}
        counts = np.zeros((int(people.max()) + 1, 2), dtype=np.int64)
        np.add.at(counts, people, np.column_stack([hits, np.ones_like(hits)]).astype(np.int64))
        about |= {"over": "people", "unit": "notes", "detail": detail}
        return clustered_share(f"attack.linkage{suffix}", counts[counts[:, 1] > 0], **about)

    def control(self) -> float:
        """Return the share of hits if known texts are shuffled among people, over 20 shuffles."""
        rng = np.random.default_rng(len(self.truth))
        return float(np.mean([(self.best == rng.permutation(self.truth)).mean() for _ in range(SHUFFLES)]))


def _threshold(margins: Doubles, right: Mask) -> float:
    """Return the smallest margin with 90 % precision over at least ten rows; infinity if there is none."""
    order = np.argsort(-margins, kind="stable")
    hits, n = np.cumsum(right[order]), np.arange(1, margins.size + 1)
    allowed = np.flatnonzero((hits >= PRECISION * n) & (n >= MIN_NAMED))
    return float(margins[order[allowed[-1]]]) if allowed.size else float("inf")


def unprotected(linked: Linked, against: str) -> Finding:
    """Return the positive control: the share of hits if the known texts themselves were released."""
    n, right = len(linked.truth), int((linked.best == linked.truth).sum())
    detail = {"against": against, "candidates": linked.scores.shape[1]}
    return proportion("attack.linkage_unprotected", right, n, over="notes", better=None, detail=detail)
