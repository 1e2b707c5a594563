"""Search for a patient's own e-mail and postal addresses in released notes, as adjacent words.

Released words are drawn at random and then ordered at random within a note, so the two words of "12 School Street" may
become adjacent by chance. This probability follows from the words of each note. Where a release keeps its order, it is
only approximate, and the gate then allows no match at all.
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
CHANCE_IS = "the words of each note in random order"
SOURCE = "45 CFR 164.514(b)(2); chance: Feller 1968, chapter 4; P: Hoeffding 1956, Anderson & Samuels 1967"


class _Phrase:
    """One phrase to search for in its patient's notes."""

    __slots__ = ("_odds", "_text", "_words", "chance", "found")

    def __init__(self, forms: Sequence[str]) -> None:
        self._text = f" {' '.join(forms)} "
        self._odds = PhraseOdds.of(forms)
        # Longer words are rarer, so most notes are excluded by the first.
        self._words = sorted((f" {word} " for word in self._odds.words), key=len, reverse=True)
        self.found, self.chance = False, 0.0

    def search(self, note: ReleasedText) -> None:
        """Search one more note."""
        if not all(word in note.phrase for word in self._words):
            return
        self.found = self.found or self._text in note.phrase
        chance_here = self._odds.chance([note.forms.count(word) for word in self._odds.words], len(note.forms))
        self.chance += (
            chance_here - chance_here * self.chance
        )  # probability of at least one note; exact where it is smallest


class PhraseSearch:
    """One patient's phrases of one kind, searched for in all of their notes."""

    __slots__ = ("phrases",)

    def __init__(self, values: Sequence[str]) -> None:
        forms = {tuple(found) for value in values if len(found := words(value)) >= MIN_WORDS}
        self.phrases = [_Phrase(phrase) for phrase in sorted(forms)]

    def search(self, note: ReleasedText) -> None:
        """Search one note."""
        for phrase in self.phrases:
            phrase.search(note)

    @property
    def n_sought(self) -> int:
        """Return the number of phrases to search for."""
        return len(self.phrases)

    @staticmethod
    def finding(measure: str, searches: Sequence[PhraseSearch], detail: Mapping[str, Any], unit: str) -> Finding:
        """Return the finding on the share of phrases found, with its chance."""
        phrases = [phrase for search in searches for phrase in search.phrases]
        chances = np.array([phrase.chance for phrase in phrases])
        found = np.array([phrase.found for phrase in phrases])
        owners = np.repeat(np.arange(len(searches)), [search.n_sought for search in searches])
        about: dict[str, Any] = {"unit": unit, "source": SOURCE, "p": found_p(chances, found, owners), "p_is": P_IS}
        about |= {"chance": float(chances.mean()), "chance_is": CHANCE_IS}
        more = {**detail, "expected": float(chances.sum()), "one_refused_below": one_refused_below(chances)}
        return proportion(measure, int(found.sum()), len(phrases), over=unit, detail=more, **about)
