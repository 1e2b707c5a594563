"""Linear models on TF-IDF; paper A does not specify their features."""

from __future__ import annotations

from typing import Any

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Mask
from clinveil.utility.classifiers import NO_WORD, Job, Predictions
from clinveil.utility.scores import THRESHOLDS, choose, decided

FEATURES = 100_000
STRENGTH = 10.0  # of `tfidf-lr`


def tuned(name: str, strengths: tuple[float, ...], job: Job) -> Predictions:
    """Select the regularisation (and the threshold of several labels) on validation notes, then train on both.

    Raises InputError if no word occurs in two notes.
    """
    from threadpoolctl import threadpool_limits

    parts, targets, counts = job.parts, job.targets, job.side.counted
    # One thread gives the same sums on every machine, and is ten times faster on a busy one.
    with threadpool_limits(1):
        score, strength, threshold = _selected(name, strengths, job)
        tfidf, taken = _tfidf(counts.train[parts.learn])
        fitted = _classifier(name, strength, job.seed)
        fitted.fit(tfidf.transform(counts.train[parts.learn][:, taken]), targets[parts.learn])
        probabilities = _probabilities(fitted, tfidf.transform(counts.test[parts.test][:, taken]))
    detail = {"strength": strength} | ({"threshold": threshold} if job.several else {})
    return Predictions(decided(probabilities, threshold, several=job.several), score, detail)


def _selected(name: str, strengths: tuple[float, ...], job: Job) -> tuple[float, float, float]:
    """Return validation score, strength and threshold; a single strength with one label is not scored."""
    if len(strengths) == 1 and not job.several:
        return 0.0, strengths[0], THRESHOLDS[-1]
    parts, targets, counts = job.parts, job.targets, job.side.counted
    tfidf, taken = _tfidf(counts.train[parts.train])
    train, valid = (tfidf.transform(counts.train[rows][:, taken]) for rows in (parts.train, parts.valid))
    scored = []
    for strength in strengths:
        fitted = _classifier(name, strength, job.seed).fit(train, targets[parts.train])
        score, threshold = choose(targets[parts.valid], _probabilities(fitted, valid))
        scored.append((score, -strength, threshold))
    score, negative, threshold = max(scored)
    return score, -negative, threshold


def _classifier(name: str, strength: float, seed: int) -> Any:
    """Return an estimator, one class against the rest, with balanced class weights."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    how: dict[str, Any] = {"C": strength, "class_weight": "balanced", "tol": 1e-3, "random_state": seed % 2**31}
    if name == "svm":
        return OneVsRestClassifier(LinearSVC(max_iter=2_000, **how))
    return OneVsRestClassifier(LogisticRegression(solver="liblinear", max_iter=200, **how))


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


def untuned(job: Job) -> Predictions:
    """Train on the training and validation notes. Raises InputError if no word occurs in two notes."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from threadpoolctl import threadpool_limits

    vectorizer = TfidfVectorizer(analyzer=words, sublinear_tf=True, min_df=2)
    learn, model = job.parts.learn, LogisticRegression(C=STRENGTH, max_iter=300)
    with threadpool_limits(1):
        try:
            features = vectorizer.fit_transform(job.texts(learn))
        except ValueError:
            raise InputError(NO_WORD) from None
        fitted = (OneVsRestClassifier(model) if job.several else model).fit(features, job.targets[learn])
        predicted = fitted.predict(vectorizer.transform(job.tested))
    return Predictions(predicted.astype(job.targets.dtype), 0.0, {"strength": STRENGTH})
