"""Linear models on words and word pairs; paper A leaves their features open.

TF-IDF with a vocabulary, or hashed features learnt in passes over mini-batches, whose memory does not grow with the
number of notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.utility.classifiers import NO_WORD, Classifier, Job, Predictions, grams
from clinveil.utility.scores import THRESHOLDS, choose, decided

FEATURES, HASHED = 100_000, 2**18
_ALPHAS = (1e-6, 1e-5)  # of hashed features
_MINI_BATCH, _PASSES = 1_000, 5


@dataclass(frozen=True)
class Linear(Classifier):
    """A linear classifier; of one class a note, each class against the rest, classes balanced.

    Attributes:
        estimator: a scikit-learn classifier of (inverse strength of regularisation, seed). strengths: to choose from.
        loss: of stochastic gradient descent, on hashed features.
    """

    estimator: Callable[[float, int], Any]
    strengths: tuple[float, ...]
    loss: str

    def __call__(self, job: Job) -> Predictions:
        """Choose regularisation (and of several labels the threshold) on validation, then train on both.

        Hashed features are learnt on the training notes only: a second run of all passes would double the time.

        Raises InputError where no word stands in two notes.
        """
        from threadpoolctl import threadpool_limits

        # One thread: the same sums on any machine, and ten times faster where others want the cores too.
        with threadpool_limits(1):
            return self._hashed(job) if job.settings.features == "hashed" else self._exact(job)

    def like(self, earlier: Predictions) -> Linear:
        """Return the classifier with the strength of regularisation that an earlier run chose."""
        strength = earlier.detail.get("strength")
        return replace(self, strengths=(strength,)) if strength else self

    def _exact(self, job: Job) -> Predictions:
        parts, targets, counts = job.parts, job.targets, job.side.counted
        score, strength, threshold = self._chosen(job)
        tfidf, taken = _tfidf(counts.train[parts.learn])
        fitted = self._classifier(strength, job.seed)
        fitted.fit(tfidf.transform(counts.train[parts.learn][:, taken]), targets[parts.learn])
        probabilities = _probabilities(fitted, tfidf.transform(counts.test[parts.test][:, taken]))
        detail = {"strength": strength} | ({"threshold": threshold} if job.several else {})
        return Predictions(decided(probabilities, threshold, several=job.several), score, detail)

    def _chosen(self, job: Job) -> tuple[float, float, float]:
        """The score on validation notes, the strength and the threshold; one strength for one label is not scored."""
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

    def _hashed(self, job: Job) -> Predictions:
        """Stochastic gradient descent over mini-batches; memory is that of one batch and the weights."""
        targets, learnt = job.targets[job.parts.valid], []
        for alpha in _ALPHAS:
            fitted = self._passes(job, alpha)
            score, threshold = choose(targets, _of_batches(fitted, job.side.train, job.parts.valid))
            learnt.append((score, alpha, threshold, fitted))
        score, alpha, threshold, fitted = max(learnt, key=lambda one: one[0])  # of equal ones the first
        probabilities = _of_batches(fitted, job.side.test, job.parts.test)
        detail = {"alpha": alpha, "features": "hashed"}
        return Predictions(decided(probabilities, threshold, several=job.several), score, detail)

    def _passes(self, job: Job, alpha: float) -> Any:
        """A linear model of several passes in another order each; classes weighted as if all were as frequent."""
        from sklearn.linear_model import SGDClassifier

        rows, targets = job.parts.train, job.targets
        columns = range(targets.shape[1]) if job.several else [None]
        models = [
            SGDClassifier(loss=self.loss, alpha=alpha, average=True, random_state=job.seed % 2**31) for _ in columns
        ]
        classes = np.array([False, True]) if job.several else np.unique(targets)
        weights = [_balance(targets[rows] if column is None else targets[rows, column], classes) for column in columns]
        rng = np.random.default_rng([job.seed, 2])
        for _ in range(_PASSES):
            order = rng.permutation(rows)
            for start, x in enumerate(_features(job.side.train, order)):
                batch = order[start * _MINI_BATCH : (start + 1) * _MINI_BATCH]
                for fitted, column, weight in zip(models, columns, weights, strict=True):
                    y = targets[batch] if column is None else targets[batch, column]
                    fitted.partial_fit(x, y, classes=classes, sample_weight=weight[np.searchsorted(classes, y)])
        return _Several(models) if job.several else models[0]


def _tfidf(counts: Any) -> tuple[Any, Mask]:
    """TF-IDF fitted to the counts of some notes, and the grams that it takes: in two notes or more, the most frequent.

    The same as scikit-learn's `TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=FEATURES)` on their texts.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    taken = np.bincount(counts.indices, minlength=counts.shape[1]) >= 2
    if not taken.any():
        raise InputError(NO_WORD)
    if taken.sum() > FEATURES:
        frequent = (-np.asarray(counts.sum(axis=0)).ravel()[taken]).argsort()[:FEATURES]
        places = np.flatnonzero(taken)[frequent]
        taken = np.zeros(taken.size, dtype=np.bool_)
        taken[places] = True
    return TfidfTransformer(sublinear_tf=True).fit(counts[:, taken]), taken


def _probabilities(fitted: Any, features: Any) -> Doubles:
    """(n, n_classes) probabilities of the classes, of an SVM the logistic function of its margins."""
    margins = np.asarray(fitted.decision_function(features), dtype=np.float64)
    probabilities = 1 / (1 + np.exp(-np.clip(margins, -500, 500)))
    if probabilities.ndim == 1:
        return np.stack([1 - probabilities, probabilities], axis=1)
    return np.asarray(probabilities)


def _of_batches(fitted: Any, texts: Sequence[str], rows: Ints) -> Doubles:
    return np.concatenate([_probabilities(fitted, features) for features in _features(texts, rows)])


def _features(texts: Sequence[str], rows: Ints) -> Iterator[Any]:
    """Of some texts, a mini-batch at a time; texts are asked for when they are needed."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(analyzer=grams, n_features=HASHED, alternate_sign=False, dtype=np.float32)
    for start in range(0, len(rows), _MINI_BATCH):
        counted = vectorizer.transform([texts[row] for row in rows[start : start + _MINI_BATCH]])
        counted.data = np.sqrt(counted.data)
        yield counted


def _balance(y: NDArray[Any], classes: NDArray[Any]) -> Doubles:
    sizes = np.array([max(int((y == c).sum()), 1) for c in classes])
    return np.asarray(y.size / (classes.size * sizes))


class _Several:
    """One model a label."""

    def __init__(self, models: list[Any]) -> None:
        self._models = models

    def decision_function(self, features: Any) -> Doubles:
        """(n, n_labels) margins."""
        return np.stack([model.decision_function(features) for model in self._models], axis=1)
