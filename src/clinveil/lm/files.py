"""Save and load language models: a folder of JSON and safetensors files.

model.json         kind, recipe, seed, history of the training
vocabulary.json    words, or byte pairs
model.safetensors  weights (a unigram has counts.npy)

The folder is secret: weights memorize notes, and the vocabulary comes from the notes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.core import InputError, UsageError, device_named, private_folder, private_text, seeded
from clinveil.lm.model import LanguageModel
from clinveil.lm.recipe import NeuralKind, Recipe, kind_of
from clinveil.lm.vocabulary import Vocabulary, digest, vocabulary_of

SCHEMA = "clinveil.model/1"
README = (
    "SECRET: a language model remembers the notes that it was trained on. None of this may leave.\n"
)


def save_model(model: LanguageModel, folder: Path, about: Mapping[str, Any]) -> None:
    """Write a model to a new or private folder."""
    private_folder(folder)
    private_text(folder / "SECRET.txt", README)
    private_text(
        folder / "vocabulary.json",
        json.dumps(model.vocabulary.as_dict(), ensure_ascii=False) + "\n",
    )
    meta: dict[str, Any] = {
        "schema": SCHEMA,
        "version": version("clinveil"),
        "kind": model.kind,
        "about": dict(about),
    }
    meta["vocabulary_sha256"] = digest(model.vocabulary)
    meta |= model.save(folder, meta["vocabulary_sha256"])
    private_text(folder / "model.json", json.dumps(meta, indent=1) + "\n")


def load_model(folder: Path, *, device: str = "cpu") -> tuple[LanguageModel, dict[str, Any]]:
    """Return a model that `save_model` wrote, and its `about`.

    Raises InputError: no such folder, damaged files, or weights of another vocabulary.
    MissingExtra: no PyTorch.
    """
    meta = _json(folder, "model.json")
    hint = "create one with clinveil release --as synthetic"
    if meta.get("schema") != SCHEMA or not isinstance(meta.get("about"), dict):
        raise InputError("contains no language model of clinveil", where=folder.name, hint=hint)
    vocabulary = vocabulary_of(_json(folder, "vocabulary.json"))
    if digest(vocabulary) != meta.get("vocabulary_sha256"):
        raise InputError(
            "its vocabulary is not the one that the model was trained with", where=folder.name
        )
    try:
        kind = kind_of(str(meta.get("kind")))
    except UsageError:
        raise InputError(
            "contains a language model of an unknown kind", where=folder.name, hint=hint
        ) from None
    if isinstance(kind, NeuralKind):
        return _neural(kind, folder, vocabulary, meta, device), meta["about"]
    return kind.load(folder, vocabulary, meta), meta["about"]


def _neural(
    kind: NeuralKind, folder: Path, vocabulary: Vocabulary, meta: Mapping[str, Any], device: str
) -> LanguageModel:
    target = device_named(device)
    from clinveil.lm.network import NeuralModel, read_tensors, set_weights

    weights, about = read_tensors(folder / "model.safetensors")
    if about.get("vocabulary_sha256") != meta.get("vocabulary_sha256"):
        raise InputError("its weights belong to another vocabulary", where=folder.name)
    try:
        recipe = Recipe.from_dict(meta["recipe"])
        if meta["kind"] != recipe.kind:
            raise ValueError("two kinds")
        with seeded(0):
            network = kind.network(vocabulary.size, recipe)
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError, InputError):
        raise InputError("has no readable recipe", where=folder.name) from None
    set_weights(network, weights)
    return NeuralModel(vocabulary, network.to(target), meta.get("prefixes", ()))


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(
            f"has no readable {name}", where=folder.name, hint="pass the folder of a model"
        ) from None
