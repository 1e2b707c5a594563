"""Tokens of the plain copy of a note: words as in `NoteView.words`, numbers, punctuation and line
breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\d+|\n|\x00+|[^\w\s]|_")


def tokens(text: str) -> list[str]:
    """Return the tokens in order, without blanks."""
    return TOKEN.findall(text)


def offsets(text: str, words: list[str], wanted: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the tokens at some increasing indices; only the texts of the others are
    located.
    """
    position = done = 0
    for index in wanted:
        for token in words[done : index + 1]:
            start = text.index(token, position)
            position = start + len(token)
        done = index + 1
        yield start, position
