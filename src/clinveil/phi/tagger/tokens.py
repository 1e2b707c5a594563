"""Tokens of the plain copy of a note: words as in `NoteView.words`, numbers, punctuation and line breaks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\d+|\n|\x00+|[^\w\s]|_")
EDGE = ""
"""The padding token before the first and after the last token."""
_LONGEST_NUMBER = 5


def tokens(text: str) -> list[str]:
    """Return the tokens in order, without blanks."""
    return TOKEN.findall(text)


def offsets(text: str, words: list[str], wanted: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the tokens at some increasing indices; only the texts of the others are located."""
    position = done = 0
    for index in wanted:
        for token in words[done : index + 1]:
            start = text.index(token, position)
            position = start + len(token)
        done = index + 1
        yield start, position


def kept_form(token: str) -> str:
    """Return the form of a token in the features: numbers by length, rare signs and masks as one class."""
    first = token[:1]
    if first.isalpha() or not first:
        return token
    if first.isdecimal():
        return "0" * min(len(token), _LONGEST_NUMBER)
    if token == "\n":
        return "line"
    return token if " " < token < "\x7f" else "sign"
