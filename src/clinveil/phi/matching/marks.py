"""Predicates on words, evaluated together once per distinct word and cached with the word table.

A module that searches every note for certain words defines `CUE = mark(lambda word: …)` and then calls
`note.words.marked(CUE)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from clinveil.phi.matching.wordtable import Column

_MOST: Final = 31


class Marks:
    """Predicates, one bit of a column each.

    Attributes:
        column: the values; replaced whenever a predicate is added.
    """

    def __init__(self) -> None:
        self._predicates: list[Callable[[str], bool]] = []
        self.column = Column(self._of, np.int32)

    def add(self, predicate: Callable[[str], bool]) -> int:
        """Add a predicate on a word in its original case; return its bit."""
        if len(self._predicates) == _MOST:
            raise ValueError(f"at most {_MOST} marks are possible")
        self._predicates.append(predicate)
        self.column = Column(self._of, np.int32)
        return 1 << (len(self._predicates) - 1)

    def _of(self, word: str) -> int:
        return sum(1 << bit for bit, predicate in enumerate(self._predicates) if predicate(word))


marks = Marks()
mark = marks.add
