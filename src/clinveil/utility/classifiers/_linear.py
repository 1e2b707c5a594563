"""Linear models on TF-IDF of words and word pairs; paper A does not specify their features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.types import Doubles, Mask
from clinveil.utility.classifiers import NO_WORD, Classifier, Job, Predictions
from clinveil.utility.scores import THRESHOLDS, choose, decided

FEATURES = 100_000


@dataclass(frozen=True)
class Linear(Classifier):
    """A linear classifier, one class against the rest, with balanced class weights.

    Attributes:
        estimator: a scikit-learn classifier of (inverse strength of regularisation, seed). strengths: candidates.
    """

    estimator: Callable[[float, int], Any]
    strengths: tuple[float, ...]

    def __call__(self, job: Job) -> Predictions:
        """Select the regularisation (and the threshold of several labels) on validation notes, then train on both.

        Raises InputError if no word occurs in two notes.
        """
        from threadpoolctl import threadpool_limits

        # One thread gives the same sums on every machine, and is ten times faster on a busy one.
        with threadpool_limits(1):
            return self._trained(job)

    def like(self, earlier: Predictions) -> Linear:
        """Return the classifier with the strength of regularisation that an earlier run selected."""
        strength = earlier.detail.get("strength")
        return replace(self, strengths=(strength,)) if strength else self

    def _trained(self, job: Job) -> Predictions:
        parts, targets, counts = job.parts, job.targets, job.side.counted
        score, strength, threshold = self._selected(job)
        tfidf, taken = _tfidf(counts.train[parts.learn])
        fitted = self._classifier(strength, job.seed)
        fitted.fit(tfidf.transform(counts.train[parts.learn][:, taken]), targets[parts.learn])
        probabilities = _probabilities(fitted, tfidf.transform(counts.test[parts.test][:, taken]))
        detail = {"strength": strength} | ({"threshold": threshold} if job.several else {})
        return Predictions(decided(probabilities, threshold, several=job.several), score, detail)

    def _selected(self, job: Job) -> tuple[float, float, float]:
        """Return validation score, strength and threshold; a single strength with one label is not scored."""
        if len(self.strengths) == 1 and not job.several:
            return 0.0, self.strengths[0], THRESHOLDS[-1]
        parts, targets, counts = job.parts, job.targets, job.side.counted
        tfidf, taken = _tfidf(counts.train[parts.train])
        train, valid = (tfidf.transform(counts.train[rows][:, taken]) for rows in (parts.train, parts.valid))
        scored = []
        for strength in self.strengths:
            fitted = self._classifier(strength, job.seed).fit(train, targets[parts.train])
            score, threshold = choose(targets[parts.valid], _probabilities(fitted, valid))
            scored.append((score, -strength, threshold))
        score, negative, threshold = max(scored)
        return score, -negative, threshold

    def _classifier(self, strength: float, seed: int) -> Any:
        from sklearn.multiclass import OneVsRestClassifier

        return OneVsRestClassifier(self.estimator(strength, seed % 2**31))


def _tfidf(counts: Any) -> tuple[Any, Mask]:
    """Return TF-IDF fitted to counts, and its features: grams of two or more notes, at most the FEATURES most frequent.

    Equal to scikit-learn's `TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=FEATURES)` on the texts.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    taken = np.bincount(counts.indices, minlength=counts.shape[1]) >= 2
    if not taken.any():
        raise InputError(NO_WORD)
    if taken.sum() > FEATURES:
        frequent = (-np.asarray(counts.sum(axis=0)).ravel()[taken]).argsort()[:FEATURES]
        columns = np.flatnonzero(taken)[frequent]
        taken = np.zeros(taken.size, dtype=np.bool_)
        taken[columns] = True
    return TfidfTransformer(sublinear_tf=True).fit(counts[:, taken]), taken


def _probabilities(fitted: Any, features: Any) -> Doubles:
    """Return class probabilities, (n, n_classes); for an SVM the logistic function of its margins."""
    margins = np.asarray(fitted.decision_function(features), dtype=np.float64)
    probabilities = 1 / (1 + np.exp(-np.clip(margins, -500, 500)))
    if probabilities.ndim == 1:
        return np.stack([1 - probabilities, probabilities], axis=1)
    return np.asarray(probabilities)
