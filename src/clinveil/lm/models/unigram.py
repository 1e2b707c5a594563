"""The unigram model with Lidstone smoothing (paper C, equation 4): exact, and forgets the order of words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError
from clinveil.core.files import save_array
from clinveil.core.types import Doubles, Ints
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import CountedKind, language_models
from clinveil.lm.vocabulary import Ids, Vocabulary


class Unigram:
    """p(u) = (count(u) + alpha) / (N + alpha V).

    `counts`: (size,) occurrences in the training notes.
    Raises InputError: alpha not positive, or counts that do not fit the vocabulary.
    """

    kind = "unigram"

    def __init__(self, vocabulary: Vocabulary, counts: Ints, alpha: float = 1.0) -> None:
        if not alpha > 0:
            raise InputError("Lidstone's constant must be positive")
        if counts.shape != (vocabulary.size,):
            raise InputError("counts and vocabulary differ in size")
        self.vocabulary, self.counts, self.alpha = vocabulary, counts, alpha
        self._logs = np.log(counts + alpha) - np.log(counts.sum() + alpha * counts.size)

    def score(self, notes: Sequence[Ids]) -> list[Doubles]:
        """Log-probabilities, which do not depend on what stands before."""
        return [self._logs[note] for note in notes]

    def stream(self, lanes: int) -> _Constant:
        """The same distribution for every lane and place."""
        return _Constant(np.broadcast_to(np.exp(self._logs), (lanes, len(self._logs))))

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """Nothing to prepare."""
        return nullcontext()

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write the counts; what `model.json` says of them."""
        with atomic(folder / "counts.npy", force=True) as part:
            save_array(part, self.counts)
        return {"alpha": self.alpha, "counts_sha256": _hash(self.counts)}


class _Constant:
    def __init__(self, probabilities: Doubles) -> None:
        self._probabilities = probabilities

    def probabilities(self) -> Doubles:
        """(lanes, size)."""
        return self._probabilities

    def push(self, ids: Ints) -> None:
        """Nothing depends on it."""

    def reset(self, lanes: Ints) -> None:
        """Nothing depends on it."""


def counts_of(notes: EncodedNotes, vocabulary: Vocabulary) -> Ints:
    """(size,) how often each token stands in the notes."""
    return np.bincount(notes.ids, minlength=vocabulary.size).astype(np.int64)


def train_unigram(notes: EncodedNotes, vocabulary: Vocabulary, alpha: float = 1.0) -> Unigram:
    """Count."""
    return Unigram(vocabulary, counts_of(notes, vocabulary), alpha)


def load_unigram(folder: Path, vocabulary: Vocabulary, said: Mapping[str, Any]) -> Unigram:
    """What `save` wrote. Raises InputError for anything else."""
    try:
        with (folder / "counts.npy").open("rb") as file:
            counts = np.lib.format.read_array(file, allow_pickle=False)
        alpha = float(said["alpha"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("has no readable counts", where=folder.name) from None
    if counts.dtype.kind != "i" or (counts < 0).any():
        raise InputError("holds no counts in counts.npy", where=folder.name)
    if _hash(counts) != said.get("counts_sha256"):
        raise InputError("its counts are not those that were written: counts.npy is damaged", where=folder.name)
    return Unigram(vocabulary, counts, alpha)


def _hash(counts: Ints) -> str:
    return hashlib.sha256(np.ascontiguousarray(counts).data).hexdigest()


ABOUT = "a unigram: words drawn one by one, as often as they stand in the training notes"
language_models.register("unigram")(CountedKind(about=ABOUT, count=train_unigram, load=load_unigram))
