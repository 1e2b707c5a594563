"""Training of paper A's networks: texts as word numbers, batches, and the selection of the best
epoch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, optim
from torch.nn import functional

from clinveil.core import (
    Doubles,
    Floats,
    InputError,
    Ints,
    Trainer,
    WordIds,
    device_named,
    seeded,
    words,
)
from clinveil.utility import Classifier, ClassifierInput, Predictions, choose, decided
from clinveil.vectors import Vectors
from papers.jamia_2020.networks import NETWORKS, PAD, Network, optimizer

UNKNOWN = 1
MOST_WORDS = 60_000
UNKNOWN_RANGE = 0.25  # Kim 2014: words without a vector are uniform in (-.25, .25)
DIM = 100
BATCH = 50
LEAST = 5
SCORED_AT_ONCE = 200


def log_loss(truth: NDArray[Any], probabilities: Doubles) -> float:
    """Return the mean -ln P of the true classes: (n,) numbers, or (n, n_classes) Booleans."""
    if truth.ndim == 2:
        right = np.where(truth, probabilities, 1 - probabilities)
    else:
        right = probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(right, 1e-12)).mean())


@dataclass(frozen=True)
class TextNetwork(Classifier):
    """One of paper A's networks on word vectors.

    Attributes:
        name: a key of `NETWORKS`. vectors: initial vectors; None for random ones.
        max_tokens: words read of each text. epochs: at most; the best one on validation notes is
            used. patience: epochs without a better validation score or loss before training stops.
        device: cpu, cuda or cuda:1.
    """

    name: str
    vectors: Vectors | None
    max_tokens: int
    epochs: int
    patience: float = math.inf
    device: str = "cpu"

    def __call__(self, job: ClassifierInput) -> Predictions:
        """Train on the training notes, select the epoch (and the threshold of several labels) on
        validation notes, and predict the test notes.

        Raises UsageError for an unavailable device, InputError if the loss is not finite.
        """
        parts = job.parts
        device = device_named(self.device)
        rng = np.random.default_rng([job.seed, 3])
        encoder = Encoder.of(job.texts(parts.train), self.max_tokens, self.vectors)
        train, valid = (
            EncodedTexts(encoder.rows(job.texts(rows)), job.targets[rows])
            for rows in (parts.train, parts.valid)
        )
        with seeded(job.seed % 2**63):
            matrix = torch.from_numpy(encoder.matrix(self.vectors, rng))
            network = NETWORKS[self.name](matrix, job.n_classes, several=job.several).to(device)
            weights = list(network.parameters())
            training = TextTraining(
                network,
                optimizer(self.name, weights, several=job.several),
                device,
                texts=train,
                valid=valid,
                epochs=self.epochs,
                rng=rng,
            )
            training.patience = self.patience
            network = training.fit().finish()
            probabilities = _probabilities(network, encoder.rows(job.tested), job.several, device)
        test = decided(probabilities, training.threshold, several=job.several)
        chosen: dict[str, float] = {
            "epochs": training.progress.best_validation,
            "words": len(encoder),
            "dim": matrix.shape[1],
            "vectors": self.vectors is not None,
        }
        if job.several:
            chosen["threshold"] = training.threshold
        return Predictions(test, chosen)


@dataclass(frozen=True)
class Encoder:
    """Vocabulary of a network: the words of the training texts, most frequent first.

    words: 0 is padding, and 1 is any other word. most_tokens: texts are truncated to this length.
    """

    words: WordIds
    most_tokens: int

    @classmethod
    def of(cls, texts: Iterable[str], most_tokens: int, vectors: Vectors | None = None) -> Encoder:
        """Return the vocabulary of some texts, extended by words with a vector, which are useful
        without training.
        """
        counted = Counter(form for text in texts for form in words(text)[:most_tokens])
        known = [
            form
            for form, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))[
                :MOST_WORDS
            ]
        ]
        more = [] if vectors is None else [word for word in vectors.words if word not in counted]
        return cls(
            WordIds.of([*known, *more[: MOST_WORDS - len(known)]], first=UNKNOWN + 1), most_tokens
        )

    def __len__(self) -> int:
        return len(self.words)

    def rows(self, texts: Sequence[str]) -> list[Ints]:
        """Return the word numbers of each text; a text without words is one unknown word."""
        numbers = (
            self.words.encode(words(text)[: self.most_tokens], unknown=UNKNOWN) for text in texts
        )
        return [np.array(row or [UNKNOWN], dtype=np.int64) for row in numbers]

    def matrix(self, vectors: Vectors | None, rng: Generator) -> Floats:
        """Return initial vectors, (n_words + 2, dim): zeros for padding, uniform draws for words
        without a vector.
        """
        dim = DIM if vectors is None else vectors.dim
        matrix = rng.uniform(-UNKNOWN_RANGE, UNKNOWN_RANGE, (len(self), dim)).astype(np.float32)
        matrix[PAD] = 0
        if vectors is not None:
            for form, row in self.words.ids.items():
                if form in vectors.ids:
                    matrix[row] = vectors.matrix[vectors.ids[form]]
        return matrix


def padded(rows: Sequence[Ints], least: int) -> Ints:
    """Return rows padded with zeros, (n, longest), at least `least` columns."""
    width = max(least, *(row.size for row in rows))
    table = np.zeros((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : row.size] = row
    return table


def batches(rows: Sequence[Ints], size: int, rng: Generator | None = None) -> list[Ints]:
    """Return row numbers in batches of similar length, which reduces padding; with a generator in
    random order.
    """
    lengths = np.array([row.size for row in rows])
    if rng is None:
        order = np.argsort(lengths, kind="stable")
        return [order[i : i + size] for i in range(0, order.size, size)]
    # Sorting within windows of 50 batches of a random order varies the composition of the batches.
    order = rng.permutation(lengths.size)
    windows = [order[i : i + 50 * size] for i in range(0, order.size, 50 * size)]
    order = np.concatenate(
        [window[np.argsort(lengths[window], kind="stable")] for window in windows]
    )
    cut = [order[i : i + size] for i in range(0, order.size, size)]
    return [cut[i] for i in rng.permutation(len(cut))]


@dataclass(frozen=True)
class EncodedTexts:
    """Rows of word numbers, and their targets."""

    rows: list[Ints] = field(repr=False)
    targets: NDArray[Any] = field(repr=False)


class TextTraining(Trainer[Network, Ints]):
    """One training of a network; batches are rows of the texts.

    `score, threshold`: of the epoch with the best validation score; the loss decides between equal
    scores.
    """

    hint = "pass vectors with smaller values, or none"

    def __init__(
        self,
        network: Network,
        optimizer: optim.Optimizer,
        device: torch.device,
        texts: EncodedTexts,
        valid: EncodedTexts,
        epochs: int,
        rng: Generator,
    ) -> None:
        per_epoch = -(-len(texts.rows) // BATCH)  # rounded up
        super().__init__(
            network, optimizer, device, steps_per_epoch=per_epoch, steps=epochs * per_epoch
        )
        self.texts = texts
        self.valid = valid
        self.epochs = epochs
        self.rng = rng
        self.several = texts.targets.ndim == 2
        self.score = float("-inf")
        self.threshold = 0.0
        self._now = (0.0, 0.0)

    def batches(self, step: int) -> Iterator[Ints]:
        """Yield batches in a new order in each epoch."""
        return (
            rows for _ in range(self.epochs) for rows in batches(self.texts.rows, BATCH, self.rng)
        )

    def loss(self, batch: Ints) -> Tensor:
        """Return the cross entropy plus the penalty of the network."""
        ids = torch.from_numpy(padded([self.texts.rows[i] for i in batch], LEAST)).to(self.device)
        scores = self.network(ids)
        targets = self.texts.targets[batch]
        if self.several:
            wanted = torch.from_numpy(targets.astype(np.float32)).to(self.device)
            return (
                functional.binary_cross_entropy_with_logits(scores, wanted) + self.network.penalty()
            )
        return (
            functional.cross_entropy(scores, torch.from_numpy(targets).to(self.device))
            + self.network.penalty()
        )

    def after_step(self) -> None:
        """Apply the constraints of the network."""
        self.network.constrain()

    def validate(self) -> float:
        """Return the mean -ln P of the classes of the validation notes."""
        probabilities = _probabilities(self.network, self.valid.rows, self.several, self.device)
        self._now = choose(self.valid.targets, probabilities)
        return log_loss(self.valid.targets, probabilities)

    def wins(self, lower: bool) -> bool:
        """Compare by score, and by loss for equal scores."""
        score, threshold = self._now
        if wins := score > self.score or (score == self.score and lower):
            self.score = score
            self.threshold = threshold
        return wins


@torch.no_grad()
def _probabilities(
    network: Network, rows: list[Ints], several: bool, device: torch.device
) -> Doubles:
    """Return the class probabilities, (n, n_classes)."""
    network.eval()
    probabilities: Doubles | None = None
    for part in batches(rows, SCORED_AT_ONCE):
        ids = torch.from_numpy(padded([rows[i] for i in part], LEAST)).to(device)
        scores = network(ids)
        values = (
            (torch.sigmoid(scores) if several else torch.softmax(scores, dim=1))
            .double()
            .cpu()
            .numpy()
        )
        probabilities = (
            np.zeros((len(rows), values.shape[1])) if probabilities is None else probabilities
        )
        probabilities[part] = values
    if probabilities is None:
        raise InputError("no note to classify")
    return probabilities
