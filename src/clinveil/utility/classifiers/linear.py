"""Logistic regression and linear SVM on words and word pairs; paper A leaves their features open.

TF-IDF with a vocabulary, or hashed features learnt in passes over mini-batches, whose memory does not grow with the
number of notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.tokens import words
from clinveil.utility.classifiers.settings import ClassifierSettings
from clinveil.utility.classifiers.thresholds import THRESHOLDS, best_threshold, valid_score
from clinveil.utility.labelled import Parts

if TYPE_CHECKING:
    from clinveil.utility.classifiers.predict import Predictions

FEATURES, HASHED = 100_000, 2**18
STRENGTHS = {"lr": (2.0, 10.0, 50.0), "svm": (0.05, 0.2, 1.0)}
_MINI_BATCH, _PASSES = 1_000, 5


def grams(text: str) -> list[str]:
    """Words, and pairs of words that follow each other."""
    forms = words(text)
    return forms + [f"{one} {other}" for one, other in pairwise(forms)]


def fit_linear(
    model: str,
    learnt: Sequence[str],
    tested: Sequence[str],
    targets: NDArray[Any],
    parts: Parts,
    seed: int,
    settings: ClassifierSettings,
) -> Predictions:
    """Choose the strength of regularisation (and of several labels the threshold) on validation, then train on both.

    Hashed features are learnt on the training notes only: a second run of all passes would double the time.

    Raises InputError where no word stands in two notes.
    """
    from threadpoolctl import threadpool_limits

    # One thread: the same sums on any machine, and ten times faster where others want the cores too.
    with threadpool_limits(1):
        if settings.features == "hashed":
            return _hashed(model, learnt, tested, targets, parts, seed)
        return _exact(model, learnt, tested, targets, parts, seed)


def _exact(
    model: str, learnt: Sequence[str], tested: Sequence[str], targets: NDArray[Any], parts: Parts, seed: int
) -> Predictions:
    from clinveil.utility.classifiers.predict import Predictions

    vectorizer = _fitted_vectorizer([learnt[i] for i in parts.train])
    train, valid = (vectorizer.transform([learnt[i] for i in rows]) for rows in (parts.train, parts.valid))
    scored = []
    for strength in STRENGTHS[model]:
        chances = _chances(_classifier(model, strength, seed).fit(train, targets[parts.train]), valid)
        threshold = best_threshold(targets[parts.valid], chances) if targets.ndim == 2 else THRESHOLDS[-1]
        scored.append((valid_score(targets[parts.valid], _decided(chances, threshold, targets)), -strength, threshold))
    score, strength, threshold = max(scored)
    vectorizer = _fitted_vectorizer([learnt[i] for i in parts.learn])
    fitted = _classifier(model, -strength, seed)
    fitted.fit(vectorizer.transform([learnt[i] for i in parts.learn]), targets[parts.learn])
    chances = _chances(fitted, vectorizer.transform([tested[i] for i in parts.test]))
    detail = {"strength": -strength} | ({"threshold": threshold} if targets.ndim == 2 else {})
    return Predictions(_decided(chances, threshold, targets), score, detail)


def _fitted_vectorizer(texts: list[str]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=grams, sublinear_tf=True, min_df=2, max_features=FEATURES, dtype=np.float32)
    try:
        return vectorizer.fit(texts)
    except ValueError:  # no word in two notes: sklearn's own message would say so less plainly
        raise InputError("no word stands in two notes: there is nothing to learn from") from None


def _classifier(model: str, strength: float, seed: int) -> Any:
    """One class against the rest, classes balanced; of a single decision the same."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    if model == "lr":
        kind = LogisticRegression(
            C=strength, class_weight="balanced", solver="liblinear", max_iter=200, tol=1e-3, random_state=seed % 2**31
        )
    else:
        kind = LinearSVC(C=strength, class_weight="balanced", max_iter=2_000, tol=1e-3, random_state=seed % 2**31)
    return OneVsRestClassifier(kind)


def _chances(fitted: Any, features: Any) -> NDArray[np.float64]:
    """(n, n_classes) probabilities of the classes, of an SVM the logistic function of its margins."""
    margins = np.asarray(fitted.decision_function(features), dtype=np.float64)
    chances = 1 / (1 + np.exp(-np.clip(margins, -500, 500)))
    if chances.ndim == 1:
        return np.stack([1 - chances, chances], axis=1)
    return np.asarray(chances)


def _decided(chances: NDArray[np.float64], threshold: float, targets: NDArray[Any]) -> NDArray[Any]:
    return chances >= threshold if targets.ndim == 2 else chances.argmax(axis=1).astype(np.int64)


def _hashed(
    model: str, learnt: Sequence[str], tested: Sequence[str], targets: NDArray[Any], parts: Parts, seed: int
) -> Predictions:
    """Stochastic gradient descent over mini-batches of hashed features; memory is that of one batch and the weights."""
    from clinveil.utility.classifiers.predict import Predictions

    best: tuple[float, float, float] | None = None
    chosen: Any = None
    for alpha in (1e-6, 1e-5):
        fitted = _passes(model, alpha, learnt, targets, parts.train, seed)
        chances = np.concatenate([_chances(fitted, x) for x in _features(learnt, parts.valid)])
        threshold = best_threshold(targets[parts.valid], chances) if targets.ndim == 2 else THRESHOLDS[-1]
        score = valid_score(targets[parts.valid], _decided(chances, threshold, targets))
        if best is None or score > best[0]:
            best, chosen = (score, alpha, threshold), fitted
    assert best is not None
    chances = np.concatenate([_chances(chosen, x) for x in _features(tested, parts.test)])
    return Predictions(_decided(chances, best[2], targets), best[0], {"alpha": best[1], "features": "hashed"})


def _features(texts: Sequence[str], rows: NDArray[np.int64]) -> Iterator[Any]:
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(analyzer=grams, n_features=HASHED, alternate_sign=False, dtype=np.float32)
    for start in range(0, len(rows), _MINI_BATCH):
        counted = vectorizer.transform([texts[i] for i in rows[start : start + _MINI_BATCH]])
        counted.data = np.sqrt(counted.data)
        yield counted


def _passes(
    model: str, alpha: float, texts: Sequence[str], targets: NDArray[Any], rows: NDArray[np.int64], seed: int
) -> Any:
    """A linear model of several passes in another order each; classes weighted as if all were as frequent."""
    from sklearn.linear_model import SGDClassifier

    loss = "log_loss" if model == "lr" else "hinge"
    several = targets.ndim == 2
    columns = range(targets.shape[1]) if several else [None]
    models = [SGDClassifier(loss=loss, alpha=alpha, average=True, random_state=seed % 2**31) for _ in columns]
    classes = np.array([False, True]) if several else np.unique(targets)
    rng = np.random.default_rng([seed, 2])
    for _ in range(_PASSES):
        order = rng.permutation(rows)
        for start, x in enumerate(_features(texts, order)):
            batch = order[start * _MINI_BATCH : (start + 1) * _MINI_BATCH]
            for fitted, column in zip(models, columns, strict=True):
                y = targets[batch] if column is None else targets[batch, column]
                weight = _balance(targets[rows] if column is None else targets[rows, column], classes)
                fitted.partial_fit(x, y, classes=classes, sample_weight=weight[np.searchsorted(classes, y)])
    return _Several(models) if several else models[0]


def _balance(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    sizes = np.array([max(int((y == c).sum()), 1) for c in classes])
    return np.asarray(y.size / (classes.size * sizes))


class _Several:
    """One model a label."""

    def __init__(self, models: list[Any]) -> None:
        self._models = models

    def decision_function(self, features: Any) -> NDArray[np.float64]:
        """(n, n_labels) margins."""
        return np.stack([model.decision_function(features) for model in self._models], axis=1)
