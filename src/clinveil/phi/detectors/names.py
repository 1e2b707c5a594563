"""Names of people: by what stands beside them, by lists of names, and by their other mentions in the note.

A list alone says little (Pain, Drain, Foley and May are surnames): a word that is also an ordinary word or an eponym
counts only with a cue. What was found once is looked for in the rest of the note (section 7 of the tests' cases).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.lexicons.names import name_form
from clinveil.lexicons.words import word_list
from clinveil.phi.detector import detectors, words
from clinveil.phi.detectors._name_cues import PEOPLE, Trust, credentials, cues
from clinveil.phi.note import NoteView, Word

PARTICLES = words("de la van von der den di da del della dos du le bin ibn al el st mac ten ter af av zu y")
_LONGEST = 5
_GAP = re.compile(r"[ \t]{1,2}|[ \t]*\r?\n[ \t]*|_|-[ \t]*\r?\n?")
_AFTER_INITIAL = re.compile(r"\.?[ \t]{0,2}")
_IN_FIELD = re.compile(r"[ \t]?[ ,.][ \t]{0,2}")
_COMMA = re.compile(r"[ \t]?,[ \t]{0,2}")
_SAYS = re.compile(
    r"\s+(?:states?|stated|reports?|reported|denies|denied|is|was|has|had|presents|presented|says|said|will|also|and"
    r"|does|did|feels|lives)\b"
)
# In lower case only usual first names that are no words are worth a look.
_MAYBE_LOWER = LexicalClass.USUAL_GIVEN | LexicalClass.WORD
_STOPS = ".!?:\n"


class _Reader:
    """The names of one note."""

    def __init__(self, note: NoteView) -> None:
        self.note, self.words, self.text = note, note.words, note.plain
        self.taken: dict[int, float] = {}  # word index -> score
        self.runs: list[tuple[int, int, float]] = []
        self._eponyms: frozenset[str] | None = None

    def runs_of_note(self) -> list[tuple[int, int, float]]:
        """Half-open runs of word indices with their scores."""
        for index, trust in sorted(set(cues(self.note)), key=lambda cue: (-cue.trust, cue.word)):
            self._take(index, trust)
        for index in credentials(self.note):
            self._take_backwards(index)
        for index, kind in enumerate(self.words.classes):
            if (
                kind & LexicalClass.NAME
                and index not in self.taken
                and (kind & _MAYBE_LOWER == LexicalClass.USUAL_GIVEN or self._has_capital(index))
            ):
                self._take_listed(index, self.words[index])
        self._propagate()
        return self.runs

    # Runs that begin at a cue.

    def _take(self, index: int, trust: Trust) -> None:
        if index in self.taken or not self._may_begin(index, trust):
            return
        end = self._listed_field(index) if trust is Trust.LIST else self._run(index, trusted=trust >= Trust.FIELD)
        if trust is not Trust.TITLE and self._before_noun(end):
            return
        single = end == index + 1
        if single and trust is Trust.HINT and self.words[index].classes & LexicalClass.EPONYM:
            return
        self._keep(index, end, 0.95 if trust is Trust.TITLE else 0.85)

    def _may_begin(self, index: int, trust: Trust) -> bool:
        word = self.words[index]
        known, ordinary = word.listed, word.ordinary
        if trust is Trust.LIST and word.capital and self._listed_field(index) - index > 1 and not word.shouted:
            return True
        if not word.capital:
            if word.lower in PARTICLES and trust >= Trust.FIELD:
                return any(w.capital and not w.ordinary for w in self.words[index + 1 : index + 3])
            if trust is Trust.TITLE:
                return known and not ordinary
            return bool(trust is not Trust.HINT and word.classes & LexicalClass.USUAL_GIVEN) and not ordinary
        if len(word.text) == 1:
            return (trust is Trust.TITLE and word.text.isupper()) or (
                trust is Trust.FIELD and self._initial_of_name(index)
            )
        if trust is Trust.TITLE:
            return known or not ordinary
        if not known:
            return trust is not Trust.HINT and not ordinary and not word.shouted and len(word.text) > 2
        if not ordinary:
            return True
        return self._word_as_name(index, word)

    def _word_as_name(self, index: int, word: Word) -> bool:
        """An ordinary word after a cue: a usual first name (Hope), or a first name before a surname (May Rose)."""
        if word.shouted or not word.classes & LexicalClass.GIVEN:
            return False
        following = self._neighbour(index)
        if following is not None and following.capital and following.classes & LexicalClass.FAMILY:
            return True
        return bool(word.classes & LexicalClass.USUAL_GIVEN) and word.lower not in self.note.lower_case

    def _initial_of_name(self, index: int) -> bool:
        following = self._neighbour(index)
        return following is not None and following.capital and (following.listed or not following.ordinary)

    # How far a run goes.

    def _listed_field(self, index: int) -> int:
        """`Name: first, middle, last;`: capitalised words with commas, if a semicolon or the line's end follows."""
        end = index + 1
        while end < len(self.words) and end - index < _LONGEST and self.words[end].capital:
            if not _IN_FIELD.fullmatch(self.text[self.words[end - 1].end : self.words[end].start]):
                break
            end += 1
        closed = re.match(r"\.?[ \t]*(?:[;\r\n]|$)", self.text[self.words[end - 1].end :][:8])
        return end if closed else self._run(index, trusted=True)

    def _run(self, index: int, *, trusted: bool) -> int:
        end = index + 1
        while end < len(self.words) and end - index < _LONGEST and self._continues(index, end, trusted):
            end += 1
        while end - index > 1 and self.words[end - 1].lower in PARTICLES:
            end -= 1
        return end

    def _continues(self, first: int, index: int, trusted: bool) -> bool:
        last, word = self.words[index - 1], self.words[index]
        gap = self.text[last.end : word.start]
        if len(last.text) == 1 and last.text.isupper() and _AFTER_INITIAL.fullmatch(gap):
            return word.capital and (
                not word.ordinary or (len(word.text) > 3 and bool(word.classes & LexicalClass.USUAL_FAMILY))
            )
        if index == first + 1 and _COMMA.fullmatch(gap):
            return self._comma_order(last, word)
        if not _GAP.fullmatch(gap):
            return False
        if word.ordinary and ("\n" in gap or (index > first + 1 and last.classes & LexicalClass.USUAL_FAMILY)):
            return False
        return self._fits(last, word, index, trusted)

    def _fits(self, last: Word, word: Word, index: int, trusted: bool) -> bool:
        if word.lower in PARTICLES:
            return any(w.capital and not w.ordinary for w in self.words[index + 1 : index + 3])
        if not word.capital:
            lower = last.text.islower()
            return lower and word.listed and not word.ordinary
        if len(word.text) == 1:
            dotted = self.text[word.end : word.end + 1] == "."
            return (bool(last.classes & LexicalClass.GIVEN) or trusted) and (
                dotted or not (last.ordinary or word.text in "AI")
            )
        if not word.ordinary:
            return word.listed or (not word.shouted and (trusted or bool(last.classes & LexicalClass.GIVEN)))
        surname_like = word.classes & LexicalClass.FAMILY and last.classes & LexicalClass.GIVEN
        return bool(surname_like) and (not word.shouted or (trusted and bool(last.classes & LexicalClass.USUAL_GIVEN)))

    def _comma_order(self, last: Word, word: Word) -> bool:
        """SMITH, JOHN: a surname, then a first name that is no ordinary word."""
        if not (last.classes & LexicalClass.FAMILY or not last.ordinary) or not (last.capital and word.capital):
            return False
        return (
            bool(word.classes & LexicalClass.USUAL_GIVEN)
            and not word.ordinary
            and not last.classes & LexicalClass.USUAL_GIVEN
        )

    def _take_backwards(self, last: int) -> None:
        """John Q. Smith, MD: the capitalised words before a credential, as far as names go."""
        index = last
        while index >= 0 and last - index < _LONGEST - 1:
            word = self.words[index]
            gap = self.text[word.end : self.words[index + 1].start] if index < last else " "
            name = word.capital and (not word.ordinary or (word.listed and not word.shouted))
            if not name or not (_GAP.fullmatch(gap) or _AFTER_INITIAL.fullmatch(gap)) or "\n" in gap:
                break
            index -= 1
        run = self.words[index + 1 : last + 1]
        if all(word.ordinary for word in run):
            return
        if (
            run
            and (any(w.listed for w in run) or len(run) > 1)
            and not all(len(w.text) < 3 or w.shouted for w in run[:1])
        ) or (len(run) > 1 and all(w.listed for w in run if len(w.text) > 1)):
            self._keep(index + 1, last + 1, 0.9)

    # Runs that only the lists speak for.

    def _take_listed(self, index: int, word: Word) -> None:
        if not self._has_capital(index):
            self._take_lower(index, word)
            return
        end = self._run(index, trusted=False)
        if self._before_noun(end) or self._before_noun(index + 1):
            return
        if end - index > 1:
            if self._listed_run(index, end):
                self._keep(index, end, 0.8)
        elif self._lone(index, word):
            self._keep(index, end, 0.6)

    def _take_lower(self, index: int, word: Word) -> None:
        """john smith, or a usual first name alone, in lower case."""
        if word.classes & LexicalClass.EPONYM:
            return
        end = self._run(index, trusted=False)
        if not self._before_noun(end) and (end - index > 1 or word.text in _very_usual()):
            self._keep(index, end, 0.6)

    def _listed_run(self, index: int, end: int) -> bool:
        run = [word for word in self.words[index:end] if len(word.text) > 1]
        sure = [word for word in run if word.listed and not word.ordinary]
        first = run[0].classes
        if self.words[index].shouted:
            return bool(first & (LexicalClass.USUAL_GIVEN | LexicalClass.FAMILY)) and len(sure) == len(run) >= 2
        if first & LexicalClass.WORD:
            initial = end - index > len(run)
            return bool(first & LexicalClass.USUAL_GIVEN) and (
                initial or any(w.classes & LexicalClass.USUAL_FAMILY for w in sure)
            )
        if all(word.classes & LexicalClass.EPONYM for word in run):
            return bool(first & LexicalClass.USUAL_GIVEN) or self._initialled(index, run[0])
        return len(run) > 1 or bool(first & LexicalClass.GIVEN)

    def _lone(self, index: int, word: Word) -> bool:
        """One listed word with a capital: a usual name that is nothing else, here or elsewhere in the note."""
        if word.shouted or len(word.text) < 3 or word.classes & (LexicalClass.WORD | LexicalClass.EPONYM):
            return self._initialled(index, word)
        if word.lower in self.note.lower_case or word.lower in self._eponymous() or not _shaped_like_name(word.text):
            return False
        if "-" in word.text and not all(
            len(part) > 1 and lexical_classes(part) & LexicalClass.NAME for part in word.text.split("-")
        ):
            return False
        foreign = word.classes & LexicalClass.FOREIGN_ONLY and word.classes & LexicalClass.GIVEN and len(word.text) > 4
        return bool(foreign or word.classes & (LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY))

    def _initialled(self, index: int, word: Word) -> bool:
        """J. Smith, or Smith J.: an initial beside a usual surname, eponym or not."""
        if word.ordinary or word.shouted or not word.classes & LexicalClass.USUAL_FAMILY:
            return False
        if re.match(r" [A-Z]\.[,;)\s]", self.text[word.end : word.end + 4]):
            return True
        last = self.words[index - 1] if index else word
        return len(last.text) == 1 and last.text.isupper() and self.text[last.end : word.start] in (". ", ".")

    # Other mentions of what was found.

    def _propagate(self) -> None:
        found = {name_form(self.words[i].text) for i in self.taken if len(self.words[i].text) > 2}
        found -= {form for form in found if form in PARTICLES}
        for index, text in enumerate(self.words.texts if found else ()):
            if name_form(text) in found and index not in self.taken and self._other_mention(index, self.words[index]):
                self._keep(index, index + 1, 0.7)

    def _other_mention(self, index: int, word: Word) -> bool:
        if self._before_noun(index + 1) or (word.classes & LexicalClass.EPONYM and self._possessive_of_disease(index)):
            return False
        if not word.ordinary:
            return word.capital or (word.listed and len(word.text) > 3)
        if not word.capital or word.shouted:
            return False
        before = self.text[: word.start].rstrip(" \t")[-1:]
        return (before not in _STOPS and before != "") or bool(_SAYS.match(self.text, word.end))

    # Small looks.

    def _has_capital(self, index: int) -> bool:
        return self.words.texts[index] != self.words.lowers[index]

    def _neighbour(self, index: int) -> Word | None:
        """The next word, where no more than space or the dot of an initial lies between."""
        if index + 1 >= len(self.words):
            return None
        gap = self.text[self.words[index].end : self.words[index + 1].start]
        return self.words[index + 1] if _GAP.fullmatch(gap) or _AFTER_INITIAL.fullmatch(gap) else None

    def _possessive_of_disease(self, index: int) -> bool:
        """`Parkinson's` alone is the disease; `Smith's wife` is not."""
        end = self.words[index].end
        following = self.words[index + 1].lower if index + 1 < len(self.words) else ""
        return self.text[end : end + 2] == "'s" and following not in PEOPLE

    def _eponymous(self) -> frozenset[str]:
        """The words that stand before an eponym's noun somewhere in the note."""
        if self._eponyms is None:
            nouns = word_list("eponym_nouns")
            lowers = self.words.lowers
            self._eponyms = frozenset(
                lowers[i - 1] for i, lower in enumerate(lowers) if i and lower in nouns and self._before_noun(i)
            )
        return self._eponyms

    def _before_noun(self, end: int) -> bool:
        """Whether the word at `end` makes an eponym of what stands before it: `Foley catheter`, `Murphy's sign`."""
        if end >= len(self.words):
            return False
        gap = self.text[self.words[end - 1].end : self.words[end].start]
        return len(gap) <= 4 and gap.strip("'s \n") in ("", "-") and self.words[end].lower in word_list("eponym_nouns")

    def _keep(self, start: int, end: int, score: float) -> None:
        if len(self.words[start - 1].text) == 1 and start and self._initial_before(start):
            start -= 1
        self.taken.update(dict.fromkeys(range(start, end), score))
        self.runs.append((start, end, score))

    def _initial_before(self, start: int) -> bool:
        last, word = self.words[start - 1], self.words[start]
        return last.text.isupper() and self.text[last.end : word.start] in (". ", ".") and start - 1 not in self.taken


def _shaped_like_name(word: str) -> bool:
    """Whether capitals stand only where names have them: Smith, McCoy, O'Brien, not SaO."""
    return all(
        part[1:].islower() or part[:2] in ("Mc", "De", "La", "Di", "Le") or part[:3] == "Mac"
        for part in re.split("[-']", word)
        if len(part) > 1
    )


@cache
def _very_usual() -> frozenset[str]:
    from clinveil.lexicons.names import all_given_names

    return frozenset(name for name, share in all_given_names().items() if share >= 0.1)


class _Names:
    """Finds NAME."""

    name = "names"
    labels = frozenset({"NAME"})
    examples = (
        "Dr. {NAME:Foley} placed the Foley catheter; his wife {NAME:Chidinma} drove him here.",
        "{NAME:SMITH,JOHN Q} was admitted. Signed: {NAME:Mary O'Brien}, RN",
        "Mrs. {NAME:Hope Price} came. Today {NAME:Hope} feels better; there is hope.",
    )

    def find(self, note: NoteView) -> Iterator[Span]:
        """Runs of words, one span a run."""
        reader = _Reader(note)
        for start, end, score in reader.runs_of_note():
            yield note.span(note.words[start].start, note.words[end - 1].end, "NAME", self.name, score)


detectors.register("names")(_Names())
