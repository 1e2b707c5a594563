"""The networks of paper A's tasks: Kim's CNN for sentiment, and the CNN and LSTM with attention of its MIMIC task.

All take word numbers (n, length) and give one score a class (n, n_classes). Padding (number 0) stands behind the words
and is masked: no pooling, state or attention sees it.

Sources: Kim 2014 (arXiv 1408.5882) and its released code; Liendo, De Roo & Karmakar 2017, paper A's reference 28, whose
released code sets the sizes of the others.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from clinveil.utility.classifiers.encode import PAD

MAPS, KIM_WIDTHS, MIMIC_WIDTHS = 100, (3, 4, 5), (2, 3, 4, 5)
UNITS, DROP, LARGEST_NORM = 50, 0.5, 3.0
_BELOW = float("-inf")


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
        return torch.softmax(scores.masked_fill(~real, _BELOW), dim=1)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """(n, width) of (n, length, width)."""
        states = self.drop(states)
        return torch.einsum("nl,nlw->nw", self.weights(states, real), states)

    def squares(self) -> Tensor:
        """The squares of its weights, biases left out."""
        return (self.inner.weight**2).sum() + (self.score.weight**2).sum()


class Cnn(Network):
    """Kim's: the largest value of each feature map over time; rows of the output matrix no longer than 3."""

    def __init__(
        self, matrix: Tensor, n_classes: int, *, widths: tuple[int, ...] = KIM_WIDTHS, static: bool = False
    ) -> None:
        super().__init__(matrix, MAPS * len(widths), n_classes, static=static)
        self.convolutions = Convolutions(matrix.shape[1], widths)

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """The largest value of each map."""
        pooled = [
            maps.masked_fill(~whole.unsqueeze(1), _BELOW).amax(dim=2)
            for maps, whole in self.convolutions(vectors, real)
        ]
        return torch.cat(pooled, dim=1)

    @torch.no_grad()
    def constrain(self) -> None:
        """Cut the rows of the output matrix to length 3."""
        norms = self.output.weight.norm(dim=1, keepdim=True).clamp_min(1e-12)
        self.output.weight.mul_((LARGEST_NORM / norms).clamp_max(1.0))


class CnnAttention(Network):
    """Feature maps of each width, weighed over time by an attention of their own."""

    def __init__(self, matrix: Tensor, n_classes: int, *, static: bool = False) -> None:
        super().__init__(matrix, MAPS * len(MIMIC_WIDTHS), n_classes, static=static)
        self.convolutions = Convolutions(matrix.shape[1], MIMIC_WIDTHS)
        self.attentions = nn.ModuleList(Attention(MAPS) for _ in MIMIC_WIDTHS)

    def _attend(self) -> list[Attention]:
        return [module for module in self.attentions if isinstance(module, Attention)]

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """The attended maps of all widths."""
        made = self.convolutions(vectors, real)
        pairs = zip(self._attend(), made, strict=True)
        return torch.cat([attend(maps.transpose(1, 2), whole) for attend, (maps, whole) in pairs], dim=1)

    def penalty(self) -> Tensor:
        """1e-3 on the kernels, 1e-4 on attention, output and the word vectors where these learn."""
        rest = torch.stack([attend.squares() for attend in self._attend()]).sum() + (self.output.weight**2).sum()
        words = (self.words.weight**2).sum() if self.words.weight.requires_grad else torch.zeros(())
        return 1e-3 * self.convolutions.squares() + 1e-4 * (rest + words)


class Lstm(Network):
    """One LSTM of 50 units; its state after the last word, or with attention the weighted sum of all states."""

    def __init__(self, matrix: Tensor, n_classes: int, *, attention: bool = False, static: bool = False) -> None:
        super().__init__(matrix, UNITS, n_classes, static=static)
        self.lstm = nn.LSTM(matrix.shape[1], UNITS, batch_first=True)
        self.attention = Attention(UNITS) if attention else None

    def body(self, vectors: Tensor, real: Tensor) -> Tensor:
        """The last state, or the attended ones."""
        states, _ = self.lstm(vectors)
        if self.attention is not None:
            attended: Tensor = self.attention(states, real)
            return attended
        last = real.sum(dim=1).sub(1).clamp_min(0)
        return states[torch.arange(len(states), device=states.device), last]

    def penalty(self) -> Tensor:
        """1e-4 on the attention's weights."""
        return 1e-4 * self.attention.squares() if self.attention is not None else torch.zeros(())


def network(model: str, matrix: Tensor, n_classes: int, *, several: bool, static: bool = False) -> Network:
    """The network of a name. With several labels a text `cnn` has the widths of the MIMIC task, else Kim's."""
    if model == "cnn":
        return Cnn(matrix, n_classes, widths=MIMIC_WIDTHS if several else KIM_WIDTHS, static=static)
    if model == "cnn-attention":
        return CnnAttention(matrix, n_classes, static=static)
    return Lstm(matrix, n_classes, attention=model == "lstm-attention", static=static)
