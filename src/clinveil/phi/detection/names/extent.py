"""Find the end of a name from its first word."""

from __future__ import annotations

import re

from clinveil.lexicons import PARTICLES, LexicalClass, vocabulary, word_list
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.names.cue_words import CREDENTIALS
from clinveil.phi.detection.names.cues import Trust
from clinveil.phi.detection.names.state import (
    AFTER_INITIAL,
    COMMA,
    GAP,
    Pairs,
    is_particle,
    rather_surname,
    shaped_like_name,
    unknown,
)
from clinveil.phi.detection.note import Word

MAX_WORDS = 6
# `Mac an Ghoill`: particles that occur only after these words.
_GAELIC = frozenset(("an", "na", "con"))
_SONS = frozenset(("mac", "nic", "mhic", "ni", "ui"))
_CLEAN = re.compile(r"'s\b|[ \t]*(?:[,.;:?!)\]\"\r\n|<(-]|$)|[ \t]{2}")
_THEN_SMALL = re.compile(r"[ \t]+(?!(?:is|was|has|had|does|did|will|denies|reports)\b)[a-z]")
_IS_OF_AGE = re.compile(r"[ \t]+(?:is|was)[ \t]an?[ \t]\d", re.I)
_THEN_VERB = re.compile(r"[ \t]+(?:IS|WAS|HAS|HAD|CAME|WILL|OF|FROM|DENIES|REPORTS|STATES)\b")
_CREDENTIAL_NEXT = re.compile(r",[ \t]*(?:md|do|rn|np|pa|dpm|phd|pharmd|pa-c|m\.d|d\.o|crna|lpn)\b")
_LONE_INITIAL = re.compile(r"\.(?![A-Za-z])|(?=[ \t]*(?:[;\r\n]|$))")
_NO_SURNAMES = words(
    "hospital clinic center centre university county medical health street road avenue school"
    " church college team"
    " service unit department pharmacy home house court drive lane general memorial i a am pm"
    " foods inc llc corp corporation company associates group partners bank systems industries"
    " laboratories lab"
)
_GIVEN_ONLY = LexicalClass.USUAL_GIVEN | LexicalClass.WORD | LexicalClass.EPONYM
_SMALL_OR_SURNAME = LexicalClass.FUNCTION | LexicalClass.FAMILY
_LOWER_NEXT = re.compile(r"[ ]{1,2}[a-z]")
_FIELD_END = re.compile(r"\.?[ \t]*(?:[;\r\n]|$)")
_IN_FIELD = re.compile(r"[ \t]?[ ,.][ \t]{0,2}")


class Extent(Pairs):
    """Rules for the continuation of a name."""

    def run(self, index: int, trust: Trust | None) -> int:
        """Return the end of the name that begins at a word. Without a cue (`trust` None), only the
        lists are
        evidence.
        """
        end = index + 1
        comma = False
        while end < len(self.words) and end - index < MAX_WORDS:
            if COMMA.fullmatch(self.state.gap(end)) and len(self.words.texts[end - 1]) > 1:
                if comma or end - index > 3 or not self._comma_order(index, end, trust):
                    break
                comma = True
            elif not self._continues(index, end, trust):
                break
            end += 1
        while (
            end - index > 1 and is_particle(self.words[end - 1]) and not self.words[end - 1].listed
        ):
            end -= 1
        return end

    def _continues(self, first: int, index: int, trust: Trust | None) -> bool:
        last = self.words[index - 1]
        word = self.words[index]
        gap = self.state.gap(index)
        if (
            len(last.text) == 1
            and AFTER_INITIAL.fullmatch(gap)
            and (last.text.isupper() or gap[:1] == ".")
        ):
            if "(" in gap and self.text[word.end : word.end + 1] != ")":
                return False
            if len(word.text) == 1:
                begins = word.text in "AI" and (
                    "  " in gap or _LOWER_NEXT.match(self.text, word.end) is not None
                )
                return word.text.isupper() and not begins  # not `Dr. X. I saw her`
            if is_particle(word):
                return self.state.name_ahead(index + 1)
            return (self.state.family_like(word) or not word.ordinary) and not self._labels(index)
        if not GAP.fullmatch(gap):
            return False
        if "\n" in gap:
            return "-" in gap and not word.classes & LexicalClass.FUNCTION
        if '"' in gap or "(" in gap or "'" in gap:
            return self._quoted(last, word, gap, index, trust)
        if self._word_ends_name(first, index, trust):
            return True
        odd = word.ordinary and not is_particle(word)
        if (
            odd
            and index > first + 1
            and last.classes & LexicalClass.USUAL_FAMILY
            and len(word.text) > 1
        ):
            return self._last_of_three(self.words[first], last, word)
        return self._fits(last, word, index, trust)

    def _word_ends_name(self, first: int, index: int, trust: Trust | None) -> bool:
        """Return whether an ordinary capitalised word after a first name at a cue is its surname:
        `Dandan He, RN`.
        """
        word = self.words[index]
        if trust is None or not self._may_be_surname(first, index):
            return False
        weak = word.shouted or trust < Trust.SPOKEN
        fills = (
            word.shouted
            and trust in (Trust.FIELD, Trust.LIST)
            and not word.classes & LexicalClass.FUNCTION
        )
        kind = self.words.classes[first]
        rather_given = kind & LexicalClass.GIVEN or not kind & LexicalClass.FAMILY
        if weak and not ((word.classes & LexicalClass.FAMILY or fills) and rather_given):
            return False
        if _CLEAN.match(self.text, word.end):
            return True
        continues = index == first + 1 and re.match(
            r"[ \t]{1,3}[A-Z]", self.text[word.end : word.end + 4]
        )
        if continues and self._word_ends_name(first, index + 1, trust):
            return True
        if word.shouted:
            titled = trust is Trust.TITLE and _THEN_VERB.match(self.text, word.end)
            return bool(titled) or _IS_OF_AGE.match(self.text, word.end) is not None
        small = (
            word.classes & LexicalClass.FUNCTION and _THEN_SMALL.match(self.text, word.end) is None
        )
        if small:
            return _IS_OF_AGE.match(self.text, word.end) is not None
        return re.match(r"[ \t]+[a-z]", self.text[word.end : word.end + 8]) is not None

    def _may_be_surname(self, first: int, index: int) -> bool:
        """Return whether an ordinary capitalised word follows one or two first names in the same
        letter case and is neither a credential nor a noun of eponyms.
        """
        last = self.words[index - 1]
        word = self.words[index]
        if not word.capital or len(word.text) < 2 or index > first + 2 or not word.ordinary:
            return False
        if (
            last.shouted != word.shouted
            or last.text.islower()
            or len(last.text) < 2
            or self._labels(index)
        ):
            return False
        named = not last.ordinary or (index == first + 2 and not self.words[first].ordinary)
        if not named or word.lower in _NO_SURNAMES or word.text in CREDENTIALS:
            return False
        return (
            word.lower not in word_list("eponym_nouns")
            and word.classes & _SMALL_OR_SURNAME != LexicalClass.FUNCTION
        )

    def _quoted(self, last: Word, word: Word, gap: str, index: int, trust: Trust | None) -> bool:
        """Accept names in quotes or brackets between names: `William "Bud" Smith`."""
        if gap.strip()[:1] in ('"', "'", ")", "]") and gap[:1] in ("\"'])"):
            if (
                gap == '" '
                and word.capital
                and not word.shouted
                and not word.classes & LexicalClass.FUNCTION
            ):
                return len(word.text) > 2
            return word.capital and (
                self._fits(last, word, index, trust) or self.state.family_like(word)
            )
        close = self.text[word.end : word.end + 1]
        if gap[-1:] == "(":
            return close == ")" and not word.ordinary and self._fits(last, word, index, trust)
        named = bool(last.classes & LexicalClass.GIVEN) or not last.ordinary
        opened = word.capital and named and close in ('"', "'")
        return opened or is_particle(word)

    def _last_of_three(self, first: Word, last: Word, word: Word) -> bool:
        """Accept an ordinary word as surname after two first names: Sandra Marie Fox."""
        if (
            not first.classes & LexicalClass.USUAL_GIVEN
            or first.ordinary
            or word.classes & LexicalClass.FUNCTION
        ):
            return False
        usual = (
            last.classes & LexicalClass.USUAL_GIVEN
            and not last.ordinary
            and word.lower not in _NO_SURNAMES
        )
        familiar = word.classes & (LexicalClass.FAMILY if usual else LexicalClass.FAMILIAR)
        familiar = familiar and word.classes & LexicalClass.FAMILY
        return bool(
            familiar and last.classes & LexicalClass.GIVEN and word.capital and not word.shouted
        )

    def _fits(self, last: Word, word: Word, index: int, trust: Trust | None) -> bool:
        trusted = trust is not None and trust >= Trust.FIELD
        if word.text in _GAELIC and (last.lower in _SONS or last.text in _GAELIC):
            return self.state.name_ahead(index + 1) or (
                last.text.islower() and self._small_name_ahead(index + 1)
            )
        if is_particle(word) and not (word.capital and word.listed and len(word.text) > 3):
            if self.state.name_ahead(index + 1) or (
                last.text.islower() and self._small_name_ahead(index + 1)
            ):
                return True
            return (
                trust is not None
                and trust >= Trust.SPOKEN
                and not last.ordinary
                and self._particle_ends(word)
            )
        if not word.capital:
            return self._fits_small(last, word, index, trust)
        if last.text.islower() and last.lower not in PARTICLES:
            return False
        if len(word.text) == 1:
            dotted = self.text[word.end : word.end + 1] == "."
            named = (
                bool(last.classes & LexicalClass.GIVEN)
                or trusted
                or (trust is not None and not last.ordinary)
            )
            return named and (dotted or not (last.ordinary or word.text in "AI"))
        if (
            word.shouted
            and not last.shouted
            and len(last.text) > 1
            and not word.classes & LexicalClass.USUAL_FAMILY
        ):
            return False
        if not word.ordinary:
            return word.listed or trusted or _continues_name(last, word, trust)
        return self._fits_word(last, word, trusted)

    def _fits_small(self, last: Word, word: Word, index: int, trust: Trust | None) -> bool:
        if not last.text.islower():
            return False
        met = trust is not None and trust is not Trust.HINT
        trusted = trust is not None and trust >= Trust.FIELD
        if trusted and not last.ordinary and word.classes & LexicalClass.FAMILY and word.ordinary:
            return _CLEAN.match(self.text, word.end) is not None
        if len(word.text) < 3:
            return (
                len(word.text) == 1
                and (last.listed or not last.ordinary)
                and self.text[word.end : word.end + 1] == "."
            )
        if not word.ordinary:
            return word.listed or trusted or not last.listed or (met and self._small_name(index))
        return self.state.given_like(last) and bool(word.classes & LexicalClass.FAMILIAR)

    def _fits_word(self, last: Word, word: Word, trusted: bool) -> bool:
        """Accept an ordinary word as surname after a first name; in a field also after an unlisted
        word.
        """
        if is_particle(last) and word.listed and not word.classes & LexicalClass.FUNCTION:
            return True
        sure = LexicalClass.GIVEN | LexicalClass.WORD | LexicalClass.EPONYM
        if last.classes & sure == LexicalClass.GIVEN and word.classes & LexicalClass.USUAL_FAMILY:
            return self._any_surname(word)
        inflected = word.lower not in vocabulary() and word.lower not in self.state.note.lower_case
        if (
            last.classes & _GIVEN_ONLY == LexicalClass.USUAL_GIVEN
            and inflected
            and not word.shouted
        ):
            return shaped_like_name(word.text) and word.lower not in _NO_SURNAMES  # `Kevin Spacey`
        after_given = last.classes & LexicalClass.USUAL_GIVEN and not (
            word.shouted and (last.ordinary or not trusted)
        )
        if not self.state.family_like(word) and not (after_given and self._any_surname(word)):
            return False
        given = (
            last.classes & LexicalClass.GIVEN
            or last.lower in PARTICLES
            or not (last.ordinary or last.listed)
        )
        return bool(given) and (
            not word.shouted or trusted or bool(last.classes & LexicalClass.USUAL_GIVEN)
        )

    def _comma_order(self, first: int, index: int, trust: Trust | None) -> bool:
        """Match SMITH, JOHN: a surname, then a first name. An ordinary or unlisted first name
        counts only in a
        field.
        """
        last = self.words[index - 1]
        word = self.words[index]
        trusted = trust is not None and trust >= Trust.FIELD and trust is not Trust.TITLE
        if trusted and len(word.text) == 1:
            return _LONE_INITIAL.match(self.text, word.end) is not None and not self._labels(index)
        if self._labels(index):
            return False
        if not self.state.family_like(last) and not (trusted and self._comma_pair(index - 1, last)):
            return False
        if trusted:
            following = self.words[index + 1] if index + 1 < len(self.words) else None
            return self._given_in_field(index) and (
                bool(word.classes & LexicalClass.USUAL_GIVEN)
                or self.state.closed(index + 1)
                or (
                    following is not None
                    and following.capital
                    and bool(GAP.fullmatch(self.state.gap(index + 1)))
                )
                or _CREDENTIAL_NEXT.match(self.text, word.end) is not None
            )
        usual = word.classes & LexicalClass.USUAL_GIVEN and not word.ordinary
        return index == first + 1 and bool(usual) and rather_surname(last)

    def _listed_end(self, index: int) -> int:
        end = index + 1
        while end < len(self.words) and end - index < MAX_WORDS - 1 and self.words[end].capital:
            if (
                not _IN_FIELD.fullmatch(self.state.gap(end))
                or self.words.classes[end] & LexicalClass.FUNCTION
            ):
                break
            end += 1
        return end

    def _field_ends(self, end: int) -> bool:
        last = self.words[end - 1].end
        return _FIELD_END.match(self.text, last, last + 8) is not None

    def _listed_field(self, index: int) -> int:
        """Return the end of `Name: first, middle, last;`: capitalised words with commas up to a
        semicolon or line
        end.
        """
        end = self._listed_end(index)
        return (
            end
            if self._field_ends(end) and self.words[index].capital
            else self.run(index, Trust.LIST)
        )


def _continues_name(last: Word, word: Word, trust: Trust | None) -> bool:
    """Return whether an unknown word continues a name: after a first name or an unknown word, at a
    cue after any name.
    """
    if word.shouted and not (last.shouted and len(word.text) > 3):
        return False
    if last.classes & LexicalClass.GIVEN or (trust is not None and not last.ordinary):
        return True
    behind = unknown(last) or is_particle(last) or last.text in _GAELIC
    return behind and shaped_like_name(word.text)
