"""`Policy`: how notes are written with a channel; with the channel, it decides what an attacker sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal["occurrence", "note", "patient", "corpus", "rare"]
Shuffle = Literal["none", "window", "sentence", "note"]
SCOPES: tuple[Scope, ...] = ("occurrence", "note", "patient", "corpus")
"""Within what the draw of a row is repeated, by its number in `Channel.scopes`."""
Layout = Literal["plain", "sentences", "keep"]
Numbers = Literal["drop", "mask"]


@dataclass(frozen=True)
class Policy:
    """How notes are written with a channel.

    Attributes:
        memo: repeat the draw of a word within its note, its patient or the corpus; "occurrence": never (paper A);
            "rare": within its patient, of words of fewer than `rare_below` occurrences and of unknown words only.
            `Channel.scopes` says it row by row, where it is there.
        layout: "plain": released tokens and single spaces. "sentences": also one `.` after the last released word of
            each sentence, which ends with `.`, `!` or `?` before white space, with an empty line, or with the note;
            lines that only wrap leave no trace. "keep": ASCII punctuation stays where it is, a run of
            white space becomes one space, or one line break if it holds any, and is dropped at the ends of a note;
            two words (or two masks) that nothing would separate get a space, so `q4h` becomes two words.
        numbers: "drop", or "mask": one `#` a digit.
        shuffle: released words in a keyed random order within windows of `window` released words, sentences, or the
            note. What stands between them (layout, masked numbers) stays where it is. A sentence ends with `.`, `!` or
            `?` before white space, or with a line.
        sentences: the sentences of a note stand in a keyed random order too; windows are of the order that this gives.
        length: each note has its own keyed rate between -length and length; below 0 so many of its words are dropped,
            above so many are written twice, by two draws (one, where the memo repeats it).
        rare_below: see `scope`.
        background: the probability that a word is drawn from the row of unknown words (common words, by frequency)
            instead of its own row; a draw that equals the word falls back to its own row. With b = `background` and
            p the row of unknown words, P(y | x) = (1 - b) C(y | x) + b p(y) for y != x (up to that fallback).
    """

    scope: Scope = "occurrence"
    layout: Layout = "plain"
    numbers: Numbers = "drop"
    shuffle: Shuffle = "none"
    window: int = 10
    sentences: bool = False
    length: float = 0.0
    rare_below: int = 20
    background: float = 0.0

    @property
    def keeps_order(self) -> bool:
        """Whether released words stand in the order of their sources."""
        return self.shuffle == "none" and not self.sentences


PLAIN = Policy()
"""Paper A's: fresh draws, words in their order, and nothing else."""
