"""Protocols of language models, and their fit to notes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from clinveil.core import Doubles, Ints
from clinveil.lm.layout import LayoutVocabulary
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.vocabulary import Ids, Vocabulary

Logs = (
    Doubles  # natural log of the probability of each token, given the tokens before it in the note
)


class LanguageModel(Protocol):
    """Predicts every token of a note from the tokens before it."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that encodes its notes."""

    @property
    def kind(self) -> str:
        """Name in the registry."""

    def score(self, notes: Sequence[Ids]) -> list[Logs]:
        """Return the log-probability of each token of each note, including the first one and the
        end.
        """

    def stream(self, lanes: int) -> WritingStream:
        """Return a stream that writes `lanes` notes at once."""

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """Return a context for writing or scoring many notes; `double` converts a network to double
        precision.
        """

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write the parameters; return the entries for `model.json`."""


class WritingStream(Protocol):
    """Several notes being written; the probabilities of a lane depend on its tokens since the last
    reset.
    """

    def probabilities(self) -> Doubles:
        """Return the probabilities of the next token, (lanes, size); rows sum to 1 up to
        rounding.
        """

    def push(self, ids: Ints) -> None:
        """Append one token to every lane."""

    def reset(self, lanes: Ints, labels: Ints | None = None) -> None:
        """Start new notes in these lanes; a model with labels gets those of the notes."""


def keeps_layout(model: Any) -> bool:
    """Return whether a model reads the text of notes unchanged instead of MedText's form."""
    return isinstance(getattr(model, "vocabulary", None), LayoutVocabulary)


@dataclass(frozen=True)
class Fit:
    """Fit of a model to notes: (n_notes,) log-probability in nats, tokens and characters of each
    note.
    """

    totals: Logs = field(repr=False)
    tokens: Ints = field(repr=False)
    characters: Ints = field(repr=False)

    @property
    def perplexity(self) -> float:
        """exp of the mean -ln P per token, with ends of lines and notes and `<unk>` (paper C, Table
        2), or infinity.

        Comparable only between models with the same vocabulary: a smaller vocabulary is easier to
        predict.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(-self.totals.sum() / self.tokens.sum()))


def fit_of(model: LanguageModel, notes: EncodedNotes) -> Fit:
    """Score notes with a model."""
    logs = model.score([notes.note(row) for row in range(len(notes))])
    return Fit(np.array([note.sum() for note in logs]), notes.lengths, notes.characters)
