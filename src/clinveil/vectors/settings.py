"""Settings of word vector training."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from clinveil.core import Affects, Settings, UsageError, setting
from clinveil.vectors.algorithms import ALGORITHMS

TRAIN_WORDS = 4_000_000
"""Above this many words, training uses a sample (setting `train_words`)."""
TRAINING_WORDS = 10_000_000
"""Small corpora need more passes: this many words of training, in this many passes."""
FEWEST_PASSES = 5
MOST_PASSES = 20


def passes(n_words: int) -> int:
    """Return the default number of training passes over this many words."""
    return min(MOST_PASSES, max(FEWEST_PASSES, -(-TRAINING_WORDS // max(n_words, 1))))


GLOVE_PASSES = 15


class VectorSettings(Settings):
    """Settings of word vector training, with gensim's names; benchmarks/vectors.md explains the
    defaults.
    """

    AFFECTS: ClassVar[Affects] = "training"
    algorithm: str = setting("skipgram", "Training algorithm.", members=ALGORITHMS)
    glove_variant: Literal["pair", "single"] = setting(
        "pair", "GloVe: word and context vectors, or one vector per word."
    )
    dim: int = setting(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = setting(40, "Context words on either side.", ge=1, le=100)
    negative: int = setting(5, "Negative samples per positive one.", ge=1, le=100)
    min_count: int = setting(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int | None = setting(
        None, "Passes over the notes (default: more for fewer words; GloVe: 15).", ge=1, le=1000
    )
    more_text: Path | None = setting(
        None,
        "Public text to add to the training of vectors; it adds no output word.",
        secret="path",
    )
    train_words: int = setting(
        TRAIN_WORDS,
        "For larger corpora, train on a sample of patients with about this many words (0: all"
        " notes).",
        ge=0,
    )

    def refuse_beside(self, vectors: Path | None) -> None:
        """Raise UsageError if both trained vectors and a text to train on are given."""
        if vectors and self.more_text:
            raise UsageError(
                "--vectors cannot be combined with vectors.more_text", hint="pass one of the two"
            )

    def words_of(self, n_words: int) -> int:
        """Return how many words of a corpus of `n_words` words are trained on."""
        return min(n_words, self.train_words) if self.train_words else n_words

    def said_of(self, n_words: int) -> str:
        """Return a description of the training on a corpus of `n_words` words."""
        part = self.words_of(n_words)
        action = f"train {self.algorithm}"
        return (
            action
            if part == n_words
            else f"{action} on about {part:,} words, of a random sample of patients"
        )

    def passes_over(self, n_words: int) -> int:
        """Return the number of epochs for a corpus of `n_words` words."""
        return self.epochs or (GLOVE_PASSES if self.algorithm == "glove" else passes(n_words))
