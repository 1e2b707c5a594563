"""The public text of a private release: its words, their frequencies, and a check that it contains
no private notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from clinveil.core import NO_MARKS, Doubles, InputError, Ints, words

SEEN = 2  # occurrences of a vocabulary word in the public text
FEWEST_WORDS = 100  # vocabulary words; a smaller public text is refused
RUN = 20  # consecutive words that count as a copied private note
SHORTEST = 8  # words of a shorter note that counts as copied as a whole
NONE: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
HINT = "pass public text of the same field, such as published abstracts or public sample notes"


@dataclass(frozen=True)
class PublicText:
    """Public text and its vocabulary.

    Attributes:
        texts: as read. ids: number of each vocabulary word. frequencies: (n_words,), above 0; they
            sum to 1.
    """

    texts: tuple[str, ...] = field(repr=False)
    ids: Mapping[str, int] = field(repr=False)
    frequencies: Doubles = field(repr=False)

    @classmethod
    def of(cls, texts: Iterable[str]) -> PublicText:
        """Return the vocabulary: words that occur at least twice. Raises InputError for too little
        text.
        """
        texts = tuple(text.translate(NO_MARKS) for text in texts if text.strip())
        counts = Counter(word for text in texts for word in words(text))
        kept = sorted(word for word, n in counts.items() if n >= SEEN)
        if len(kept) < FEWEST_WORDS:
            what = (
                f"the public text has {len(kept)} words that occur {SEEN} times or more;"
                f" {FEWEST_WORDS} are needed"
            )
            raise InputError(what, where="synthetic.public", hint=HINT)
        frequencies = np.array([counts[word] for word in kept], dtype=np.float64)
        return cls(texts, {word: i for i, word in enumerate(kept)}, frequencies / frequencies.sum())

    @property
    def words(self) -> list[str]:
        """The vocabulary, in the order of the numbers."""
        return list(self.ids)

    def counts_in(self, texts: Iterable[str]) -> tuple[Ints, Ints, int]:
        """Return the vocabulary words in some texts, their counts, and the number of all words."""
        all_words = [word for text in texts for word in words(text)]
        counts = Counter(self.ids[word] for word in all_words if word in self.ids)
        ordered = sorted(counts)
        numbers = np.array([counts[i] for i in ordered], dtype=np.int64)
        return np.array(ordered, dtype=np.int64), numbers, len(all_words)


def refuse_private_text(public: PublicText, texts: Iterable[str], patients: Iterable[str]) -> None:
    """Raise InputError if the public text contains `RUN` consecutive words of a private note, or a
    shorter note.
    """
    by_length: dict[int, list[tuple[list[str], str]]] = {}
    for text, patient in zip(texts, patients, strict=True):
        note = words(text)
        if len(note) >= SHORTEST:
            by_length.setdefault(min(RUN, len(note)), []).append((note, patient))
    public_words = [words(text) for text in public.texts]
    copied = set[str]()
    for length, notes in by_length.items():
        known = np.unique(np.concatenate([NONE, *(_runs(text, length) for text in public_words)]))
        for note, patient in notes:
            runs = _runs(note, length)
            if (np.searchsorted(known, runs, side="right") > np.searchsorted(known, runs)).any():
                copied.add(patient)
    if copied:
        what = (
            f"the public text contains {RUN} consecutive words, or a shorter note, of {len(copied)}"
            " patients"
        )
        hint = "pass text that was public before and contains none of these notes"
        raise InputError(what, where="synthetic.public", hint=hint)


def _runs(text: Sequence[str], length: int) -> NDArray[np.uint64]:
    """Return 64-bit hashes of all runs of `length` words."""
    one = np.array([_hash(word) for word in text], dtype=np.uint64)
    if one.size < length:
        return NONE
    total = np.zeros(one.size - length + 1, dtype=np.uint64)
    for place in range(length):  # a polynomial hash, modulo 2^64
        total = total * np.uint64(0x9E3779B97F4A7C15) + one[place : place + total.size]
    return total


@lru_cache(maxsize=1 << 16)
def _hash(word: str) -> int:
    return int.from_bytes(
        blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )
