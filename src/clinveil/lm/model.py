"""What every language model can do, and how well it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from clinveil.core.types import Doubles, Ints
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.vocabulary import Ids, Vocabulary

Logs = Doubles  # natural log of the probability of each token, given those before it in the note


class LanguageModel(Protocol):
    """Gives every token of a note a probability, from the tokens before it in the same note."""

    @property
    def vocabulary(self) -> Vocabulary:
        """What it encodes with."""
        ...

    @property
    def kind(self) -> str:
        """`unigram`, `ngram`, `lstm` or `gpt`."""
        ...

    def score(self, notes: Sequence[Ids]) -> list[Logs]:
        """Log-probability of each token of each note, its first and its end too."""
        ...

    def stream(self, lanes: int) -> Stream:
        """Notes being written, `lanes` of them at once."""
        ...

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """A block in which it writes or scores many notes; `double`: a network in double precision, and so it stays."""
        ...


@runtime_checkable
class Kept(Protocol):
    """A language model that can be kept in a folder."""

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write what it is, beside its vocabulary; what `model.json` says of it."""
        ...


class Stream(Protocol):
    """Notes being written side by side; a lane's probabilities depend on what was pushed to it since its last reset."""

    def probabilities(self) -> Doubles:
        """(lanes, size) of the next token; rows add up to 1 but for rounding."""
        ...

    def push(self, ids: Ints) -> None:
        """Add one token to every lane."""
        ...

    def reset(self, lanes: Ints) -> None:
        """Begin new notes in these lanes."""
        ...


@dataclass(frozen=True)
class Fit:
    """How well a model predicts notes.

    Attributes:
        totals: (n_notes,) nats, the log-probability of each note. tokens, characters: (n_notes,) of each note.
    """

    totals: Logs = field(repr=False)
    tokens: Ints = field(repr=False)
    characters: Ints = field(repr=False)

    @property
    def perplexity(self) -> float:
        """exp of the mean -ln P a token; ends of lines and notes, and `<unk>`, count (paper C, Table 2).

        Compares at one vocabulary only: one that knows fewer words has fewer to tell apart. Between vocabularies
        compare bits a character, `utility.perplexity`. Infinite where it is more than a float can hold.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(-self.totals.sum() / self.tokens.sum()))


def fit_of(model: LanguageModel, notes: EncodedNotes) -> Fit:
    """Score notes under a model."""
    logs = model.score([notes.note(row) for row in range(len(notes))])
    return Fit(np.array([one.sum() for one in logs]), notes.lengths, notes.characters)
