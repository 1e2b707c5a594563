"""`WritingPolicy`: how notes are written with a channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Layout = Literal["plain", "sentences", "keep"]
Numbers = Literal["drop", "mask"]


@dataclass(frozen=True)
class WritingPolicy:
    """How notes are written with a channel.

    Attributes:
        layout: "plain": released tokens and single spaces. "sentences": also one `.` after the last
            released word of each sentence, which ends with `.`, `!` or `?` before white space, an
            empty line, or the end of the note. "keep": ASCII punctuation keeps its position; a run
            of white space becomes one space, or one line break if it contains any, and is dropped
            at both ends of a note; adjacent words or masks get a space, so `q4h` becomes two words.
        numbers: "drop", or "mask": one `#` per digit.
        background: the probability that a word is drawn from the row of unknown words (common
            words, by frequency) instead of its own row; a draw equal to the word falls back to its
            own row. With b = `background` and p the row of unknown words, P(y | x) = (1 - b) C(y |
            x) + b p(y) for y != x (up to that fallback). With a context model it is the probability
            that a word is drawn from the model, whatever the word is.
        context_strength: exponent of the model's probability among the neighbours of a word; 0:
            neighbours do not depend on the context.
    """

    layout: Layout = "plain"
    numbers: Numbers = "drop"
    background: float = 0.0
    context_strength: float = 0.0


PLAIN = WritingPolicy()
"""The policy of paper A: independent draws."""
