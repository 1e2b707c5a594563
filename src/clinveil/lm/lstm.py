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
    """Notes being written: the state of each lane. One step at a time, without what `nn.LSTM` prepares at each call."""

    def __init__(self, network: Lstm, lanes: int) -> None:
        self._network, get = network, network.lstm.get_parameter
        layers = range(network.recipe.layers)
        self._weights = [torch.cat([get(f"weight_ih_l{i}"), get(f"weight_hh_l{i}")], dim=1).t() for i in layers]
        self._biases = [get(f"bias_ih_l{i}") + get(f"bias_hh_l{i}") for i in layers]
        self._begun = self._step(torch.tensor([END], device=network.input.device), network.start(1))
        self._state: list[Tensor] = [part.repeat(1, lanes, 1) for part in self._begun]

    def _step(self, ids: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        below, hidden, cells = nn.functional.embedding(ids, self._network.input), [], []
        for layer, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            gates = torch.addmm(bias, torch.cat([below, state[0][layer]], dim=1), weight)
            take, keep, new, give = gates.chunk(4, dim=1)
            cell = torch.sigmoid(keep) * state[1][layer] + torch.sigmoid(take) * torch.tanh(new)
            below = torch.sigmoid(give) * torch.tanh(cell)
            hidden.append(below)
            cells.append(cell)
        return torch.stack(hidden), torch.stack(cells)

    def scores(self) -> Tensor:
        """(lanes, size)."""
        return self._network.scores(self._state[0][-1])

    def push(self, ids: Tensor) -> None:
        """One step of the network."""
        self._state = list(self._step(ids, self._state))

    def reset(self, lanes: Sequence[int]) -> None:
        """The state after the end of a note, in these lanes."""
        for part, begun in zip(self._state, self._begun, strict=True):
            part[:, list(lanes)] = begun
