"""Names that begin at a cue: whether the word there may begin one, and how far the name goes."""

from __future__ import annotations

import re

from clinveil.lexicons.ambiguity import PARTICLES, LexicalClass
from clinveil.lexicons.names import all_given_names, surnames
from clinveil.phi.detectors._name_cue_words import BASE_VERBS, COMPOUNDS, DOES, NO_NAMES, SAYS
from clinveil.phi.detectors._name_cues import Cue, Trust
from clinveil.phi.detectors._name_reading import AFTER_INITIAL, GAP, Reading, is_particle, shaped_like_name, unknown
from clinveil.phi.note import Word

LONGEST = 6
MANY_BEAR = 0.15  # percent; about 80 surnames
_IN_FIELD = re.compile(r"[ \t]?[ ,.][ \t]{0,2}")
_COMMA = re.compile(r"[ \t]?,[ \t]{0,2}")
_LABEL = re.compile(r"[ \t]?:")
_SHARED = re.compile(r"[ \t]*(?:,[ \t]+)?(?:and|&|or|/|,)[ \t]+|[ \t]*/[ \t]*|[ \t]*,[ \t]+", re.I)
_RELATED = re.compile(r",\s+(?:her|his|their|the|pt's|patient's)\s")
_ACTS = SAYS | DOES | {"c", "is", "was", "has", "had", "here", "seen", "and", "who"}
_VOWEL = re.compile("[aeiouy]")
_SCORES = {Trust.LIST: 0.9, Trust.TITLE: 0.95, Trust.FIELD: 0.9, Trust.MEETING: 0.75, Trust.HINT: 0.8}


class CueRuns:
    """Takes what cues point at."""

    def __init__(self, reading: Reading) -> None:
        self.at, self.words, self.text = reading, reading.words, reading.text

    def take(self, cue: Cue) -> None:
        """The name at a cue, if there is one, and those that share its cue (`Drs. Smith and Young`)."""
        index, trust = cue.word, cue.trust
        if index in self.at.taken or not self._may_begin(index, trust):
            return
        end = self._listed_field(index) if trust is Trust.LIST else self.run(index, trust)
        if trust is not Trust.TITLE and self.at.before_noun(end):
            return
        if end == index + 1 and trust is Trust.HINT and only_eponym(self.words[index]):
            return
        self.at.keep(index, end, _SCORES.get(trust, 0.85), cue.why)
        if trust >= Trust.SPOKEN:
            self._take_shared(end, cue)

    def _take_shared(self, end: int, cue: Cue) -> None:
        """The other names of a list: after `and`, after commas in fields and among relatives."""
        while end < len(self.words):
            following = end
            if self.words.lowers[end] in ("and", "or"):
                following += 1
            if following >= len(self.words) or following in self.at.taken:
                return
            last = self.words[end - 1]
            gap = self.text[last.end : self.words.starts[following]]
            word = self.words[following]
            if not _SHARED.fullmatch(gap) or not self._may_follow(following, word, cue.trust, "," in gap):
                return
            end = self.run(following, cue.trust)
            if self.at.before_noun(end):
                return
            self.at.keep(following, end, 0.85, cue.why)

    def _may_follow(self, index: int, word: Word, trust: Trust, comma: bool) -> bool:
        if not word.capital or len(word.text) < 3 or self._labels(index) or word.shouted != self._shouted_before(index):
            return False
        if not word.ordinary:
            return word.listed or (trust >= Trust.TITLE and not comma and unknown(word))
        if word.classes & LexicalClass.FUNCTION or word.lower in NO_NAMES or comma:
            return False
        return bool(trust >= Trust.FIELD and word.classes & LexicalClass.FAMILIAR) or self._pair(index, word, trust)

    def _shouted_before(self, index: int) -> bool:
        before = [w for w in self.words.texts[max(0, index - 2) : index] if len(w) > 3]
        return not before or before[-1].isupper()

    def _labels(self, index: int) -> bool:
        """Whether a word is the label of the next field."""
        return bool(_LABEL.match(self.text, self.words[index].end))

    # May a name begin here?

    def _may_begin(self, index: int, trust: Trust) -> bool:
        word = self.words[index]
        if not word.capital:
            return self._may_begin_small(index, word, trust)
        if trust is Trust.MEETING:
            return not self.at.abbreviated(index) and self._pair(index, word, trust)
        if len(word.text) == 1:
            return (trust is Trust.TITLE and word.text.isupper()) or (
                trust >= Trust.SPOKEN and self._initial_of_name(index)
            )
        if trust is Trust.LIST and not word.shouted and self._commas_in_field(index):
            return True
        if trust >= Trust.SPOKEN and is_particle(word) and self.at.name_ahead(index + 1):
            return True
        if self._labels(index) and trust is not Trust.TITLE:
            return False
        return self._may_begin_word(index, word, trust)

    def _may_begin_word(self, index: int, word: Word, trust: Trust) -> bool:
        if word.ordinary:
            return self._word_as_name(index, word, trust)
        if trust is Trust.TITLE:
            return True
        quiet = trust < Trust.FIELD and self.at.abbreviated(index)
        if word.listed:
            # MI, GERD: short capitals in a line of small letters are seldom a name.
            usual = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY
            return not quiet or bool(len(word.text) > 3 and word.classes & usual and trust > Trust.HINT)
        if not unknown(word):
            return False
        if word.shouted and trust >= Trust.FIELD:
            return self._pair(index, word, trust) or self._field_of_one(index)
        if quiet:
            return False
        return trust is not Trust.HINT or self._pair(index, word, trust)

    def _field_of_one(self, index: int) -> bool:
        return len(self.words.texts[index]) > 3 and self.at.closed(index + 1)

    def _word_as_name(self, index: int, word: Word, trust: Trust) -> bool:
        """An ordinary word after a cue: a name where it goes with another name or fills a field, or is a usual one."""
        if self._pair(index, word, trust) or (trust >= Trust.FIELD and self._fills_field(index, word)):
            return True
        if word.classes & LexicalClass.FUNCTION and not self._will_or_may(index, word, trust):
            return False
        if self._comma_pair(index, word) and self.words.classes[index + 1] & LexicalClass.USUAL_GIVEN:
            return not self.words[index + 1].ordinary and bool(word.classes & LexicalClass.FAMILIAR)
        if trust is Trust.TITLE:
            return bool(word.classes & (LexicalClass.FAMILIAR if self.at.loud(index) else LexicalClass.NAME))
        if word.lower in NO_NAMES:
            return False
        if trust >= Trust.FIELD:
            return bool(word.classes & LexicalClass.FAMILIAR) and self.at.closed(index + 1)
        if self.at.abbreviated(index) and not word.classes & LexicalClass.FAMILIAR:
            return False
        if trust is Trust.CALLED:
            return bool(word.classes & LexicalClass.FAMILIAR) and word.lower not in COMPOUNDS
        if trust is Trust.KIN:
            return bool(word.classes & LexicalClass.GIVEN)
        familiar = bool(word.classes & LexicalClass.FAMILIAR)
        return familiar and (trust is Trust.SPOKEN or (trust is Trust.HINT and self._acts(index)))

    def _acts(self, index: int) -> bool:
        """Whether the next word says what a patient does: `Pt Reed c/o pain`."""
        following = self.words.lowers[index + 1] if index + 1 < len(self.words) else ""
        return following in _ACTS and self.words.texts[index + 1].islower()

    def _will_or_may(self, index: int, word: Word, trust: Trust) -> bool:
        """Will and May after a title or a relative, unless a verb follows."""
        if trust not in (Trust.TITLE, Trust.KIN) or word.shouted or not word.classes & LexicalClass.NAME:
            return False
        following = self.words.lowers[index + 1] if index + 1 < len(self.words) else ""
        return following not in BASE_VERBS

    def _fills_field(self, index: int, word: Word) -> bool:
        """`Wood, Mark`, or two words of the lists that are all that a field holds."""
        if self._comma_pair(index, word):
            return True
        following = self.at.neighbour(index)
        if following is None or word.lower in NO_NAMES or word.classes & LexicalClass.FUNCTION:
            return False
        listed = word.classes & LexicalClass.FAMILIAR or (word.listed and not following.ordinary)
        both = (
            following.capital and bool(listed) and self._any_surname(following) and "\n" not in self.at.gap(index + 1)
        )
        return both and self.at.closed(index + 2)

    def _pair(self, index: int, word: Word, trust: Trust) -> bool:
        """Whether a first name and a surname begin here, words or not; two unknown words look alike enough."""
        following = self.at.neighbour(index)
        if following is None or "\n" in self.at.gap(index + 1):
            return False
        if is_particle(following):
            return (self.at.given_like(word) or not word.ordinary) and self.at.name_ahead(index + 2)
        if not following.capital:
            return False
        if len(following.text) == 1:
            return self._pair_over_initial(index, word)
        loose = trust >= Trust.KIN or bool(following.classes & LexicalClass.USUAL_FAMILY and not following.ordinary)
        if following.shouted != word.shouted or self._labels(index + 1):
            return False
        if self.at.given_like(word, any_word=loose):
            sure = word.classes & LexicalClass.USUAL_GIVEN and not word.ordinary
            return self.at.family_like(following) or bool(sure and self._any_surname(following))
        return not word.ordinary and len(word.text) > 2 and not following.ordinary and len(following.text) > 2

    def _pair_over_initial(self, index: int, word: Word) -> bool:
        following = self.at.neighbour(index + 1)
        dotted = self.text[self.words[index + 1].end : self.words[index + 1].end + 1] == "."
        if following is None or not following.capital or not (self.at.given_like(word) or not word.ordinary):
            return False
        return dotted and self.at.family_like(following) and not self._labels(index + 2)

    def _comma_pair(self, index: int, word: Word) -> bool:
        """`Wood, Mark` in a field: a surname, a comma, and what can be a first name."""
        if index + 1 >= len(self.words) or not _COMMA.fullmatch(self.at.gap(index + 1)):
            return False
        return self._comma_names(word, index + 1)

    def _comma_names(self, word: Word, index: int) -> bool:
        following = self.words[index]
        sure = following.classes & LexicalClass.USUAL_GIVEN and not following.ordinary and self._any_surname(word)
        return (self.at.family_like(word) or bool(sure)) and self._given_in_field(index)

    def _given_in_field(self, index: int) -> bool:
        word = self.words[index]
        if not word.capital or len(word.text) < 2 or self._labels(index) or word.lower in NO_NAMES:
            return False
        return self.at.given_like(word, any_word=True) or (not word.ordinary and (word.listed or unknown(word)))

    def _initial_of_name(self, index: int) -> bool:
        following = self.at.neighbour(index)
        if following is None or not following.capital:
            return False
        if len(following.text) == 1:
            return self.at.neighbour(index + 1) is not None
        return self.at.family_like(following)

    # Small letters.

    def _may_begin_small(self, index: int, word: Word, trust: Trust) -> bool:
        if trust >= Trust.SPOKEN and is_particle(word):
            return self.at.name_ahead(index + 1) or self._small_name_ahead(index + 1)
        if trust is Trust.MEETING or len(word.text) < 2 or word.classes & LexicalClass.FUNCTION:
            return False
        if word.lower in NO_NAMES:
            return False
        if trust in (Trust.TITLE, Trust.CALLED):
            dotted = self.text[word.start - 2 : word.start] in (". ", "rs")
            dotted = dotted or self.at.closed(index + 1)
            usual = LexicalClass.USUAL_FAMILY if dotted else LexicalClass.FAMILIAR
            return self._small_name(index) or self._small_word_as_name(index, word, usual)
        if trust >= Trust.FIELD:
            return self._small_in_field(index, word)
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
        sure = not word.ordinary and word.classes & usual and not word.classes & LexicalClass.EPONYM
        return bool(sure and len(word.text) > 3) or self._small_pair(index)

    def _small_name(self, index: int) -> bool:
        """A word in small letters that is no ordinary word and can be spoken."""
        if index >= len(self.words):
            return False
        word = self.words[index]
        return not word.ordinary and len(word.text) > 2 and bool(_VOWEL.search(word.lower))

    def _small_name_ahead(self, index: int) -> bool:
        while index < len(self.words) and is_particle(self.words[index]):
            index += 1
        return self._small_name(index)

    def _small_word_as_name(self, index: int, word: Word, usual: int) -> bool:
        following = self.words.lowers[index + 1] if index + 1 < len(self.words) else ""
        named = bool(word.classes & usual) and following not in BASE_VERBS and len(word.text) > 2
        return named and (word.lower not in COMPOUNDS or self.text[word.start - 2 : word.start] != "e ")

    def _small_in_field(self, index: int, word: Word) -> bool:
        if not word.ordinary:
            return word.listed or self._small_name(index)
        if self._small_pair(index) or self._comma_pair(index, word):
            return True
        return bool(word.classes & LexicalClass.FAMILIAR) and self.at.closed(index + 1)

    def _small_pair(self, index: int) -> bool:
        following, word = self.at.neighbour(index), self.words[index]
        if following is None or following.capital:
            return False
        if is_particle(following):
            return (self.at.given_like(word) or not word.ordinary) and self._small_name_ahead(index + 2)
        if len(following.text) == 1 and self.text[following.end : following.end + 1] == ".":
            return bool(word.classes & LexicalClass.GIVEN) or not word.ordinary
        if len(following.text) < 3:
            return False
        if self.at.given_like(word) and not following.classes & LexicalClass.FUNCTION:
            return self.at.family_like(following)
        return self._small_name(index) and self._small_name(index + 1)

    # How far a run goes.

    def _commas_in_field(self, index: int) -> bool:
        end = self._listed_end(index)
        return end - index > 1 and self._field_ends(end)

    def _listed_end(self, index: int) -> int:
        end = index + 1
        while end < len(self.words) and end - index < LONGEST - 1 and self.words[end].capital:
            if not _IN_FIELD.fullmatch(self.at.gap(end)) or self.words.classes[end] & LexicalClass.FUNCTION:
                break
            end += 1
        return end

    def _field_ends(self, end: int) -> bool:
        return bool(re.match(r"\.?[ \t]*(?:[;\r\n]|$)", self.text[self.words[end - 1].end :][:8]))

    def _listed_field(self, index: int) -> int:
        """`Name: first, middle, last;`: capitalised words with commas, if a semicolon or the line's end follows."""
        end = self._listed_end(index)
        return end if self._field_ends(end) and self.words[index].capital else self.run(index, Trust.LIST)

    def run(self, index: int, trust: Trust | None) -> int:
        """The end of the name that begins at a word; without a trust the lists alone speak for it."""
        end, comma = index + 1, False
        while end < len(self.words) and end - index < LONGEST:
            if _COMMA.fullmatch(self.at.gap(end)) and len(self.words.texts[end - 1]) > 1:
                if comma or end - index > 3 or not self._comma_order(index, end, trust):
                    break
                comma = True
            elif not self._continues(index, end, trust):
                break
            end += 1
        while end - index > 1 and is_particle(self.words[end - 1]) and not self.words[end - 1].listed:
            end -= 1
        return end

    def _continues(self, first: int, index: int, trust: Trust | None) -> bool:
        last, word, gap = self.words[index - 1], self.words[index], self.at.gap(index)
        if len(last.text) == 1 and AFTER_INITIAL.fullmatch(gap) and (last.text.isupper() or gap[:1] == "."):
            return self._after_initial(first, index, last, word)
        if not GAP.fullmatch(gap):
            return False
        if "\n" in gap and "-" in gap:
            return not word.classes & LexicalClass.FUNCTION
        if "\n" in gap:
            return self._over_line(first, index, last, word)
        if '"' in gap or "(" in gap or "'" in gap:
            return self._quoted(last, word, gap, index, trust)
        if word.ordinary and index > first + 1 and last.classes & LexicalClass.USUAL_FAMILY and len(word.text) > 1:
            return self._last_of_three(self.words[first], last, word)
        if word.ordinary and trust is not Trust.TITLE and self._labels(index) and not self._surname_of(last, word):
            return False
        return self._fits(last, word, index, trust)

    def _surname_of(self, last: Word, word: Word) -> bool:
        odd = LexicalClass.WORD | LexicalClass.USUAL_GIVEN
        return last.classes & odd == LexicalClass.USUAL_GIVEN and bool(word.classes & LexicalClass.FAMILIAR)

    def _quoted(self, last: Word, word: Word, gap: str, index: int, trust: Trust | None) -> bool:
        """`William "Bud" Smith`: what stands in quotes or brackets between names is a name too."""
        if gap.strip()[:1] in ('"', "'", ")", "]") and gap[:1] in ("\"'])"):
            return word.capital and (self._fits(last, word, index, trust) or self.at.family_like(word))
        close = self.text[word.end : word.end + 1]
        if gap[-1:] == "(":
            return close == ")" and self._fits(last, word, index, trust) and not word.ordinary
        named = bool(last.classes & LexicalClass.GIVEN) or not last.ordinary
        return (word.capital and named and (close in ('"', "'") or is_particle(word))) or is_particle(word)

    def _last_of_three(self, first: Word, last: Word, word: Word) -> bool:
        """A surname that is a word after two first names: Sandra Marie Fox."""
        if not first.classes & LexicalClass.USUAL_GIVEN or first.ordinary or word.classes & LexicalClass.FUNCTION:
            return False
        familiar = word.classes & LexicalClass.FAMILIAR and word.classes & LexicalClass.FAMILY
        return bool(familiar and last.classes & LexicalClass.GIVEN and word.capital and not word.shouted)

    def _over_line(self, first: int, index: int, last: Word, word: Word) -> bool:
        """A name goes on in the next line only from a first name to a surname."""
        if index != first + 1 or self._labels(index) or not word.capital or word.shouted != last.shouted:
            return False
        return bool(last.classes & LexicalClass.GIVEN and word.classes & LexicalClass.FAMILY) and not word.ordinary

    def _fits(self, last: Word, word: Word, index: int, trust: Trust | None) -> bool:
        trusted = trust is not None and trust >= Trust.FIELD
        if is_particle(word) and not (word.capital and word.listed and len(word.text) > 3):
            return self.at.name_ahead(index + 1) or (last.text.islower() and self._small_name_ahead(index + 1))
        if not word.capital:
            return self._fits_small(last, word, index, trusted)
        if last.text.islower() and last.lower not in PARTICLES:
            return False
        if len(word.text) == 1:
            dotted = self.text[word.end : word.end + 1] == "."
            named = bool(last.classes & LexicalClass.GIVEN) or trusted or (trust is not None and not last.ordinary)
            return named and (dotted or not (last.ordinary or word.text in "AI"))
        if word.shouted and not last.shouted and len(last.text) > 1 and not word.classes & LexicalClass.USUAL_FAMILY:
            return False
        if not word.ordinary:
            long = not word.shouted or (last.shouted and len(word.text) > 3)
            return word.listed or trusted or (long and self._may_go_with(last, word, trust))
        return self._fits_word(last, word, index, trusted)

    def _may_go_with(self, last: Word, word: Word, trust: Trust | None) -> bool:
        """Whether an unknown word may go on a name: after a first name or an unknown word, after a cue after any name."""
        if last.classes & LexicalClass.GIVEN or (trust is not None and not last.ordinary):
            return True
        return unknown(last) and shaped_like_name(word.text)

    def _after_initial(self, first: int, index: int, last: Word, word: Word) -> bool:
        if len(word.text) == 1:
            return word.text.isupper()
        if is_particle(word):
            return self.at.name_ahead(index + 1)
        if not word.capital:
            fit = word.text.islower() and (not word.ordinary or bool(word.classes & LexicalClass.FAMILIAR))
            return fit and last.text.islower() and index > first + 1
        given = index > first + 1 and self.words[first].classes & LexicalClass.USUAL_GIVEN
        fit = self.at.family_like(word) or bool(given and self._any_surname(word))
        return (fit or not word.ordinary) and not self._labels(index)

    def _any_surname(self, word: Word) -> bool:
        small = word.classes & LexicalClass.FUNCTION or word.lower in NO_NAMES
        return bool(word.classes & LexicalClass.FAMILY) and not small

    def _fits_small(self, last: Word, word: Word, index: int, trusted: bool) -> bool:
        if not last.text.islower() or word.classes & LexicalClass.FUNCTION:
            return False
        if len(word.text) < 3:
            return len(word.text) == 1 and last.listed and self.text[word.end : word.end + 1] == "."
        if not word.ordinary:
            return word.listed or trusted or not last.listed
        if trusted and not last.ordinary and self.at.closed(index + 1) and self._any_surname(word):
            return True
        return self.at.given_like(last) and bool(word.classes & LexicalClass.FAMILIAR)

    def _fits_word(self, last: Word, word: Word, index: int, trusted: bool) -> bool:
        """A surname that is a word, after a first name; in a field also after what no list knows."""
        if is_particle(last) and word.listed and not word.classes & LexicalClass.FUNCTION:
            return True
        if trusted and self.at.closed(index + 1) and self._any_surname(word) and (last.listed or not last.ordinary):
            return True
        sure = LexicalClass.GIVEN | LexicalClass.WORD | LexicalClass.EPONYM
        if last.classes & sure == LexicalClass.GIVEN and word.classes & LexicalClass.USUAL_FAMILY:
            return self._any_surname(word)
        if self._middle_name(last, word, index):
            return True
        after_given = last.classes & LexicalClass.USUAL_GIVEN and not (word.shouted and (last.ordinary or not trusted))
        if not self.at.family_like(word) and not (after_given and self._any_surname(word)):
            return False
        given = last.classes & LexicalClass.GIVEN or last.lower in PARTICLES or not (last.ordinary or last.listed)
        return bool(given) and (not word.shouted or trusted or bool(last.classes & LexicalClass.USUAL_GIVEN))

    def _middle_name(self, last: Word, word: Word, index: int) -> bool:
        """A first name that is a word, between a usual first name and a surname: Erica Fawn Gimpel."""
        if word.shouted or not word.classes & LexicalClass.GIVEN or word.classes & LexicalClass.FUNCTION:
            return False
        following = self.at.neighbour(index)
        if last.ordinary or not last.classes & LexicalClass.USUAL_GIVEN or following is None:
            return False
        return following.capital and not following.ordinary and len(following.text) > 2

    def _comma_order(self, first: int, index: int, trust: Trust | None) -> bool:
        """SMITH, JOHN: a surname, then a first name; one that is a word or in no list only in a field."""
        last, word = self.words[index - 1], self.words[index]
        trusted = trust is not None and trust >= Trust.FIELD and trust is not Trust.TITLE
        if not (last.capital and word.capital) and not (trusted and last.text.islower()):
            return False
        if self._labels(index) or not (self.at.family_like(last) or (trusted and self._comma_names(last, index))):
            return False
        if trusted:
            return self._given_in_field(index) and (
                bool(word.classes & LexicalClass.USUAL_GIVEN) or self.at.closed(index + 1) or self._initial_after(index)
            )
        usual = word.classes & LexicalClass.USUAL_GIVEN and not word.ordinary
        return index == first + 1 and bool(usual) and _rather_surname(last)

    def _initial_after(self, index: int) -> bool:
        following = self.words[index + 1] if index + 1 < len(self.words) else None
        return following is not None and following.capital and GAP.fullmatch(self.at.gap(index + 1)) is not None


def only_eponym(word: Word) -> bool:
    """Whether a word is an eponym that few bear as a surname."""
    return bool(word.classes & LexicalClass.EPONYM) and surnames().get(word.lower, 0.0) < MANY_BEAR


def _rather_surname(word: Word) -> bool:
    """Whether more people bear it as a surname than as a first name."""
    if not word.classes & LexicalClass.USUAL_GIVEN:
        return True
    return surnames().get(word.lower, 0.0) > all_given_names().get(word.lower, 0.0)
