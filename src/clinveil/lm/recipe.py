"""How a language model is made: the settings of the command line, and the recipe that they come to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from pydantic import model_validator

from clinveil.core.errors import InputError, UsageError
from clinveil.core.settings import Settings, flag

# Of a recipe's whole numbers: what no model of ours has more of.
MOST = {"layers": 100, "width": 10_000, "heads": 100, "window": 10_000, "lanes": 10_000, "epochs": 10_000}
Kind = Literal["unigram", "ngram", "lstm", "gpt"]
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


_LSTM: dict[str, Any] = {"kind": "lstm", "layers": 2, "heads": 1, "dropout": 0.5, "tied": True, "window": 35}
_LSTM |= {"lanes": 20, "clip": 0.25, "plan": "rows", "backoff": 4.0, "gain": 0.1, "rate_floor": 0.1}
_SGD: dict[str, Any] = {"optimizer": "sgd", "schedule": "fixed", "rate": 20.0}
_ADAM: dict[str, Any] = {"optimizer": "adamw", "schedule": "fixed", "clip": 1.0}
_GPT: dict[str, Any] = {**_LSTM, **_ADAM, "kind": "gpt", "dropout": 0.1, "tied": False, "rate": 1e-3, "window": 256}
PROFILES: dict[tuple[str, str], dict[str, Any]] = {
    ("lstm", "tiny"): {**_LSTM, **_SGD, "width": 128, "epochs": 10},
    ("lstm", "small"): {**_LSTM, **_SGD, "width": 256, "epochs": 10},
    ("lstm", "base"): {**_LSTM, **_ADAM, "width": 650, "rate": 2e-3, "epochs": 10, "window": 70, "lanes": 64},
    ("lstm", "paper"): {
        **_LSTM, "width": 650, "optimizer": "sgd", "rate": 20.0, "schedule": "annealed", "epochs": 20, "plan": "stream"
    },
    ("gpt", "tiny"): {**_GPT, "layers": 4, "width": 128, "heads": 4, "window": 128, "lanes": 8, "epochs": 10},
    ("gpt", "small"): {**_GPT, "layers": 6, "width": 384, "heads": 6, "lanes": 16, "epochs": 10},
    ("gpt", "base"): {**_GPT, "layers": 8, "width": 512, "heads": 8, "window": 512, "lanes": 32, "epochs": 10},
}  # fmt: skip


class ModelSettings(Settings):
    """Which language model, and how it is trained; `size` sets what is not given."""

    model: Kind = flag("lstm", "unigram, ngram (scores only), lstm (paper C's), or gpt (a small decoder).")
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

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.model == "gpt" and self.size == "paper":
            raise ValueError("--size paper is paper C's LSTM: --model lstm")
        return self

    @property
    def neural(self) -> bool:
        """Whether it needs PyTorch."""
        return self.model in ("lstm", "gpt")

    @property
    def word_vocabulary(self) -> bool:
        """Whether the vocabulary is of whole words."""
        if self.vocabulary == "auto":
            return not self.neural or self.size == "paper"
        return self.vocabulary == "words"

    def recipe(self) -> Recipe:
        """The whole recipe. Raises UsageError where its parts do not fit, or for a model without one."""
        if not self.neural:
            raise UsageError(f"--model {self.model} has no recipe")
        values = {"precision": "float32", **PROFILES[self.model, self.size]}
        given = {name: getattr(self, name, None) for name in values}
        values |= {name: value for name, value in given.items() if value is not None and name != "kind"}
        recipe = Recipe(**values)
        if recipe.kind == "gpt" and (recipe.width % (2 * recipe.heads) or recipe.window % 2):
            raise UsageError("--width must be a multiple of twice --heads, and --window even")
        if recipe.kind == "gpt" and recipe.plan == "stream":
            raise UsageError("--plan stream is the LSTM's")
        return recipe
