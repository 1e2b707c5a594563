"""Paper A's networks: word numbers (n, length) -> scores of classes (n, n_classes).

Padding (number 0) follows the words and is masked from pooling, states and attention.

Sources: Kim 2014 (arXiv 1408.5882) and its released code; Liendo, De Roo & Karmakar 2017, paper A's
reference 28, whose released code sets the sizes of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional

PAD = 0
MAPS = 100
MIMIC_WIDTHS = (2, 3, 4, 5)
KIM_WIDTHS = (3, 4, 5)
LARGEST_NORM = 3.0
UNITS = 50
DROP = 0.5
BELOW = float("-inf")


class Network(nn.Module):
    """Word vectors, a body that returns one vector per text, dropout and a linear output."""

    def __init__(self, matrix: Tensor, width: int, n_classes: int) -> None:
        super().__init__()
        embedding: Any = nn.Embedding  # `from_pretrained` has no types
        self.words: nn.Embedding = embedding.from_pretrained(
            matrix.clone(), freeze=False, padding_idx=PAD
        )
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
    """Return which windows contain words only, (n, length - width + 1); the first one for shorter
    texts.
    """
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
        """Return for each width the maps (n, MAPS, windows) and the mask of windows with words
        only.
        """
        channels = vectors.transpose(1, 2)
        return [
            (functional.relu(maps(channels)), windows(real, width))
            for maps, width in zip(self.maps, self.widths, strict=True)
        ]


class Attention(nn.Module):
    """Weighted sum over time with weights softmax(v · tanh(W h + b)), and dropout on inputs and
    tanh.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, UNITS)
        self.score = nn.Linear(UNITS, 1, bias=False)
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


class Cnn(Network):
    """Kim's CNN: max pooling over time, and output weights with a norm of at most 3 per class."""

    def __init__(self, matrix: Tensor, n_classes: int, *, several: bool = False) -> None:
        widths = MIMIC_WIDTHS if several else KIM_WIDTHS
        super().__init__(matrix, MAPS * len(widths), n_classes)
        self.convolutions = Convolutions(matrix.shape[1], widths)

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """Return the largest value of each map."""
        pooled = [
            maps.masked_fill(~whole.unsqueeze(1), BELOW).amax(dim=2)
            for maps, whole in self.convolutions(vectors, real)
        ]
        return torch.cat(pooled, dim=1)

    @torch.no_grad()
    def constrain(self) -> None:
        """Rescale rows of the output matrix to a norm of at most 3."""
        norms = self.output.weight.norm(dim=1, keepdim=True).clamp_min(1e-12)
        self.output.weight.mul_((LARGEST_NORM / norms).clamp_max(1.0))


class CnnAttention(Network):
    """Feature maps of several widths, each with an attention over time."""

    def __init__(self, matrix: Tensor, n_classes: int, *, several: bool = False) -> None:
        super().__init__(matrix, MAPS * len(MIMIC_WIDTHS), n_classes)
        self.convolutions = Convolutions(matrix.shape[1], MIMIC_WIDTHS)
        self.attentions = nn.ModuleList(Attention(MAPS) for _ in MIMIC_WIDTHS)

    def _attend(self) -> list[Attention]:
        return [module for module in self.attentions if isinstance(module, Attention)]

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """Return the attended maps of all widths."""
        pairs = zip(self._attend(), self.convolutions(vectors, real), strict=True)
        return torch.cat(
            [attend(maps.transpose(1, 2), whole) for attend, (maps, whole) in pairs], dim=1
        )

    def penalty(self) -> Tensor:
        """Return 1e-3 times the squares of kernels, plus 1e-4 times those of attention, output and
        vectors.
        """
        rest = (
            torch.stack([attend.squares() for attend in self._attend()]).sum()
            + (self.output.weight**2).sum()
        )
        return 1e-3 * self.convolutions.squares() + 1e-4 * (rest + (self.words.weight**2).sum())


class Lstm(Network):
    """An LSTM of 50 units: the state after the last word, or with attention the weighted sum of all
    states.
    """

    def __init__(
        self, matrix: Tensor, n_classes: int, *, several: bool = False, attention: bool = False
    ) -> None:
        super().__init__(matrix, UNITS, n_classes)
        self.lstm = nn.LSTM(matrix.shape[1], UNITS, batch_first=True)
        self.attention = Attention(UNITS) if attention else None

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """Return the last state, or the attended states."""
        states, _ = self.lstm(vectors)
        if self.attention is not None:
            attended: Tensor = self.attention(states, real)
            return attended
        last = real.sum(dim=1).sub(1).clamp_min(0)
        return states[torch.arange(len(states), device=states.device), last]

    def penalty(self) -> Tensor:
        """Return 1e-4 times the squares of the attention weights."""
        return 1e-4 * self.attention.squares() if self.attention is not None else torch.zeros(())


NETWORKS: Mapping[str, Callable[..., Network]] = {
    "cnn": Cnn,
    "lstm": Lstm,
    "cnn-attention": CnnAttention,
    "lstm-attention": partial(Lstm, attention=True),
}


def optimizer(name: str, weights: list[nn.Parameter], *, several: bool) -> optim.Optimizer:
    """Return Adam as in the MIMIC models, and Adadelta for Kim's CNN with one label per text."""
    if name == "cnn" and not several:
        return optim.Adadelta(weights, lr=1.0, rho=0.95, eps=1e-6)
    return optim.Adam(weights, lr=1e-3)
