"""Paper C's LSTM language model (section 4.1; the word language model of PyTorch's examples); after `need_torch()`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clinveil.lm.network import Network, State
from clinveil.lm.recipe import Recipe
from clinveil.lm.vocabulary import END

SPREAD = 0.1


class Lstm(Network):
    """Token vectors, LSTM layers with dropout below, between and above them, scores of the next token."""

    def __init__(self, size: int, recipe: Recipe) -> None:
        super().__init__(size, recipe, SPREAD)
        between = recipe.dropout if recipe.layers > 1 else 0.0
        self.lstm = nn.LSTM(recipe.width, recipe.width, recipe.layers, dropout=between)
        self.dropout = nn.Dropout(recipe.dropout)

    def start(self, lanes: int) -> State:
        """Zeros, (layers, lanes, width) twice."""
        zeros = self.input.new_zeros(self.recipe.layers, lanes, self.recipe.width)
        return zeros, zeros.clone()

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """The layers over a window, from a state."""
        below = self.dropout(nn.functional.embedding(inputs, self.input))
        above, state = self.lstm(below, (state[0], state[1]))
        return self.dropout(above), tuple(state)


class LstmPusher:
    """Notes being written: the state of each lane."""

    def __init__(self, network: Lstm, lanes: int) -> None:
        self._network = network
        self._state = network.start(lanes)
        self._last = torch.full((lanes,), END, device=network.input.device)
        self._above = self._step()

    def _step(self) -> Tensor:
        above, self._state = self._network(self._last.unsqueeze(0), self._state)
        return above[0]

    def scores(self) -> Tensor:
        """(lanes, size)."""
        return self._network.scores(self._above)

    def push(self, ids: Tensor) -> None:
        """One step of the network."""
        self._last = ids
        self._above = self._step()

    def reset(self, lanes: Sequence[int]) -> None:
        """Zeros, and the end of a note, in these lanes."""
        if not lanes:
            return
        kept, above = self._state, self._above
        rows = torch.tensor(lanes, device=self._last.device)
        state = self._network.start(len(lanes))
        end = torch.full((1, len(lanes)), END, device=self._last.device)
        fresh, state = self._network(end, state)
        self._above = above.index_copy(0, rows, fresh[0])
        self._state = tuple(old.index_copy(1, rows, new) for old, new in zip(kept, state, strict=True))
