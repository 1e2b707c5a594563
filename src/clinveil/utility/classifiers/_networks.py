"""What the networks of paper A's tasks share: word vectors, convolutions, attention.

All take word numbers (n, length) and give one score a class (n, n_classes). Padding (number 0) stands behind the words
and is masked: no pooling, state or attention sees it.

Sources: Kim 2014 (arXiv 1408.5882) and its released code; Liendo, De Roo & Karmakar 2017, paper A's reference 28, whose
released code sets the sizes of the others.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD = 0
MAPS, MIMIC_WIDTHS = 100, (2, 3, 4, 5)
UNITS, DROP = 50, 0.5
BELOW = float("-inf")


class Network(nn.Module):
    """Word vectors, a body that makes one vector a text, dropout and a linear output.

    Attributes:
        penalties: (parameter, weight) of the squares that the loss takes in (L2).
    """

    def __init__(self, matrix: Tensor, width: int, n_classes: int, *, static: bool = False) -> None:
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
