"""Text classifiers: linear models, and paper A's networks on word vectors (extra `[neural]`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.neural import found_in, need_torch
from clinveil.core.registry import Registry
from clinveil.core.settings import Settings, flag
from clinveil.core.tokens import words

if TYPE_CHECKING:
    from clinveil.utility.labelled import Labelled, Parts
    from clinveil.vectors.table import Vectors


class ClassifierSettings(Settings):
    """Settings of training classifiers on labelled notes (paper A); `size` sets the defaults."""

    size: Literal["small", "paper"] = flag("small", "small trains on 2 cores in minutes; paper has the papers' sizes.")
    max_documents: int | None = flag(None, "Maximum labelled notes, sampled (small: 5000, paper: all).", ge=20)
    max_tokens: int | None = flag(None, "Networks: words read of each note (small: 200, paper: 5000).", ge=5)
    epochs: int | None = flag(None, "Networks: epochs (small: 20, early stopping; paper: 25).", ge=1, le=1000)
    static: bool = flag(False, "Networks: do not train the word vectors.")
    min_class: int = flag(50, "Leave out classes with fewer notes.", ge=2)
    separator: str | None = flag(None, "Separator of several labels of one note (default: one label per note).")
    device: str = flag("cpu", "Networks: cpu, cuda or cuda:1.")

    @property
    def documents(self) -> int:
        """Maximum number of labelled notes."""
        return self.max_documents or (5_000 if self.size == "small" else 10**9)

    @property
    def tokens(self) -> int:
        """Words of each note that networks read."""
        return self.max_tokens or (200 if self.size == "small" else 5_000)

    @property
    def passes(self) -> int:
        """Maximum number of epochs."""
        return self.epochs or (20 if self.size == "small" else 25)


@dataclass(frozen=True)
class Predictions:
    """Predictions of a model on the test notes, (n_test,) int64 classes or (n_test, n_classes) bool.

    `valid_score`: macro-F1 on the validation notes (with several labels per note micro-F1). `detail`: its settings.
    """

    test: NDArray[Any] = field(repr=False)
    valid_score: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """Texts of *all* notes for training and validation, and texts of all notes for testing.

    The paper's main setting uses the same texts; otherwise it is a transfer. `vectors`: initial vectors of networks.
    """

    train: Sequence[str] = field(repr=False)
    test: Sequence[str] = field(repr=False)
    vectors: Vectors | None = field(default=None, repr=False)

    @cached_property
    def counted(self) -> Counted:
        """Counts of words and word pairs of all notes, shared by all splits."""
        return Counted.of(self.train, self.test)


@dataclass(frozen=True)
class Counted:
    """Counts of grams in the training and in the test texts, CSR (n_notes, n_grams).

    Columns are the grams of the training texts in alphabetical order.
    """

    train: Any = field(repr=False)
    test: Any = field(repr=False)

    @classmethod
    def of(cls, train: Sequence[str], test: Sequence[str]) -> Counted:
        """Count the grams of texts. Raises InputError if no note has a word."""
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(analyzer=grams, dtype=np.float32)
        try:
            counts = vectorizer.fit_transform(train)
        except ValueError:  # scikit-learn: empty vocabulary
            raise InputError(NO_WORD) from None
        counts.sort_indices()
        return cls(counts, counts if test is train else vectorizer.transform(test))


@dataclass(frozen=True)
class Job:
    """Input of a classifier; `targets`: (n_notes,) int64 classes, or with several labels (n_notes, n_classes) bool."""

    side: Side
    targets: NDArray[Any] = field(repr=False)
    n_classes: int
    parts: Parts
    seed: int
    settings: ClassifierSettings

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
    """A kind of classifier.

    Attributes:
        neural: whether it requires PyTorch and is trained with several seeds.
    """

    neural: bool = False

    @abstractmethod
    def __call__(self, job: Job) -> Predictions:
        """Train on the training notes, select on the validation notes, and predict the test notes."""

    def like(self, earlier: Predictions) -> Classifier:
        """Return the classifier with the settings that an earlier run selected, or itself."""
        return self


@dataclass(frozen=True)
class Linear(Classifier):
    """A linear model on TF-IDF of words and word pairs; `strengths`: candidates of the regularisation's inverse."""

    name: str
    strengths: tuple[float, ...]

    def __call__(self, job: Job) -> Predictions:
        """Select the strength on validation notes, then train on both parts."""
        from clinveil.utility.classifiers.linear import tuned

        return tuned(self.name, self.strengths, job)

    def like(self, earlier: Predictions) -> Linear:
        """Return the classifier with the strength that an earlier run selected."""
        strength = earlier.detail.get("strength")
        return replace(self, strengths=(strength,)) if strength else self


class TfidfLogisticRegression(Classifier):
    """TF-IDF of single words and logistic regression: the simple pipeline that a recipient would write.

    Without word pairs and tuning, the model does not adapt to features that only released notes have, so it transfers
    well to real notes.
    """

    def __call__(self, job: Job) -> Predictions:
        """Train on training and validation notes."""
        from clinveil.utility.classifiers.linear import untuned

        return untuned(job)


@dataclass(frozen=True)
class Neural(Classifier):
    """One of paper A's networks."""

    name: str
    neural = True

    def __call__(self, job: Job) -> Predictions:
        """Train on training notes, and select the epoch on validation notes."""
        from clinveil.utility.classifiers.training import trained

        return trained(self.name, job)


NO_WORD = "no word occurs in two notes, so there are no features"


def grams(text: str) -> list[str]:
    """Return words and pairs of adjacent words."""
    forms = words(text)
    return forms + [f"{one} {other}" for one, other in pairwise(forms)]


classifiers: Registry[Classifier] = Registry("classifier", first=("lr", "svm"))
classifiers.register("lr")(Linear("lr", (2.0, 10.0, 50.0)))
classifiers.register("svm")(Linear("svm", (0.05, 0.2, 1.0)))
classifiers.register("tfidf-lr")(TfidfLogisticRegression())
for _name in ("cnn", "cnn-attention", "lstm", "lstm-attention"):
    classifiers.register(_name)(Neural(_name))


def classifier(model: str) -> Classifier:
    """Return the classifier of a name. Raises UsageError for an unknown one, MissingExtra without PyTorch."""
    kind = found_in(classifiers, model)
    if kind.neural:
        need_torch()
    return kind


def any_neural(models: Iterable[str]) -> bool:
    """Return whether a model requires PyTorch. Raises as `classifier` does."""
    return any(classifier(model).neural for model in models)


def predict(
    model: str,
    labelled: Labelled,
    parts: Parts,
    seed: int,
    side: Side | None = None,
    *,
    settings: ClassifierSettings | None = None,
    shuffled: bool = False,
    like: Predictions | None = None,
) -> Predictions:
    """Train a model and return its predictions of the test notes; deterministic for a seed.

    `side`: texts (default: those of the labelled notes); `shuffled`: train on permuted labels (control); `like`: an
    earlier run whose selected settings are reused. Raises as `classifier` does, and InputError without features.
    """
    targets = labelled.targets
    if shuffled:
        targets = targets.copy()
        targets[parts.learn] = np.random.default_rng([seed, 1]).permutation(targets[parts.learn])
    side = side or Side(labelled.texts, labelled.texts)
    job = Job(side, targets, len(labelled.classes), parts, seed, settings or ClassifierSettings())
    kind = classifier(model)
    return (kind.like(like) if like else kind)(job)
