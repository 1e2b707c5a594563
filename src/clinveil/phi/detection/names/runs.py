"""Names that begin at a cue: the first word, and further names that share the cue (`Drs. Smith and
Young`).
"""

from __future__ import annotations

import re

from clinveil.lexicons import LexicalClass, is_word
from clinveil.phi.detection.names.cue_words import BASE_VERBS, COMPOUNDS, DOES, NO_NAMES, SAYS
from clinveil.phi.detection.names.cues import OWNS_KIN, PERSONS, Cue, Trust
from clinveil.phi.detection.names.extent import Extent
from clinveil.phi.detection.names.kinds import is_term
from clinveil.phi.detection.names.state import is_particle, syllabic, unknown
from clinveil.phi.detection.note import Word

_RELATED = re.compile(r",\s+(?:her|his|their|the|pt's|patient's)\s")
_NAMED_FIELD = re.compile(
    r"(?:^|(?<!drug|test|rand|eric|lity|ital|pany|odel|duct|dure) )(?:sur|last|first)?names?\b"
    r"[^\n:=]{0,24}[:=-]\s*[\"'(]?\Z",
    re.I | re.M,
)
_COMMA_INITIAL = re.compile(r",[ \t]*[A-Za-z]\.?[ \t]*(?:[;\r\n]|$)")
_KIN_NEXT = re.compile(r"'s?[ ]", re.I)
_THEN = re.compile(r"[ \t](?:who|and|about|regarding|re)\b|,")
_SHARED = re.compile(r"[ \t]*(?:,[ \t]+)?(?:and|&|or|/|,)[ \t]+|[ \t]*/[ \t]*|[ \t]*,[ \t]+", re.I)
_SHORTEST = 3  # letters of a name in capitals among other words: not `given by NG`
_SCORES = {
    Trust.LIST: 0.9,
    Trust.TITLE: 0.95,
    Trust.FIELD: 0.9,
    Trust.MEETING: 0.75,
    Trust.HINT: 0.8,
}


class FirstWord(Extent):
    """Rules for the first word of a name."""

    def _may_begin(self, index: int, trust: Trust) -> bool:
        word = self.words[index]
        if not word.capital:
            return self._may_begin_small(index, word, trust)
        if trust is Trust.MEETING:
            return (
                word.text != "I"
                and not self.state.abbreviated(index)
                and self._pair(index, word, trust)
            )
        if len(word.text) == 1:
            return trust is Trust.TITLE and word.text.isupper()
        if trust is Trust.LIST and not word.shouted:
            end = self._listed_end(index)
            if end - index > 1 and self._field_ends(end):
                return True
        if trust >= Trust.SPOKEN and is_particle(word) and self.state.name_ahead(index + 1):
            return True
        return self._may_begin_word(index, word, trust)

    def _may_begin_word(self, index: int, word: Word, trust: Trust) -> bool:
        # `Thorn, N.`.
        if trust in (Trust.FIELD, Trust.LIST) and _COMMA_INITIAL.match(self.text, word.end):
            return not word.ordinary or bool(word.classes & LexicalClass.NAME)
        if word.ordinary:
            return self._word_as_name(index, word, trust)
        if trust is Trust.TITLE:
            return True
        quiet = trust < Trust.FIELD and self.state.abbreviated(index)
        if word.listed:
            # MI, GERD: short upper-case words in a mixed-case line are rarely names.
            usual = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
            return not quiet or bool(
                len(word.text) > 3 and word.classes & usual and trust > Trust.HINT
            )
        if not unknown(word):
            return False
        if word.shouted and trust >= Trust.FIELD:
            return self._pair(index, word, trust) or (
                len(word.text) > 3 and self.state.closed(index + 1)
            )
        if quiet:
            return False
        return trust is not Trust.HINT or self._pair(index, word, trust)

    def _word_as_name(self, index: int, word: Word, trust: Trust) -> bool:
        """Decide for an ordinary word at a cue: it needs a second name, a field of its own, or to
        be a usual name.
        """
        if self._pair(index, word, trust) or (
            trust >= Trust.FIELD and self._comma_pair(index, word)
        ):
            return True
        if word.classes & LexicalClass.FUNCTION:
            return False
        if trust is Trust.TITLE:
            dotted = self.text[max(0, word.start - 2) : word.start] == ". "
            strict = self.state.upper_context(index) and not dotted
            return bool(word.classes & (LexicalClass.FAMILIAR if strict else LexicalClass.NAME))
        if word.lower in NO_NAMES:
            return False
        if (
            trust is Trust.LIST
            and self.state.closed(index + 1)
            and not self.state.abbreviated(index)
        ):
            # As the only content of a name field, any listed name is accepted: `Last name: Bell`.
            named = _NAMED_FIELD.search(self.text, max(0, word.start - 40), word.start)
            return bool(word.classes & (LexicalClass.NAME if named else LexicalClass.FAMILIAR))
        if trust >= Trust.FIELD:
            return bool(word.classes & LexicalClass.FAMILIAR) and self.state.closed(index + 1)
        if self.state.abbreviated(index) and (
            len(word.text) < _SHORTEST or not word.classes & LexicalClass.FAMILIAR
        ):
            return False
        if trust is Trust.CALLED:
            return bool(word.classes & LexicalClass.FAMILIAR) and word.lower not in COMPOUNDS
        if trust is Trust.KIN:
            return bool(word.classes & LexicalClass.GIVEN)
        return trust is Trust.SPOKEN and bool(
            word.classes & (LexicalClass.FAMILIAR | LexicalClass.GIVEN)
        )

    def _may_begin_small(self, index: int, word: Word, trust: Trust) -> bool:
        if trust >= Trust.SPOKEN and is_particle(word):
            return self.state.name_ahead(index + 1) or self._small_name_ahead(index + 1)
        if trust is Trust.MEETING:
            return self._small_person(index, word)
        if len(word.text) < 2 or word.classes & LexicalClass.FUNCTION:
            return False
        if trust in (Trust.TITLE, Trust.CALLED):
            dotted = self.text[word.start - 2 : word.start] in (". ", "rs")
            dotted = dotted or _THEN.match(self.text, word.end) is not None
            usual = LexicalClass.USUAL_FAMILY if dotted else LexicalClass.FAMILIAR
            return self._small_name(index) or self._small_word_as_name(index, word, usual)
        if trust >= Trust.FIELD:
            if not word.ordinary:
                return word.listed or self._small_name(index)
            familiar = bool(word.classes & LexicalClass.FAMILIAR)
            return self._small_pair(index) or (familiar and self.state.closed(index + 1))
        if trust is Trust.KIN:
            if word.ordinary:
                return self._small_word_as_name(index, word, LexicalClass.USUAL_GIVEN)
            return word.listed or (len(word.text) > 3 and self._small_name(index))
        if trust is Trust.SPOKEN:
            related = _RELATED.match(self.text, word.end) is not None
            return self._small_pair(index) or (
                (related or not word.ordinary) and bool(word.classes & LexicalClass.GIVEN)
            )
        usual = LexicalClass.USUAL_FAMILY | LexicalClass.USUAL_GIVEN
        sure = not is_word(word.lower) and word.classes & usual
        sure = sure and not word.classes & LexicalClass.EPONYM
        return bool(sure and len(word.text) > 3) or self._small_pair(index)

    def _small_person(self, index: int, word: Word) -> bool:
        """Match `per ann okafor`: a first name (or syllables of one) and a word that is not an
        ordinary word.
        """
        following = self.state.neighbour(index)
        if following is None or word.ordinary or not following.text.islower():
            return False
        per = (
            self.words.lowers[index - 1] == "per" and len(word.text) > 4 and self._small_name(index)
        )
        given = bool(word.classes & LexicalClass.GIVEN) or syllabic(word.lower) or per
        return (
            given and not following.ordinary and (following.listed or self._small_name(index + 1))
        )

    def _small_word_as_name(self, index: int, word: Word, usual: int) -> bool:
        following = self.words.lowers[index + 1] if index + 1 < len(self.words) else ""
        named = bool(word.classes & usual) and following not in BASE_VERBS and len(word.text) > 2
        return named and (
            word.lower not in COMPOUNDS or self.text[word.start - 2 : word.start] != "e "
        )


class CueRuns(FirstWord):
    """Rules for names at cues."""

    def take(self, cue: Cue) -> None:
        """Add the name at a cue, if there is one, and those that share the cue (`Drs. Smith and
        Young`).
        """
        index = cue.word
        trust = cue.trust
        if cue.why == OWNS_KIN and index not in self.state.taken and self._owns_kin(index):
            self.state.add(index, index + 1, 0.85, cue.why)
            return
        if index in self.state.taken or not self._may_begin(index, trust):
            return
        end = self._listed_field(index) if trust is Trust.LIST else self.run(index, trust)
        if trust is not Trust.TITLE and self.state.before_noun(end):
            return
        after = self.state.neighbour(end - 1) if cue.why == "says" else None
        if after and after.capital and after.lower not in SAYS | DOES:
            return  # the name does not reach the verb: `Day Surgery reports`
        if trust <= Trust.SPOKEN and is_term(self.state, index, end):
            return
        self.state.add(index, end, _SCORES.get(trust, 0.85), cue.why)
        if trust >= Trust.SPOKEN:
            self._take_shared(end, cue)

    def _owns_kin(self, index: int) -> bool:
        """Return whether one word owns a relative, `cash's wife`: a listed name, or no ordinary
        word.
        """
        word = self.words[index]
        small = (
            word.classes & LexicalClass.FUNCTION or word.lower in PERSONS or word.lower in NO_NAMES
        )
        if small or len(word.text) < 2 or not (word.listed or not word.ordinary):
            return False
        before = self.words[index - 1] if index else None
        full = (
            before is not None
            and before.capital == word.capital
            and before.listed
            and self.state.gap(index) == " "
        )
        return not full and _KIN_NEXT.match(self.text, word.end) is not None

    def _take_shared(self, end: int, cue: Cue) -> None:
        """Add further names of an enumeration: after `and`, and after commas in fields and among
        relatives.
        """
        while end < len(self.words):
            following = end + (self.words.lowers[end] in ("and", "or"))
            if following >= len(self.words) or following in self.state.taken:
                return
            word = self.words[following]
            gap = self.text[self.words[end - 1].end : self.words.starts[following]]
            if not _SHARED.fullmatch(gap):
                return
            # Several names must follow, also ordinary words: `Drs. Hill and Mall`.
            doctors = cue.word > 0 and self.words.lowers[cue.word - 1] == "drs"
            doctors = doctors and bool(word.classes & LexicalClass.NAME) and len(word.text) > 1
            if not doctors and not self._may_follow(following, word, cue.trust, "," in gap):
                return
            end = self.run(following, cue.trust)
            if self.state.before_noun(end):
                return
            self.state.add(following, end, 0.85, cue.why)

    def _may_follow(self, index: int, word: Word, trust: Trust, comma: bool) -> bool:
        if len(word.text) < 3 or self._labels(index):
            return False
        if not word.capital:
            return self._may_follow_small(index, word, trust, comma)
        before = [w for w in self.words.texts[max(0, index - 2) : index] if len(w) > 3]
        if word.shouted != (not before or before[-1].isupper()):
            return False
        if not word.ordinary:
            return word.listed or (trust >= Trust.TITLE and not comma and unknown(word))
        if word.classes & LexicalClass.FUNCTION or word.lower in NO_NAMES or comma:
            return False
        usual = LexicalClass.FAMILIAR if trust >= Trust.FIELD else LexicalClass.USUAL_GIVEN
        alone = (
            word.classes & usual
            and self.state.closed(index + 1)
            and not self.state.abbreviated(index)
        )
        return bool(alone) or self._pair(index, word, trust)

    def _may_follow_small(self, index: int, word: Word, trust: Trust, comma: bool) -> bool:
        """Accept after lower-case names only: drs smith and okafor; team: ann bell, joe okafor and
        mary bell.
        """
        if (
            trust < Trust.FIELD
            or not self.words.texts[
                index - 1 - (self.words.lowers[index - 1] in ("and", "or"))
            ].islower()
        ):
            return False
        if word.ordinary:
            return self.state.given_like(word) and self._small_pair(index)
        return (
            (word.listed and not comma)
            or (trust is Trust.TITLE and self._small_name(index))
            or self._small_pair(index)
        )
