"""A small decoder-only transformer (RoPE, RMSNorm, SwiGLU); import it after `need_torch()`.

When a note is written, a full window restarts from its second half.
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
from clinveil.lm.network import Decoder, State, Windowed, notes_apart
from clinveil.lm.recipe import NeuralKind, Recipe, language_models
from clinveil.lm.vocabulary import END

INIT_RANGE = 0.035
BASE = 10_000.0


class Block(nn.Module):
    """Attention and a feed-forward layer with residual connections; their last projections are
    initialized to 0.
    """

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        width = recipe.width
        self.heads = recipe.heads
        self.drop = recipe.dropout
        inner = (8 * width // 3 + 7) // 8 * 8
        self.before_attention = nn.RMSNorm(width)
        self.before_feed = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)
        self.dropout = nn.Dropout(recipe.dropout)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.down.weight)

    def heads_of(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value, (lanes, heads, steps, width per head), the first two rotated
        by position.
        """
        lanes, steps, width = x.shape
        parts = self.qkv(self.before_attention(x)).view(
            lanes, steps, 3, self.heads, width // self.heads
        )
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        return _turned(query, turn), _turned(key, turn), value

    def after(self, x: Tensor, attended: Tensor) -> Tensor:
        """Apply the output projection and the feed-forward layer to the attention's result."""
        x = x + self.dropout(self.out(attended.transpose(1, 2).flatten(2)))
        gate, up = self.gate(self.before_feed(x)).chunk(2, dim=-1)
        fed: Tensor = x + self.dropout(self.down(functional.silu(gate) * up))
        return fed

    def forward(self, x: Tensor, turn: Tensor, visible: Tensor) -> Tensor:
        """Apply the block to (lanes, steps, width); `visible`: of `notes_apart`."""
        query, key, value = self.heads_of(x, turn)
        drop = self.drop if self.training else 0.0
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=visible, dropout_p=drop
        )
        return self.after(x, attended)


def _turned(x: Tensor, turn: Tensor) -> Tensor:
    """Apply RoPE: rotate pairs of coordinates by an angle proportional to the position."""
    cosine, sine = turn.unbind(-1)
    one, other = x.chunk(2, dim=-1)
    return torch.cat([one * cosine - other * sine, one * sine + other * cosine], dim=-1).to(x.dtype)


class Gpt(Windowed):
    """The transformer."""

    turns: Tensor

    def __init__(self, size: int, recipe: Recipe) -> None:
        super().__init__(size, recipe, INIT_RANGE)
        self.blocks = nn.ModuleList(Block(recipe) for _ in range(recipe.layers))
        self.last = nn.RMSNorm(recipe.width)
        self.dropout = nn.Dropout(recipe.dropout)
        half = recipe.width // recipe.heads // 2
        angles = torch.arange(recipe.window)[:, None] * BASE ** (-torch.arange(half) / half)
        self.register_buffer(
            "turns", torch.stack([angles.cos(), angles.sin()], dim=-1), persistent=False
        )

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Apply the layers to a window."""
        x = self.dropout(functional.embedding(inputs.t(), self.input))
        visible, _ = notes_apart(inputs)
        for block in self.blocks:
            x = block(x, self.turns[: inputs.shape[0]], visible)
        return self.last(x).transpose(0, 1), ()

    def decoder(self, lanes: int) -> GptDecoder:
        """Return a decoder for `lanes` notes."""
        return GptDecoder(self, lanes)

    def each_block(self) -> list[Block]:
        """Return the layers in order."""
        return [block for block in self.blocks if isinstance(block, Block)]


class GptDecoder(Decoder):
    """Decoder with the tokens, keys and values of the window of each lane."""

    @torch.inference_mode()
    def __init__(self, network: Gpt, lanes: int) -> None:
        self._network = network
        self._window = network.recipe.window
        recipe = network.recipe
        like = network.input
        shape = (recipe.layers, lanes, recipe.heads, recipe.window, recipe.width // recipe.heads)
        self._keys = like.new_zeros(shape)
        self._values = like.new_zeros(shape)
        self._tokens = torch.full((lanes, recipe.window), END, device=like.device)
        self._filled = torch.zeros(lanes, dtype=torch.long, device=like.device)
        self._hidden = like.new_zeros(lanes, recipe.width)
        self._begin(np.arange(lanes))

    def _scores(self) -> Tensor:
        return self._network.scores(self._hidden)

    @torch.inference_mode()
    def _append(self, lanes: Ints, ids: Ints) -> None:
        """Append one token to each of these lanes; a full window restarts from its second half."""
        rows, tokens = (torch.from_numpy(part).to(self._tokens.device) for part in (lanes, ids))
        full = rows[self._filled[rows] == self._window]
        if full.numel():
            self._restart(full)
        net = self._network
        positions = self._filled[rows]
        self._tokens[rows, positions] = tokens
        x = functional.embedding(tokens, net.input).unsqueeze(1)
        visible = (torch.arange(self._window, device=rows.device) <= positions[:, None])[
            :, None, None
        ]
        turn = net.turns[positions][:, None, None].to(x.dtype)
        for layer, block in enumerate(net.each_block()):
            query, key, value = block.heads_of(x, turn)
            self._keys[layer, rows, :, positions] = key[:, :, 0]
            self._values[layer, rows, :, positions] = value[:, :, 0]
            cached = (self._keys[layer, rows], self._values[layer, rows])
            x = block.after(
                x, functional.scaled_dot_product_attention(query, *cached, attn_mask=visible)
            )
        self._hidden[rows] = net.last(x)[:, 0]
        self._filled[rows] += 1

    def _restart(self, rows: Tensor) -> None:
        """Continue full windows from their second half."""
        half = self._window // 2
        net = self._network
        kept = self._tokens[rows, half:].clone()
        self._tokens[rows, :half] = kept
        x = functional.embedding(kept, net.input)
        for layer, block in enumerate(net.each_block()):
            query, key, value = block.heads_of(x, net.turns[:half])
            self._keys[layer, rows, :, :half] = key
            self._values[layer, rows, :, :half] = value
            x = block.after(
                x, functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            )
        self._filled[rows] = half


def _check(recipe: Recipe) -> None:
    if recipe.width % (2 * recipe.heads) or recipe.window % 2:
        raise UsageError("--width must be a multiple of twice --heads, and --window must be even")
    if recipe.plan == "stream":
        raise UsageError("--plan stream requires --model lstm")


_COMMON: dict[str, Any] = {
    "dropout": 0.1,
    "tied": False,
    "optimizer": "adamw",
    "rate": 1e-3,
    "clip": 1.0,
    "epochs": 10,
}
_COMMON |= {"plan": "rows", "schedule": "fixed", "backoff": 4.0, "gain": 0.1, "rate_floor": 0.1}
SIZES = {
    "tiny": {**_COMMON, "layers": 4, "width": 128, "heads": 4, "window": 128, "lanes": 8},
    "small": {**_COMMON, "layers": 6, "width": 384, "heads": 6, "window": 256, "lanes": 16},
    "base": {**_COMMON, "layers": 8, "width": 512, "heads": 8, "window": 512, "lanes": 32},
}
language_models.register("gpt")(
    NeuralKind(
        "a small GPT, a decoder with attention",
        Gpt,
        SIZES,
        layer_weights=12,
        check=_check,
        packed=True,
    )
)
