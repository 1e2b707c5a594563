"""A trained language model in a folder: JSON and safetensors, no pickle.

model.json         kind, recipe, seed, how training went
vocabulary.json    words, or byte pairs
model.safetensors  weights; for a unigram the counts

All of it is secret: weights remember notes, and the vocabulary is of the notes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.files import private_folder, private_text, save_array, whole
from clinveil.lm.model import LanguageModel
from clinveil.lm.recipe import Recipe
from clinveil.lm.unigram import Unigram
from clinveil.lm.vocabulary import Vocabulary, digest, vocabulary_of

SCHEMA = "clinveil.model/1"
README = "SECRET: a language model remembers the notes that it was trained on. None of this may leave.\n"


def save_model(model: LanguageModel, folder: Path, about: Mapping[str, Any]) -> None:
    """Write a model into a new or private folder. Raises InputError for a model that has no file form (n-gram)."""
    if model.kind == "ngram":
        raise InputError("an n-gram model is not kept", remedy="it is counted anew in seconds")
    private_folder(folder)
    private_text(folder / "SECRET.txt", README)
    private_text(folder / "vocabulary.json", json.dumps(model.vocabulary.as_dict(), ensure_ascii=False) + "\n")
    said: dict[str, Any] = {"schema": SCHEMA, "version": version("clinveil"), "kind": model.kind, "about": dict(about)}
    said["vocabulary_sha256"] = digest(model.vocabulary)
    if isinstance(model, Unigram):
        with whole(folder / "counts.npy", force=True) as part:
            save_array(part, model.counts)
        said["alpha"], said["counts_sha256"] = model.alpha, _hash(model.counts)
    else:
        from clinveil.lm.neural_model import NeuralModel
        from clinveil.lm.states import weights_of, write_tensors

        assert isinstance(model, NeuralModel)
        said["recipe"] = model.network.recipe.as_dict()
        tensors = weights_of(model.network)
        write_tensors(folder / "model.safetensors", tensors, {"vocabulary_sha256": said["vocabulary_sha256"]})
    private_text(folder / "model.json", json.dumps(said, indent=1) + "\n")


def load_model(folder: Path, *, device: str = "cpu") -> tuple[LanguageModel, dict[str, Any]]:
    """A model that `save_model` wrote, and what was said about it.

    Raises:
        InputError: no such folder, damaged files, or weights of another vocabulary. MissingExtra: no PyTorch.
    """
    said = _json(folder, "model.json")
    if said.get("schema") != SCHEMA or not isinstance(said.get("about"), dict):
        raise InputError("holds no language model of ours", where=folder.name, remedy="make one: clinveil synthesize")
    vocabulary = vocabulary_of(_json(folder, "vocabulary.json"))
    if digest(vocabulary) != said.get("vocabulary_sha256"):
        raise InputError("its vocabulary is not the one that the model was trained with", where=folder.name)
    make = _unigram if said.get("kind") == "unigram" else _neural
    return make(folder, vocabulary, said, device), said["about"]


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(f"has no readable {name}", where=folder.name, remedy="name a folder of a model") from None


def _unigram(folder: Path, vocabulary: Vocabulary, said: Mapping[str, Any], device: str) -> LanguageModel:
    try:
        with (folder / "counts.npy").open("rb") as file:
            counts = np.lib.format.read_array(file, allow_pickle=False)
        alpha = float(said["alpha"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("has no readable counts", where=folder.name) from None
    if counts.dtype.kind != "i" or (counts < 0).any():
        raise InputError("holds no counts in counts.npy", where=folder.name)
    if _hash(counts) != said.get("counts_sha256"):
        raise InputError("its counts are not those that were written: counts.npy is damaged", where=folder.name)
    return Unigram(vocabulary, counts, alpha)


def _hash(counts: NDArray[np.int64]) -> str:
    return hashlib.sha256(np.ascontiguousarray(counts).data).hexdigest()


def _neural(folder: Path, vocabulary: Vocabulary, said: Mapping[str, Any], device: str) -> LanguageModel:
    from clinveil.core.neural import device_named

    place = device_named(device)
    from clinveil.core.neural import seeded
    from clinveil.lm.network import build
    from clinveil.lm.neural_model import NeuralModel
    from clinveil.lm.states import read_tensors, set_weights

    weights, about = read_tensors(folder / "model.safetensors")
    if about.get("vocabulary_sha256") != said.get("vocabulary_sha256"):
        raise InputError("its weights are of another vocabulary", where=folder.name)
    try:
        with seeded(0):
            network = build(vocabulary.size, Recipe.from_dict(said["recipe"]))
        if said["kind"] != network.recipe.kind:
            raise ValueError("two kinds")
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError, InputError):
        raise InputError("has no readable recipe", where=folder.name) from None
    set_weights(network, weights)
    return NeuralModel(vocabulary, network.to(place))
