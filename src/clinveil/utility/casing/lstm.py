"""The character LSTM in PyTorch; import it after `need_torch()`."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

State = tuple[Tensor, Tensor]
SPREAD = 0.08  # first weights are uniform in (-0.08, 0.08)


class CharacterLstm(nn.Module):
    """One-hot characters, LSTM layers with dropout between and above them, a linear layer.

    Source: Susanto, Chieu & Lu 2016; LSTM.lua of raymondhs/char-rnn-truecase.
    """

    def __init__(self, n_characters: int, layers: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.n_characters = n_characters
        self.lstm = nn.LSTM(n_characters, hidden, layers, dropout=dropout if layers > 1 else 0.0)
        self.dropout = nn.Dropout(dropout)
        self.decoder = nn.Linear(hidden, n_characters)
        with torch.no_grad():
            for weight in self.parameters():
                weight.uniform_(-SPREAD, SPREAD)
            for layer in range(layers):  # gates stand in the order input, forget, cell, output
                self.lstm.get_parameter(f"bias_ih_l{layer}")[hidden : 2 * hidden] = 1.0

    def start(self, rows: int) -> State:
        """A state of zeros, (layers, rows, hidden) twice."""
        zeros = self.decoder.weight.new_zeros(self.lstm.num_layers, rows, self.lstm.hidden_size)
        return zeros, zeros.clone()

    def forward(self, characters: Tensor, state: State) -> tuple[Tensor, State]:
        """(n_steps, rows, n_characters) scores of the next character, and the state after the last step."""
        one_hot = functional.one_hot(characters, self.n_characters).to(self.decoder.weight.dtype)
        above, state = self.lstm(one_hot, state)
        return self.decoder(self.dropout(above)), state

    def step(self, characters: Tensor, state: State) -> tuple[Tensor, State]:
        """(rows, n_characters) log-probabilities of the next character after one more, (rows,), without dropout.

        The same as `forward` and a softmax, but without what `nn.LSTM` prepares at each call.
        """
        hidden, cells = [], []
        below = characters
        for layer in range(self.lstm.num_layers):
            h, c = self._cell(layer, below, state[0][layer], state[1][layer])
            hidden.append(h)
            cells.append(c)
            below = h
        scores = functional.log_softmax(self.decoder(below), dim=1)
        return scores, (torch.stack(hidden), torch.stack(cells))

    def _cell(self, layer: int, below: Tensor, h: Tensor, c: Tensor) -> State:
        get = self.lstm.get_parameter
        inner = functional.linear(h, get(f"weight_hh_l{layer}"), get(f"bias_hh_l{layer}") + get(f"bias_ih_l{layer}"))
        outer = get(f"weight_ih_l{layer}")
        gates = inner + (outer.t()[below] if layer == 0 else functional.linear(below, outer))
        take, keep, new, give = gates.chunk(4, dim=1)
        c = torch.sigmoid(keep) * c + torch.sigmoid(take) * torch.tanh(new)
        return torch.sigmoid(give) * torch.tanh(c), c
