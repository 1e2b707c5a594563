"""Names before a credential, and names supported only by the name lists."""

from __future__ import annotations

import re

from clinveil.lexicons import PARTICLES, LexicalClass, lexical_classes
from clinveil.phi.detection.names.cue_words import DOES, LIVES, OF_PERSONS, SAYS
from clinveil.phi.detection.names.extent import MAX_WORDS
from clinveil.phi.detection.names.kinds import MONTHS, fills_section, is_term
from clinveil.phi.detection.names.runs import CueRuns
from clinveil.phi.detection.names.state import (
    AFTER_INITIAL,
    GAP,
    NameState,
    is_particle,
    regions,
    shaped_like_name,
    unknown,
)
from clinveil.phi.detection.note import Word, look_up
from clinveil.phi.matching.wordtable import mark

_LINE_START = re.compile(
    r"(?:^|[\r\n])[ \t]*(?:[-*•–]+|\d{1,2}[.)])?[ \t]*(?:(?:signed|by|note by)[: ]+)?\Z|;[ \t]*\Z"
)
_ADJACENT = PARTICLES | {"jr", "sr"}
_FIGURES = frozenset(("christ", "buddha", "allah", "krishna", "jehovah"))
_POSSESSIVES = frozenset(("his", "her", "their", "my", "our", "your", "its"))
_PLURAL_VERB = re.compile(r"[ ](?:are|were|have)\b")
_ARTICLES = frozenset(("the", "a", "an", "two", "three", "french"))
_ADVERBS = frozenset(
    [
        "today",
        "yesterday",
        "tonight",
        "overnight",
        "now",
        "then",
        "later",
        "sadly",
        "fortunately",
        "unfortunately",
        "apparently",
        "currently",
    ]
)
_ALSO_OF_THINGS = frozenset(
    ("remains", "remained", "became", "began", "started", "looks", "seems", "appears", "takes")
)
_AMOUNT = re.compile(r"[\d#][ \t-]*\Z")
_NAME_OR_WORD = LexicalClass.NAME | LexicalClass.WORD
_SURE = LexicalClass.WORD | LexicalClass.EPONYM
# What follows a person: an age, a year of birth, a verb of a person, a relative clause.
_PERSON_AFTER = re.compile(
    r"(?:[ ]{1,2}\((?:born|also|formerly|known|n[eé]e|c\.|\d|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep"
    r"|Oct|Nov|Dec)"
    r"|,[ ](?:also|better|formerly|now|then|sometimes)[ ]|,?[ ]\(?(?:born\b|née\b|age[d]?\b"
    r"|\d\d?\d?[ ]?(?:[MF]\b|y\.?/?o\b|year|yr|month|[,)]))|,[ ](?:who|whose|an?|the|\d)\b"
    r"|[ ](?:is|was|has|had|will|does|did)[ ](?:not[ ]|also[ ]|now[ ]|still[ ]|since[ ])?(?:an?|the"
    r"|in|seen|admitted|brought"
    r"|born|referred|discharged|transferred|known|able|unable|under|on|her|his|our|my|alone|alive"
    r"|awake|alert|doing|been|no"
    r"|married|divorced|retired|accompanied|living|working|feeling|well|stable|diagnosed|treated"
    r"|found|evaluated|asked"
    r"|told|informed|present|agreed|better|worse|fine|seen)\b|'s[ ])"
)


def _may_begin(written: str) -> bool:
    """Return whether a word may begin a name, judged by the word alone; in lower case a usual one
    only.
    """
    text, lower, kind = look_up(written)
    if text == lower:
        return bool(kind & LexicalClass.USUAL_GIVEN) and not kind & _SURE
    return kind & _NAME_OR_WORD != LexicalClass.WORD


_MAY_BEGIN = mark(_may_begin)


class ListRuns:
    """Rules for names without a cue before them."""

    def __init__(self, state: NameState, runs: CueRuns) -> None:
        self.state = state
        self.words = state.words
        self.text = state.text
        self.run = runs.run

    def take_before_credential(self, last: int) -> None:
        """Add the words before a credential that form a name: John Q. Smith, MD; `l. xu, rn` on a
        line of its own.
        """
        if self._initialled(last):
            self.state.add(last - 1, last + 1, 0.9, "credential")
            return
        if self.words.texts[last].islower():
            self._take_small_before_credential(last)
            return
        index = last
        while index >= 0 and last - index < MAX_WORDS - 1 and self._may_precede(index, last):
            index -= 1
        run = self.words[index + 1 : last + 1]
        while run and (
            run[0].classes & LexicalClass.FUNCTION or (run[0].ordinary and not run[0].listed)
        ):
            run = run[1:]
            index = index + 1
        if run and self._named(run):
            self.state.add(index + 1, last + 1, 0.9, "credential")

    def _initialled(self, last: int) -> bool:
        """Return whether an initial begins a line before a word that is not a function word: `l.
        xu, rn`.
        """
        if (
            not last
            or len(self.words.texts[last - 1]) > 1
            or self.state.gap(last) not in (". ", ".")
        ):
            return False
        same = self.words.texts[last - 1].isupper() != self.words.texts[last].islower()
        start = self.words.starts[last - 1]
        return same and _LINE_START.search(self.text, max(0, start - 24), start) is not None

    def _may_precede(self, index: int, last: int) -> bool:
        word = self.words[index]
        if not word.capital or (
            word.ordinary and not (self.state.given_like(word) or self.state.family_like(word))
        ):
            return False
        gap = self.state.gap(index + 1) if index < last else " "
        return "\n" not in gap and bool(GAP.fullmatch(gap) or AFTER_INITIAL.fullmatch(gap))

    def _named(self, run: list[Word]) -> bool:
        full = [word for word in run if len(word.text) > 1]
        if all(word.ordinary for word in full):
            pair = (
                len(full) > 1
                and self.state.given_like(full[0])
                and self.state.family_like(full[-1])
            )
            return pair or (
                len(full) == 1 and not full[0].shouted and self.state.family_like(full[0])
            )
        if len(full) == 1 and len(run) == 1:
            word = full[0]
            return len(word.text) > 2 and (word.listed or (unknown(word) and not word.shouted))
        return any(w.listed or unknown(w) for w in full) and not all(len(w.text) < 3 for w in full)

    def _take_small_before_credential(self, last: int) -> None:
        """Add two lower-case words before a credential: john smith, rn.

        If only a bullet, a number or a word for signing precedes them in their line, they need not
        be usual names.
        """
        if not last or self.state.gap(last) != " ":
            return
        first = self.words[last - 1]
        word = self.words[last]
        if not (first.text.islower() and word.text.islower()):
            return
        usual = self.state.given_like(first) and self.state.family_like(word)
        pair = not (first.ordinary and word.ordinary) or (first.listed and word.listed)
        if usual or (pair and _LINE_START.search(self.text, max(0, first.start - 24), first.start)):
            self.state.add(last - 1, last + 1, 0.8, "credential")

    def candidates(self) -> list[int]:
        """Return the indices of the words that may begin a name."""
        texts = self.words.texts
        lowers = self.words.lowers
        return [
            index
            for index in self.words.marked(_MAY_BEGIN)
            if (
                self._supported(index) if texts[index] != lowers[index] else self._small_pair(index)
            )
        ]

    def _small_pair(self, index: int) -> bool:
        """Return whether a usual first name and a usual surname follow each other in lower case:
        `john smith`.
        """
        following = self.state.neighbour(index)
        small = (
            self.words[index].text.islower() and following is not None and following.text.islower()
        )
        usual = following is not None and following.classes & LexicalClass.USUAL_FAMILY
        return bool(small and usual and following and not following.classes & _SURE)

    def _supported(self, index: int) -> bool:
        """Return False for an ordinary or unknown word without a neighbour that could make it a
        name.
        """
        kind = self.words.classes[index]
        texts = self.words.texts
        if kind & _NAME_OR_WORD == LexicalClass.NAME & kind and kind & LexicalClass.NAME:
            return True
        if index + 1 == len(texts) or texts[index + 1] != self.words.lowers[index + 1]:
            return index + 1 < len(texts) or bool(kind & LexicalClass.FAMILIAR)
        if not kind & LexicalClass.NAME:
            return self.words.lowers[index + 1] in PARTICLES
        if kind & LexicalClass.USUAL_GIVEN and self._within_sentence(index):
            return True
        owned = (
            self.words.written[index] != texts[index] or self.words.lowers[index + 1] in _ADJACENT
        )
        return bool(kind & LexicalClass.FAMILIAR) and (
            owned or (index > 0 and len(texts[index - 1]) == 1)
        )

    def take(self, index: int) -> None:
        """Add the name that begins at a candidate, if there is one."""
        word = self.words[index]
        if word.text.islower():
            self.state.add(index, index + 2, 0.6, "listed in lower case")
            return
        if not word.listed:
            self._take_unknown(index, word)
            return
        end = self.run(index, None)
        small = word.lower == "french" and _AMOUNT.search(
            self.text, max(0, word.start - 4), word.start
        )
        if small or self.state.before_noun(end) or self.state.before_noun(index + 1):
            return
        if is_term(self.state, index, end):
            return
        if end - index > 1:
            if (
                self._listed_run(index, end)
                and " ".join(self.words.lowers[index:end]) not in regions()
            ):
                self.state.add(self._unknown_before(index), end, 0.8, "listed")
        elif self._lone(index, word):
            self.state.add(self._unknown_before(index), end, 0.6, "listed alone")

    def _take_unknown(self, index: int, word: Word) -> None:
        """Add two or more unlisted words with the shape of names; little else has this shape."""
        if len(word.text) < 3 or word.shouted or not shaped_like_name(word.text):
            return
        following = self.state.neighbour(index)
        if following is None or (following.text.islower() and not is_particle(following)):
            return
        end = self.run(index, None)
        run = [w for w in self.words[index:end] if len(w.text) > 1 and not is_particle(w)]
        small = self.state.note.lower_case
        if all(w.classes & LexicalClass.EPONYM for w in run):
            return
        if self.state.before_noun(end) or self.state.among_terms(index, end):
            return
        if index and self.words.lowers[index - 1] in ("the", "an") and self.state.gap(index) == " ":
            return
        odd = all(not w.ordinary and not w.shouted and w.lower not in small for w in run)
        quoted = self.text[word.start - 1 : word.start] == '"'
        if len(run) > 1 and odd and not quoted and not is_term(self.state, index, end):
            self.state.add(index, end, 0.6, "two unknown words")

    def _unknown_before(self, index: int) -> int:
        """Return the start of a name, including a preceding unknown capitalised word: Vickilyn
        Reynolds.
        """
        before = self.words[index - 1] if index else None
        if (
            before is None
            or index - 1 in self.state.taken
            or self.words[index].shouted
            or self.state.gap(index) != " "
        ):
            return index
        given = before.classes & LexicalClass.GIVEN and not before.classes & LexicalClass.FUNCTION
        # An unknown word also needs a surname that is not a word and no eponym, and not to be an
        # ordinary word here.
        kind = self.words[index].classes
        sure = kind & LexicalClass.USUAL_FAMILY and not kind & _SURE
        odd = unknown(before) and sure and before.lower not in self.state.note.lower_case
        named = odd or (given and before.ordinary and len(before.text) > 2)
        fits = named and before.capital and not before.shouted and shaped_like_name(before.text)
        return index - 1 if fits else index

    def _listed_run(self, index: int, end: int) -> bool:
        run = [word for word in self.words[index:end] if len(word.text) > 1]
        first = run[0].classes
        if self.words[index].shouted:
            return len(run) > 1 and all(word.listed and not word.ordinary for word in run)
        if all(word.classes & LexicalClass.EPONYM for word in run):
            return bool(first & LexicalClass.USUAL_GIVEN)
        if first & LexicalClass.WORD:
            return bool(first & LexicalClass.GIVEN) and self._goes_with_word(end, run)
        return len(run) > 1 or bool(first & LexicalClass.GIVEN)

    def _goes_with_word(self, end: int, run: list[Word]) -> bool:
        """Return whether a surname makes a name of a first name that is also a word: `May Rose`,
        `Robin Ignico`.

        A usual surname that is not a word suffices. A surname that is itself a word, or is in no
        list, needs a second
        cue: what follows is said of a person, and the note has neither word in lower case.
        """
        first = run[0].classes
        if first & LexicalClass.FUNCTION and not first & LexicalClass.USUAL_GIVEN:
            return False
        if any(
            w.listed and not w.ordinary and w.classes & LexicalClass.USUAL_FAMILY for w in run[1:]
        ):
            return True
        named = (
            all(unknown(w) or w.classes & LexicalClass.FAMILIAR for w in run[1:]) and len(run) > 1
        )
        small = any(
            w.shouted or w.lower in self.state.note.lower_case or not shaped_like_name(w.text)
            for w in run
        )
        start = end - len(run)
        before = self.words[start - 1] if start and self.state.gap(start) == " " else None
        # `Watch Grace Ignico`.
        order = before is not None and before.ordinary and not before.listed and not before.shouted
        middle = first & LexicalClass.USUAL_GIVEN and (order or self._within_sentence(start))
        return named and not small and (bool(middle) or self._said_of_person(end))

    def _owned(self, index: int) -> bool:
        """Return whether a possessive pronoun precedes a word: `in her Honda`."""
        return index > 0 and self.words.lowers[index - 1] in _POSSESSIVES

    def _plural(self, index: int) -> bool:
        """Return whether a verb in the plural follows one word: `Winters are the worst`."""
        joined = index > 0 and self.words.lowers[index - 1] in ("and", "or")
        return not joined and _PLURAL_VERB.match(self.text, self.words[index].end) is not None

    def _within_sentence(self, index: int) -> bool:
        """Return whether a word in lower case precedes a word, so that its capital says
        something.
        """
        if index == 0 or self.state.gap(index) != " ":
            return False
        return self.words.texts[index - 1].islower() or self.words.lowers[index - 1] in _ADVERBS

    def _said_of_person(self, end: int) -> bool:
        following = (
            self.words.lowers[end] if end < len(self.words) and self.state.gap(end) == " " else ""
        )
        verb = following in SAYS | DOES | LIVES and following not in _ALSO_OF_THINGS
        return verb or _PERSON_AFTER.match(self.text, self.words[end - 1].end) is not None

    def _lone(self, index: int, word: Word) -> bool:
        """Accept one capitalised listed word: a usual name that is not a word or an eponym, here or
        elsewhere in
        the note.
        """
        if len(word.text) < 3 or word.classes & LexicalClass.EPONYM or word.lower in _FIGURES:
            return False
        usual_given = word.classes & LexicalClass.USUAL_GIVEN
        if not usual_given and (
            self._owned(index) or self._plural(index) or fills_section(self.state, index)
        ):
            return False
        if word.ordinary:  # `Yesterday Rose was better.`
            usual = (
                word.classes & LexicalClass.USUAL_GIVEN and not word.classes & LexicalClass.FUNCTION
            )
            unusual = (
                word.lower in self.state.note.lower_case or word.shouted or word.lower in MONTHS
            )
            within = self._within_sentence(index) and self.words.lowers[index - 1] not in _ARTICLES
            return bool(usual) and not unusual and within and self._said_of_person(index + 1)
        if index and self.state.gap(index) == " " and not word.classes & LexicalClass.USUAL_GIVEN:
            before = self.words[index - 1]  # `Visual Fields`, `Healing Waters`
            if (
                before.capital
                and before.ordinary
                and not before.listed
                and before.lower not in OF_PERSONS
            ):
                return False
        if self.state.before_adjectives_and_noun(index) or self.state.in_region(index):
            return False
        if word.lower in self.state.note.lower_case or not shaped_like_name(word.text):
            return False
        if self.state.among_terms(index, index + 1) or self.state.after_noun(index):
            return False
        if index and self.words.lowers[index - 1] in _ARTICLES and self.state.gap(index) == " ":
            return False
        if _AMOUNT.search(self.text, max(0, word.start - 4), word.start):
            return False
        if "-" in word.text and not all(
            len(part) > 1 and lexical_classes(part) & LexicalClass.NAME
            for part in word.text.split("-")
        ):
            return False
        given = word.classes & LexicalClass.GIVEN and len(word.text) > 3
        either = word.classes & (LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY)
        return bool(given or either) and word.lower not in self.state.eponymous
