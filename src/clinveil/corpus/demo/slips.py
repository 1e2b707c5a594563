"""Slips of the pen: common misspellings and transposed, dropped or doubled letters, as in real notes."""

from __future__ import annotations

import re

from clinveil.corpus.demo.grammar import Draw, pick
from clinveil.corpus.demo.language import misspellings

_WORD = re.compile(r"\b[a-z]{5,}\b")
KNOWN = 0.5


def misspell(text: str, draw: Draw) -> str:
    """The text with one of its longer small-letter words misspelt; unchanged if it has none."""
    places = [match.span() for match in _WORD.finditer(text)]
    if not places:
        return text
    start, end = pick(places, draw)
    return text[:start] + slip(text[start:end], draw) + text[end:]


def slip(word: str, draw: Draw) -> str:
    """A word with a slip: one that is often made with it, or a letter transposed, dropped or doubled."""
    known = misspellings().get(word)
    if known and draw() < KNOWN:
        return pick(known, draw)
    place, kind = 1 + int(draw() * (len(word) - 2)), draw()
    if kind < 0.5:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if kind < 0.8:
        return word[:place] + word[place + 1 :]
    return word[:place] + word[place] + word[place:]
