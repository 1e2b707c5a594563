"""Base classes of neural language models, and their weights in files; import it after
`need_torch()`.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from clinveil.core import Doubles, InputError, Ints, Weights, atomic, seeded
from clinveil.lm.model import WritingStream
from clinveil.lm.recipe import Recipe, neural_kind
from clinveil.lm.vocabulary import END, Ids, Vocabulary

State = tuple[Tensor, ...]  # each (layers, lanes, …); empty for models without state
LANES = 16  # notes scored at once; fixed, so that equal weights give equal bits
PIECE = 64  # tokens scored at once, which limits the memory of the scores


class Network(nn.Module):
    """A network that scores the next token.

    input, output: (size, width) vectors of tokens; the same parameter if tied. bias: (size,) of the
    output.
    """

    def __init__(self, size: int, recipe: Recipe, init_range: float) -> None:
        super().__init__()
        self.recipe = recipe
        self.input = nn.Parameter(torch.empty(size, recipe.width).uniform_(-init_range, init_range))
        own = (
            None
            if recipe.tied
            else nn.Parameter(torch.empty_like(self.input).uniform_(-init_range, init_range))
        )
        self.output = self.input if own is None else own
        self.bias = nn.Parameter(torch.zeros(size))

    def start(self, lanes: int) -> State:
        """Return the state before a note."""
        raise NotImplementedError

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the hidden values (window, lanes, width) of tokens (window, lanes), and the state
        after them.
        """
        raise NotImplementedError

    def scores(self, hidden: Tensor) -> Tensor:
        """Return scores of the next token before the softmax, (…, size)."""
        return nn.functional.linear(hidden, self.output, self.bias)

    def decoder(self, lanes: int) -> Decoder:
        """Return a decoder for `lanes` notes."""
        raise NotImplementedError

    def log_probabilities(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the natural log-probabilities of the targets, (longest, lanes), computed in
        pieces.
        """
        state = self.start(inputs.shape[1])
        pieces = []
        for start in range(0, len(inputs), PIECE):
            hidden, state = self(inputs[start : start + PIECE], state)
            pieces.append(self.gathered(hidden, targets[start : start + PIECE]))
        return torch.cat(pieces)

    def gathered(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the natural log-probabilities of the targets, with the softmax in single precision
        or better.
        """
        scores = self.scores(hidden)
        scores = scores.float() if scores.dtype == torch.bfloat16 else scores
        return torch.log_softmax(scores, dim=-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


class Decoder(WritingStream):
    """Notes being written by a network token by token, in inference mode.

    prefixes: tokens before each note, by label.
    """

    prefixes: Sequence[Sequence[int]] = ()

    def push(self, ids: Ints) -> None:
        """Append one token to every lane."""
        self._append(np.arange(len(ids)), ids)

    def reset(self, lanes: Ints, labels: Ints | None = None) -> None:
        """Start new notes in these lanes, after the prefixes of their labels."""
        if not len(lanes):
            return
        self._begin(lanes)
        rows = (
            [self.prefixes[label] for label in labels.tolist()]
            if self.prefixes and labels is not None
            else []
        )
        for at in range(max(map(len, rows), default=0)):
            some = np.array([at < len(row) for row in rows])
            self._append(lanes[some], np.array([row[at] for row in rows if at < len(row)]))

    @abstractmethod
    def _begin(self, lanes: Ints) -> None:
        """Set these lanes to a single end of a note."""

    @abstractmethod
    def _append(self, lanes: Ints, ids: Ints) -> None:
        """Append one token to each of these lanes."""

    def probabilities(self) -> Doubles:
        """Return the probabilities of the next token, (lanes, size), with the softmax in double
        precision.
        """
        with torch.inference_mode():
            found: Doubles = torch.softmax(self._scores().double(), dim=-1).cpu().numpy()
        return found

    @abstractmethod
    def _scores(self) -> Tensor:
        """Return scores of the next token, (lanes, size)."""


class NeuralModel:
    """A trained network as a `LanguageModel`; `prefixes`: tokens before each note in training, by
    label.
    """

    def __init__(
        self, vocabulary: Vocabulary, network: Network, prefixes: Sequence[Sequence[int]] = ()
    ) -> None:
        self.vocabulary = vocabulary
        self.network = network.eval()
        self.kind = network.recipe.kind
        self.prefixes = prefixes

    @property
    def labelled(self) -> bool:
        """Whether notes are written for a label."""
        return len(self.prefixes) > 0

    @property
    def half(self) -> bool:
        """Whether it is applied as it was trained, in bfloat16; not in double precision."""
        return (
            self.network.recipe.precision == "bfloat16"
            and self.network.input.dtype != torch.float64
        )

    def score(self, notes: Sequence[Ids]) -> list[Doubles]:
        """Return the log-probability of each token, without dropout.

        Notes are batched by length, so rounding of a note depends on the other notes of the call.
        """
        self.network.eval()
        order = sorted(range(len(notes)), key=lambda row: notes[row].size)
        found: dict[int, Doubles] = {}
        with (
            torch.inference_mode(),
            torch.autocast(self.network.input.device.type, torch.bfloat16, enabled=self.half),
        ):
            for start in range(0, len(order), LANES):
                rows = order[start : start + LANES]
                found.update(zip(rows, self._together([notes[row] for row in rows]), strict=True))
        return [found[row] for row in range(len(notes))]

    def _together(self, notes: Sequence[Ids]) -> Iterator[Doubles]:
        """Score notes in one batch, padded with ends."""
        targets = np.full((max(note.size for note in notes), len(notes)), END, dtype=np.int64)
        for lane, note in enumerate(notes):
            targets[: note.size, lane] = note
        inputs = np.concatenate([np.full((1, len(notes)), END, dtype=np.int64), targets[:-1]])
        tensors = (
            torch.from_numpy(part).to(self.network.input.device) for part in (inputs, targets)
        )
        logs = self.network.log_probabilities(*tensors).double().cpu().numpy()
        return (logs[: note.size, lane].copy() for lane, note in enumerate(notes))

    def stream(self, lanes: int) -> Decoder:
        """Return a decoder for `lanes` notes."""
        network = deepcopy(self.network).bfloat16() if self.half else self.network
        decoder = network.decoder(lanes)
        decoder.prefixes = self.prefixes
        return decoder

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """Return a context with this number of threads; its steps are too small to profit from
        more.

        `double` converts the network to double precision; then notes are the same for any number of
        lanes.
        """
        if double:
            self.network.double()
        return seeded(0, threads=threads)

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write the weights; return the entries for `model.json`."""
        about = {"vocabulary_sha256": vocabulary_sha256}
        write_tensors(folder / "model.safetensors", weights_of(self.network), about)
        return {
            "recipe": self.network.recipe.as_dict(),
            "prefixes": [list(row) for row in self.prefixes],
        }


def build(size: int, recipe: Recipe) -> Network:
    """Return a network with initial weights from PyTorch's generator; call it inside `seeded`."""
    network: Network = neural_kind(recipe.kind).network(size, recipe)
    return network


def weights_of(network: Network) -> Weights:
    """Return all weights; tied vectors once."""
    tied = {"output"} if network.recipe.tied else set()
    return {
        k: v.detach().cpu().contiguous().clone()
        for k, v in network.state_dict().items()
        if k not in tied
    }


def set_weights(network: Network, weights: Mapping[str, Tensor]) -> None:
    """Load weights into a network. Raises InputError for weights of another shape or vocabulary."""
    own = network.state_dict()
    expected = {
        k: (v.shape, v.dtype) for k, v in own.items() if not (network.recipe.tied and k == "output")
    }
    if {k: (v.shape, v.dtype) for k, v in weights.items()} != expected:
        raise InputError("the weights belong to another model or vocabulary")
    network.load_state_dict(dict(weights), strict=False)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and JSON atomically as one safetensors file, readable by its owner only."""
    header = json.dumps({**about, "sha256": _digest(tensors)})
    data = save({name: value.contiguous() for name, value in tensors.items()}, {"about": header})
    with atomic(path, force=True) as part:
        part.write_bytes(data)


def read_tensors(path: Path) -> tuple[Weights, dict[str, Any]]:
    """Return the content of a file of `write_tensors`. Raises InputError for any other file."""
    try:
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        tensors = load(data)
        about = dict(json.loads(header["__metadata__"]["about"]))
    except (
        OSError,
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
        OverflowError,
    ):
        raise InputError("is not a file of weights, or damaged", where=path.name) from None
    if about.pop("sha256", None) != _digest(tensors):
        raise InputError("the weights are damaged: their hash differs", where=path.name)
    return tensors, about


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the hash of names, types, shapes and bytes."""
    hashed = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        hashed.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        hashed.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return hashed.hexdigest()
