"""The kinds of language models, the recipe of one, and the settings of the command line that it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from clinveil.core.errors import InputError, UsageError
from clinveil.core.neural import found_in
from clinveil.core.registry import Registry
from clinveil.core.settings import Settings, choice, flag

if TYPE_CHECKING:
    from clinveil.lm.model import LanguageModel
    from clinveil.lm.network import Network
    from clinveil.lm.notes import EncodedNotes
    from clinveil.lm.vocabulary import Vocabulary

# Of a recipe's whole numbers: what no model of ours has more of.
MOST = {"layers": 100, "width": 10_000, "heads": 100, "window": 10_000, "lanes": 10_000, "epochs": 10_000}
Size = Literal["tiny", "small", "base", "paper"]


@dataclass(frozen=True)
class Recipe:
    """All that a neural language model and its training are; two trainings with one recipe, seed and notes are equal.

    Attributes:
        kind: `lstm` or `gpt`. layers, width: their number, and units of each. heads: of attention (gpt).
        dropout: on inputs, between layers and before the output. tied: input and output share their vectors.
        optimizer: `sgd` or `adamw`. rate: the first learning rate. schedule: `fixed` (a warm-up, then down to a tenth,
            whatever the validation notes say) or `annealed` (divided by `backoff` after an epoch whose validation
            perplexity is not `gain` below the best; never below `rate_floor`; the best epoch's weights are kept).
        clip: largest norm of the gradient. window: tokens through which errors go back. lanes: rows of a batch.
        epochs: passes. plan: `rows` (each note by itself, from a state of zeros) or `stream` (paper C: one seamless
            text, cut into as many columns as lanes). precision: of training, `float32` or `bfloat16` (autocast).
    """

    kind: str
    layers: int
    width: int
    heads: int
    dropout: float
    tied: bool
    optimizer: str
    rate: float
    schedule: str
    backoff: float
    gain: float
    rate_floor: float
    clip: float
    window: int
    lanes: int
    epochs: int
    plan: str
    precision: str

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The recipe of a dictionary. Raises InputError for another one."""
        try:
            recipe = cls(**data)
            sizes = {name: getattr(recipe, name) for name in MOST}
            rates = [float(getattr(recipe, name)) for name in ("dropout", "rate", "backoff", "clip")]
            fits = all(type(sizes[name]) is int and 1 <= sizes[name] <= most for name, most in MOST.items())
            if not fits or not all(map(math.isfinite, rates)) or not 0 <= recipe.dropout < 1:
                raise ValueError
        except (TypeError, ValueError):
            raise InputError("is no recipe of a language model") from None
        return recipe


@dataclass(frozen=True)
class CountedKind:
    """A language model of counts: what the card of synthetic notes says of it, what makes it, and what reads it.

    `load` gets the folder, the vocabulary and `model.json`; None for a model that is not kept.
    """

    about: str
    count: Callable[[EncodedNotes, Vocabulary], LanguageModel]
    load: Callable[[Path, Vocabulary, Mapping[str, Any]], LanguageModel] | None = None


@dataclass(frozen=True)
class NeuralKind:
    """A language model that is a network.

    Attributes:
        about: what the card of synthetic notes says of it. network: makes one, from a vocabulary's size and a recipe.
        sizes: the recipe of each `--size` that it comes in, `kind` and `precision` left out.
        layer_weights: weights of a layer, in units of its width squared.
        check: raises UsageError where the parts of a recipe do not fit.
    """

    about: str
    network: Callable[[int, Recipe], Network]
    sizes: Mapping[str, Mapping[str, Any]]
    layer_weights: int
    check: Callable[[Recipe], None] = lambda recipe: None


language_models: Registry[CountedKind | NeuralKind] = Registry(
    "language model", "clinveil.lm.models", first=("unigram", "ngram", "lstm", "gpt")
)


def kind_of(name: str) -> CountedKind | NeuralKind:
    """What stands for a name. Raises as `found_in` does."""
    return found_in(language_models, name)


def neural_kind(name: str) -> NeuralKind:
    """The network of a name. Raises UsageError where there is no such network."""
    kind = kind_of(name)
    if not isinstance(kind, NeuralKind):
        raise UsageError(f"--model {name} has no recipe")
    return kind


class ModelSettings(Settings):
    """Which language model, and how it is trained; `size` sets what is not given."""

    model: str = choice(
        language_models, "lstm", "unigram, ngram (scores only), lstm (paper C's), or gpt (a small decoder)."
    )
    size: Size = flag("small", "tiny and small train on 2 cores; base wants a GPU; paper is paper C's LSTM, for a GPU.")
    vocabulary: Literal["auto", "words", "bytes"] = flag(
        "auto", "Whole words, or byte pairs (auto: words for unigram, ngram and --size paper, else bytes)."
    )
    vocabulary_size: int = flag(8_000, "bytes: pieces at most.", ge=300, le=1_000_000)
    min_count: int = flag(3, "words: a word seen fewer times is <unk>.", ge=1)
    layers: int | None = flag(None, "Layers.", ge=1, le=MOST["layers"])
    width: int | None = flag(None, "Units of a layer.", ge=4, le=10_000)
    heads: int | None = flag(None, "gpt: heads of attention.", ge=1, le=100)
    dropout: float | None = flag(None, "Dropout (lstm: 0.5, gpt: 0.1).", ge=0, lt=1)
    tied: bool | None = flag(None, "Input and output share their vectors (lstm: tied, gpt: not).")
    optimizer: Literal["sgd", "adamw"] | None = flag(None, "sgd (paper) or adamw.")
    rate: float | None = flag(None, "First learning rate.", gt=0, le=1e6)
    schedule: Literal["fixed", "annealed"] | None = flag(None, "fixed, or annealed on validation notes (paper).")
    backoff: float | None = flag(None, "annealed: divides the rate (paper: 4 small, 1.2 large).", gt=1, le=1e6)
    clip: float | None = flag(None, "Largest norm of the gradient.", gt=0, le=1e6)
    window: int | None = flag(None, "Tokens that a gradient goes back through.", ge=2, le=10_000)
    lanes: int | None = flag(None, "Rows of a training batch.", ge=1, le=10_000)
    epochs: int | None = flag(None, "Passes over the training notes.", ge=1, le=10_000)
    plan: Literal["rows", "stream"] | None = flag(None, "rows: each note by itself; stream: one text (paper).")
    precision: Literal["float32", "bfloat16"] | None = flag(None, "bfloat16 is faster where the processor has it.")
    device: str = flag("cpu", "cpu, cuda or cuda:1.")

    @property
    def neural(self) -> bool:
        """Whether it needs PyTorch. Raises MissingExtra where that is not there."""
        return isinstance(kind_of(self.model), NeuralKind)

    @property
    def word_vocabulary(self) -> bool:
        """Whether the vocabulary is of whole words."""
        if self.vocabulary == "auto":
            return self.size == "paper" or not self.neural
        return self.vocabulary == "words"

    def recipe(self) -> Recipe:
        """The whole recipe. Raises UsageError where its parts do not fit, or for a model without one."""
        kind = neural_kind(self.model)
        if self.size not in kind.sizes:
            raise UsageError(f"--model {self.model} has no --size {self.size}", hint=f"one of {', '.join(kind.sizes)}")
        values: dict[str, Any] = {"precision": "float32", **kind.sizes[self.size]}
        values |= {name: value for name in values if (value := getattr(self, name, None)) is not None}
        recipe = Recipe(**values | {"kind": self.model, "heads": values.get("heads", 1)})
        kind.check(recipe)
        return recipe
