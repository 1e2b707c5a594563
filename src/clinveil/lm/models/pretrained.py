"""A causal language model of Hugging Face over the pieces of a vocabulary; import it after
`need_torch()`.

Its subwords are replaced by the pieces of the notes, which become one token each. `lm.pretrained`
converts the vectors of public weights. With a rank, a linear layer W is frozen and gets a trained
update: W + 2 U D (LoRA, Hu et al. 2021).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clinveil.core import InputError, Ints, MissingExtra
from clinveil.lm.network import PIECE, Decoder, Network, State
from clinveil.lm.recipe import NeuralKind, Recipe
from clinveil.lm.vocabulary import END

INIT_RANGE = 0.02
SCALE = 2.0  # of the update
ROOM = 256  # positions that the decoder adds when a note needs more
MOST_POSITIONS = 4_096  # of an architecture without a limit


class LowRank(nn.Module):
    """A frozen linear layer with a trained update of low rank, which is 0 at first."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """Apply layer and update."""
        found: Tensor = self.layer(x) + SCALE * functional.linear(
            functional.linear(x, self.down), self.up
        )
        return found


def notes_apart(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return, for (window, lanes) tokens, what attends to what and the position of each token in
    its note.

    Returns: (lanes, 1, window, window) bool, the earlier tokens of the same note; (lanes, window)
    positions.
    """
    begins = (inputs == END).t()
    steps = torch.arange(len(inputs), device=inputs.device)
    note = begins.cumsum(1)
    visible = (note[:, :, None] == note[:, None, :]) & (steps[:, None] >= steps)
    return visible[:, None], steps - torch.where(begins, steps, 0).cummax(1).values


class Pretrained(Network):
    """The layers of a public model between vectors of pieces.

    It has no state: windows are independent, and so are the notes of a window, each started by an
    end. When a note is scored, windows overlap by half: every token after the first half has half a
    window of context.

    weights: of the public model's layers, by name; without them the layers are random.
    """

    shortest = 1_024  # window in which notes are scored at least; most notes need only one

    def __init__(
        self, size: int, recipe: Recipe, weights: Mapping[str, Tensor] | None = None
    ) -> None:
        super().__init__(size, recipe, INIT_RANGE)
        self.body = _body(recipe.config)
        if weights is not None:
            own = self.body.state_dict()
            fitting = {
                name: value
                for name, value in weights.items()
                if name in own and value.shape == own[name].shape
            }
            if len(fitting) < len(own) - 1:  # all but the table of subwords
                raise InputError(
                    "is a language model of an architecture that is not supported",
                    where="synthetic.init",
                )
            self.body.load_state_dict(fitting, strict=False)
        if recipe.rank:
            self.body.requires_grad_(False)
            layers = [
                name for name, layer in self.body.named_modules() if isinstance(layer, nn.Linear)
            ]
            if not layers:
                raise InputError(
                    "this architecture has no linear layers to update", hint="pass --set lm.rank=0"
                )
            for name in layers:
                self.body.set_submodule(name, LowRank(self.body.get_submodule(name), recipe.rank))

    def start(self, lanes: int) -> State:
        """Return an empty state."""
        return ()

    def log_probabilities(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the log-probabilities by windows that overlap by half; later windows contribute
        their second half.
        """
        window = max(self.recipe.window, self.shortest)
        half = window // 2
        pieces = []
        for start in range(0, max(len(inputs) - half, 1), half):
            skip = half if start else 0
            hidden, _ = self(inputs[start : start + window], ())
            kept = hidden[skip:]
            wanted = targets[start + skip : start + window]
            for offset in range(0, len(wanted), PIECE):
                stop = offset + PIECE
                pieces.append(self.gathered(kept[offset:stop], wanted[offset:stop]))
        return torch.cat(pieces)

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Apply the layers to a window."""
        visible, positions = notes_apart(inputs)
        x = functional.embedding(inputs.t(), self.input)
        return self.layers(x, visible, positions, use_cache=False).transpose(0, 1), ()

    def layers(self, x: Tensor, visible: Tensor, positions: Tensor, **cache: Any) -> Tensor:
        """Return the hidden values of vectors (lanes, steps, width)."""
        found: Tensor = self.body(
            inputs_embeds=x, attention_mask=visible, position_ids=positions, **cache
        )[0]
        return found

    def decoder(self, lanes: int) -> CachedDecoder:
        """Return a decoder for `lanes` notes."""
        return CachedDecoder(self, lanes)


def _body(config: Any) -> Any:
    """Return the layers of an architecture, with random weights."""
    try:
        from transformers import AutoConfig, AutoModel, logging
    except ImportError:
        raise MissingExtra("transformers", "huggingface") from None
    logging.set_verbosity_error()
    # Its own table of subwords is not used.
    own = {
        **config,
        "vocab_size": 1,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    architecture = AutoConfig.for_model(own.pop("model_type"), **own)
    try:  # only this attention takes a mask of what is visible
        body = AutoModel.from_config(architecture, dtype=torch.float32, attn_implementation="sdpa")
    except (ValueError, ImportError):
        raise InputError(
            f"architecture {architecture.model_type} is not supported", where="synthetic.init"
        ) from None
    nn.init.zeros_(body.get_input_embeddings().weight.requires_grad_(False))
    return body


class CachedDecoder(Decoder):
    """Decoder with the keys and values of each lane at its own positions; a note ends where the
    model has no more.
    """

    @torch.inference_mode()
    def __init__(self, network: Pretrained, lanes: int) -> None:
        self._network = network
        device = network.input.device
        self._stored: dict[int, list[Tensor]] = {}
        self._filled = torch.zeros(lanes, dtype=torch.long, device=device)
        self._rows = self._filled
        self._room = ROOM
        self._seen = 1
        self._hidden = network.input.new_zeros(lanes, network.recipe.width)
        self._most = int(getattr(network.body.config, "max_position_embeddings", MOST_POSITIONS))
        taken = inspect.signature(network.body.forward).parameters
        self._name = "cache" if "cache" in taken else "past_key_values"
        self._begin(np.arange(lanes))

    def _scores(self) -> Tensor:
        scores = self._network.scores(self._hidden)
        full = self._filled >= self._most
        scores[full] = -torch.inf
        scores[full, END] = 0.0
        return scores

    @torch.inference_mode()
    def _begin(self, lanes: Ints) -> None:
        self._filled[torch.from_numpy(lanes)] = 0
        self._append(lanes, np.full(len(lanes), END))

    @torch.inference_mode()
    def _append(self, lanes: Ints, ids: Ints) -> None:
        rows, tokens = (torch.from_numpy(part).to(self._filled.device) for part in (lanes, ids))
        # A full lane has ended; what it appends is not used.
        positions = self._filled[rows].clamp(max=self._most - 1)
        self._rows = rows
        self._seen = int(positions.max()) + 1
        x = functional.embedding(tokens, self._network.input).unsqueeze(1)
        visible = (torch.arange(self._seen, device=rows.device) <= positions[:, None])[
            :, None, None
        ]
        how = {self._name: self, "use_cache": True}
        self._hidden[rows] = self._network.layers(x, visible, positions[:, None], **how)[:, 0]
        self._filled[rows] += 1

    def get_seq_length(self, *_: Any) -> int:
        """Return 0: positions and mask are passed to the layers (an interface of transformers)."""
        return 0

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Store the (rows, heads, 1, width) keys and values of a layer; return those of the rows so
        far.
        """
        stored = self._stored.setdefault(
            layer, [keys.new_zeros(len(self._filled), *keys.shape[1:2], 0, keys.shape[3])] * 2
        )
        positions = self._filled[self._rows].clamp(max=self._most - 1)
        for at, new in enumerate((keys, values)):
            if stored[at].shape[2] < self._seen:
                stored[at] = functional.pad(stored[at], (0, 0, 0, ROOM))
            stored[at][self._rows, :, positions] = new[:, :, 0]
        every = len(self._rows) == len(self._filled)
        rows = slice(None) if every else self._rows
        return stored[0][rows][:, :, : self._seen], stored[1][rows][:, :, : self._seen]


_COMMON: dict[str, Any] = {
    "layers": 1,
    "width": 4,
    "dropout": 0.0,
    "tied": False,
    "optimizer": "adamw",
    "clip": 1.0,
    "plan": "packed",
    "precision": "bfloat16",
}
SIZES = {
    "small": {**_COMMON, "rank": 16, "rate": 5e-4, "window": 512, "lanes": 4, "epochs": 2},
    "base": {**_COMMON, "rank": 0, "rate": 1e-4, "window": 1_024, "lanes": 16, "epochs": 3},
}
ABOUT = "a public language model that was trained further on the notes"
PRETRAINED_NETWORK = NeuralKind(about=ABOUT, network=Pretrained, sizes=SIZES, layer_weights=12)
