"""What every language model can do, how well it predicts, and how it is kept in a folder: JSON and safetensors.

model.json         kind, recipe, seed, how training went
vocabulary.json    words, or byte pairs
model.safetensors  weights; for a unigram the counts

All of it is secret: weights remember notes, and the vocabulary is of the notes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import private_folder, private_text
from clinveil.core.neural import device_named, seeded
from clinveil.core.types import Doubles, Ints
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import NeuralKind, Recipe, kind_of
from clinveil.lm.vocabulary import Ids, Vocabulary, digest, vocabulary_of

SCHEMA = "clinveil.model/1"
README = "SECRET: a language model remembers the notes that it was trained on. None of this may leave.\n"
Logs = Doubles  # natural log of the probability of each token, given those before it in the note


class LanguageModel(Protocol):
    """Gives every token of a note a probability, from the tokens before it in the same note."""

    @property
    def vocabulary(self) -> Vocabulary:
        """What it encodes with."""

    @property
    def kind(self) -> str:
        """Its name in the registry."""

    def score(self, notes: Sequence[Ids]) -> list[Logs]:
        """Log-probability of each token of each note, its first and its end too."""

    def stream(self, lanes: int) -> Stream:
        """Notes being written, `lanes` of them at once."""

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """A block in which it writes or scores many notes; `double`: a network in double precision, and so it stays."""


@runtime_checkable
class Kept(Protocol):
    """A language model that can be kept in a folder."""

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write what it is, beside its vocabulary; what `model.json` says of it."""


class Stream(Protocol):
    """Notes being written side by side; a lane's probabilities depend on what was pushed to it since its last reset."""

    def probabilities(self) -> Doubles:
        """(lanes, size) of the next token; rows add up to 1 but for rounding."""

    def push(self, ids: Ints) -> None:
        """Add one token to every lane."""

    def reset(self, lanes: Ints) -> None:
        """Begin new notes in these lanes."""


@dataclass(frozen=True)
class Fit:
    """How well a model predicts notes: (n_notes,) log-probability in nats, tokens and characters of each."""

    totals: Logs = field(repr=False)
    tokens: Ints = field(repr=False)
    characters: Ints = field(repr=False)

    @property
    def perplexity(self) -> float:
        """exp of the mean -ln P a token; ends of lines and notes, and `<unk>`, count (paper C, Table 2); or infinity.

        Compares at one vocabulary only: one that knows fewer words has fewer to tell apart.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(-self.totals.sum() / self.tokens.sum()))


def fit_of(model: LanguageModel, notes: EncodedNotes) -> Fit:
    """Score notes under a model."""
    logs = model.score([notes.note(row) for row in range(len(notes))])
    return Fit(np.array([one.sum() for one in logs]), notes.lengths, notes.characters)


def save_model(model: LanguageModel, folder: Path, about: Mapping[str, Any]) -> None:
    """Write a model into a new or private folder. Raises InputError for a model that has no file form (n-gram)."""
    if not isinstance(model, Kept):
        raise InputError(f"a model of the kind {model.kind} is not kept", hint="it is counted anew in seconds")
    private_folder(folder)
    private_text(folder / "SECRET.txt", README)
    private_text(folder / "vocabulary.json", json.dumps(model.vocabulary.as_dict(), ensure_ascii=False) + "\n")
    said: dict[str, Any] = {"schema": SCHEMA, "version": version("clinveil"), "kind": model.kind, "about": dict(about)}
    said["vocabulary_sha256"] = digest(model.vocabulary)
    said |= model.save(folder, said["vocabulary_sha256"])
    private_text(folder / "model.json", json.dumps(said, indent=1) + "\n")


def load_model(folder: Path, *, device: str = "cpu") -> tuple[LanguageModel, dict[str, Any]]:
    """A model that `save_model` wrote, and what was said about it.

    Raises InputError: no such folder, damaged files, or weights of another vocabulary. MissingExtra: no PyTorch.
    """
    said = _json(folder, "model.json")
    hint = "make one: clinveil release --as synthetic"
    if said.get("schema") != SCHEMA or not isinstance(said.get("about"), dict):
        raise InputError("holds no language model of ours", where=folder.name, hint=hint)
    vocabulary = vocabulary_of(_json(folder, "vocabulary.json"))
    if digest(vocabulary) != said.get("vocabulary_sha256"):
        raise InputError("its vocabulary is not the one that the model was trained with", where=folder.name)
    try:
        kind = kind_of(str(said.get("kind")))
    except UsageError:
        raise InputError("holds a language model of an unknown kind", where=folder.name, hint=hint) from None
    if isinstance(kind, NeuralKind):
        return _neural(kind, folder, vocabulary, said, device), said["about"]
    if kind.load is None:
        raise InputError("a model of this kind is not kept", where=folder.name)
    return kind.load(folder, vocabulary, said), said["about"]


def _neural(
    kind: NeuralKind, folder: Path, vocabulary: Vocabulary, said: Mapping[str, Any], device: str
) -> LanguageModel:
    place = device_named(device)
    from clinveil.lm.network import NeuralModel, read_tensors, set_weights

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
        raise InputError(f"has no readable {name}", where=folder.name, hint="name a folder of a model") from None
