"""Own e-mails and addresses in released notes: found as adjacent words, beside what random orders of the words bring.

A release draws its words at random and puts those of each note in a secret order, so that the two words of "12 School
Street" may come to stand side by side in its patient's notes. How likely that is follows from the words of each note.
Where a release keeps an order, words meet more or less often than that, by what they are: there the chance is a rough
one, and the gate asks for none at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.core.finding import Finding
from clinveil.core.tokens import words
from clinveil.stats.findings import proportion
from clinveil.stats.random_order import P_IS, PhraseOdds, found_p, one_refused_below

if TYPE_CHECKING:
    from clinveil.attacks.text.identifiers import ReleasedText

MIN_WORDS = 2
CHANCE_IS = "the words of each note in random orders"
SOURCE = "45 CFR 164.514(b)(2); chance: Feller 1968, chapter 4; P: Hoeffding 1956, Anderson & Samuels 1967"


class _Phrase:
    """One phrase that is looked for in its patient's notes."""

    __slots__ = ("_odds", "_text", "_words", "chance", "found")

    def __init__(self, forms: Sequence[str]) -> None:
        self._text = f" {' '.join(forms)} "
        self._odds = PhraseOdds.of(forms)
        # Long words are rare: most notes are done with at the first.
        self._words = sorted((f" {word} " for word in self._odds.words), key=len, reverse=True)
        self.found, self.chance = False, 0.0

    def look(self, note: ReleasedText) -> None:
        """Look for it in one more note."""
        if not all(word in note.phrase for word in self._words):
            return
        self.found = self.found or self._text in note.phrase
        here = self._odds.chance([note.forms.count(word) for word in self._odds.words], len(note.forms))
        self.chance += here - here * self.chance  # of at least one note; exact for the smallest


class PhraseSearch:
    """One patient's phrases of one kind, looked for in all of their notes."""

    __slots__ = ("phrases",)

    def __init__(self, values: Sequence[str]) -> None:
        forms = {tuple(found) for value in values if len(found := words(value)) >= MIN_WORDS}
        self.phrases = [_Phrase(phrase) for phrase in sorted(forms)]

    def look(self, note: ReleasedText) -> None:
        """Look through one note."""
        for phrase in self.phrases:
            phrase.look(note)

    @property
    def sought(self) -> int:
        """How many phrases are looked for."""
        return len(self.phrases)

    @staticmethod
    def finding(measure: str, searches: Sequence[PhraseSearch], detail: Mapping[str, Any], unit: str) -> Finding:
        """The share of phrases that were found, beside chance."""
        phrases = [phrase for search in searches for phrase in search.phrases]
        chances = np.array([phrase.chance for phrase in phrases])
        found = np.array([phrase.found for phrase in phrases])
        whose = np.repeat(np.arange(len(searches)), [search.sought for search in searches])
        about: dict[str, Any] = {"unit": unit, "source": SOURCE, "p": found_p(chances, found, whose), "p_is": P_IS}
        about |= {"chance": float(chances.mean()), "chance_is": CHANCE_IS}
        told = {**detail, "expected": float(chances.sum()), "one_refused_below": one_refused_below(chances)}
        return proportion(measure, int(found.sum()), len(phrases), over=unit, detail=told, **about)
