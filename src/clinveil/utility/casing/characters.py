"""The characters of the training text as numbers, and which of them may be written in upper case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

UNKNOWN, NEWLINE = 0, 1


def upper_of(character: str) -> str | None:
    """The upper-case form that is one character and comes back when lowered; None where there is none (`ß`, `7`)."""
    upper = character.upper()
    return upper if len(upper) == 1 and upper != character and upper.lower() == character else None


@dataclass(frozen=True)
class Characters:
    """The alphabet: the unknown character, the newline, and the characters of the training lines, sorted."""

    ids: dict[str, int] = field(repr=False)

    @classmethod
    def of(cls, lines: Iterable[str]) -> Characters:
        """The alphabet of some lines."""
        seen = sorted(set().union(*lines) - {"\n"})
        return cls({"\n": NEWLINE, **{character: row for row, character in enumerate(seen, start=NEWLINE + 1)}})

    def __len__(self) -> int:
        return len(self.ids) + 1

    def encode(self, text: str) -> NDArray[np.int64]:
        """(n_characters,) numbers; what training does not hold is unknown."""
        return np.fromiter((self.ids.get(c, UNKNOWN) for c in text), dtype=np.int64, count=len(text))

    def stream(self, lines: Sequence[str]) -> NDArray[np.int64]:
        """Lines as one text, each line ended."""
        return self.encode("".join(f"{line}\n" for line in lines))

    def candidates(self, text: str) -> NDArray[np.int64]:
        """(n_characters, 2) each character as it is, and in upper case; -1 where there is none or training has none."""
        known = {c: self.ids.get(upper_of(c) or "", -1) for c in set(text)}
        uppers = np.fromiter((known[c] for c in text), dtype=np.int64, count=len(text))
        return np.stack([self.encode(text), uppers], axis=1)
