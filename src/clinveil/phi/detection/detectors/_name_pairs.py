"""Rules for two adjacent words: first name and surname, in the usual order or with a comma."""

from __future__ import annotations

import re

from clinveil.lexicons.ambiguity import LexicalClass
from clinveil.lexicons.names import all_given_names, surnames
from clinveil.phi.detection.detectors._name_cue_words import NO_NAMES
from clinveil.phi.detection.detectors._name_cues import Trust
from clinveil.phi.detection.detectors._name_state import NameState, is_particle, syllabic, unknown
from clinveil.phi.detection.note import Word, begins_small

MANY_BEAR = 0.15  # percent; about 80 surnames
COMMA = re.compile(r"[ \t]?,[ \t]{0,2}")
_LABEL = re.compile(r"[ \t]?:")
_ENDS = re.compile(r"'s\b|[ \t]*(?:[,.;:?!)\]\"\r\n|<(]|$)|[ \t]{2}| - | and\b", re.I)
_VOWEL = re.compile("[aeiouy]")


class Pairs:
    """Tests of a word and its neighbours."""

    def __init__(self, state: NameState) -> None:
        self.state, self.words, self.text = state, state.words, state.text

    def _labels(self, index: int) -> bool:
        """Return whether a word is the label of the next field."""
        return bool(_LABEL.match(self.text, self.words[index].end))

    def _any_surname(self, word: Word) -> bool:
        small = word.classes & LexicalClass.FUNCTION or word.lower in NO_NAMES
        return bool(word.classes & LexicalClass.FAMILY) and not small

    def _pair(self, index: int, word: Word, trust: Trust) -> bool:
        """Return whether a first name and a surname begin here, including ordinary words and two unknown words."""
        following = self.state.neighbour(index)
        if following is None or "\n" in self.state.gap(index + 1):
            return False
        if is_particle(following):
            return (self.state.given_like(word) or not word.ordinary) and self.state.name_ahead(index + 2)
        if not following.capital:
            return False
        if len(following.text) == 1:
            return self._pair_over_initial(index, word)
        loose = trust >= Trust.KIN or bool(following.classes & LexicalClass.USUAL_FAMILY and not following.ordinary)
        if following.shouted != word.shouted or self._labels(index + 1):
            return False
        if self._word_ends_name(index, index + 1, trust) and (
            trust >= Trust.SPOKEN or word.listed or syllabic(word.lower)
        ):
            return True
        if self.state.given_like(word, any_word=loose):
            sure = word.classes & LexicalClass.USUAL_GIVEN and not word.ordinary
            return self.state.family_like(following) or bool(sure and self._any_surname(following))
        return not word.ordinary and len(word.text) > 2 and not following.ordinary and len(following.text) > 2

    def _word_ends_name(self, first: int, index: int, trust: Trust | None) -> bool:
        """Return whether a capitalised word ends a name."""
        raise NotImplementedError

    def _pair_over_initial(self, index: int, word: Word) -> bool:
        following = self.state.neighbour(index + 1)
        dotted = self.text[self.words[index + 1].end : self.words[index + 1].end + 1] == "."
        if following is None or not following.capital or not (self.state.given_like(word) or not word.ordinary):
            return False
        return dotted and self.state.family_like(following) and not self._labels(index + 2)

    def _comma_pair(self, index: int, word: Word) -> bool:
        """Match `Wood, Mark` in a field: a surname, a comma, and a possible first name."""
        if index + 1 >= len(self.words) or not COMMA.fullmatch(self.state.gap(index + 1)):
            return False
        return self._comma_names(word, index + 1)

    def _comma_names(self, word: Word, index: int) -> bool:
        following = self.words[index]
        sure = following.classes & LexicalClass.USUAL_GIVEN and not following.ordinary and self._any_surname(word)
        return (self.state.family_like(word) or bool(sure)) and self._given_in_field(index)

    def _given_in_field(self, index: int) -> bool:
        word = self.words[index]
        small = begins_small(word.text) and not begins_small(self.words.texts[index - 1])
        if small or len(word.text) < 2 or self._labels(index) or word.lower in NO_NAMES:
            return False
        return self.state.given_like(word, any_word=True) or (not word.ordinary and (word.listed or unknown(word)))

    def _initial_of_name(self, index: int) -> bool:
        following = self.state.neighbour(index)
        if following is None or not following.capital:
            return False
        if len(following.text) == 1:
            return self.state.neighbour(index + 1) is not None
        return self.state.family_like(following)

    def _small_name(self, index: int) -> bool:
        """Return whether a lower-case word is not an ordinary word and contains a vowel."""
        if index >= len(self.words):
            return False
        word = self.words[index]
        return not word.ordinary and len(word.text) > 2 and bool(_VOWEL.search(word.lower))

    def _small_name_ahead(self, index: int) -> bool:
        while index < len(self.words) and is_particle(self.words[index]):
            index += 1
        return self._small_name(index)

    def _particle_ends(self, word: Word) -> bool:
        """Return whether a particle that is also a surname ends a name: `Uyen Van, RN`."""
        return bool(word.classes & LexicalClass.FAMILY) and _ENDS.match(self.text, word.end) is not None

    def _small_pair(self, index: int) -> bool:
        following, word = self.state.neighbour(index), self.words[index]
        if following is None or following.capital:
            return False
        if is_particle(following):
            ahead = self._small_name_ahead(index + 2) or self._particle_ends(following)
            return (self.state.given_like(word) or not word.ordinary) and ahead
        if len(following.text) == 2 and not following.ordinary and following.classes & LexicalClass.FAMILY:
            return self._small_name(index)
        if len(following.text) == 1 and self.text[following.end : following.end + 1] == ".":
            return bool(word.classes & LexicalClass.GIVEN) or not word.ordinary
        if len(following.text) < 3:
            return False
        if self.state.given_like(word) and not following.classes & LexicalClass.FUNCTION:
            return self.state.family_like(following)
        return self._small_name(index) and self._small_name(index + 1)


def only_eponym(word: Word) -> bool:
    """Return whether a word is an eponym and a rare surname."""
    return bool(word.classes & LexicalClass.EPONYM) and surnames().get(word.lower, 0.0) < MANY_BEAR


def rather_surname(word: Word) -> bool:
    """Return whether a word is more frequent as a surname than as a first name."""
    if not word.classes & LexicalClass.USUAL_GIVEN:
        return True
    return surnames().get(word.lower, 0.0) > all_given_names().get(word.lower, 0.0)
