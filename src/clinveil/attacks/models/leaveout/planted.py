"""The experiment that paper C asks for: an invented full name in a random half of the audited notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.lm.notes import PlainNotes
from clinveil.lm.vocabulary import Vocabulary

BEGINNING = "Patient name :"


def invented_names(texts: Sequence[str], n: int, rng: Generator) -> list[tuple[str, str]]:
    """Full names of words that stand in no note, each word used once. Raises InputError where the lists run out."""
    from clinveil.lexicons.names import all_given_names, surnames

    known = {word.lower() for text in texts for word in text.split()}
    pools = []
    for names in (all_given_names(), surnames()):
        free = [name.capitalize() for name in sorted(names) if name.lower() not in known and name.isalpha()]
        if len(free) < n:
            raise InputError("there are not enough names that no note holds", remedy="smaller --units")
        pools.append([free[i] for i in rng.permutation(len(free))[:n]])
    return list(zip(*pools, strict=True))


@dataclass(frozen=True)
class Planted:
    """A planted name: the text of its note up to the name, and up to the end of the name."""

    name: tuple[str, str] = field(repr=False)
    before: str = field(repr=False)
    until: str = field(repr=False)

    def place(self, vocabulary: Vocabulary) -> tuple[int, int]:
        """The tokens of the name, first and one past the last."""
        closing = 2 if vocabulary.kind == "words" else 1  # ends of the line and of the note
        return vocabulary.encode(self.before).size - closing, vocabulary.encode(self.until).size - closing


def plant(notes: PlainNotes, units: Sequence[Sequence[int]], rng: Generator) -> tuple[PlainNotes, list[Planted | None]]:
    """The notes with a line that names the patient, in the first note of a random half of the units.

    Returns:
        The notes, and of each unit what was planted, or None.
    """
    n = len(units) // 2
    chosen = sorted(int(i) for i in rng.permutation(len(units))[:n])
    planted: list[Planted | None] = [None] * len(units)
    texts = list(notes.texts)
    for unit, name in zip(chosen, invented_names(notes.texts, n, rng), strict=True):
        row = units[unit][0]
        lines = texts[row].split("\n")
        at = int(rng.integers(len(lines) + 1))
        before = "\n".join([*lines[:at], BEGINNING])
        until = f"{before} {' '.join(name)}"
        texts[row] = "\n".join([f"{until} .", *lines[at:]])
        planted[unit] = Planted(name, before, until)
    return PlainNotes(tuple(texts), notes.note_ids, notes.patients), planted
