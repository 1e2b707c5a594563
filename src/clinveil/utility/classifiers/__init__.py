"""Text classifiers: linear models on the words of notes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core import Doubles, InputError, Mask, Members, Settings, setting, words
from clinveil.utility.scores import THRESHOLDS, choose, decided

if TYPE_CHECKING:
    from clinveil.utility.labelled import ClassifiedNotes, RowsOfSplit

NO_WORD = "no word occurs in two notes, so there are no features"
FEATURES = 100_000
STRENGTH = 10.0  # of `tfidf-lr`


class ClassifierSettings(Settings):
    """Settings of reading labelled notes for classifiers (paper A)."""

    max_documents: int = setting(5_000, "Maximum labelled notes, sampled at random.", ge=20)
    min_class: int = setting(50, "Leave out classes with fewer notes.", ge=2)
    separator: str | None = setting(
        None, "Separator of several labels of one note (default: one label per note)."
    )


@dataclass(frozen=True)
class Predictions:
    """Predictions on the test notes, (n_test,) int64 classes or (n_test, n_classes) bool, and the
    model's settings.
    """

    test: NDArray[Any] = field(repr=False)
    chosen: Mapping[str, float] = field(default_factory=dict)


class GramCounts(NamedTuple):
    """Counts of grams or words in the training and in the test texts, CSR (n_notes, n_grams) of the
    training texts.
    """

    train: Any
    test: Any


@dataclass(frozen=True)
class TrainTestTexts:
    """Texts of *all* notes for training and validation, and texts of all notes for testing.

    The paper's main setting uses the same texts; otherwise it is a transfer.
    """

    train: Sequence[str] = field(repr=False)
    test: Sequence[str] = field(repr=False)

    @cached_property
    def counted(self) -> GramCounts:
        """Counts of words and word pairs of all notes, shared by all splits.

        Raises InputError if no note has a word.
        """
        return self._counted(grams, np.float32)

    @cached_property
    def counted_words(self) -> GramCounts:
        """Counts of words only; otherwise as `counted`."""
        return self._counted(words, np.float64)

    def _counted(
        self, analyzer: Callable[[str], list[str]], dtype: type[np.floating[Any]]
    ) -> GramCounts:
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(analyzer=analyzer, dtype=dtype)
        try:
            counts = vectorizer.fit_transform(self.train)
        except ValueError:  # scikit-learn: empty vocabulary
            raise InputError(NO_WORD) from None
        counts.sort_indices()
        return GramCounts(
            counts, counts if self.test is self.train else vectorizer.transform(self.test)
        )


@dataclass(frozen=True)
class ClassifierInput:
    """Input of a classifier; `targets`: (n_notes,) int64 classes, or with several labels (n_notes,
    n_classes) bool.
    """

    side: TrainTestTexts
    targets: NDArray[Any] = field(repr=False)
    n_classes: int
    parts: RowsOfSplit
    seed: int

    @property
    def several(self) -> bool:
        """Whether a note may have several labels."""
        return self.targets.ndim == 2

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """Return texts of the training side."""
        return [self.side.train[row] for row in rows]

    @property
    def tested(self) -> list[str]:
        """Texts of the test notes."""
        return [self.side.test[row] for row in self.parts.test]


class Classifier(ABC):
    """A kind of classifier."""

    @abstractmethod
    def __call__(self, job: ClassifierInput) -> Predictions:
        """Train on the training notes, select on the validation notes, and predict the test
        notes.
        """

    def like(self, earlier: Predictions) -> Classifier:
        """Return the classifier with the settings that an earlier run selected, or itself."""
        return self


@dataclass(frozen=True)
class Linear(Classifier):
    """A linear model on TF-IDF of words and word pairs; paper A does not specify its features.

    `strengths`: candidates of the regularisation's inverse.
    """

    name: str
    strengths: tuple[float, ...]

    def __call__(self, job: ClassifierInput) -> Predictions:
        """Select strength (and threshold of several labels) on validation notes, then train on both
        parts.

        Raises InputError if no word occurs in two notes.
        """
        from threadpoolctl import threadpool_limits

        learn = job.parts.learn
        test = job.parts.test
        counts = job.side.counted
        # One thread gives the same sums on every machine, and is ten times faster on a busy one.
        with threadpool_limits(1):
            strength, threshold = self._selected(job)
            tfidf, taken = _tfidf(counts.train[learn])
            fitted = self._estimator(strength, job.seed)
            fitted.fit(tfidf.transform(counts.train[learn][:, taken]), job.targets[learn])
            probabilities = _probabilities(fitted, tfidf.transform(counts.test[test][:, taken]))
        chosen = {"strength": strength}
        if job.several:
            chosen["threshold"] = threshold
        return Predictions(decided(probabilities, threshold, several=job.several), chosen)

    def like(self, earlier: Predictions) -> Linear:
        """Return the classifier with the strength that an earlier run selected."""
        strength = earlier.chosen.get("strength")
        return replace(self, strengths=(strength,)) if strength else self

    def _selected(self, job: ClassifierInput) -> tuple[float, float]:
        """Return strength and threshold, by score on the validation notes."""
        if len(self.strengths) == 1 and not job.several:
            return self.strengths[0], THRESHOLDS[-1]
        parts = job.parts
        targets = job.targets
        counts = job.side.counted
        tfidf, taken = _tfidf(counts.train[parts.train])
        train, valid = (
            tfidf.transform(counts.train[rows][:, taken]) for rows in (parts.train, parts.valid)
        )
        scored = []
        for strength in self.strengths:
            fitted = self._estimator(strength, job.seed).fit(train, targets[parts.train])
            score, threshold = choose(targets[parts.valid], _probabilities(fitted, valid))
            scored.append((score, -strength, threshold))
        _, negative, threshold = max(scored)
        return -negative, threshold

    def _estimator(self, strength: float, seed: int) -> Any:
        """Return an estimator, one class against the rest, with balanced class weights."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        if self.name == "svm":
            machine = LinearSVC(
                C=strength,
                class_weight="balanced",
                tol=1e-3,
                max_iter=2_000,
                random_state=seed % 2**31,
            )
            return OneVsRestClassifier(machine)
        regression = LogisticRegression(
            C=strength,
            class_weight="balanced",
            tol=1e-3,
            solver="liblinear",
            max_iter=200,
            random_state=seed % 2**31,
        )
        return OneVsRestClassifier(regression)


def _tfidf(counts: Any) -> tuple[Any, Mask]:
    """Return TF-IDF fitted to counts, and its features: grams of two or more notes, at most the
    FEATURES most frequent.

    Equal to scikit-learn's `TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=FEATURES)` on
    the texts.
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
    """Return class probabilities, (n, n_classes); for an SVM the logistic function of its
    margins.
    """
    margins = np.asarray(fitted.decision_function(features), dtype=np.float64)
    probabilities = 1 / (1 + np.exp(-np.clip(margins, -500, 500)))
    if probabilities.ndim == 1:
        return np.stack([1 - probabilities, probabilities], axis=1)
    return np.asarray(probabilities)


class TfidfLogisticRegression(Classifier):
    """TF-IDF of single words and logistic regression: the simple pipeline that a recipient would
    write.

    Without word pairs and tuning, the model does not adapt to features that only released notes
    have, so it transfers well to real notes.
    """

    def __call__(self, job: ClassifierInput) -> Predictions:
        """Train on training and validation notes. Raises InputError if no word occurs in two
        notes.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier
        from threadpoolctl import threadpool_limits

        learn = job.parts.learn
        counts = job.side.counted_words
        model = LogisticRegression(C=STRENGTH, max_iter=300)
        with threadpool_limits(1):
            tfidf, taken = _tfidf(counts.train[learn])
            features = tfidf.transform(counts.train[learn][:, taken])
            fitted = (OneVsRestClassifier(model) if job.several else model).fit(
                features, job.targets[learn]
            )
            predicted = fitted.predict(tfidf.transform(counts.test[job.parts.test][:, taken]))
        return Predictions(predicted.astype(job.targets.dtype), {"strength": STRENGTH})


def grams(text: str) -> list[str]:
    """Return words and pairs of adjacent words."""
    forms = words(text)
    return forms + [f"{word} {next_word}" for word, next_word in pairwise(forms)]


LR = Linear("lr", (2.0, 10.0, 50.0))
SVM = Linear("svm", (0.05, 0.2, 1.0))
TFIDF_LR = TfidfLogisticRegression()
CLASSIFIERS: Members[Classifier] = Members(
    "classifier",
    {
        "lr": "clinveil.utility.classifiers:LR",
        "svm": "clinveil.utility.classifiers:SVM",
        "tfidf-lr": "clinveil.utility.classifiers:TFIDF_LR",
    },
)


def classifier(model: str) -> Classifier:
    """Return the classifier of a name. Raises UsageError for an unknown one."""
    return CLASSIFIERS.get(model)


def predict(
    model: str | Classifier,
    labelled: ClassifiedNotes,
    parts: RowsOfSplit,
    seed: int,
    side: TrainTestTexts | None = None,
    *,
    shuffled: bool = False,
    like: Predictions | None = None,
) -> Predictions:
    """Train a model and return its predictions of the test notes; deterministic for a seed.

    `model`: a registered name, or a classifier; `side`: texts (default: those of the labelled
    notes); `shuffled`: train on permuted labels (control); `like`: an earlier run with settings
    that are reused.

    Raises UsageError for an unknown name, and InputError without features.
    """
    targets = labelled.targets
    if shuffled:
        targets = targets.copy()
        targets[parts.learn] = np.random.default_rng([seed, 1]).permutation(targets[parts.learn])
    side = side or TrainTestTexts(labelled.texts, labelled.texts)
    job = ClassifierInput(side, targets, len(labelled.classes), parts, seed)
    kind = classifier(model) if isinstance(model, str) else model
    return (kind.like(like) if like else kind)(job)
