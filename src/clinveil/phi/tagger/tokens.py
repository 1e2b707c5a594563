"""Tokens of the plain copy of a note: words as `NoteView.words` has them, numbers, signs and line breaks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\d+|\n|\x00+|[^\w\s]|_")
EDGE = ""
"""What stands before the first and after the last token."""
_LONGEST_NUMBER = 5


def tokens(text: str) -> list[str]:
    """The tokens in order; blanks are none."""
    return TOKEN.findall(text)


def places(text: str, found: list[str], wanted: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(start, end) of the tokens of some rising indices; the others are only stepped over."""
    position = done = 0
    for index in wanted:
        for token in found[done : index + 1]:
            start = text.index(token, position)
            position = start + len(token)
        done = index + 1
        yield start, position


def kept_form(token: str) -> str:
    """What stands for a token: a number is only as long as it is, a rare sign or a mask is any."""
    first = token[:1]
    if first.isalpha() or not first:
        return token
    if first.isdecimal():
        return "0" * min(len(token), _LONGEST_NUMBER)
    if token == "\n":
        return "line"
    return token if " " < token < "\x7f" else "sign"
