"""Names before a credential, and names supported only by the name lists."""

from __future__ import annotations

import re

from clinveil.lexicons.ambiguity import PARTICLES, LexicalClass, lexical_classes
from clinveil.phi.detection.names.extent import MAX_WORDS
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

_LINE_START = re.compile(r"(?:^|[\r\n])[ \t]*(?:[-*•–]+|\d{1,2}[.)])?[ \t]*(?:(?:signed|by|note by)[: ]+)?\Z|;[ \t]*\Z")
_ADJACENT = PARTICLES | {"jr", "sr"}
_ARTICLES = frozenset(("the", "a", "an", "two", "three", "french"))
_AMOUNT = re.compile(r"[\d#][ \t-]*\Z")
_NAME_OR_WORD = LexicalClass.NAME | LexicalClass.WORD


def _may_begin(written: str) -> bool:
    """Return whether a word may begin a name, judged by the word alone."""
    text, lower, kind = look_up(written)
    return kind & _NAME_OR_WORD != LexicalClass.WORD and text != lower


_MAY_BEGIN = mark(_may_begin)


class ListRuns:
    """Rules for names without a cue before them."""

    def __init__(self, state: NameState, runs: CueRuns) -> None:
        self.state, self.words, self.text, self.run = state, state.words, state.text, runs.run

    def take_before_credential(self, last: int) -> None:
        """Add the capitalised words before a credential that form a name: John Q. Smith, MD."""
        if self.words.texts[last].islower():
            self._take_small_before_credential(last)
            return
        index = last
        while index >= 0 and last - index < MAX_WORDS - 1 and self._may_precede(index, last):
            index -= 1
        run = self.words[index + 1 : last + 1]
        while run and (run[0].classes & LexicalClass.FUNCTION or (run[0].ordinary and not run[0].listed)):
            run, index = run[1:], index + 1
        if run and self._named(run):
            self.state.add(index + 1, last + 1, 0.9, "credential")

    def _may_precede(self, index: int, last: int) -> bool:
        word = self.words[index]
        if not word.capital or (word.ordinary and not (self.state.given_like(word) or self.state.family_like(word))):
            return False
        gap = self.state.gap(index + 1) if index < last else " "
        return "\n" not in gap and bool(GAP.fullmatch(gap) or AFTER_INITIAL.fullmatch(gap))

    def _named(self, run: list[Word]) -> bool:
        full = [word for word in run if len(word.text) > 1]
        if all(word.ordinary for word in full):
            pair = len(full) > 1 and self.state.given_like(full[0]) and self.state.family_like(full[-1])
            return pair or (len(full) == 1 and not full[0].shouted and self.state.family_like(full[0]))
        if len(full) == 1 and len(run) == 1:
            word = full[0]
            return len(word.text) > 2 and (word.listed or (unknown(word) and not word.shouted))
        return any(w.listed or unknown(w) for w in full) and not all(len(w.text) < 3 for w in full)

    def _take_small_before_credential(self, last: int) -> None:
        """Add two lower-case words before a credential: john smith, rn.

        If only a bullet, a number or a word for signing precedes them in their line, they need not be usual names.
        """
        if not last or self.state.gap(last) != " ":
            return
        first, word = self.words[last - 1], self.words[last]
        if not (first.text.islower() and word.text.islower()):
            return
        usual = self.state.given_like(first) and self.state.family_like(word)
        pair = not (first.ordinary and word.ordinary) or (first.listed and word.listed)
        if usual or (pair and _LINE_START.search(self.text, max(0, first.start - 24), first.start)):
            self.state.add(last - 1, last + 1, 0.8, "credential")

    def candidates(self) -> list[int]:
        """Return the indices of the words that may begin a name."""
        return [index for index in self.words.marked(_MAY_BEGIN) if self._supported(index)]

    def _supported(self, index: int) -> bool:
        """Return False for an ordinary or unknown word without a neighbour that could make it a name."""
        kind, texts = self.words.classes[index], self.words.texts
        if kind & _NAME_OR_WORD == LexicalClass.NAME & kind and kind & LexicalClass.NAME:
            return True
        if index + 1 == len(texts) or texts[index + 1] != self.words.lowers[index + 1]:
            return index + 1 < len(texts) or bool(kind & LexicalClass.FAMILIAR)
        if not kind & LexicalClass.NAME:
            return self.words.lowers[index + 1] in PARTICLES
        owned = self.words.written[index] != texts[index] or self.words.lowers[index + 1] in _ADJACENT
        return bool(kind & LexicalClass.FAMILIAR) and (owned or (index > 0 and len(texts[index - 1]) == 1))

    def take(self, index: int) -> None:
        """Add the name that begins at a candidate, if there is one."""
        word = self.words[index]
        if not word.listed:
            self._take_unknown(index, word)
            return
        end = self.run(index, None)
        small = word.lower == "french" and _AMOUNT.search(self.text, max(0, word.start - 4), word.start)
        if small or self.state.before_noun(end) or self.state.before_noun(index + 1):
            return
        if end - index > 1:
            if self._listed_run(index, end) and " ".join(self.words.lowers[index:end]) not in regions():
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
        if len(run) > 1 and all(not w.ordinary and not w.shouted and w.lower not in small for w in run):
            self.state.add(index, end, 0.6, "two unknown words")

    def _unknown_before(self, index: int) -> int:
        """Return the start of a name, including a preceding unknown capitalised word: Vickilyn Reynolds."""
        before = self.words[index - 1] if index else None
        if before is None or index - 1 in self.state.taken or self.words[index].shouted or self.state.gap(index) != " ":
            return index
        given = before.classes & LexicalClass.GIVEN and not before.classes & LexicalClass.FUNCTION
        named = given and before.ordinary and len(before.text) > 2
        fits = named and before.capital and not before.shouted and shaped_like_name(before.text)
        return index - 1 if fits else index

    def _listed_run(self, index: int, end: int) -> bool:
        run = [word for word in self.words[index:end] if len(word.text) > 1]
        first = run[0].classes
        if self.words[index].shouted:
            return len(run) > 1 and all(word.listed and not word.ordinary for word in run)
        if all(word.classes & LexicalClass.EPONYM for word in run):
            return bool(first & LexicalClass.USUAL_GIVEN)
        if first & LexicalClass.WORD:  # a first name that is a word needs a usual surname: May Rose
            small = first & LexicalClass.FUNCTION and not first & LexicalClass.USUAL_GIVEN
            usual = any(w.listed and not w.ordinary and w.classes & LexicalClass.USUAL_FAMILY for w in run)
            return bool(first & LexicalClass.GIVEN) and not small and usual
        return len(run) > 1 or bool(first & LexicalClass.GIVEN)

    def _lone(self, index: int, word: Word) -> bool:
        """Accept one capitalised listed word: a usual name that is not a word or an eponym, here or elsewhere in
        the note.
        """
        if len(word.text) < 3 or word.classes & (LexicalClass.WORD | LexicalClass.EPONYM):
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
            len(part) > 1 and lexical_classes(part) & LexicalClass.NAME for part in word.text.split("-")
        ):
            return False
        given = word.classes & LexicalClass.GIVEN and len(word.text) > 3
        usual = word.classes & (LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY)
        return bool(given or usual) and word.lower not in self.state.eponymous
