"""Paper A's LSTM (Liendo, De Roo & Karmakar 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clinveil.utility.classifiers import classifiers
from clinveil.utility.classifiers._neural import UNITS, Attention, Network, Neural


class Lstm(Network):
    """An LSTM of 50 units: the state after the last word, or with attention the weighted sum of all states."""

    def __init__(
        self, matrix: Tensor, n_classes: int, *, several: bool = False, static: bool = False, attention: bool = False
    ) -> None:
        super().__init__(matrix, UNITS, n_classes, static=static)
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


classifiers.register("lstm")(Neural("an LSTM (paper A)", 70.0, Lstm))
