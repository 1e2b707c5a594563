"""Vocabularies: between a note in MedText's form and the numbers that a language model sees."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.corpus.medtext import EON, EOS, UNK

Ids = NDArray[np.int32]
END = 0  # the number of `<eon>`, the end of a note, in every vocabulary
LINE_END, UNKNOWN = 1, 2  # of words: `<eos>` and `<unk>`
_SPECIAL = (EON, EOS, UNK)


class Vocabulary(Protocol):
    """Encodes and decodes; what `decode` gives of an encoded note is the note, rare words apart."""

    @property
    def size(self) -> int:
        """How many different numbers there are."""
        ...

    @property
    def kind(self) -> str:
        """`words` or `bytes`."""
        ...

    def encode(self, text: str) -> Ids:
        """The numbers of a note, `END` last."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The note of these numbers; an `END` in it ends it."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        ...


class WordVocabulary:
    """Whole words; a line ends with `<eos>`, a word that is not in it is `<unk>` (paper C).

    A note that spells `<eos>` or `<eon>` does not end there: what is spelt is `<unk>`.

    Raises:
        InputError: a word twice, a special one, or one with white space in it.
    """

    kind = "words"

    def __init__(self, words: Iterable[str]) -> None:
        self.words = (*_SPECIAL, *words)
        self._numbers = {word: number for number, word in enumerate(self.words)}
        if len(self._numbers) != len(self.words) or any(word.split() != [word] for word in self.words):
            raise InputError("a vocabulary's words are distinct, and hold no white space")
        self._numbers |= {EON: UNKNOWN, EOS: UNKNOWN}

    @property
    def size(self) -> int:
        """Words, and the three special ones."""
        return len(self.words)

    def encode(self, text: str) -> Ids:
        """The numbers of a note: words, 1 at the end of each line, 0 at the end of the note."""
        get, numbers = self._numbers.get, []
        for line in text.split("\n"):
            numbers += [get(word, UNKNOWN) for word in line.split()]
            numbers.append(LINE_END)
        numbers.append(END)
        return np.array(numbers, dtype=np.int32)

    def decode(self, ids: Sequence[int]) -> str:
        """Lines of words; empty lines are left out."""
        lines: list[list[str]] = [[]]
        for number in _before_end(ids):
            if number == LINE_END:
                lines.append([])
            else:
                lines[-1].append(self.words[number])
        return "\n".join(" ".join(line) for line in lines if line)

    def as_dict(self) -> dict[str, Any]:
        """The words, without the special ones."""
        return {"kind": self.kind, "words": list(self.words[len(_SPECIAL) :])}


def _before_end(ids: Sequence[int]) -> list[int]:
    numbers = [int(number) for number in ids]
    return numbers[: numbers.index(END)] if END in numbers else numbers


def digest(vocabulary: Vocabulary) -> str:
    """SHA-256 of all of a vocabulary, in hex."""
    return hashlib.sha256(json.dumps(vocabulary.as_dict(), sort_keys=True).encode()).hexdigest()


def vocabulary_of(data: dict[str, Any]) -> Vocabulary:
    """The vocabulary that `as_dict` described. Raises InputError for anything else."""
    try:
        if data["kind"] == "words":
            return WordVocabulary([str(word) for word in data["words"]])
        from clinveil.lm.byte_pairs import BytePairs

        return BytePairs(str(data["model"]))
    except (KeyError, TypeError):
        raise InputError("is no vocabulary of a language model") from None
