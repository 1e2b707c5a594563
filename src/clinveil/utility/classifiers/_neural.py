"""The networks of paper A's tasks: what they share, texts as rows of word numbers, and training.

All take word numbers (n, length) and give one score a class (n, n_classes). Padding (number 0) stands behind the words
and is masked: no pooling, state or attention sees it.

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
PATIENCE = 4  # epochs in which validation score and loss are no better, before `small` ends; `paper` runs all


class Network(nn.Module):
    """Word vectors, a body that makes one vector a text, dropout and a linear output.

    `penalty`: (parameter, weight) of the squares that the loss takes in (L2).
    """

    def __init__(self, matrix: Tensor, width: int, n_classes: int, *, static: bool) -> None:
        super().__init__()
        self.words = nn.Embedding.from_pretrained(matrix.clone(), freeze=static, padding_idx=PAD)  # type: ignore[no-untyped-call]
        self.output = nn.Linear(width, n_classes)
        self.drop = nn.Dropout(DROP)

    def forward(self, ids: Tensor) -> Tensor:
        """(n, n_classes) scores of (n, length) word numbers."""
        found: Tensor = self.output(self.drop(self.body(self.words(ids), ids != PAD)))
        return found

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """(n, width) of (n, length, dim) vectors and which of them are words."""
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """The weighted squares that the loss takes in."""
        return torch.zeros(())

    @torch.no_grad()
    def constrain(self) -> None:
        """What holds after every step."""


def windows(real: Tensor, width: int) -> Tensor:
    """(n, length - width + 1) which windows hold words only; of a text shorter than the window the first one."""
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
        """The squares of all kernels, biases left out."""
        kernels = [weight for name, weight in self.named_parameters() if name.endswith("weight")]
        return torch.stack([(kernel**2).sum() for kernel in kernels]).sum()

    def forward(self, vectors: Tensor, real: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Of each width the maps (n, MAPS, windows), and which windows hold words only."""
        channels = vectors.transpose(1, 2)
        return [
            (functional.relu(maps(channels)), windows(real, width))
            for maps, width in zip(self.maps, self.widths, strict=True)
        ]


class Attention(nn.Module):
    """A weighted sum over time; the weights are the softmax of v · tanh(W h + b), both inputs and tanh dropped out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.score = nn.Linear(width, UNITS), nn.Linear(UNITS, 1, bias=False)
        self.drop = nn.Dropout(DROP)

    def weights(self, states: Tensor, real: Tensor) -> Tensor:
        """(n, length), each row a distribution over the real places."""
        scores = self.score(self.drop(torch.tanh(self.inner(states)))).squeeze(-1)
        return torch.softmax(scores.masked_fill(~real, BELOW), dim=1)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """(n, width) of (n, length, width)."""
        states = self.drop(states)
        return torch.einsum("nl,nlw->nw", self.weights(states, real), states)

    def squares(self) -> Tensor:
        """The squares of its weights, biases left out."""
        return (self.inner.weight**2).sum() + (self.score.weight**2).sum()


@dataclass(frozen=True)
class Neural(Classifier):
    """A network as a classifier.

    Attributes:
        network: makes it with its first weights, from a matrix of word vectors, the number of classes, and by name
            `several` (labels a text) and `static` (the vectors do not learn).
        optimizer: of the weights that learn, and whether a text has several labels.
    """

    network: Callable[..., Network]
    # As the MIMIC models were released.
    optimizer: Callable[[list[nn.Parameter], bool], optim.Optimizer] = lambda weights, _: optim.Adam(weights, lr=1e-3)
    neural: ClassVar[bool] = True

    def __call__(self, job: Job) -> Predictions:
        """Train on the training notes, choose epoch (and threshold) on validation, say the classes of the test notes.

        Raises UsageError for a device that is not there, InputError where the loss is no number.
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
                made = TextTraining(network, optimizer, device, texts, valid, epochs, rng)
                made.patience = PATIENCE if settings.size == "small" else float("inf")
                return made

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
    """The words that a network knows: those of the texts that it learns from, most frequent first.

    words: 0 pads and 1 is any other word. most_tokens: texts are cut there.
    """

    words: WordIds
    most_tokens: int

    @classmethod
    def of(cls, texts: Iterable[str], most_tokens: int, vectors: Vectors | None = None) -> Encoder:
        """Of the words of some texts, and of those that have a vector (they mean something before they are learnt)."""
        counted = Counter(form for text in texts for form in words(text)[:most_tokens])
        known = [form for form, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDS]]
        more = [] if vectors is None else [word for word in vectors.words if word not in counted]
        room = max(0, MOST_WORDS - len(known))
        return cls(WordIds.of([*known, *more[:room]], first=UNKNOWN + 1), most_tokens)

    def __len__(self) -> int:
        return len(self.words)

    def rows(self, texts: Sequence[str]) -> list[Ints]:
        """The numbers of each text's words; a text without words is one unknown word."""
        found = (self.words.encode(words(text)[: self.most_tokens], unknown=UNKNOWN) for text in texts)
        return [np.array(row or [UNKNOWN], dtype=np.int64) for row in found]

    def matrix(self, vectors: Vectors | None, rng: Generator) -> Floats:
        """(n_words + 2, dim): zeros to pad, the words' vectors, and uniform draws for words without one."""
        dim = DIM if vectors is None else vectors.dim
        matrix = rng.uniform(-UNKNOWN_RANGE, UNKNOWN_RANGE, (len(self), dim)).astype(np.float32)
        matrix[PAD] = 0
        if vectors is not None:
            for form, row in self.words.ids.items():
                if form in vectors.ids:
                    matrix[row] = vectors.matrix[vectors.ids[form]]
        return matrix


def padded(rows: Sequence[Ints], least: int) -> Ints:
    """(n, longest) rows with zeros behind them, at least `least` columns."""
    width = max(least, *(row.size for row in rows))
    table = np.zeros((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : row.size] = row
    return table


def batches(rows: Sequence[Ints], size: int, rng: Generator | None = None) -> list[Ints]:
    """Numbers of rows in batches of like length, so that little is padding; with a generator in random order."""
    lengths = np.array([row.size for row in rows])
    if rng is None:
        order = np.argsort(lengths, kind="stable")
        return [order[i : i + size] for i in range(0, order.size, size)]
    # Of like length, but not the same company every time: sorted within windows of 50 batches of a random order.
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

    `score, threshold`: of the epoch that is best on validation: by its score, and among equal ones by its loss.
    """

    hint = "vectors with smaller values, or none"

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
        """In another order in each epoch."""
        return (rows for _ in range(self.epochs) for rows in batches(self.texts.rows, BATCH, self.rng))

    def loss(self, batch: Ints) -> Tensor:
        """Cross entropy, and the network's penalty."""
        ids = torch.from_numpy(padded([self.texts.rows[i] for i in batch], LEAST)).to(self.device)
        scores, targets = self.network(ids), self.texts.targets[batch]
        if self.several:
            wanted = torch.from_numpy(targets.astype(np.float32)).to(self.device)
            return functional.binary_cross_entropy_with_logits(scores, wanted) + self.network.penalty()
        return functional.cross_entropy(scores, torch.from_numpy(targets).to(self.device)) + self.network.penalty()

    def after_step(self) -> None:
        """As the network asks."""
        self.network.constrain()

    def validate(self) -> float | None:
        """The mean -ln P of the validation notes' classes."""
        if self.valid is None:
            return None
        probabilities = _probabilities(self.network, self.valid.rows, self.several, self.device)
        self._now = choose(self.valid.targets, probabilities)
        return log_loss(self.valid.targets, probabilities)

    def wins(self, lower: bool) -> bool:
        """By the score, of equal ones by the loss."""
        score, threshold = self._now
        if wins := score > self.score or (score == self.score and lower):
            self.score, self.threshold = score, threshold
        return wins


@torch.no_grad()
def _probabilities(network: Network, rows: list[Ints], several: bool, device: torch.device) -> Doubles:
    """(n, n_classes)."""
    network.eval()
    found: Doubles | None = None
    for part in batches(rows, SCORED_AT_ONCE):
        ids = torch.from_numpy(padded([rows[i] for i in part], LEAST)).to(device)
        scores = network(ids)
        values = (torch.sigmoid(scores) if several else torch.softmax(scores, dim=1)).double().cpu().numpy()
        found = np.zeros((len(rows), values.shape[1])) if found is None else found
        found[part] = values
    if found is None:
        raise InputError("there is no note to say the class of")
    return found
