"""What the networks share: layers, scoring of whole notes, the trained model and its file; after `need_torch()`."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError
from clinveil.core.fit import Weights
from clinveil.core.neural import seeded
from clinveil.core.types import Doubles
from clinveil.lm.model import Stream
from clinveil.lm.recipe import Recipe, neural_kind
from clinveil.lm.vocabulary import END, Ids, Vocabulary

State = tuple[Tensor, ...]  # each (layers, lanes, …); empty where nothing is carried on
LANES = 16  # notes scored at once; fixed, so that equal weights give equal bits
PIECE = 64  # tokens of each at once: what bounds the memory of the scores


class Network(nn.Module):
    """A network that gives scores of the next token.

    input, output: (size, width) vectors of tokens; one and the same where tied. bias: (size,) of the output.
    """

    def __init__(self, size: int, recipe: Recipe, init_range: float) -> None:
        super().__init__()
        self.recipe = recipe
        self.input = nn.Parameter(torch.empty(size, recipe.width).uniform_(-init_range, init_range))
        own = None if recipe.tied else nn.Parameter(torch.empty_like(self.input).uniform_(-init_range, init_range))
        self.output = self.input if own is None else own
        self.bias = nn.Parameter(torch.zeros(size))

    def start(self, lanes: int) -> State:
        """The state before a note."""
        raise NotImplementedError

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """(window, lanes) tokens -> (window, lanes, width) below the output, and the state after them."""
        raise NotImplementedError

    def scores(self, hidden: Tensor) -> Tensor:
        """(…, size) of the next token, before the softmax."""
        return nn.functional.linear(hidden, self.output, self.bias)

    def decoder(self, lanes: int) -> Decoder:
        """Notes being written, side by side."""
        raise NotImplementedError

    def log_probabilities(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """(longest, lanes) natural logs of the targets; here piece by piece, and the state goes on."""
        state, pieces = self.start(inputs.shape[1]), []
        for start in range(0, len(inputs), PIECE):
            hidden, state = self(inputs[start : start + PIECE], state)
            pieces.append(self.gathered(hidden, targets[start : start + PIECE]))
        return torch.cat(pieces)

    def gathered(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Natural logs of the targets; the softmax in single precision or better."""
        scores = self.scores(hidden).float() if hidden.dtype == torch.bfloat16 else self.scores(hidden)
        return torch.log_softmax(scores, dim=-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


class Decoder(Stream):
    """Notes being written by a network, token by token; made in inference mode."""

    def probabilities(self) -> Doubles:
        """(lanes, size); the softmax in double precision."""
        with torch.inference_mode():
            found: Doubles = torch.softmax(self._scores().double(), dim=-1).cpu().numpy()
        return found

    @abstractmethod
    def _scores(self) -> Tensor:
        """(lanes, size) of the next token."""


class NeuralModel:
    """A network that was trained, as a `LanguageModel`; `kind` is `lstm` or `gpt`."""

    def __init__(self, vocabulary: Vocabulary, network: Network) -> None:
        self.vocabulary, self.network, self.kind = vocabulary, network.eval(), network.recipe.kind

    def score(self, notes: Sequence[Ids]) -> list[Doubles]:
        """Log-probability of each token, without dropout.

        Notes are grouped by length; a note's bits depend on which others are in the call, through rounding only.
        """
        self.network.eval()
        order = sorted(range(len(notes)), key=lambda row: notes[row].size)
        found: dict[int, Doubles] = {}
        with torch.inference_mode():
            for start in range(0, len(order), LANES):
                rows = order[start : start + LANES]
                found.update(zip(rows, self._together([notes[row] for row in rows]), strict=True))
        return [found[row] for row in range(len(notes))]

    def _together(self, notes: Sequence[Ids]) -> Iterator[Doubles]:
        """Side by side, filled up with ends."""
        targets = np.full((max(note.size for note in notes), len(notes)), END, dtype=np.int64)
        for lane, note in enumerate(notes):
            targets[: note.size, lane] = note
        inputs = np.concatenate([np.full((1, len(notes)), END, dtype=np.int64), targets[:-1]])
        asked = (torch.from_numpy(part).to(self.network.input.device) for part in (inputs, targets))
        logs = self.network.log_probabilities(*asked).double().cpu().numpy()
        return (logs[: note.size, lane].copy() for lane, note in enumerate(notes))

    def stream(self, lanes: int) -> Decoder:
        """Notes being written."""
        return self.network.decoder(lanes)

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """A block on so many threads: its steps are small, and more threads only wait.

        `double`: in double precision, and so it stays; then notes are the same for any number of lanes.
        """
        if double:
            self.network.double()
        return seeded(0, threads=threads)

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write the weights; what `model.json` says of them."""
        about = {"vocabulary_sha256": vocabulary_sha256}
        write_tensors(folder / "model.safetensors", weights_of(self.network), about)
        return {"recipe": self.network.recipe.as_dict()}


def reset_state(state: State, lanes: Tensor) -> State:
    """The state with zeros in some lanes, (lanes,) bool."""
    return tuple(part.masked_fill(lanes.reshape(1, -1, *[1] * (part.dim() - 2)), 0.0) for part in state)


def build(size: int, recipe: Recipe) -> Network:
    """A network with its first weights, drawn from PyTorch's generator: call it inside `seeded`."""
    return neural_kind(recipe.kind).network(size, recipe)


def weights_of(network: Network) -> Weights:
    """All weights; vectors that input and output share once."""
    tied = {"output"} if network.recipe.tied else set()
    return {k: v.detach().cpu().contiguous().clone() for k, v in network.state_dict().items() if k not in tied}


def set_weights(network: Network, weights: Mapping[str, Tensor]) -> None:
    """Put them back. Raises InputError where they are of another shape or vocabulary."""
    own = network.state_dict()
    expected = {k: (v.shape, v.dtype) for k, v in own.items() if not (network.recipe.tied and k == "output")}
    if {k: (v.shape, v.dtype) for k, v in weights.items()} != expected:
        raise InputError("the weights are of another model or vocabulary")
    network.load_state_dict(dict(weights), strict=False)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and JSON as one safetensors file, whole or not at all, readable by its owner only."""
    said = json.dumps({**about, "sha256": _digest(tensors)})
    data = save({name: value.contiguous() for name, value in tensors.items()}, {"about": said})
    with atomic(path, force=True) as part:
        part.write_bytes(data)


def read_tensors(path: Path) -> tuple[Weights, dict[str, Any]]:
    """What `write_tensors` wrote. Raises InputError for anything else."""
    try:
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        tensors, about = load(data), dict(json.loads(header["__metadata__"]["about"]))
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        raise InputError("is no file of weights, or a damaged one", where=path.name) from None
    if about.pop("sha256", None) != _digest(tensors):
        raise InputError("its weights are not those that were written: it is damaged", where=path.name)
    return tensors, about


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """Of names, types, shapes and bytes."""
    hashed = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        hashed.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        hashed.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return hashed.hexdigest()
