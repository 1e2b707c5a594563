"""Saving and loading weights, and the whole state of a training, without pickle; import it after `need_torch()`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from clinveil.core.errors import InputError
from clinveil.core.files import whole
from clinveil.core.fit import Weights
from clinveil.lm.network import Network
from clinveil.lm.training import TokenProgress, Training

# Names in the file -> attributes of `TokenProgress`.
_PROGRESS = {"step": "step", "rate": "rate", "best": "best", "best_epoch": "best_look", "losses": "losses"}
_PROGRESS |= {"perplexities": "looks", "loss_sum": "loss_sum", "loss_tokens": "loss_tokens"}


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
    with whole(path, force=True) as part:
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


def save_training(training: Training, path: Path, identity: str) -> None:
    """Write all that a training needs to go on: weights, optimizer, state of the lanes, progress."""
    tensors = {f"weights.{k}": v for k, v in weights_of(training.network).items()}
    tensors |= {f"best.{k}": v.cpu() for k, v in (training.best or {}).items() if not _shared(training, k)}
    tensors |= {f"state.{i}": part.cpu() for i, part in enumerate(training.state or ())}
    for row, values in training.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{row}.{name}": torch.as_tensor(value).cpu() for name, value in values.items()}
    progress = {name: getattr(training.progress, attribute) for name, attribute in _PROGRESS.items()}
    progress["best"] = None if training.best is None and not training.progress.looks else progress["best"]
    write_tensors(path, tensors, {"identity": identity, "progress": progress})


def load_training(training: Training, path: Path, identity: str) -> None:
    """Bring a training to where one like it stood.

    Raises:
        InputError: the file is damaged, or of another training: other notes, vocabulary, recipe or seed.
    """
    tensors, about = read_tensors(path)
    if about.get("identity") != identity:
        raise InputError("is of another training", where=path.name, remedy="remove it, or give the same settings")
    device = training.device
    set_weights(training.network, {k: v.to(device) for k, v in _below(tensors, "weights").items()})
    state = _below(tensors, "state")
    training.state = tuple(state[str(i)].to(device) for i in range(len(state))) or None
    best = _below(tensors, "best")
    training.best = {k: v.to(device) for k, v in best.items()} or None
    if training.best is not None and training.recipe.tied:
        training.best["output"] = training.best["input"]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in _below(tensors, "optimizer").items():
        row, _, part = name.partition(".")
        moments.setdefault(int(row), {})[part] = value if part == "step" else value.to(device)
    known = training.optimizer.state_dict()
    training.optimizer.load_state_dict({**known, "state": moments})
    progress = {attribute: about["progress"][name] for name, attribute in _PROGRESS.items()}
    progress["best"] = float("inf") if progress["best"] is None else progress["best"]
    training.progress = TokenProgress(**progress)


def _shared(training: Training, name: str) -> bool:
    return training.recipe.tied and name == "output"


def _below(tensors: Mapping[str, Tensor], head: str) -> Weights:
    start = f"{head}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
