"""The unigram model with Lidstone smoothing (paper C, equation 4); it ignores word order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.core import Doubles, InputError, Ints, atomic, save_array
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import CountedKind
from clinveil.lm.vocabulary import Ids, Vocabulary


class Unigram:
    """p(u) = (count(u) + 1) / (N + V).

    `counts`: (size,) occurrences in the training notes. Raises InputError for another size than the
    vocabulary's.
    """

    kind = "unigram"

    def __init__(self, vocabulary: Vocabulary, counts: Ints) -> None:
        if counts.shape != (vocabulary.size,):
            raise InputError("counts and vocabulary differ in size")
        self.vocabulary = vocabulary
        self.counts = counts
        self._logs = np.log(counts + 1.0) - np.log(counts.sum() + 1.0 * counts.size)

    def score(self, notes: Sequence[Ids]) -> list[Doubles]:
        """Return log-probabilities, which do not depend on context."""
        return [self._logs[note] for note in notes]

    def stream(self, lanes: int) -> _Constant:
        """Return a stream with the same distribution for every lane and position."""
        return _Constant(np.broadcast_to(np.exp(self._logs), (lanes, len(self._logs))))

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """Return an empty context."""
        return nullcontext()

    def save(self, folder: Path, vocabulary_sha256: str) -> dict[str, Any]:
        """Write the counts; return the entries for `model.json`."""
        with atomic(folder / "counts.npy", force=True) as part:
            save_array(part, self.counts)
        return {"counts_sha256": _hash(self.counts)}


class _Constant:
    def __init__(self, probabilities: Doubles) -> None:
        self._probabilities = probabilities

    def probabilities(self) -> Doubles:
        """Return the distribution, (lanes, size)."""
        return self._probabilities

    def push(self, ids: Ints) -> None:
        """Do nothing."""

    def reset(self, lanes: Ints, labels: Ints | None = None) -> None:
        """Do nothing."""


def train_unigram(notes: EncodedNotes, vocabulary: Vocabulary) -> Unigram:
    """Train a unigram on notes."""
    return Unigram(vocabulary, np.bincount(notes.ids, minlength=vocabulary.size).astype(np.int64))


def load_unigram(folder: Path, vocabulary: Vocabulary, meta: Mapping[str, Any]) -> Unigram:
    """Return the unigram that `save` wrote. Raises InputError for damaged files."""
    try:
        with (folder / "counts.npy").open("rb") as file:
            counts = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError):
        raise InputError("has no readable counts", where=folder.name) from None
    if counts.dtype.kind != "i" or (counts < 0).any():
        raise InputError("counts.npy does not contain counts", where=folder.name)
    if _hash(counts) != meta.get("counts_sha256"):
        raise InputError("counts.npy is damaged: its hash differs", where=folder.name)
    return Unigram(vocabulary, counts)


def _hash(counts: Ints) -> str:
    return hashlib.sha256(np.ascontiguousarray(counts).data).hexdigest()


ABOUT = "a unigram: words drawn independently with their frequencies in the training notes"
UNIGRAM = CountedKind(about=ABOUT, count=train_unigram, load=load_unigram)
