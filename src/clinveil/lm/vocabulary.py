"""Vocabularies of whole words or byte pairs, which encode notes in MedText's form as numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from clinveil.core import InputError, MissingExtra, SmallInts, WordIds
from clinveil.corpus import EON, EOS, UNK
from clinveil.lm.layout import LayoutVocabulary

Ids = SmallInts
END = 0  # the number of `<eon>`, the end of a note, in every vocabulary
# word vocabularies: `<eos>` and `<unk>`
LINE_END = 1
UNKNOWN = 2
_SPECIAL = (EON, EOS, UNK)
SMALLEST = 257  # size of byte pairs without merges: all bytes and `<eon>`


class WordVocabulary:
    """Whole words; lines end with `<eos>`, and unknown words are `<unk>` (paper C).

    Raises InputError for a repeated word, a special one, or one with white space.
    """

    kind = "words"

    def __init__(self, words: Iterable[str]) -> None:
        self.words = (*_SPECIAL, *words)
        self.numbers = WordIds.of(self.words[len(_SPECIAL) :], first=len(_SPECIAL))
        if len(set(self.words)) != len(self.words) or any(
            word.split() != [word] for word in self.words
        ):
            raise InputError("words of a vocabulary must be distinct and without white space")

    @property
    def size(self) -> int:
        """Words, including the three special ones."""
        return len(self.words)

    def encode(self, text: str) -> Ids:
        """Return the numbers of a note: words, 1 at the end of each line, 0 at the end of the
        note.
        """
        numbers = []
        for line in text.split("\n"):
            numbers += [*self.numbers.encode(line.split(), unknown=UNKNOWN), LINE_END]
        numbers.append(END)
        return np.array(numbers, dtype=np.int32)

    def decode(self, ids: Sequence[int]) -> str:
        """Return lines of words, without empty lines."""
        lines: list[list[str]] = [[]]
        for number in _before_end(ids):
            if number == LINE_END:
                lines.append([])
            else:
                lines[-1].append(self.words[number])
        return "\n".join(" ".join(line) for line in lines if line)

    def as_dict(self) -> dict[str, Any]:
        """Return the words without the special ones."""
        return {"kind": self.kind, "words": list(self.words[len(_SPECIAL) :])}


class BytePairs:
    """Byte pair encoding over bytes with the library `tokenizers`: no unknown words, and a small
    softmax.

    `model`: JSON from `train_byte_pairs`. Raises InputError for other data, MissingExtra without
    `tokenizers`.
    """

    kind = "bytes"

    def __init__(self, model: str) -> None:
        need_byte_pairs()
        from tokenizers import Tokenizer

        try:
            self._tokenizer = Tokenizer.from_str(model)
        except Exception:  # noqa: BLE001  the library raises nothing narrower
            raise InputError("is not a byte pair vocabulary") from None
        if self._tokenizer.token_to_id(EON) != END:
            raise InputError("is not a byte pair vocabulary of a language model")
        self._tokenizer.encode_special_tokens = (
            True  # the text "<eon>" in a note is not the end token
        )

    @property
    def size(self) -> int:
        """Number of pieces."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> Ids:
        """Return the pieces of a note, followed by 0."""
        return np.array([*self._tokenizer.encode(text).ids, END], dtype=np.int32)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; invalid UTF-8 becomes U+FFFD."""
        return bare(self._tokenizer.decode(_before_end(ids), skip_special_tokens=False), "\n")

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of the library."""
        return {"kind": self.kind, "model": self._tokenizer.to_str()}


def train_byte_pairs(texts: Iterable[str], size: int = 8_000) -> BytePairs:
    """Train a byte pair vocabulary of at most `size` pieces, with pairs that occur twice or more;
    deterministic.

    Raises ValueError for a size below 257, MissingExtra if `tokenizers` is not installed.
    """
    need_byte_pairs()
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if size < SMALLEST:
        raise ValueError(f"a byte pair vocabulary needs at least {SMALLEST} pieces")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=[EON],
        initial_alphabet=sorted(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return BytePairs(json.dumps(json.loads(tokenizer.to_str()), sort_keys=True))


def need_byte_pairs() -> None:
    """Raise MissingExtra if `tokenizers` is not installed."""
    if find_spec("tokenizers") is None:
        raise MissingExtra("tokenizers", "neural")


Vocabulary = WordVocabulary | BytePairs | LayoutVocabulary
"""Any vocabulary; `decode` restores an encoded note, except for rare words."""


def bare(text: str, end: str | None = None) -> str:
    """Normalize white space: one space between words, no empty lines; lines end as in
    `str.splitlines` or at `end`.
    """
    lines = (
        " ".join(line.split()) for line in (text.splitlines() if end is None else text.split(end))
    )
    return "\n".join(line for line in lines if line)


def _before_end(ids: Sequence[int]) -> list[int]:
    numbers = [int(number) for number in ids]
    return numbers[: numbers.index(END)] if END in numbers else numbers


def digest(vocabulary: Vocabulary) -> str:
    """Return the SHA-256 of a vocabulary, in hex."""
    return hashlib.sha256(json.dumps(vocabulary.as_dict(), sort_keys=True).encode()).hexdigest()


def vocabulary_of(data: dict[str, Any]) -> Vocabulary:
    """Return the vocabulary of `as_dict`. Raises InputError for other data."""
    try:
        if data["kind"] == LayoutVocabulary.kind:
            return LayoutVocabulary([str(piece) for piece in data["pieces"]], data["numbers"])
        if data["kind"] == "words":
            return WordVocabulary([str(word) for word in data["words"]])
        return BytePairs(str(data["model"]))
    except (KeyError, TypeError):
        raise InputError("is not a vocabulary of a language model") from None
