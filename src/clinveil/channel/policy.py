"""`Policy`: how notes are written with a channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal["occurrence", "note", "patient", "corpus", "rare"]
Shuffle = Literal["none", "note"]
SCOPES: tuple[Scope, ...] = ("occurrence", "note", "patient", "corpus")
"""Substitution scopes, by their index in `Channel.scopes`."""
Layout = Literal["plain", "sentences", "keep"]
Numbers = Literal["drop", "mask"]


@dataclass(frozen=True)
class Policy:
    """How notes are written with a channel.

    Attributes:
        scope: repeat the draw of a word within its note, its patient or the corpus; "occurrence":
            never (paper A); "rare": within its patient, for unknown words and words with fewer than
            `rare_below` occurrences. `Channel.scopes` overrides it per row.
        layout: "plain": released tokens and single spaces. "sentences": also one `.` after the last
            released word of each sentence, which ends with `.`, `!` or `?` before white space, an
            empty line, or the end of the note. "keep": ASCII punctuation keeps its position; a run
            of white space becomes one space, or one line break if it contains any, and is dropped
            at both ends of a note; adjacent words or masks get a space, so `q4h` becomes two words.
        numbers: "drop", or "mask": one `#` per digit.
        shuffle: "note": keyed random order of the released words of a note; layout and masked
            numbers keep their position.
        length: each note has a keyed rate between -length and length; a negative rate drops this
            share of its words, a positive rate writes it twice, by two draws (one draw within a
            repeating scope).
        rare_below: see `scope`.
        background: the probability that a word is drawn from the row of unknown words (common
            words, by frequency) instead of its own row; a draw equal to the word falls back to its
            own row. With b = `background` and p the row of unknown words, P(y | x) = (1 - b) C(y |
            x) + b p(y) for y != x (up to that fallback).
    """

    scope: Scope = "occurrence"
    layout: Layout = "plain"
    numbers: Numbers = "drop"
    shuffle: Shuffle = "none"
    length: float = 0.0
    rare_below: int = 20
    background: float = 0.0

    @property
    def keeps_order(self) -> bool:
        """Whether released words are in source order."""
        return self.shuffle == "none"


PLAIN = Policy()
"""The policy of paper A: independent draws, source order."""
