"""Kinds of language models, the recipe of a network and its training, and the settings that define
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from clinveil.core import (
    DEVICE,
    Affects,
    InputError,
    Members,
    Settings,
    UsageError,
    found_in,
    setting,
)

if TYPE_CHECKING:
    from clinveil.lm.model import LanguageModel
    from clinveil.lm.notes import EncodedNotes
    from clinveil.lm.vocabulary import Vocabulary

# Upper limits of the whole numbers of a recipe.
MOST = {
    "layers": 100,
    "width": 10_000,
    "window": 10_000,
    "lanes": 10_000,
    "epochs": 10_000,
}
PRETRAINED = "pretrained"  # the kind that starts from a public model
PLANS = ("rows", "packed", "stream")
Size = Literal["tiny", "small", "base", "paper"]


@dataclass(frozen=True)
class Recipe:
    """Full description of a neural language model and its training; recipe, seed and notes
    determine the result.

    Attributes:
        kind: of a network. layers, width: number of layers and units of each. dropout: on inputs,
            between layers and before the output. tied: input and output share their vectors.
        optimizer: `sgd` or `adamw`. rate: initial learning rate. clip: largest norm of the
            gradient. window: tokens of back-propagation. lanes: rows of a batch. epochs: passes
            over the notes.
        plan: `rows` (independent notes, each from a state of zeros), `packed` (several independent
            notes in a row, for networks without a state), or `stream` (paper C's recipe: one
            continuous text in as many columns as lanes, and a rate that is lowered after epochs
            without gain).
        precision: `float32` or `bfloat16` (autocast).
        rank, origin, config (pretrained): rank of the trained update of each layer, or 0 to train
            all weights; SHA-256 of the public weights; and their architecture.
    """

    kind: str
    layers: int
    width: int
    dropout: float
    tied: bool
    optimizer: str
    rate: float
    clip: float
    window: int
    lanes: int
    epochs: int
    plan: str
    precision: str
    rank: int = 0
    origin: str = ""
    config: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the recipe of a dictionary. Raises InputError for invalid entries."""
        try:
            recipe = cls(**data)
            sizes = {name: getattr(recipe, name) for name in MOST}
            rates = [float(getattr(recipe, name)) for name in ("dropout", "rate", "clip")]
            fits = all(
                type(sizes[name]) is int and 1 <= sizes[name] <= most for name, most in MOST.items()
            )
            if not fits or not all(map(math.isfinite, rates)) or not 0 <= recipe.dropout < 1:
                raise ValueError
            if recipe.plan not in PLANS:
                raise ValueError
        except (TypeError, ValueError):
            raise InputError("is not a valid recipe of a language model") from None
        return recipe


@dataclass(frozen=True)
class CountedKind:
    """A language model of counts: its description for the card of synthetic notes, its training and
    its loader.

    `load` gets the folder, the vocabulary and `model.json`.
    """

    about: str
    count: Callable[[EncodedNotes, Vocabulary], LanguageModel]
    load: Callable[[Path, Vocabulary, Mapping[str, Any]], LanguageModel]


@dataclass(frozen=True)
class NeuralKind:
    """A language model that is a network.

    Attributes:
        about: description for the card of synthetic notes. network: subclass of `network.Network`.
        sizes: recipe of each `--size`, without `kind` and `precision`.
        layer_weights: weights of a layer, in units of its width squared.
    """

    about: str
    network: Callable[[int, Recipe], Any]
    sizes: Mapping[str, Mapping[str, Any]]
    layer_weights: int


LANGUAGE_MODELS: Members[CountedKind | NeuralKind] = Members(
    "language model",
    {
        "unigram": "clinveil.lm.models.unigram:UNIGRAM",
        "ngram": "clinveil.lm.models.ngram:NGRAM",
        "lstm": "clinveil.lm.models.lstm:LSTM",
        PRETRAINED: "clinveil.lm.models.pretrained:PRETRAINED_NETWORK",
    },
)


def kind_of(name: str) -> CountedKind | NeuralKind:
    """Return the kind of a name. Raises as `found_in` does."""
    return found_in(LANGUAGE_MODELS, name)


def neural_kind(name: str) -> NeuralKind:
    """Return the neural kind of a name. Raises UsageError for a model that is not a network."""
    kind = kind_of(name)
    if not isinstance(kind, NeuralKind):
        raise UsageError(f"lm.model {name} is not a network")
    return kind


class TrainingSettings(Settings):
    """Settings of a language model of a given vocabulary and its training; `size` sets the
    defaults.
    """

    AFFECTS: ClassVar[Affects] = "training"
    model: str = setting(
        "lstm", "unigram, ngram, lstm (paper C's) or pretrained.", members=LANGUAGE_MODELS
    )
    size: Size = setting(
        "small", "tiny and small train on 2 cores; base and paper (paper C's LSTM) need a GPU."
    )
    layers: int | None = setting(None, "Layers.", ge=1, le=MOST["layers"])
    width: int | None = setting(None, "Units of a layer.", ge=4, le=10_000)
    dropout: float | None = setting(None, "Dropout (default: lstm 0.5, pretrained 0).", ge=0, lt=1)
    tied: bool | None = setting(
        None, "Share the vectors of input and output (default: lstm yes, pretrained no)."
    )
    optimizer: Literal["sgd", "adamw"] | None = setting(None, "sgd (paper) or adamw.")
    rate: float | None = setting(None, "Initial learning rate.", gt=0, le=1e6)
    clip: float | None = setting(None, "Largest norm of the gradient.", gt=0, le=1e6)
    window: int | None = setting(None, "Tokens of back-propagation.", ge=2, le=10_000)
    lanes: int | None = setting(None, "Rows of a training batch.", ge=1, le=10_000)
    epochs: int | None = setting(None, "Passes over the training notes.", ge=1, le=10_000)
    precision: Literal["float32", "bfloat16"] | None = setting(
        None, "bfloat16 is faster on hardware that supports it."
    )
    rank: int | None = setting(
        None, "pretrained: rank of the trained update (LoRA); 0 trains all weights.", ge=0, le=1_000
    )
    device: str = DEVICE

    @property
    def neural(self) -> bool:
        """Whether the model is a network. Raises MissingExtra for a network without PyTorch."""
        return isinstance(kind_of(self.model), NeuralKind)

    def recipe(self) -> Recipe:
        """Return the recipe. Raises UsageError for an invalid recipe or a model that is not a
        network.
        """
        kind = neural_kind(self.model)
        if self.size not in kind.sizes:
            sizes = ", ".join(kind.sizes)
            raise UsageError(
                f"lm.model {self.model} has no lm.size {self.size}", hint=f"pass one of {sizes}"
            )
        values: dict[str, Any] = {"precision": "float32", **kind.sizes[self.size]}
        values |= {
            name: value for name in values if (value := getattr(self, name, None)) is not None
        }
        return Recipe.from_dict(values | {"kind": self.model})


class ModelSettings(TrainingSettings):
    """Settings of a language model, its vocabulary and its training."""

    vocabulary: Literal["auto", "words", "bytes"] = setting(
        "auto",
        "Whole words, or byte pairs (auto: words for unigram, ngram and size paper, else bytes).",
    )
    vocabulary_size: int = setting(8_000, "bytes: maximum number of pieces.", ge=300, le=1_000_000)
    min_count: int = setting(3, "words: rarer words become <unk>.", ge=1)

    @property
    def word_vocabulary(self) -> bool:
        """Whether the vocabulary has whole words."""
        if self.vocabulary == "auto":
            return self.size == "paper" or not self.neural
        return self.vocabulary == "words"
