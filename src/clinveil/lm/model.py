"""Protocols of language models, their fit to notes, and their folder of JSON and safetensors files.

model.json         kind, recipe, seed, history of the training
vocabulary.json    words, or byte pairs
model.safetensors  weights (a unigram has counts.npy)

The folder is secret: weights memorize notes, and the vocabulary comes from the notes.
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
Logs = Doubles  # natural log of the probability of each token, given the tokens before it in the note


class LanguageModel(Protocol):
    """Predicts every token of a note from the tokens before it."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that encodes its notes."""

    @property
    def kind(self) -> str:
        """Name in the registry."""

    def score(self, notes: Sequence[Ids]) -> list[Logs]:
        """Return the log-probability of each token of each note, including the first one and the end."""

    def stream(self, lanes: int) -> Stream:
        """Return a stream that writes `lanes` notes at once."""

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """Return a context for writing or scoring many notes; `double` converts a network to double precision."""


@runtime_checkable
class Saveable(Protocol):
    """A language model that can be saved in a folder."""

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write the parameters; return the entries for `model.json`."""


class Stream(Protocol):
    """Several notes being written; the probabilities of a lane depend on its tokens since the last reset."""

    def probabilities(self) -> Doubles:
        """Return the probabilities of the next token, (lanes, size); rows sum to 1 up to rounding."""

    def push(self, ids: Ints) -> None:
        """Append one token to every lane."""

    def reset(self, lanes: Ints) -> None:
        """Start new notes in these lanes."""


@dataclass(frozen=True)
class Fit:
    """Fit of a model to notes: (n_notes,) log-probability in nats, tokens and characters of each note."""

    totals: Logs = field(repr=False)
    tokens: Ints = field(repr=False)
    characters: Ints = field(repr=False)

    @property
    def perplexity(self) -> float:
        """exp of the mean -ln P per token, with ends of lines and notes and `<unk>` (paper C, Table 2), or infinity.

        Comparable only between models with the same vocabulary: a smaller vocabulary is easier to predict.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(-self.totals.sum() / self.tokens.sum()))


def fit_of(model: LanguageModel, notes: EncodedNotes) -> Fit:
    """Score notes with a model."""
    logs = model.score([notes.note(row) for row in range(len(notes))])
    return Fit(np.array([note.sum() for note in logs]), notes.lengths, notes.characters)


def save_model(model: LanguageModel, folder: Path, about: Mapping[str, Any]) -> None:
    """Write a model to a new or private folder. Raises InputError for a model that cannot be saved (n-gram)."""
    if not isinstance(model, Saveable):
        raise InputError(f"a model of kind {model.kind} cannot be saved", hint="train it again, which takes seconds")
    private_folder(folder)
    private_text(folder / "SECRET.txt", README)
    private_text(folder / "vocabulary.json", json.dumps(model.vocabulary.as_dict(), ensure_ascii=False) + "\n")
    meta: dict[str, Any] = {"schema": SCHEMA, "version": version("clinveil"), "kind": model.kind, "about": dict(about)}
    meta["vocabulary_sha256"] = digest(model.vocabulary)
    meta |= model.save(folder, meta["vocabulary_sha256"])
    private_text(folder / "model.json", json.dumps(meta, indent=1) + "\n")


def load_model(folder: Path, *, device: str = "cpu") -> tuple[LanguageModel, dict[str, Any]]:
    """Return a model that `save_model` wrote, and its `about`.

    Raises InputError: no such folder, damaged files, or weights of another vocabulary. MissingExtra: no PyTorch.
    """
    meta = _json(folder, "model.json")
    hint = "create one with clinveil release --as synthetic"
    if meta.get("schema") != SCHEMA or not isinstance(meta.get("about"), dict):
        raise InputError("contains no language model of clinveil", where=folder.name, hint=hint)
    vocabulary = vocabulary_of(_json(folder, "vocabulary.json"))
    if digest(vocabulary) != meta.get("vocabulary_sha256"):
        raise InputError("its vocabulary is not the one that the model was trained with", where=folder.name)
    try:
        kind = kind_of(str(meta.get("kind")))
    except UsageError:
        raise InputError("contains a language model of an unknown kind", where=folder.name, hint=hint) from None
    if isinstance(kind, NeuralKind):
        return _neural(kind, folder, vocabulary, meta, device), meta["about"]
    if kind.load is None:
        raise InputError("a model of this kind cannot be saved", where=folder.name)
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
    return NeuralModel(vocabulary, network.to(target))


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(f"has no readable {name}", where=folder.name, hint="pass the folder of a model") from None
