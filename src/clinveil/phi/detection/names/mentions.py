"""Further mentions of the names detected in a note: same words, and adjacent ones."""

from __future__ import annotations

import re

from clinveil.lexicons import PARTICLES, LexicalClass, name_form, word_list
from clinveil.phi.detection.names.kinds import is_within_phrase
from clinveil.phi.detection.names.state import NameState
from clinveil.phi.detection.note import Word, begins_small, look_up
from clinveil.phi.matching.wordtable import mark

_STOPS = ".!?:\n"
SAYS = re.compile(
    r"(?!(?-i:[ ][A-Z][a-z]))(?:,\s+(?:who|whose|a|an)\b|\s+(?:later|first|originally|initially"
    r"|recently|subsequently|never"
    r"|always|often|then|now|still|just|again|herself|himself)\b|\s+(?:[a-z]+-)?[a-z]{2,}ed\b"
    r"|(?:\s+|,\s+who\s+)(?:states?|reports?|denies|is|was|has|had|presents|says|said|will|also|and"
    r"|does|did|feels|lives"
    r"|came|went|left|agrees|slept|felt|continues|remains|understands|wants|needs|can|could|would"
    r"|should|may|notes|recalls"
    r"|admits|underwent|rose|began|became|found|made|took|won|told|spoke|gave|got|ate|grew|lost|met"
    r"|saw|drove|spent|wrote"
    r"|co-wrote|owns|sang|ran|sold|taught|led|held|knew|thought|bought|brought|kept|paid|sent|built"
    r"|fell|fought|broke)\b)",
    re.I,
)
_GUESS = 0.6  # score of runs with ordinary words that are not searched for
_ODD = mark(lambda word: not (look_up(word)[1].isascii() and look_up(word)[1].isalpha()))


class Mentions:
    """Rules for further mentions of detected names."""

    def __init__(self, state: NameState) -> None:
        self.state = state
        self.words = state.words
        self.text = state.text
        self.exact: set[str] = set()
        self.full: set[str] = set()  # family names of full names

    def take(self) -> None:
        """Add all mentions in the note."""
        forms = self._forms()
        self.exact = {self.words.texts[i] for i in self.state.taken}
        self.full = {
            self.words.lowers[run.end - 1]
            for run in self.state.runs
            if run.score > _GUESS and run.end - run.start > 1
        }
        if not forms:
            return
        odd = {self.words.lowers[index] for index in self.words.marked(_ODD)}
        lowers = forms.intersection(
            self.words.lowers
        ) | {  # hyphenated words are also compared by part
            w
            for w in odd
            if name_form(w) in forms
            or ("-" in w and any(name_form(p) in forms for p in w.split("-")))
        }
        for index in [i for i, lower in enumerate(self.words.lowers) if lower in lowers]:
            if index not in self.state.taken and self._other_mention(index, self.words[index]):
                self.state.add(index, index + 1, 0.7, "found elsewhere in the note")
        self._take_adjacent()

    def _take_adjacent(self) -> None:
        """Add words of names next to each other, including ordinary and short ones: `qi, mei`, `mei
        qi`.
        """
        lowers = self.words.lowers
        pairs = set[tuple[str, str]]()
        for run in self.state.runs:
            row = [lower for lower in lowers[run.start : run.end] if len(lower) > 1]
            pairs.update((word, other) for word in row for other in row if word != other)
        for index in [i for i in sorted(self.state.taken) if i]:
            for other in (index - 1, index + 1):
                free = other < len(lowers) and other not in self.state.taken
                if (
                    free
                    and (lowers[index], lowers[other]) in pairs
                    and self.state.gap(max(index, other)) in (" ", ", ")
                ):
                    self.state.add(other, other + 1, 0.7, "found elsewhere in the note")

    def _forms(self) -> set[str]:
        """Return the normalised forms of all words of names, and of the parts of hyphenated
        ones.
        """
        kinds = self.words.classes
        sure = {
            i for run in self.state.runs if run.score > _GUESS for i in range(run.start, run.end)
        }
        texts = [
            text
            for i in self.state.taken
            if len(text := self.words.texts[i]) > 2
            and (i in sure or not kinds[i] & LexicalClass.WORD)
        ]
        parts = [
            part
            for text in texts
            for part in (text, *(text.split("-") if "-" in text else ()))
            if len(part) > 2
        ]
        return {name_form(part) for part in parts} - PARTICLES

    def _other_mention(self, index: int, word: Word) -> bool:
        if is_within_phrase(self.state, index, index + 1):
            return False
        full = word.lower in self.full and not word.classes & LexicalClass.EPONYM
        if not full and self.state.before_noun(index + 1):
            return False
        other = self.state.abbreviated(index) and word.text not in self.exact
        if other and (word.ordinary or word.lower in word_list("shorthand")):
            return False  # GERD, of a Mrs. Gerd
        double = "-" in word.text and all(
            not begins_small(part) for part in word.text.split("-") if part
        )
        if not word.ordinary or double:
            return word.capital or len(word.text) > 3
        if word.shouted and word.text not in self.exact:
            return False  # `FAMILY HISTORY`, of a Mr. Family
        if not word.capital or other or word.classes & LexicalClass.FUNCTION:
            return False
        before = self.text[: word.start].rstrip(" \t")[-1:]
        if before not in _STOPS and before != "":
            return index == 0 or self.words.lowers[index - 1] not in ("the", "a", "an", "no")
        return bool(SAYS.match(self.text, word.end)) or self.text[word.end : word.end + 2] == "'s"
