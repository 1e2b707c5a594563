"""A trained language model in a folder: JSON and safetensors, no pickle.

model.json         kind, recipe, seed, how training went
vocabulary.json    words, or byte pairs
model.safetensors  weights; for a unigram the counts

All of it is secret: weights remember notes, and the vocabulary is of the notes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import private_folder, private_text
from clinveil.core.neural import device_named, seeded
from clinveil.lm.model import Kept, LanguageModel
from clinveil.lm.recipe import CountedKind, NeuralKind, Recipe, kind_of
from clinveil.lm.vocabulary import Vocabulary, digest, vocabulary_of

SCHEMA = "clinveil.model/1"
README = "SECRET: a language model remembers the notes that it was trained on. None of this may leave.\n"


def save_model(model: LanguageModel, folder: Path, about: Mapping[str, Any]) -> None:
    """Write a model into a new or private folder. Raises InputError for a model that has no file form (n-gram)."""
    if not isinstance(model, Kept):
        raise InputError(f"a model of the kind {model.kind} is not kept", remedy="it is counted anew in seconds")
    private_folder(folder)
    private_text(folder / "SECRET.txt", README)
    private_text(folder / "vocabulary.json", json.dumps(model.vocabulary.as_dict(), ensure_ascii=False) + "\n")
    said: dict[str, Any] = {"schema": SCHEMA, "version": version("clinveil"), "kind": model.kind, "about": dict(about)}
    said["vocabulary_sha256"] = digest(model.vocabulary)
    said |= model.save(folder, said["vocabulary_sha256"])
    private_text(folder / "model.json", json.dumps(said, indent=1) + "\n")


def load_model(folder: Path, *, device: str = "cpu") -> tuple[LanguageModel, dict[str, Any]]:
    """A model that `save_model` wrote, and what was said about it.

    Raises:
        InputError: no such folder, damaged files, or weights of another vocabulary. MissingExtra: no PyTorch.
    """
    said = _json(folder, "model.json")
    remedy = "make one: clinveil synthesize"
    if said.get("schema") != SCHEMA or not isinstance(said.get("about"), dict):
        raise InputError("holds no language model of ours", where=folder.name, remedy=remedy)
    vocabulary = vocabulary_of(_json(folder, "vocabulary.json"))
    if digest(vocabulary) != said.get("vocabulary_sha256"):
        raise InputError("its vocabulary is not the one that the model was trained with", where=folder.name)
    try:
        kind = kind_of(str(said.get("kind")))
    except UsageError:
        raise InputError("holds a language model of an unknown kind", where=folder.name, remedy=remedy) from None
    if isinstance(kind, NeuralKind):
        return _neural(kind, folder, vocabulary, said, device), said["about"]
    return _counted(kind, folder, vocabulary, said), said["about"]


def _counted(kind: CountedKind, folder: Path, vocabulary: Vocabulary, said: Mapping[str, Any]) -> LanguageModel:
    if kind.load is None:
        raise InputError("a model of this kind is not kept", where=folder.name)
    return kind.load(folder, vocabulary, said)


def _neural(
    kind: NeuralKind, folder: Path, vocabulary: Vocabulary, said: Mapping[str, Any], device: str
) -> LanguageModel:
    place = device_named(device)
    from clinveil.lm.network import NeuralModel
    from clinveil.lm.states import read_tensors, set_weights

    weights, about = read_tensors(folder / "model.safetensors")
    if about.get("vocabulary_sha256") != said.get("vocabulary_sha256"):
        raise InputError("its weights are of another vocabulary", where=folder.name)
    try:
        recipe = Recipe.from_dict(said["recipe"])
        if said["kind"] != recipe.kind:
            raise ValueError("two kinds")
        with seeded(0):
            network = kind.network(vocabulary.size, recipe)
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError, InputError):
        raise InputError("has no readable recipe", where=folder.name) from None
    set_weights(network, weights)
    return NeuralModel(vocabulary, network.to(place))


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(f"has no readable {name}", where=folder.name, remedy="name a folder of a model") from None
