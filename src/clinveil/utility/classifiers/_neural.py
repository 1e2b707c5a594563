"""Base classes of paper A's networks, the encoding of texts as word numbers, and training.

Networks map word numbers (n, length) to scores of classes (n, n_classes). Padding (number 0) follows the words and is
masked from pooling, states and attention.

Sources: Kim 2014 (arXiv 1408.5882) and its released code; Liendo, De Roo & Karmakar 2017, paper A's reference 28, whose
released code sets the sizes of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn, optim
from torch.nn import functional

from clinveil.core.errors import InputError
from clinveil.core.fit import Trainer
from clinveil.core.neural import device_named, seeded
from clinveil.core.tokens import WordIds, words
from clinveil.core.types import Doubles, Floats, Ints
from clinveil.utility.classifiers import Classifier, Job, Predictions
from clinveil.utility.scores import choose, decided, log_loss
from clinveil.vectors.table import Vectors

PAD, UNKNOWN = 0, 1
MAPS, MIMIC_WIDTHS = 100, (2, 3, 4, 5)
UNITS, DROP = 50, 0.5
BELOW = float("-inf")
MOST_WORDS = 60_000
UNKNOWN_RANGE = 0.25  # Kim 2014: words without a vector are uniform in (-.25, .25)
DIM = 100
BATCH, LEAST, SCORED_AT_ONCE = 50, 5, 200
PATIENCE = 4  # epochs without a better validation score or loss before `small` stops; `paper` runs all epochs


class Network(nn.Module):
    """Word vectors, a body that returns one vector per text, dropout and a linear output."""

    def __init__(self, matrix: Tensor, width: int, n_classes: int, *, static: bool) -> None:
        super().__init__()
        self.words = nn.Embedding.from_pretrained(matrix.clone(), freeze=static, padding_idx=PAD)  # type: ignore[no-untyped-call]
        self.output = nn.Linear(width, n_classes)
        self.drop = nn.Dropout(DROP)

    def forward(self, ids: Tensor) -> Tensor:
        """Return scores (n, n_classes) of word numbers (n, length)."""
        scores: Tensor = self.output(self.drop(self.body(self.words(ids), ids != PAD)))
        return scores

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """Return (n, width) from vectors (n, length, dim) and the mask of words."""
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """Return the L2 penalty that is added to the loss."""
        return torch.zeros(())

    @torch.no_grad()
    def constrain(self) -> None:
        """Apply constraints after every step."""


def windows(real: Tensor, width: int) -> Tensor:
    """Return which windows contain words only, (n, length - width + 1); the first one for shorter texts."""
    whole = real.unfold(1, width, 1).all(dim=-1)
    first = torch.zeros_like(whole)
    first[:, 0] = True
    return whole | (first & ~whole.any(dim=1, keepdim=True))


class Convolutions(nn.Module):
    """Feature maps of several widths, ReLU."""

    def __init__(self, dim: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Conv1d(dim, MAPS, width) for width in widths)
        self.widths = widths

    def squares(self) -> Tensor:
        """Return the sum of squares of all kernels, without biases."""
        kernels = [weight for name, weight in self.named_parameters() if name.endswith("weight")]
        return torch.stack([(kernel**2).sum() for kernel in kernels]).sum()

    def forward(self, vectors: Tensor, real: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return for each width the maps (n, MAPS, windows) and the mask of windows with words only."""
        channels = vectors.transpose(1, 2)
        return [
            (functional.relu(maps(channels)), windows(real, width))
            for maps, width in zip(self.maps, self.widths, strict=True)
        ]


class Attention(nn.Module):
    """Weighted sum over time with weights softmax(v · tanh(W h + b)), and dropout on inputs and tanh."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.score = nn.Linear(width, UNITS), nn.Linear(UNITS, 1, bias=False)
        self.drop = nn.Dropout(DROP)

    def weights(self, states: Tensor, real: Tensor) -> Tensor:
        """Return the weights (n, length); each row is a distribution over the words."""
        scores = self.score(self.drop(torch.tanh(self.inner(states)))).squeeze(-1)
        return torch.softmax(scores.masked_fill(~real, BELOW), dim=1)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Return (n, width) from (n, length, width)."""
        states = self.drop(states)
        return torch.einsum("nl,nlw->nw", self.weights(states, real), states)

    def squares(self) -> Tensor:
        """Return the sum of squares of the weights, without biases."""
        return (self.inner.weight**2).sum() + (self.score.weight**2).sum()


@dataclass(frozen=True)
class Neural(Classifier):
    """A network as a classifier.

    Attributes:
        network: returns an initialized network from word vectors, the number of classes, and the keywords `several`
            (labels per text) and `static` (vectors are not trained).
        optimizer: returns the optimizer of the trainable weights; the second argument is `several`.
    """

    network: Callable[..., Network]
    # As in the released code of the MIMIC models.
    optimizer: Callable[[list[nn.Parameter], bool], optim.Optimizer] = lambda weights, _: optim.Adam(weights, lr=1e-3)
    neural: ClassVar[bool] = True

    def __call__(self, job: Job) -> Predictions:
        """Train on the training notes, select epoch (and threshold) on validation notes, and predict the test notes.

        Raises UsageError for an unavailable device, InputError if the loss is not finite.
        """
        parts, settings, vectors = job.parts, job.settings, job.side.vectors
        device, rng = device_named(settings.device), np.random.default_rng([job.seed, 3])
        encoder = Encoder.of(job.texts(parts.train), settings.tokens, vectors)
        train, valid = (_Texts(encoder.rows(job.texts(rows)), job.targets[rows]) for rows in (parts.train, parts.valid))
        with seeded(job.seed % 2**63):
            start = torch.from_numpy(encoder.matrix(vectors, rng))

            def training(texts: _Texts, valid: _Texts | None, epochs: int) -> TextTraining:
                network = self.network(start, job.n_classes, several=job.several, static=settings.static).to(device)
                weights = [weight for weight in network.parameters() if weight.requires_grad]
                optimizer = self.optimizer(weights, job.several)
                trainer = TextTraining(network, optimizer, device, texts, valid, epochs, rng)
                trainer.patience = PATIENCE if settings.size == "small" else float("inf")
                return trainer

            best = training(train, valid, settings.passes).fit()
            epochs = best.progress.best_look
            last = training(train + valid, None, epochs).fit() if settings.refit else best
            network = last.finish()
            probabilities = _probabilities(network, encoder.rows(job.tested), job.several, device)
        test = decided(probabilities, best.threshold, several=job.several)
        detail: dict[str, Any] = {"epochs": epochs, "refit": settings.refit, "words": len(encoder)}
        detail |= {"dim": start.shape[1], "vectors": vectors is not None}
        return Predictions(test, best.score, detail | ({"threshold": best.threshold} if job.several else {}))


@dataclass(frozen=True)
class Encoder:
    """Vocabulary of a network: the words of the training texts, most frequent first.

    words: 0 is padding, and 1 is any other word. most_tokens: texts are truncated to this length.
    """

    words: WordIds
    most_tokens: int

    @classmethod
    def of(cls, texts: Iterable[str], most_tokens: int, vectors: Vectors | None = None) -> Encoder:
        """Return the vocabulary of some texts, extended by words with a vector, which are useful without training."""
        counted = Counter(form for text in texts for form in words(text)[:most_tokens])
        known = [form for form, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDS]]
        more = [] if vectors is None else [word for word in vectors.words if word not in counted]
        return cls(WordIds.of([*known, *more[: MOST_WORDS - len(known)]], first=UNKNOWN + 1), most_tokens)

    def __len__(self) -> int:
        return len(self.words)

    def rows(self, texts: Sequence[str]) -> list[Ints]:
        """Return the word numbers of each text; a text without words is one unknown word."""
        numbers = (self.words.encode(words(text)[: self.most_tokens], unknown=UNKNOWN) for text in texts)
        return [np.array(row or [UNKNOWN], dtype=np.int64) for row in numbers]

    def matrix(self, vectors: Vectors | None, rng: Generator) -> Floats:
        """Return initial vectors, (n_words + 2, dim): zeros for padding, uniform draws for words without a vector."""
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
    """Return row numbers in batches of similar length, which reduces padding; with a generator in random order."""
    lengths = np.array([row.size for row in rows])
    if rng is None:
        order = np.argsort(lengths, kind="stable")
        return [order[i : i + size] for i in range(0, order.size, size)]
    # Sorting within windows of 50 batches of a random order varies the composition of the batches.
    order = rng.permutation(lengths.size)
    windows = [order[i : i + 50 * size] for i in range(0, order.size, 50 * size)]
    order = np.concatenate([window[np.argsort(lengths[window], kind="stable")] for window in windows])
    cut = [order[i : i + size] for i in range(0, order.size, size)]
    return [cut[i] for i in rng.permutation(len(cut))]


@dataclass(frozen=True)
class _Texts:
    """Rows of word numbers, and their targets."""

    rows: list[Ints] = field(repr=False)
    targets: NDArray[Any] = field(repr=False)

    def __add__(self, other: _Texts) -> _Texts:
        return _Texts([*self.rows, *other.rows], np.concatenate([self.targets, other.targets]))


class TextTraining(Trainer[Network, Ints]):
    """One training of a network; batches are rows of the texts.

    `score, threshold`: of the epoch with the best validation score; the loss decides between equal scores.
    """

    hint = "pass vectors with smaller values, or none"

    def __init__(
        self,
        network: Network,
        optimizer: optim.Optimizer,
        device: torch.device,
        texts: _Texts,
        valid: _Texts | None,
        epochs: int,
        rng: Generator,
    ) -> None:
        per_epoch = -(-len(texts.rows) // BATCH)
        super().__init__(network, optimizer, device, steps_per_epoch=per_epoch, steps=epochs * per_epoch)
        self.texts, self.valid, self.epochs, self.rng = texts, valid, epochs, rng
        self.several = texts.targets.ndim == 2
        self.score, self.threshold = float("-inf"), 0.0
        self._now = (0.0, 0.0)

    def batches(self, step: int) -> Iterator[Ints]:
        """Yield batches in a new order in each epoch."""
        return (rows for _ in range(self.epochs) for rows in batches(self.texts.rows, BATCH, self.rng))

    def loss(self, batch: Ints) -> Tensor:
        """Return the cross entropy plus the penalty of the network."""
        ids = torch.from_numpy(padded([self.texts.rows[i] for i in batch], LEAST)).to(self.device)
        scores, targets = self.network(ids), self.texts.targets[batch]
        if self.several:
            wanted = torch.from_numpy(targets.astype(np.float32)).to(self.device)
            return functional.binary_cross_entropy_with_logits(scores, wanted) + self.network.penalty()
        return functional.cross_entropy(scores, torch.from_numpy(targets).to(self.device)) + self.network.penalty()

    def after_step(self) -> None:
        """Apply the constraints of the network."""
        self.network.constrain()

    def validate(self) -> float | None:
        """Return the mean -ln P of the classes of the validation notes."""
        if self.valid is None:
            return None
        probabilities = _probabilities(self.network, self.valid.rows, self.several, self.device)
        self._now = choose(self.valid.targets, probabilities)
        return log_loss(self.valid.targets, probabilities)

    def wins(self, lower: bool) -> bool:
        """Compare by score, and by loss for equal scores."""
        score, threshold = self._now
        if wins := score > self.score or (score == self.score and lower):
            self.score, self.threshold = score, threshold
        return wins


@torch.no_grad()
def _probabilities(network: Network, rows: list[Ints], several: bool, device: torch.device) -> Doubles:
    """Return the class probabilities, (n, n_classes)."""
    network.eval()
    probabilities: Doubles | None = None
    for part in batches(rows, SCORED_AT_ONCE):
        ids = torch.from_numpy(padded([rows[i] for i in part], LEAST)).to(device)
        scores = network(ids)
        values = (torch.sigmoid(scores) if several else torch.softmax(scores, dim=1)).double().cpu().numpy()
        probabilities = np.zeros((len(rows), values.shape[1])) if probabilities is None else probabilities
        probabilities[part] = values
    if probabilities is None:
        raise InputError("no note to classify")
    return probabilities
