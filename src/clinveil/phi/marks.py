"""Yes-or-no questions of a word, asked once a word for all of them together, and kept with the table of words.

A file that looks for some words in every note asks so: `CUE = mark(lambda word: …)`, then `note.words.marked(CUE)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from clinveil.phi.wordtable import Column

_MOST: Final = 31


class Marks:
    """Questions, each a bit of a column.

    Attributes:
        column: the answers; another one after each new question.
    """

    def __init__(self) -> None:
        self._asked: list[Callable[[str], bool]] = []
        self.column = Column(self._of, np.int32)

    def add(self, holds: Callable[[str], bool]) -> int:
        """Ask this of each word too, as it is written; gives its bit."""
        if len(self._asked) == _MOST:
            raise ValueError("there is no bit left")
        self._asked.append(holds)
        self.column = Column(self._of, np.int32)
        return 1 << (len(self._asked) - 1)

    def _of(self, word: str) -> int:
        return sum(1 << bit for bit, holds in enumerate(self._asked) if holds(word))


marks = Marks()
mark = marks.add
