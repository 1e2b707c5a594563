"""Vocabularies, of whole words or byte pairs: between a note in MedText's form and what a language model sees."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from clinveil.core.errors import InputError, MissingExtra
from clinveil.core.tokens import WordIds
from clinveil.core.types import SmallInts
from clinveil.corpus.medtext import EON, EOS, UNK

Ids = SmallInts
END = 0  # the number of `<eon>`, the end of a note, in every vocabulary
LINE_END, UNKNOWN = 1, 2  # of words: `<eos>` and `<unk>`
_SPECIAL = (EON, EOS, UNK)
SMALLEST = 257  # of byte pairs: all bytes and `<eon>`


class WordVocabulary:
    """Whole words; a line ends with `<eos>`, a word that is not in it (or spells that) is `<unk>` (paper C).

    Raises InputError for a word twice, a special one, or one with white space in it.
    """

    kind = "words"

    def __init__(self, words: Iterable[str]) -> None:
        self.words = (*_SPECIAL, *words)
        self.numbers = WordIds.of(self.words[len(_SPECIAL) :], first=len(_SPECIAL))
        if len(set(self.words)) != len(self.words) or any(word.split() != [word] for word in self.words):
            raise InputError("a vocabulary's words are distinct, and hold no white space")

    @property
    def size(self) -> int:
        """Words, and the three special ones."""
        return len(self.words)

    def encode(self, text: str) -> Ids:
        """The numbers of a note: words, 1 at the end of each line, 0 at the end of the note."""
        numbers = []
        for line in text.split("\n"):
            numbers += [*self.numbers.encode(line.split(), unknown=UNKNOWN), LINE_END]
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


class BytePairs:
    """Byte pair encoding over bytes, by the library `tokenizers`: no word is unknown, and the softmax is small.

    `model`: as JSON, what `train_byte_pairs` made. Raises InputError for another, MissingExtra without `tokenizers`.
    """

    kind = "bytes"

    def __init__(self, model: str) -> None:
        need_byte_pairs()
        from tokenizers import Tokenizer

        try:
            self._tokenizer = Tokenizer.from_str(model)
        except Exception:  # noqa: BLE001  the library raises nothing narrower
            raise InputError("is no byte pair vocabulary") from None
        if self._tokenizer.token_to_id(EON) != END:
            raise InputError("is no byte pair vocabulary of a language model")
        self._tokenizer.encode_special_tokens = True  # a note that spells <eon> does not end there

    @property
    def size(self) -> int:
        """All pieces."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> Ids:
        """The pieces of a note, 0 last."""
        return np.array([*self._tokenizer.encode(text).ids, END], dtype=np.int32)

    def decode(self, ids: Sequence[int]) -> str:
        """The text; bytes that make no character come out as U+FFFD."""
        return bare(self._tokenizer.decode(_before_end(ids), skip_special_tokens=False), "\n")

    def as_dict(self) -> dict[str, Any]:
        """The library's own JSON."""
        return {"kind": self.kind, "model": self._tokenizer.to_str()}


def train_byte_pairs(texts: Iterable[str], size: int = 8_000) -> BytePairs:
    """Learn a byte pair vocabulary of at most `size` pairs that stand there twice; the same texts give the same one.

    Raises ValueError for a size below 257, MissingExtra where `tokenizers` is not installed.
    """
    need_byte_pairs()
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if size < SMALLEST:
        raise ValueError(f"a byte pair vocabulary has at least {SMALLEST} pieces")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, special_tokens=[EON], initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return BytePairs(json.dumps(json.loads(tokenizer.to_str()), sort_keys=True))


def need_byte_pairs() -> None:
    """Raise MissingExtra where `tokenizers` is not installed."""
    if find_spec("tokenizers") is None:
        raise MissingExtra("tokenizers", "neural")


Vocabulary = WordVocabulary | BytePairs
"""Encodes and decodes; what `decode` gives of an encoded note is the note, rare words apart."""


def bare(text: str, end: str | None = None) -> str:
    """Words with one space between them, and no empty line; lines end as `str.splitlines` has it, or with `end`."""
    lines = (" ".join(line.split()) for line in (text.splitlines() if end is None else text.split(end)))
    return "\n".join(line for line in lines if line)


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
        return BytePairs(str(data["model"]))
    except (KeyError, TypeError):
        raise InputError("is no vocabulary of a language model") from None
