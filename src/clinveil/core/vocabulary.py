"""Words and their numbers: the one table behind every vocabulary, of words or of characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True)
class WordIds:
    """Distinct words, numbered from `first` on; lower numbers are special ones, such as padding.

    Attributes:
        ids: word -> number.
    """

    ids: Mapping[str, int] = field(repr=False)
    first: int

    @classmethod
    def of(cls, words: Iterable[str], *, first: int) -> Self:
        """Number words in the order of their first sight."""
        return cls({word: number for number, word in enumerate(dict.fromkeys(words), first)}, first)

    def __len__(self) -> int:
        """How many numbers there are, special ones too."""
        return len(self.ids) + self.first

    def encode(self, words: Iterable[str], *, unknown: int | None = None) -> list[int]:
        """The numbers of words; a word that is not there is `unknown`, or left out."""
        if unknown is None:
            return [self.ids[word] for word in words if word in self.ids]
        get = self.ids.get
        return [get(word, unknown) for word in words]
