"""How word vectors are trained."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import ValidationInfo, field_validator, model_validator

from clinveil.core.errors import UsageError
from clinveil.core.settings import Settings, choice, flag, own_settings
from clinveil.corpus.estimate import TRAIN_WORDS, passes
from clinveil.vectors.algorithms import OURS, algorithms

STARTED = ("cbow", "skipgram")  # algorithms that can go on from vectors of another training


class VectorSettings(Settings):
    """How word vectors are trained (gensim's names and meanings); the defaults are measured, benchmarks/vectors.md."""

    algorithm: str = choice(algorithms, "skipgram", "Training algorithm.")
    own: Settings = own_settings("algorithm", here=OURS)
    glove_variant: Literal["pair", "single"] = flag("pair", "GloVe: word and context vectors, or one vector a word.")
    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(40, "Context words on either side.", ge=1, le=100)
    negative: int = flag(5, "Negative samples for each positive one.", ge=1, le=100)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int | None = flag(
        None, "Passes over the notes (default: the more, the fewer words they have; of GloVe 15).", ge=1, le=1000
    )
    more_text: Path | None = flag(
        None,
        "Public text to add to the training of vectors; it adds no output word.",
        name="public",
    )
    train_words: int = flag(
        TRAIN_WORDS,
        "Of more words than this, train on a random sample of patients of about so many, and on the surroundings of "
        "rarer words (0: on all).",
        ge=0,
    )
    start_vectors: Path | None = flag(None, "Vectors to go on training from, where they know a word (word2vec only).")

    @field_validator("start_vectors")
    @classmethod
    def _can_start(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is not None and info.data.get("algorithm") not in STARTED:
            raise ValueError(f"is of --algorithm {' or '.join(STARTED)}")
        return value

    def places(self) -> dict[str, Path | None]:
        """What vectors are trained from beside the notes, by flag: files that a run is a function of."""
        return {"--public": self.more_text, "--start-vectors": self.start_vectors}

    def refuse_beside(self, given: Path | None) -> None:
        """Raise UsageError where vectors are given and more of their training is asked for too."""
        for name, place in self.places().items() if given else ():
            if place:
                raise UsageError(f"{name} is of training, and --vectors are not trained", hint="give one of the two")

    def words_of(self, n_words: int) -> int:
        """How many words of notes of so many are trained on."""
        return min(n_words, self.train_words) if self.train_words else n_words

    def said_of(self, n_words: int) -> str:
        """How notes of so many words are trained on, in words."""
        part, said = self.words_of(n_words), f"train {self.algorithm}"
        return said if part == n_words else f"{said} on about {part:,} words, of a random sample of patients"

    def passes_over(self, n_words: int) -> int:
        """How many passes are made over so many words."""
        return self.epochs or (GLOVE_PASSES if self.algorithm == "glove" else passes(n_words))


GLOVE_PASSES = 15


class GloveSettings(Settings):
    """How GloVe vectors are trained (Pennington, Socher and Manning 2014, and the names of their program).

    `pair` is their model; `single` has one vector and bias a word (paper B, Figure 3), so it knows no word order.
    """

    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(10, "Context words on either side, within one note.", ge=1, le=1000)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int = flag(GLOVE_PASSES, "Passes over the word pairs.", ge=1, le=1000)
    x_max: float = flag(10.0, "Pairs seen this often or more weigh 1; more text wants more.", gt=0, allow_inf_nan=False)
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
