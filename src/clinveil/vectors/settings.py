"""How word vectors are trained."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator

from clinveil.core.settings import Settings, choice, flag, own_settings
from clinveil.vectors.algorithms import OURS, algorithms


class VectorSettings(Settings):
    """How word vectors are trained (gensim's names and meanings)."""

    algorithm: str = choice(algorithms, "cbow", "Training algorithm.")
    own: Settings = own_settings("algorithm", here=OURS)
    glove_variant: Literal["pair", "single"] = flag("pair", "GloVe: word and context vectors, or one vector a word.")
    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(5, "Context words on either side.", ge=1, le=100)
    negative: int = flag(5, "Negative samples for each positive one.", ge=1, le=100)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int = flag(5, "Passes over the notes; of GloVe over its word pairs, 15 unless given.", ge=1, le=1000)

    @model_validator(mode="before")
    @classmethod
    def _glove_takes_more_passes(cls, values: Any) -> Any:
        return {"epochs": 15, **values} if isinstance(values, dict) and values.get("algorithm") == "glove" else values


class GloveSettings(Settings):
    """How GloVe vectors are trained (Pennington, Socher and Manning 2014, and the names of their program).

    `pair` is their model; `single` has one vector and bias a word (paper B, Figure 3), so it knows no word order.
    """

    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(10, "Context words on either side, within one note.", ge=1, le=1000)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int = flag(15, "Passes over the word pairs.", ge=1, le=1000)
    x_max: float = flag(100.0, "Pairs seen this often or more weigh 1.", gt=0, allow_inf_nan=False)
    alpha: float = flag(0.75, "Rarer pairs weigh (seen / x_max) to this power.", gt=0, allow_inf_nan=False)
    eta: float = flag(0.05, "AdaGrad's first learning rate.", gt=0, allow_inf_nan=False)
    variant: Literal["pair", "single"] = flag("pair", "Word and context vectors summed, or one vector a word.")
    symmetric: bool = flag(True, "Count context on both sides, or only words that follow.")
    memory_mb: int = flag(2048, "Memory for counting pairs; what does not fit goes to scratch files.", ge=1)

    @model_validator(mode="after")
    def _one_vector_knows_no_order(self) -> Self:
        if self.variant == "single" and not self.symmetric:
            raise ValueError("one vector a word cannot tell before from after: single needs symmetric counts")
        return self
