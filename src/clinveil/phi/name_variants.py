"""`NameVariants`: how a note may write the names of some people, looked up word by word.

A word is one of them by itself, as a hyphened part, as a nickname, as a user name, or by a misspelling. Particles (van,
de) and single letters are no forms: they count only beside one. Misspellings are found through beginnings and endings:
one edit leaves the first two letters of a word as they are, or the last two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import filterfalse

from clinveil.lexicons.ambiguity import PARTICLES as LEXICAL_PARTICLES
from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.lexicons.names import name_form, nicknames
from clinveil.lexicons.words import is_word
from clinveil.phi.detector import words

Name = tuple[str, ...]
"""The tokens of one full name, in order."""

# Also titles and the like, which are no part of a name where they stand in a field of it.
PARTICLES = LEXICAL_PARTICLES | words("dr mr mrs ms jr sr md rn")
SHORTEST_MISSPELLED = 4
SHORTEST_TWO_EDITS = 9
_MEETING = re.compile(
    r"\b(?:(?:spoke|spoken|talked|met|chatted|discussed|conferred|confirmed)[ \t]+(?:(?:this|it|plan)[ \t]+)?with"
    r"|spoke[ \t]+to|(?:mr|mrs|ms|miss|dr|pt|named)\.?)[ \t]+\Z",
    re.IGNORECASE,
)
_MOST_PEOPLE = 1 << 9  # as many as a batch has, or about; their forms are quickly made
_DOT = re.compile(r"(?<![\w.])\S\.")
_TIGHT = re.compile(
    r"(?:(?<=\b(?:[Ww]ith|WITH) )|(?<=\b(?:[Bb]y|BY) )|(?<=\b(?:[Pp]er|PER) )|(?<=\b(?:[Ff]or) ))[^\W\d_]+\b"
)
_OTHER = LexicalClass.WORD | LexicalClass.USUAL_GIVEN | LexicalClass.EPONYM

OWN, NICKNAME, USER_NAME, MISSPELT = "own name", "nickname", "user name", "misspelt name"


class NameVariants:
    """The forms of some names.

    Attributes:
        exact: name forms of the tokens and of their hyphened parts.
        initials: of each name of several tokens its initials in order, at least two letters. firsts: the first ones.
        particles: those that stand in the names.
    """

    def __init__(self, names: Iterable[Name]) -> None:
        names = tuple(names)
        spelt = [[form for token in name if (form := name_form(token))] for name in names]
        parts = [part for name in names for token in name for part in (token, *token.split("-"))]
        self.exact = frozenset(form for part in parts if len(form := name_form(part)) > 1 and form not in PARTICLES)
        self.particles = frozenset(form for name in spelt for form in name if form in PARTICLES)
        self.initials = frozenset(letters for name in spelt for letters in _initials(name))
        self._short = frozenset[str]().union(*(nicknames().get(form, frozenset()) for form in self.exact)) - self.exact
        self._users = frozenset(user for name in spelt for user in _user_names(name)) - self.exact
        self.firsts = frozenset(letters[0].upper() for letters in self.initials)
        self._others = self.exact | self._users | self._short
        self._near = _by_ends(self.exact)

    @classmethod
    def of(cls, *names: Name) -> NameVariants:
        """The forms of these names, made once."""
        return _forms(names)

    def why(self, word: str) -> str:
        """How a word (lower case, no possessive ending) is one of the names; empty where it is none."""
        form = name_form(word)
        if form in self.exact or ("-" in word and any(name_form(part) in self.exact for part in word.split("-"))):
            return OWN
        if form in self._users and not lexical_classes(form) and not is_word(form):
            return USER_NAME
        if form in self._short:
            return NICKNAME
        return MISSPELT if self.misspelt(form) else ""

    def among(self, words: AbstractSet[str], odd: AbstractSet[str] | None = None) -> dict[str, str]:
        """Those of some words that are one of the names, each with how: `why` of many at once.

        `odd`: those of the words that are not `plainly_no_name`, if that is known.
        """
        odd = set(filterfalse(plainly_no_name, words)) if odd is None else odd
        return {word: why for word in (words & self._others) | odd if (why := self.why(word))}

    def misspelt(self, form: str) -> str | None:
        """The first form by the alphabet that a form misspells; None for what is a word or a usual name itself."""
        if len(form) < SHORTEST_MISSPELLED or lexical_classes(form) & _OTHER:
            return None
        near = {own for end in _ends(form) for own in self._near.get(end, ())}
        return min((own for own in near if is_near(form, own)), default=None)

    def initialled(self, text: str, *, bare: bool) -> list[tuple[int, int]]:
        """Where `J.S.` and `J. S.` of the names stand; with `bare`, `JS` too, after with, by, per and the like."""
        if not self.initials:
            return []
        letters, done, found = [one.upper() for one in sorted(self.initials)], 0, list[tuple[int, int]]()
        for match in _DOT.finditer(text):
            start = match.start()
            end = next((end for one in letters if (end := _dotted_end(text, start, one))), 0)
            if end and start >= done:
                found.append((start, end))
                done = end
        if bare:
            found += [match.span() for match in _TIGHT.finditer(text) if match[0] in letters]
        return sorted(found)


@lru_cache(maxsize=_MOST_PEOPLE)
def _forms(names: tuple[Name, ...]) -> NameVariants:
    return NameVariants(names)


def _dotted_end(text: str, at: int, letters: str) -> int:
    """Where letters with dots between them, and perhaps one behind, end that begin at a place; 0 where none do.

    Not a pattern of each patient's own: to compile one takes longer than to look.
    """
    for number, letter in enumerate(letters, 1):
        if text[at : at + 1] != letter:
            return 0
        at += 1
        dot = text[at : at + 1] == "."
        if number == len(letters):
            end = at + dot
            return 0 if _in_word(text[end : end + 1]) else end
        if not dot:
            return 0
        at += 2 if text[at + 1 : at + 2] in (" ", "\t") else 1
    return 0


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


@lru_cache(maxsize=1 << 13)
def plainly_no_name(word: str) -> bool:
    """Whether only those whose name it is itself are named by a word, as it is written: so with most words."""
    if "-" in word or name_form(word) != word:
        return False
    return len(word) < SHORTEST_MISSPELLED or bool(lexical_classes(word) & _OTHER)


def is_met(text: str, start: int) -> bool:
    """Whether people meet or are called what begins there: `spoke with`, `Mr.`; then even small letters are a name."""
    return _MEETING.search(text, max(0, start - 40), start) is not None


def _initials(name: list[str]) -> Iterator[str]:
    """`jms` and `js` of John Michael Smith."""
    letters = "".join(form[0] for form in name if form not in PARTICLES)
    if len(letters) > 1:
        yield letters
        yield letters[0] + letters[-1]


def _user_names(name: list[str]) -> Iterator[str]:
    """`jsmith`, `smithj`, `johnsmith`, `smithjohn`."""
    given, family = name[0], name[-1]
    if len(name) > 1 and len(family) > 2:
        made = (given[0] + family, family + given[0], given + family, family + given)
        yield from (user for user in made if len(user) > 4)


def _by_ends(forms: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What one of them has in common with whatever misspells it -> those that have it.

    Two edits are looked for in long forms alone, and only where the first letter is the same. A swap in the middle of
    four letters leaves one letter at each end.
    """
    found: dict[str, tuple[str, ...]] = {}
    for form in forms:
        first, last, head, tail = _ends(form)
        short, long = len(form) == SHORTEST_MISSPELLED, len(form) >= SHORTEST_TWO_EDITS
        ends = (first, last) if short else (first, head, tail) if long else (head, tail)
        for end in ends if len(form) >= SHORTEST_MISSPELLED else ():
            found[end] = (*found.get(end, ()), form)
    return found


def _ends(form: str) -> tuple[str, str, str, str]:
    """The first letter, the last one, the first two, the last two, told apart by a sign."""
    return f"{form[:1]}<", f">{form[-1:]}", f"{form[:2]}<", f">{form[-2:]}"


def is_near(form: str, own: str) -> bool:
    """Whether a form misspells a name: by one edit, or two of a name of nine letters that begins alike."""
    if within_one_edit(form, own):
        return True
    return len(own) >= SHORTEST_TWO_EDITS and form[0] == own[0] and _edits(form, own) == 2


def within_one_edit(one: str, other: str) -> bool:
    """Whether one insertion, deletion, change or swap of neighbours at most separates two words."""
    if abs(len(one) - len(other)) > 1:
        return False
    short, long = sorted((one, other), key=len)
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return swapped or short[at + 1 :] == long[at + 1 :]


def _edits(one: str, other: str) -> int:
    """Insertions, deletions, changes and swaps of neighbours that separate two words (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row, earlier = row, [i], before
        for j, b in enumerate(other, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                best = min(best, earlier[j - 2] + 1)
            row.append(best)
        before = last
    return row[-1]
