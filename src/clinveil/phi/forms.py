"""`Forms`: how a note may write the names of some people, looked up word by word.

A word is one of them by itself, as a hyphened part, as a nickname, as a user name, or by a misspelling. Particles (van,
de) and single letters are no forms: they count only beside one. Misspellings are found through deletions: two words
within one edit of one another share a word that is left when at most one letter is taken from each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations

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
_MOST_MEMO = 1 << 12
_OTHER = LexicalClass.WORD | LexicalClass.USUAL_GIVEN | LexicalClass.EPONYM

OWN, NICKNAME, USER_NAME, MISSPELT = "own name", "nickname", "user name", "misspelt name"


class Forms:
    """The forms of some names.

    Attributes:
        exact: name forms of the tokens and of their hyphened parts.
        initials: of each name of several tokens its initials in order, at least two letters.
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
        self._near = _deletions(self.exact)
        self._memo: dict[str, str] = {}

    @classmethod
    def of(cls, *names: Name) -> Forms:
        """The forms of these names, made once."""
        return _forms(names)

    def why(self, word: str) -> str:
        """How a word (lower case, no possessive ending) is one of the names; empty where it is none."""
        if word not in self._memo:
            if len(self._memo) >= _MOST_MEMO:
                self._memo.clear()
            self._memo[word] = self._why(word)
        return self._memo[word]

    def _why(self, word: str) -> str:
        form = name_form(word)
        if form in self.exact or any(name_form(part) in self.exact for part in word.split("-")):
            return OWN
        if form in self._users:
            return USER_NAME
        if form in self._short:
            return NICKNAME
        return MISSPELT if self.misspelt(form) else ""

    def misspelt(self, form: str) -> str | None:
        """The first form by the alphabet that a form misspells; None for what is a word or a usual name itself."""
        if len(form) < SHORTEST_MISSPELLED or lexical_classes(form) & _OTHER:
            return None
        near = {own for left in _less(form) for own in self._near.get(left, ())}
        return min((own for own in near if is_near(form, own)), default=None)

    def initialled(self, *, bare: bool) -> re.Pattern[str] | None:
        """`J.S.` and `J. S.` of the names; with `bare`, `JS` too, after with, by, per and the like."""
        return _initialled(self.initials, bare)


@lru_cache(maxsize=1 << 12)
def _forms(names: tuple[Name, ...]) -> Forms:
    return Forms(names)


@lru_cache(maxsize=1 << 12)
def _initialled(initials: frozenset[str], bare: bool) -> re.Pattern[str] | None:
    if not initials:
        return None
    dotted = [r"\.[ \t]?".join(letters.upper()) + r"(?:\.|(?=[^\w.]|$))" for letters in sorted(initials)]
    found = rf"(?<![\w.])(?:{'|'.join(dotted)})(?!\w)"
    if bare:
        tight = "|".join(letters.upper() for letters in sorted(initials))
        found = rf"{found}|(?<=\b(?:[Ww]ith|WITH) )(?:{tight})\b|(?<=\b(?:[Bb]y|BY) )(?:{tight})\b"
        found += rf"|(?<=\b(?:[Pp]er|PER) )(?:{tight})\b|(?<=\b(?:[Ff]or) )(?:{tight})\b"
    return re.compile(found)


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
    """`jsmith`, `smithj`, `johnsmith`, `smithjohn`, where they are no words."""
    given, family = name[0], name[-1]
    if len(name) > 1 and len(family) > 2:
        made = (given[0] + family, family + given[0], given + family, family + given)
        yield from (user for user in made if len(user) > 4 and not lexical_classes(user) and not is_word(user))


def _deletions(forms: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for form in sorted(forms):
        for left in _less(form) if len(form) >= SHORTEST_MISSPELLED else ():
            found[left] = (*found.get(left, ()), form)
    return found


def _less(form: str) -> set[str]:
    """What is left of a form when one letter is taken away or none; of a long one, two."""
    left = {form, *(form[:i] + form[i + 1 :] for i in range(len(form)))}
    if len(form) >= SHORTEST_TWO_EDITS - 2:
        left |= {form[:i] + form[i + 1 : j] + form[j + 1 :] for i, j in combinations(range(len(form)), 2)}
    return left


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
