"""Byte pair encoding over bytes: no word is unknown, and the softmax is small; by the library `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from clinveil.core.errors import InputError, MissingExtra
from clinveil.corpus.medtext import EON
from clinveil.lm.vocabulary import END, Ids, _before_end

SMALLEST = 257  # all bytes and `<eon>`


class BytePairs:
    """A byte-level BPE vocabulary.

    Args:
        model: as JSON, what `train_byte_pairs` made.

    Raises:
        InputError: it is no such model. MissingExtra: `tokenizers` is not installed.
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
        text: str = self._tokenizer.decode(_before_end(ids), skip_special_tokens=False)
        lines = (" ".join(line.split()) for line in text.split("\n"))
        return "\n".join(line for line in lines if line)

    def as_dict(self) -> dict[str, Any]:
        """The library's own JSON."""
        return {"kind": self.kind, "model": self._tokenizer.to_str()}


def train_byte_pairs(texts: Iterable[str], size: int = 8_000) -> BytePairs:
    """Learn a byte pair vocabulary; the same texts give the same one.

    Args:
        size: pieces at most; fewer where the text has no pair left that stands there twice.

    Raises:
        InputError: a size below 257. MissingExtra: `tokenizers` is not installed.
    """
    need_byte_pairs()
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if size < SMALLEST:
        raise InputError(f"a byte pair vocabulary has at least {SMALLEST} pieces")
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
