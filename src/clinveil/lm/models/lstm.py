"""Paper C's LSTM language model (section 4.1, from PyTorch's examples); import it after
`need_torch()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from clinveil.core import Ints
from clinveil.lm.network import Decoder, Network, State
from clinveil.lm.recipe import NeuralKind, Recipe
from clinveil.lm.vocabulary import END

INIT_RANGE = 0.1


class Lstm(Network):
    """Token vectors and LSTM layers, with dropout before, between and after the layers."""

    def __init__(self, size: int, recipe: Recipe) -> None:
        super().__init__(size, recipe, INIT_RANGE)
        between = recipe.dropout if recipe.layers > 1 else 0.0
        self.lstm = nn.LSTM(recipe.width, recipe.width, recipe.layers, dropout=between)
        self.dropout = nn.Dropout(recipe.dropout)

    def start(self, lanes: int) -> State:
        """Return a state of zeros, (layers, lanes, width) twice."""
        zeros = self.input.new_zeros(self.recipe.layers, lanes, self.recipe.width)
        return zeros, zeros.clone()

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Apply the layers to a window, starting from a state."""
        vectors = self.dropout(nn.functional.embedding(inputs, self.input))
        hidden, state = self.lstm(vectors, (state[0], state[1]))
        return self.dropout(hidden), tuple(state)

    def decoder(self, lanes: int) -> LstmDecoder:
        """Return a decoder for `lanes` notes."""
        return LstmDecoder(self, lanes)


class LstmDecoder(Decoder):
    """Decoder with a state per lane; it avoids the overhead of `nn.LSTM` for single steps."""

    @torch.inference_mode()
    def __init__(self, network: Lstm, lanes: int) -> None:
        self._network = network
        get = network.lstm.get_parameter
        layers = range(network.recipe.layers)
        self._weights = [
            torch.cat([get(f"weight_ih_l{i}"), get(f"weight_hh_l{i}")], dim=1).t() for i in layers
        ]
        self._biases = [get(f"bias_ih_l{i}") + get(f"bias_hh_l{i}") for i in layers]
        self._begun = self._after(
            torch.tensor([END], device=network.input.device), network.start(1)
        )
        self._state: list[Tensor] = [part.repeat(1, lanes, 1) for part in self._begun]

    def _after(self, ids: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        below = nn.functional.embedding(ids, self._network.input)
        hidden = []
        cells = []
        for layer, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            gates = torch.addmm(bias, torch.cat([below, state[0][layer]], dim=1), weight)
            take, keep, new, give = gates.chunk(4, dim=1)
            cell = torch.sigmoid(keep) * state[1][layer] + torch.sigmoid(take) * torch.tanh(new)
            below = torch.sigmoid(give) * torch.tanh(cell)
            hidden.append(below)
            cells.append(cell)
        return torch.stack(hidden), torch.stack(cells)

    def _scores(self) -> Tensor:
        return self._network.scores(self._state[0][-1])

    @torch.inference_mode()
    def push(self, ids: Ints) -> None:
        """Append one token to every lane."""
        self._state = list(
            self._after(torch.from_numpy(ids).to(self._network.input.device), self._state)
        )

    @torch.inference_mode()
    def _append(self, lanes: Ints, ids: Ints) -> None:
        rows = lanes.tolist()
        device = self._network.input.device
        after = self._after(
            torch.from_numpy(ids).to(device), [part[:, rows] for part in self._state]
        )
        for part, new in zip(self._state, after, strict=True):
            part[:, rows] = new

    @torch.inference_mode()
    def _begin(self, lanes: Ints) -> None:
        for part, begun in zip(self._state, self._begun, strict=True):
            part[:, lanes.tolist()] = begun


_COMMON: dict[str, Any] = {
    "layers": 2,
    "dropout": 0.5,
    "tied": True,
    "window": 35,
    "lanes": 20,
    "plan": "rows",
    "epochs": 10,
}
_SGD = {"optimizer": "sgd", "rate": 20.0, "clip": 0.25}
_ADAM = {"optimizer": "adamw", "rate": 2e-3, "clip": 1.0}
SIZES = {
    "tiny": {**_COMMON, **_SGD, "width": 128},
    "small": {**_COMMON, **_SGD, "width": 256},
    "base": {**_COMMON, **_ADAM, "width": 650, "window": 70, "lanes": 64},
    "paper": {**_COMMON, **_SGD, "width": 650, "epochs": 20, "plan": "stream"},
}
ABOUT = "an LSTM, a recurrent network (Melamud and Shivade, ClinicalNLP 2019)"
LSTM = NeuralKind(about=ABOUT, network=Lstm, sizes=SIZES, layer_weights=8)
