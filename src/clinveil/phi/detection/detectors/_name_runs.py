"""Names that begin at a cue, and further names that share it: `Drs. Smith and Young`."""

from __future__ import annotations

import re

from clinveil.lexicons.ambiguity import LexicalClass
from clinveil.phi.detection.detectors._name_cue_words import NO_NAMES
from clinveil.phi.detection.detectors._name_cues import Cue, Trust
from clinveil.phi.detection.detectors._name_first_word import FirstWord
from clinveil.phi.detection.detectors._name_pairs import only_eponym
from clinveil.phi.detection.detectors._name_state import unknown
from clinveil.phi.detection.note import Word

_SHARED = re.compile(r"[ \t]*(?:,[ \t]+)?(?:and|&|or|/|,)[ \t]+|[ \t]*/[ \t]*|[ \t]*,[ \t]+", re.I)
_SCORES = {Trust.LIST: 0.9, Trust.TITLE: 0.95, Trust.FIELD: 0.9, Trust.MEETING: 0.75, Trust.HINT: 0.8}


class CueRuns(FirstWord):
    """Rules for names at cues."""

    def take(self, cue: Cue) -> None:
        """Add the name at a cue, if there is one, and those that share the cue (`Drs. Smith and Young`)."""
        index, trust = cue.word, cue.trust
        if index in self.state.taken or not self._may_begin(index, trust):
            return
        end = self._listed_field(index) if trust is Trust.LIST else self.run(index, trust)
        if trust is not Trust.TITLE and self.state.before_noun(end):
            return
        if end == index + 1 and trust is Trust.HINT and only_eponym(self.words[index]):
            return
        self.state.add(index, end, _SCORES.get(trust, 0.85), cue.why)
        if trust >= Trust.SPOKEN:
            self._take_shared(end, cue)

    def _take_shared(self, end: int, cue: Cue) -> None:
        """Add further names of an enumeration: after `and`, and after commas in fields and among relatives."""
        while end < len(self.words):
            following = end
            if self.words.lowers[end] in ("and", "or"):
                following += 1
            if following >= len(self.words) or following in self.state.taken:
                return
            last = self.words[end - 1]
            gap = self.text[last.end : self.words.starts[following]]
            word = self.words[following]
            if not _SHARED.fullmatch(gap):
                return
            doctors = self._of_doctors(cue) and word.classes & LexicalClass.NAME and len(word.text) > 1
            if not doctors and not self._may_follow(following, word, cue.trust, "," in gap):
                return
            end = self.run(following, cue.trust)
            if self.state.before_noun(end):
                return
            self.state.add(following, end, 0.85, cue.why)

    def _of_doctors(self, cue: Cue) -> bool:
        """Return whether several names must follow, also ordinary words: `Drs. Hill and Mall`."""
        return cue.word > 0 and self.words.lowers[cue.word - 1] == "drs"

    def _may_follow(self, index: int, word: Word, trust: Trust, comma: bool) -> bool:
        if len(word.text) < 3 or self._labels(index):
            return False
        if not word.capital:
            return self._may_follow_small(index, word, trust, comma)
        if word.shouted != self._shouted_before(index):
            return False
        if not word.ordinary:
            return word.listed or (trust >= Trust.TITLE and not comma and unknown(word))
        if word.classes & LexicalClass.FUNCTION or word.lower in NO_NAMES or comma:
            return False
        usual = LexicalClass.FAMILIAR if trust >= Trust.FIELD else LexicalClass.USUAL_GIVEN
        return bool(word.classes & usual) or self._pair(index, word, trust)

    def _may_follow_small(self, index: int, word: Word, trust: Trust, comma: bool) -> bool:
        """Accept after lower-case names only: drs smith and okafor; team: ann bell, joe okafor and mary bell."""
        if (
            trust < Trust.FIELD
            or not self.words.texts[index - 1 - (self.words.lowers[index - 1] in ("and", "or"))].islower()
        ):
            return False
        if word.ordinary:
            return self.state.given_like(word) and self._small_pair(index)
        return (
            (word.listed and not comma) or (trust is Trust.TITLE and self._small_name(index)) or self._small_pair(index)
        )

    def _shouted_before(self, index: int) -> bool:
        before = [w for w in self.words.texts[max(0, index - 2) : index] if len(w) > 3]
        return not before or before[-1].isupper()
