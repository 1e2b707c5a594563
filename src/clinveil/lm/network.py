"""What the networks share; import it after `need_torch()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from clinveil.lm.recipe import Recipe

State = tuple[Tensor, ...]  # each (layers, lanes, …); empty where nothing is carried on


class Network(nn.Module):
    """A network that gives scores of the next token.

    Attributes:
        input, output: (size, width) vectors of tokens; one and the same where tied. bias: (size,) of the output.
    """

    def __init__(self, size: int, recipe: Recipe, spread: float) -> None:
        super().__init__()
        self.recipe = recipe
        self.input = nn.Parameter(torch.empty(size, recipe.width).uniform_(-spread, spread))
        self.output = (
            self.input if recipe.tied else nn.Parameter(torch.empty_like(self.input).uniform_(-spread, spread))
        )
        self.bias = nn.Parameter(torch.zeros(size))

    def start(self, lanes: int) -> State:
        """The state before a note."""
        raise NotImplementedError

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """(window, lanes) tokens -> (window, lanes, width) below the output, and the state after them."""
        raise NotImplementedError

    def scores(self, below: Tensor) -> Tensor:
        """(…, size) of the next token, before the softmax."""
        return nn.functional.linear(below, self.output, self.bias)


class Pusher(Protocol):
    """Notes being written by a network, token by token."""

    def scores(self) -> Tensor:
        """(lanes, size) of the next token."""
        ...

    def push(self, ids: Tensor) -> None:
        """One token for every lane, (lanes,)."""
        ...

    def reset(self, lanes: Sequence[int]) -> None:
        """Begin anew in these lanes."""
        ...


def cleared(state: State, reset: Tensor) -> State:
    """The state with zeros in the lanes of `reset`, (lanes,) bool."""
    return tuple(part.masked_fill(reset.reshape(1, -1, *[1] * (part.dim() - 2)), 0.0) for part in state)


def build(size: int, recipe: Recipe) -> Network:
    """A network with its first weights, drawn from PyTorch's generator: call it inside `seeded`."""
    from clinveil.lm.gpt import Gpt
    from clinveil.lm.lstm import Lstm

    return Lstm(size, recipe) if recipe.kind == "lstm" else Gpt(size, recipe)


def pusher_of(network: Network, lanes: int) -> Pusher:
    """Notes being written by this network."""
    from clinveil.lm.gpt import Gpt, GptPusher
    from clinveil.lm.lstm import Lstm, LstmPusher

    if isinstance(network, Gpt):
        return GptPusher(network, lanes)
    assert isinstance(network, Lstm)
    return LstmPusher(network, lanes)
