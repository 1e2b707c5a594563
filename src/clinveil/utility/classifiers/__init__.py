"""Text classifiers, one a file: linear models on TF-IDF, and paper A's networks on word vectors (extra `[neural]`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.neural import found_in
from clinveil.core.registry import Registry
from clinveil.core.settings import Settings, flag
from clinveil.core.tokens import words

if TYPE_CHECKING:
    from clinveil.utility.labelled import Labelled, Parts
    from clinveil.vectors.table import Vectors


class ClassifierSettings(Settings):
    """How classifiers are trained on labelled notes (paper A); `size` sets what is not given."""

    size: Literal["small", "paper"] = flag("small", "small trains on 2 cores in minutes; paper has the papers' sizes.")
    max_documents: int | None = flag(None, "Labelled notes at most, a random sample (small: 5000, paper: all).", ge=20)
    max_tokens: int | None = flag(None, "Networks read so many words of a note (small: 200, paper: 5000).", ge=5)
    epochs: int | None = flag(None, "Passes of a network (small: 20, early end; paper: 25).", ge=1, le=1000)
    features: Literal["tfidf", "hashed"] = flag("tfidf", "Linear models: TF-IDF, or hashed features in bounded memory.")
    static: bool = flag(False, "Networks leave the word vectors as they are given.")
    refit: bool = flag(False, "Networks: train anew on training and validation notes for the epochs found best.")
    min_class: int = flag(50, "Classes of fewer notes are left out.", ge=2)
    separator: str | None = flag(None, "What stands between several labels of one note; without it one label a note.")
    device: str = flag("cpu", "cpu, cuda or cuda:1, for networks.")

    @property
    def documents(self) -> int:
        """Labelled notes at most."""
        return self.max_documents or (5_000 if self.size == "small" else 10**9)

    @property
    def tokens(self) -> int:
        """Words of a note that networks read."""
        return self.max_tokens or (200 if self.size == "small" else 5_000)

    @property
    def passes(self) -> int:
        """Epochs at most."""
        return self.epochs or (20 if self.size == "small" else 25)


@dataclass(frozen=True)
class Predictions:
    """What a model says of the test notes, (n_test,) int64 classes or (n_test, n_classes) bool; what it was chosen by.

    `valid_score`: macro-F1 on the validation notes, of several labels a note micro-F1. `detail`: for people.
    """

    test: NDArray[Any] = field(repr=False)
    valid_score: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """The text of *every* note on the side that is trained (and chosen) on, and on the side that is tested.

    Both the same is the paper's setting; else a transfer. `vectors`: what a network starts from.
    """

    train: Sequence[str] = field(repr=False)
    test: Sequence[str] = field(repr=False)
    vectors: Vectors | None = field(default=None, repr=False)

    @cached_property
    def counted(self) -> Counted:
        """Grams of every note of both sides, counted once for all splits."""
        return Counted.of(self.train, self.test)


@dataclass(frozen=True)
class Counted:
    """How often each gram stands in each note: of the side trained on and of the side tested, CSR (n_notes, n_grams).

    Columns are the grams of the side trained on, in the order of the alphabet.
    """

    train: Any = field(repr=False)
    test: Any = field(repr=False)

    @classmethod
    def of(cls, train: Sequence[str], test: Sequence[str]) -> Counted:
        """Count. Raises InputError where no note has a word."""
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(analyzer=grams, dtype=np.float32)
        try:
            counts = vectorizer.fit_transform(train)
        except ValueError:  # sklearn's own message would say so less plainly
            raise InputError(NO_WORD) from None
        counts.sort_indices()
        return cls(counts, counts if test is train else vectorizer.transform(test))


@dataclass(frozen=True)
class Job:
    """All that a classifier is given; `targets`: (n_notes,) int64 classes, or of several (n_notes, n_classes) bool."""

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
        """Texts of the side that is trained on."""
        return [self.side.train[row] for row in rows]

    @property
    def tested(self) -> list[str]:
        """Texts of the test notes, of the side that is tested."""
        return [self.side.test[row] for row in self.parts.test]


@dataclass(frozen=True)
class Classifier(ABC):
    """A kind of classifier: what a file of this folder registers.

    Attributes:
        about: what it is, for reports. cost: processor seconds for a million words of training notes, about.
        neural: whether it needs PyTorch, and is trained with several seeds.
    """

    about: str
    cost: float
    neural: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, job: Job) -> Predictions:
        """Train on the training notes, choose on validation, say the classes of the test notes."""

    def like(self, earlier: Predictions) -> Classifier:
        """Return the classifier with the settings that an earlier run chose; itself where nothing can be reused."""
        return self


NO_WORD = "no word stands in two notes: there is nothing to learn from"


def grams(text: str) -> list[str]:
    """Words, and pairs of words that follow each other."""
    forms = words(text)
    return forms + [f"{one} {other}" for one, other in pairwise(forms)]


classifiers: Registry[Classifier] = Registry("classifier", "clinveil.utility.classifiers", first=("lr", "svm"))


def classifier(model: str) -> Classifier:
    """What stands for a name. Raises UsageError for an unknown one, MissingExtra for a network without PyTorch."""
    return found_in(classifiers, model)


def any_neural(models: Iterable[str]) -> bool:
    """Whether one of them needs PyTorch. Raises as `classifier` does."""
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
    """Train a model and say the classes of the test notes; the same seed gives the same.

    `side`: the labelled notes' own texts unless given; `shuffled`: train on permuted labels (control);
    `like`: an earlier run whose choice of settings is reused. Raises as `classifier` does, and InputError where there
    is nothing to learn from.
    """
    targets = labelled.targets
    if shuffled:
        targets = targets.copy()
        targets[parts.learn] = np.random.default_rng([seed, 1]).permutation(targets[parts.learn])
    side = side or Side(labelled.texts, labelled.texts)
    job = Job(side, targets, len(labelled.classes), parts, seed, settings or ClassifierSettings())
    made = classifier(model)
    return (made.like(like) if like else made)(job)
