"""A small decoder-only transformer: RoPE, RMSNorm, SwiGLU, `scaled_dot_product_attention`; after `need_torch()`.

Each window of a note is read by itself. Where a whole note is scored or written, a window is read anew at every half
window, from half a window back; so every token but the first has at least half a window before it.
Source: Su et al. 2021 (RoPE), Zhang & Sennrich 2019 (RMSNorm), Shazeer 2020 (SwiGLU).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clinveil.core.errors import UsageError
from clinveil.core.types import Ints
from clinveil.lm.network import PIECE, Decoder, Network, State
from clinveil.lm.recipe import NeuralKind, Recipe, language_models
from clinveil.lm.vocabulary import END

INIT_RANGE, BASE = 0.035, 10_000.0


class Block(nn.Module):
    """Attention and a feed-forward layer, each added to what came in; their last projections start at 0."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        width, self.heads, self.drop = recipe.width, recipe.heads, recipe.dropout
        inner = (8 * width // 3 + 7) // 8 * 8
        self.before_attention, self.before_feed = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)
        self.dropout = nn.Dropout(recipe.dropout)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.down.weight)

    def heads_of(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key, value: (lanes, heads, steps, width per head), the first two turned by their places."""
        lanes, steps, width = x.shape
        parts = self.qkv(self.before_attention(x)).view(lanes, steps, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        return _turned(query, turn), _turned(key, turn), value

    def after(self, x: Tensor, attended: Tensor) -> Tensor:
        """What follows attention, (lanes, heads, steps, width per head)."""
        x = x + self.dropout(self.out(attended.transpose(1, 2).flatten(2)))
        gate, up = self.gate(self.before_feed(x)).chunk(2, dim=-1)
        fed: Tensor = x + self.dropout(self.down(functional.silu(gate) * up))
        return fed

    def forward(self, x: Tensor, turn: Tensor) -> Tensor:
        """(lanes, steps, width), each step sees itself and those before it."""
        query, key, value = self.heads_of(x, turn)
        drop = self.drop if self.training else 0.0
        return self.after(x, functional.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=drop))


def _turned(x: Tensor, turn: Tensor) -> Tensor:
    """RoPE: pairs of coordinates turned by an angle that grows with the place."""
    cosine, sine = turn.unbind(-1)
    one, other = x.chunk(2, dim=-1)
    return torch.cat([one * cosine - other * sine, one * sine + other * cosine], dim=-1).to(x.dtype)


class Gpt(Network):
    """The decoder."""

    turns: Tensor

    def __init__(self, size: int, recipe: Recipe) -> None:
        super().__init__(size, recipe, INIT_RANGE)
        self.blocks = nn.ModuleList(Block(recipe) for _ in range(recipe.layers))
        self.last = nn.RMSNorm(recipe.width)
        self.dropout = nn.Dropout(recipe.dropout)
        half = recipe.width // recipe.heads // 2
        angles = torch.arange(recipe.window)[:, None] * BASE ** (-torch.arange(half) / half)
        self.register_buffer("turns", torch.stack([angles.cos(), angles.sin()], dim=-1), persistent=False)

    def start(self, lanes: int) -> State:
        """Nothing is carried from window to window."""
        return ()

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """The layers over a window."""
        x = self.dropout(functional.embedding(inputs.t(), self.input))
        for block in self.blocks:
            x = block(x, self.turns[: inputs.shape[0]])
        return self.last(x).transpose(0, 1), ()

    def log_probabilities(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Window by window: from the second one on, the second half of each counts."""
        window, pieces = self.recipe.window, []
        for start in range(0, max(len(inputs) - window // 2, 1), window // 2):
            skip = window // 2 if start else 0
            hidden, _ = self(inputs[start : start + window], ())
            kept, wanted = hidden[skip:], targets[start + skip : start + window]
            for at in range(0, len(wanted), PIECE):
                pieces.append(self.gathered(kept[at : at + PIECE], wanted[at : at + PIECE]))
        return torch.cat(pieces)

    def decoder(self, lanes: int) -> GptDecoder:
        """Notes being written."""
        return GptDecoder(self, lanes)

    def each_block(self) -> list[Block]:
        """The layers, in order."""
        return [block for block in self.blocks if isinstance(block, Block)]


class GptDecoder(Decoder):
    """Keys and values of each lane's window, and its tokens."""

    @torch.inference_mode()
    def __init__(self, network: Gpt, lanes: int) -> None:
        self._network, self._window = network, network.recipe.window
        recipe, like = network.recipe, network.input
        shape = (recipe.layers, lanes, recipe.heads, recipe.window, recipe.width // recipe.heads)
        self._keys, self._values = like.new_zeros(shape), like.new_zeros(shape)
        self._tokens = torch.full((lanes, recipe.window), END, device=like.device)
        self._filled = torch.zeros(lanes, dtype=torch.long, device=like.device)
        self._all = torch.arange(lanes, device=like.device)
        self._hidden = like.new_zeros(lanes, recipe.width)
        self.reset(np.arange(lanes))

    def _scores(self) -> Tensor:
        return self._network.scores(self._hidden)

    @torch.inference_mode()
    def push(self, ids: Ints) -> None:
        """One token; a full window is read anew from its second half."""
        full = torch.nonzero(self._filled == self._window).flatten()
        if full.numel():
            self._reread(full)
        self._read(self._all, torch.from_numpy(ids).to(self._tokens.device))

    @torch.inference_mode()
    def reset(self, lanes: Ints) -> None:
        """An empty window with the end of a note in it."""
        if len(lanes):
            rows = torch.from_numpy(lanes).to(self._tokens.device)
            self._filled[rows] = 0
            self._read(rows, torch.full((len(lanes),), END, device=rows.device))

    def _read(self, rows: Tensor, ids: Tensor) -> None:
        """Read one more token in these lanes."""
        net, places = self._network, self._filled[rows]
        self._tokens[rows, places] = ids
        x = functional.embedding(ids, net.input).unsqueeze(1)
        seen = (torch.arange(self._window, device=rows.device) <= places[:, None])[:, None, None]
        turn = net.turns[places][:, None, None].to(x.dtype)
        for layer, block in enumerate(net.each_block()):
            query, key, value = block.heads_of(x, turn)
            self._keys[layer, rows, :, places] = key[:, :, 0]
            self._values[layer, rows, :, places] = value[:, :, 0]
            of = (self._keys[layer, rows], self._values[layer, rows])
            x = block.after(x, functional.scaled_dot_product_attention(query, *of, attn_mask=seen))
        self._hidden[rows] = net.last(x)[:, 0]
        self._filled[rows] += 1

    def _reread(self, rows: Tensor) -> None:
        """Go on from the second half of full windows."""
        half, net = self._window // 2, self._network
        kept = self._tokens[rows, half:].clone()
        self._tokens[rows, :half] = kept
        x = functional.embedding(kept, net.input)
        for layer, block in enumerate(net.each_block()):
            query, key, value = block.heads_of(x, net.turns[:half])
            self._keys[layer, rows, :, :half] = key
            self._values[layer, rows, :, :half] = value
            x = block.after(x, functional.scaled_dot_product_attention(query, key, value, is_causal=True))
        self._filled[rows] = half


def _check(recipe: Recipe) -> None:
    if recipe.width % (2 * recipe.heads) or recipe.window % 2:
        raise UsageError("--width must be a multiple of twice --heads, and --window even")
    if recipe.plan == "stream":
        raise UsageError("--plan stream is the LSTM's")


_COMMON: dict[str, Any] = {"dropout": 0.1, "tied": False, "optimizer": "adamw", "rate": 1e-3, "clip": 1.0, "epochs": 10}
_COMMON |= {"plan": "rows", "schedule": "fixed", "backoff": 4.0, "gain": 0.1, "rate_floor": 0.1}
SIZES = {
    "tiny": {**_COMMON, "layers": 4, "width": 128, "heads": 4, "window": 128, "lanes": 8},
    "small": {**_COMMON, "layers": 6, "width": 384, "heads": 6, "window": 256, "lanes": 16},
    "base": {**_COMMON, "layers": 8, "width": 512, "heads": 8, "window": 512, "lanes": 32},
}
language_models.register("gpt")(
    NeuralKind(about="a small GPT, a decoder with attention", network=Gpt, sizes=SIZES, layer_weights=12, check=_check)
)
