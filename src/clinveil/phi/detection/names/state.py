"""State of the name search in one note, and tests of a word and its neighbours that all rules
share.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from clinveil.lexicons import (
    PARTICLES,
    LexicalClass,
    all_given_names,
    lexical_classes,
    surnames,
    word_list,
)
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.names import cue_words
from clinveil.phi.detection.names.cue_words import NO_NAMES
from clinveil.phi.detection.names.cues import Trust, credentials
from clinveil.phi.detection.note import NoteView, Word, begins_small, look_up
from clinveil.phi.matching.wordtable import mark

GAP = re.compile(
    r"[ \t]{1,6}|[ \t]*\r?\n[ \t]*|_|-[ \t]*\r?\n?|[ \t]+[\"'(\[]|[\"')\]][ \t]+|["
    r" \t]+[asd]/[lopr][ \t]+"
)
AFTER_INITIAL = re.compile(r"\.?[ \t]{0,2}|\.?[ \t]*[\"(]")
CLOSED = re.compile(
    r"[\"')\]]?[.,]?[ \t]*(?:$|[;\r\n|/\])}\t]|[ \t]{2}|,[ \t]*(?:[A-Z]{2}|[A-Z]\.[A-Z])|\(|\d|- )"
)
# Lower-case particles that do not begin a name in ordinary English text.
_LEADING = PARTICLES - words(
    "den do e i y a la lo le te op ben st mac nic ab santa san di am en ur av af t"
)
_TIGHT = (" ", "-", " '")
_GRADE = re.compile(r" (?:[IVX]{1,4}|[A-D])(?![\w.])")  # `Weber B`, `Salter II`
_OF_EPONYM = re.compile(r"'?s?[ \n-]?[ \n]?")
# After a thing: a dose, a trade mark, the result of a sign, a verb with another subject than a
# person.
_THING = re.compile(
    r"\)?[ ,]{1,2}\d[\d.,/-]*[ ]?(?:mg|mcg|g|ml|mL|mEq|units?|IU|%|tab(?:let)?s?)(?!\w)"
    r"|[\xae\u2122]"
    r"|[ ](?:(?:pos|neg)\b(?![ ]for)|[+-]ve\b)|[ ](?:(?:had|has|have)[ ]been|was|were|is|are)[ ]"
    r"(?:(?:then|also|again|next)[ ])?(?:laid|instilled|inserted|introduced|used|utilized|applied"
    r"|performed|sutured"
    r"|injected|irrigated|tied|suggested|prescribed|recommended|ordered"
    r"|(?:taken|removed)(?![ ](?:to|from|by|off|out)))\b"
)


_OWNED_TERMS = words(
    "disease syndrome sign signs test tests palsy sarcoma lymphoma tumor tumour contracture"
    " fracture classification"
    " criteria score scale maneuver manoeuvre law triad reflex phenomenon procedure operation"
    " catheter solution node"
    " nodes body bodies chorea thyroiditis ataxia encephalopathy dementia anemia neuroma fascia"
    " ligament tendon cyst"
    " esophagus ring membrane canal duct gland glands line lines position incision approach point"
    " angle triangle"
    " hernia ulcer spots spot granulomatosis disorder forceps retractor clamp needle tube"
)
_HEARD = re.compile(r"[ ]sounds[ ](?!were|was|are|used|up|from|to)[a-z]")
_NOUN = mark(lambda word: look_up(word)[1] in word_list("eponym_nouns"))
_SENTENCE_END = re.compile(r"\n|(?<=\w\w)\.[ ]")
_VERBS = cue_words.SAYS | cue_words.DOES | {"went"}
_PERSON = re.compile(r"(?:er|or|ist|ian|ant)s?\Z")
_LABEL_BEFORE = re.compile(r"([A-Za-z]+)[ ]?:[^:.;]*\Z")
_ITEM_BEFORE = re.compile(r"([^,;:.]+),[ ]?\Z")
_ITEM_AFTER = re.compile(r"\A[ ]?\d*,[ ]?([^,;:.]+)")
_OWNED = cue_words.CHARTED | {"patients"}
_INTO = words("in from to of near outside")
_NEAR = 400  # characters of a line on either side of a word
_FEW_CAPITALS = 150  # words for each capitalised one
_LONG = 5  # letters; shorter upper-case words are mostly abbreviations


class NameRun(NamedTuple):
    """A name: a half-open run of word indices, its score, and the rule that matched."""

    start: int
    end: int
    score: float
    why: str


class NameState:
    """The names of one note detected so far."""

    def __init__(self, note: NoteView) -> None:
        self.note = note
        self.words = note.words
        self.text = note.plain
        self.taken: set[int] = set()
        self.runs: list[NameRun] = []

    def add(self, start: int, end: int, score: float, why: str) -> None:
        """Add a run, extended by an initial or particles before it (`J. Smith`). An empty run is
        ignored.
        """
        if start >= end:
            return
        while start and self._initial_before(start):
            start -= 1
        first = start
        texts = self.words.texts
        while (
            first
            and texts[first - 1] in PARTICLES
            and first - 1 not in self.taken
            and self.gap(first) in _TIGHT
        ):
            first -= 1
        while first < start and texts[first] not in _LEADING:
            first += 1
        self.taken.update(range(first, end))
        self.runs.append(NameRun(first, end, score, why))

    def _initial_before(self, start: int) -> bool:
        """Return whether a capital with a full stop precedes a run: `I. Sagna`; not one that ends a
        sentence.
        """
        last = self.words.texts[start - 1]
        if (
            len(last) > 1
            or not last.isupper()
            or start - 1 in self.taken
            or self.words.texts[start].islower()
        ):
            return False
        if start > 1 and self.words.classes[start - 2] & LexicalClass.EPONYM:
            return False  # `Child-Pugh C. Killip III`
        return self.gap(start) in (". ", ".")

    def gap(self, index: int) -> str:
        """Return the text between a word and the word before it."""
        last = index - 1
        return self.text[
            self.words.starts[last] + len(self.words.texts[last]) : self.words.starts[index]
        ]

    def neighbour(self, index: int) -> Word | None:
        """Return the next word if only space or the dot of an initial separates it."""
        if index + 1 >= len(self.words):
            return None
        gap = self.gap(index + 1)
        if GAP.fullmatch(gap) or (
            len(self.words.texts[index]) == 1 and AFTER_INITIAL.fullmatch(gap)
        ):
            return self.words[index + 1]
        return None

    def closed(self, end: int) -> bool:
        """Return whether a field's value ends before word `end`: line end, wide space, bracket or
        credential.
        """
        last = self.words[end - 1]
        return bool(CLOSED.match(self.text, last.end, last.end + 12)) or last.end == len(self.text)

    def upper_context(self, index: int) -> bool:
        """Return whether the words before or after are all upper case, so that case is not
        evidence.
        """
        return self._all_upper(max(0, index - 3), index) or self._all_upper(index + 1, index + 4)

    def abbreviated(self, index: int) -> bool:
        """Return whether a word is short and upper case in a mixed-case line, as abbreviations are:
        MI, GERD.
        """
        text = self.words.texts[index]
        return (
            len(text) < _LONG and len(text) > 1 and text.isupper() and not self.upper_context(index)
        )

    def _all_upper(self, start: int, end: int) -> bool:
        texts = self.words.texts[start:end]
        kinds = self.words.classes[start:end]
        long = [(text, kind) for text, kind in zip(texts, kinds, strict=True) if len(text) > 1]
        shouted = len(long) > 1 and all(text.isupper() for text, _ in long)
        return shouted and any(kind & LexicalClass.WORD and len(text) > 2 for text, kind in long)

    def before_noun(self, end: int) -> bool:
        """Return whether the word at `end` makes the word before it an eponym: `Foley catheter`,
        `Murphy's sign`.

        A capitalised word on the next line does not count, nor a word that labels a field.
        """
        graded = (
            end
            and self.words.classes[end - 1] & LexicalClass.EPONYM
            and _GRADE.match(self.text, self._end(end - 1))
        )
        if graded and not (
            end > 1
            and self.words.classes[end - 2] & LexicalClass.GIVEN
            and self.gap(end - 1) == " "
        ):
            return True
        if end and _THING.match(self.text, self._end(end - 1)):
            return True
        # Murphy and McBurney sign.
        if end + 2 < len(self.words) and self.words.lowers[end] in (
            "and",
            "or",
        ):
            pair = self.words.classes[end - 1] & self.words.classes[end + 1] & LexicalClass.EPONYM
            return (
                bool(pair)
                and self.gap(end) == self.gap(end + 1) == " "
                and self.before_noun(end + 2)
            )
        if end >= len(self.words) or self.words.lowers[end] not in word_list("eponym_nouns"):
            return False
        gap = self.gap(end)
        owned = gap.startswith("'") and not self.words.classes[end - 1] & LexicalClass.EPONYM
        if (owned and self.words.lowers[end] not in _OWNED_TERMS) or _HEARD.match(
            self.text, self._end(end - 1)
        ):
            return False  # `Okafor's gait`, but `Okafor's disease`
        if (
            not _OF_EPONYM.fullmatch(gap)
            or self.text[self._end(end) : self._end(end) + 3].lstrip()[:1] == ":"
        ):
            return False
        return "\n" not in gap or self.words.texts[end][0].islower()

    def after_noun(self, index: int) -> bool:
        """Return whether a noun of eponyms and `of` precede a word: `knot of Henry`, but not `chart
        of Smith`.
        """
        noun = (
            self.words.lowers[index - 2]
            if index > 1 and self.words.lowers[index - 1] == "of"
            else ""
        )
        return noun in word_list("eponym_nouns") and noun not in _OWNED

    def before_adjectives_and_noun(self, index: int) -> bool:
        """Return whether up to three words and an eponym's noun follow: `Greenwood bipolar
        forceps`.
        """
        for end in range(index + 2, min(index + 5, len(self.words))):
            kind = self.words.classes[end - 1]
            small = self.words.texts[end - 1].islower() and self.gap(end - 1) == " "
            if (
                not small
                or kind & LexicalClass.FUNCTION
                or self.words.lowers[end - 1] in _VERBS | cue_words.LIVES
            ):
                return False
            if self.before_noun(end):
                return True
        return False

    def terse(self, index: int) -> bool:
        """Return whether the sentence of a word has no function word near it, as in lists and in
        terse notes.
        """
        offset = self.words.starts[index]
        low = max(0, offset - _NEAR)
        high = min(len(self.text), offset + _NEAR)
        start = max(
            (match.end() for match in _SENTENCE_END.finditer(self.text, low, offset)), default=low
        )
        after = _SENTENCE_END.search(self.text, offset, high)
        sentence = slice(
            *(
                bisect_left(self.words.starts, offset_of_word)
                for offset_of_word in (start, after.start() if after else high)
            )
        )
        words = zip(self.words.classes[sentence], self.words.lowers[sentence], strict=True)
        return not any(
            (kind & LexicalClass.FUNCTION and len(lower) > 1) or lower in _VERBS
            for kind, lower in words
        )

    def among_terms(self, first: int, end: int) -> bool:
        """Return whether words of a terse line are in a list of terms: `Diet: Atkins, Huel`, `Lap
        band, Sachs`.
        """
        if not self.terse(first):
            return False
        start = self.words.starts[first]
        stop = self._end(end - 1)
        before = self.text[max(self.text.rfind("\n", 0, start) + 1, start - _NEAR) : start]
        after = self.text[stop : stop + _NEAR].partition("\n")[0]
        label = _LABEL_BEFORE.search(before)
        items = [*_ITEM_BEFORE.findall(before), *_ITEM_AFTER.findall(after)]
        others = [
            item.split()
            for item in items
            if not cue_words.SERVICES.issuperset(item.lower().split())
        ]
        terms = any(all(map(_is_term, item)) for item in others)
        usual = any(kind & LexicalClass.USUAL_GIVEN for kind in self.words.classes[first:end])
        if label and label[1].lower() in cue_words.SERVICES | {
            "care",
            "service",
            "team",
            "consult",
        }:
            return False
        if label and label[1].lower() not in cue_words.OF_PERSONS and not _PERSON.search(label[1]):
            listed = (items or "," in after[:4]) and not usual
            return terms or bool(listed) or all(word.ordinary for word in self.words[first:end])
        return terms and not usual

    def labelled_term(self, first: int) -> bool:
        """Return whether the label before a word is none of persons: `Diet: Atkins, Slimming
        World`.
        """
        start = self.words.starts[first]
        label = _LABEL_BEFORE.search(
            self.text, max(self.text.rfind("\n", 0, start) + 1, start - _NEAR), start
        )
        return (
            label is not None
            and label[1].lower() not in cue_words.OF_PERSONS
            and not _PERSON.search(label[1])
        )

    def in_region(self, index: int) -> bool:
        """Return whether a word is a state or a country after a preposition or a comma: `from
        Maine`.
        """
        if (
            index == 0
            or self.words.lowers[index] not in regions()
            or self.words.texts[index].islower()
        ):
            return False
        if (
            index > 1
            and self.words.lowers[index - 1] == "and"
            and self.words.lowers[index - 2] in regions()
        ):
            return True
        return self.gap(index) == ", " or self.words.lowers[index - 1] in _INTO

    @cached_property
    def mostly_small(self) -> bool:
        """Whether the note has hardly any capitals, so that lower case says nothing about a
        word.
        """
        texts = self.words.texts
        return sum(not begins_small(text) for text in texts) * _FEW_CAPITALS < len(texts)

    def _end(self, index: int) -> int:
        return self.words.starts[index] + len(self.words.texts[index])

    @cached_property
    def eponymous(self) -> frozenset[str]:
        """The words that precede an eponym's noun anywhere in the note."""
        return frozenset(
            self.words.lowers[i - 1] for i in self.words.marked(_NOUN) if i and self.before_noun(i)
        )

    @cached_property
    def before_credentials(self) -> frozenset[int]:
        """The indices of the words before a credential."""
        return frozenset(credentials(self.note))

    def given_like(self, word: Word, *, any_word: bool = False) -> bool:
        """Return whether a word can be a first name. Ordinary words must be usual names unless
        `any_word`.
        """
        if word.lower in NO_NAMES:
            return False
        if any_word and word.classes & LexicalClass.FUNCTION:
            return False
        strict = word.ordinary and not any_word
        return bool(word.classes & (LexicalClass.USUAL_GIVEN if strict else LexicalClass.GIVEN))

    def family_like(self, word: Word) -> bool:
        """Return whether a capitalised word can be a surname. Ordinary words must be usual
        surnames.
        """
        if word.classes & LexicalClass.FUNCTION or word.lower in NO_NAMES:
            return False
        if word.ordinary:
            return bool(
                word.classes & LexicalClass.USUAL_FAMILY and word.classes & LexicalClass.FAMILIAR
            )
        return word.listed or unknown(word) or word.lower in word_list("syllables")

    def name_ahead(self, index: int) -> bool:
        """Return whether a name follows a particle at `index - 1`: a capitalised word that is not a
        function word.
        """
        return any(
            w.capital and not w.classes & LexicalClass.FUNCTION and (not w.ordinary or w.listed)
            for w in self.words[index : index + 3]
            if not is_particle(w)
        )


@cache
def regions() -> frozenset[str]:
    """Return the states and countries in lower case."""
    return frozenset(name.lower() for name in word_list("states") | word_list("countries"))


def _is_term(word: str) -> bool:
    """Return whether a word is ordinary or an eponym, and rare as a name."""
    kind = lexical_classes(word)
    term = kind & (LexicalClass.WORD | LexicalClass.EPONYM) and not kind & LexicalClass.FAMILIAR
    return bool(term) or not word.isalpha()


def is_particle(word: Word) -> bool:
    """Return whether a word is a particle of names. Single letters count only in lower case."""
    return word.lower in PARTICLES and (len(word.text) > 1 or word.text.islower())


@lru_cache(maxsize=1 << 14)
def syllabic(lower: str) -> bool:
    """Return whether a word is two syllables of Korean or Chinese given names: jiaying."""
    known = word_list("syllables")
    return any(
        lower[:split] in known and lower[split:] in known for split in range(2, len(lower) - 1)
    )


def unknown(word: Word) -> bool:
    """Return whether a word of three letters or more is in no list of names or words."""
    return not word.classes & (LexicalClass.NAME | LexicalClass.WORD) and len(word.text) > 2


def shaped_like_name(word: str) -> bool:
    """Return whether capitals occur only where names have them: Smith, McCoy, O'Brien, not SaO."""
    return all(
        part[1:].islower()
        or part[:2] in ("Mc", "De", "La", "Di", "Le", "Fi", "Du", "Va")
        or part[:3] == "Mac"
        for part in re.split("[-']", word)
        if len(part) > 1
    )


COMMA = re.compile(r"[ \t]?,[ \t]{0,2}")
_LABEL = re.compile(r"[ \t]?:")
_ENDS = re.compile(r"'s\b|[ \t]*(?:[,.;:?!)\]\"\r\n|<(]|$)|[ \t]{2}| - | and\b", re.I)
_VOWEL = re.compile("[aeiouy]")


class Pairs:
    """Tests of a word and its neighbours."""

    def __init__(self, state: NameState) -> None:
        self.state = state
        self.words = state.words
        self.text = state.text

    def _labels(self, index: int) -> bool:
        """Return whether a word is the label of the next field."""
        return bool(_LABEL.match(self.text, self.words[index].end))

    def _any_surname(self, word: Word) -> bool:
        small = word.classes & LexicalClass.FUNCTION or word.lower in NO_NAMES
        return bool(word.classes & LexicalClass.FAMILY) and not small

    def _pair(self, index: int, word: Word, trust: Trust) -> bool:
        """Return whether a first name and a surname begin here, including ordinary words and two
        unknown words.
        """
        following = self.state.neighbour(index)
        if following is None or "\n" in self.state.gap(index + 1):
            return False
        if is_particle(following):
            return (self.state.given_like(word) or not word.ordinary) and self.state.name_ahead(
                index + 2
            )
        if not following.capital:
            return False
        if len(following.text) == 1:  # an initial
            last = self.state.neighbour(index + 1)
            dotted = self.text[following.end : following.end + 1] == "."
            if (
                last is None
                or not last.capital
                or not (self.state.given_like(word) or not word.ordinary)
            ):
                return False
            return dotted and self.state.family_like(last) and not self._labels(index + 2)
        loose = trust >= Trust.KIN or bool(
            following.classes & LexicalClass.USUAL_FAMILY and not following.ordinary
        )
        if following.shouted != word.shouted or self._labels(index + 1):
            return False
        if self._word_ends_name(index, index + 1, trust) and (
            trust >= Trust.SPOKEN or word.listed or syllabic(word.lower)
        ):
            return True
        if self.state.given_like(word, any_word=loose):
            sure = word.classes & LexicalClass.USUAL_GIVEN and not word.ordinary
            return self.state.family_like(following) or bool(sure and self._any_surname(following))
        return (
            not word.ordinary
            and len(word.text) > 2
            and not following.ordinary
            and len(following.text) > 2
        )

    def _word_ends_name(self, first: int, index: int, trust: Trust | None) -> bool:
        """Return whether a capitalised word ends a name."""
        raise NotImplementedError

    def _comma_pair(self, index: int, word: Word) -> bool:
        """Match `Wood, Mark` in a field: a surname, a comma, and a possible first name, all
        ordinary words.
        """
        if index + 1 >= len(self.words) or not COMMA.fullmatch(self.state.gap(index + 1)):
            return False
        following = self.words[index + 1]
        sure = (
            following.classes & LexicalClass.USUAL_GIVEN
            and not following.ordinary
            and self._any_surname(word)
        )
        return (self.state.family_like(word) or bool(sure)) and self._given_in_field(index + 1)

    def _given_in_field(self, index: int) -> bool:
        word = self.words[index]
        small = begins_small(word.text) and not begins_small(self.words.texts[index - 1])
        if small or len(word.text) < 2 or self._labels(index) or word.lower in NO_NAMES:
            return False
        return self.state.given_like(word, any_word=True) or (
            not word.ordinary and (word.listed or unknown(word))
        )

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
        return (
            bool(word.classes & LexicalClass.FAMILY)
            and _ENDS.match(self.text, word.end) is not None
        )

    def _small_pair(self, index: int) -> bool:
        following = self.state.neighbour(index)
        word = self.words[index]
        if following is None or following.capital:
            return False
        if is_particle(following):
            ahead = self._small_name_ahead(index + 2) or self._particle_ends(following)
            return (self.state.given_like(word) or not word.ordinary) and ahead
        if (
            len(following.text) == 2
            and not following.ordinary
            and following.classes & LexicalClass.FAMILY
        ):
            return self._small_name(index)
        if (
            len(following.text) == 1
            and self.text[following.end : following.end + 1] == "."
            and len(word.text) > 2
        ):
            return bool(word.classes & LexicalClass.GIVEN) or not word.ordinary
        if len(following.text) < 3:
            return False
        if self.state.given_like(word) and not following.classes & LexicalClass.FUNCTION:
            return self.state.family_like(following)
        return self._small_name(index) and self._small_name(index + 1)


def rather_surname(word: Word) -> bool:
    """Return whether a word is more frequent as a surname than as a first name."""
    if not word.classes & LexicalClass.USUAL_GIVEN:
        return True
    return surnames().get(word.lower, 0.0) > all_given_names().get(word.lower, 0.0)
