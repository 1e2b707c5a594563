"""`NameVariants`: the possible spellings of the names of some people, for look-up by word.

A word can be a name itself, its hyphenated part, a nickname, a user name or a misspelling.
Particles (van, de) and single letters are not variants on their own; they count only next to one.
Misspellings are looked up by the beginning
and the end of a word: one edit leaves the first two or the last two letters unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import filterfalse

from clinveil.lexicons import PARTICLES as LEXICAL_PARTICLES
from clinveil.lexicons import LexicalClass, is_word, lexical_classes, name_form, nicknames
from clinveil.phi.detection.detector import words

Name = tuple[str, ...]
"""The tokens of one full name, in order."""

# Also titles, which are not part of a name even in a name field.
PARTICLES = LEXICAL_PARTICLES | words("dr mr mrs ms jr sr md rn")
SHORTEST_MISSPELLED = 4
SHORTEST_TWO_EDITS = 9
_MEETING = re.compile(
    r"\b(?:(?:spoke|spoken|talked|met|chatted|discussed|conferred|confirmed)["
    r" \t]+(?:(?:this|it|plan)[ \t]+)?with"
    r"|spoke[ \t]+to|(?:mr|mrs|ms|miss|dr|pt|named)\.?)[ \t]+\Z",
    re.IGNORECASE,
)
_DOT = re.compile(r"(?<![\w.])\S\.")
_TIGHT = re.compile(
    r"(?:(?<=\b(?:[Ww]ith|WITH) )|(?<=\b(?:[Bb]y|BY) )|(?<=\b(?:[Pp]er|PER) )|(?<=\b(?:[Ff]or)"
    r" ))[^\W\d_]+\b"
)
_OTHER = LexicalClass.WORD | LexicalClass.USUAL_GIVEN | LexicalClass.EPONYM

EXACT_NAME = "own name"
NICKNAME = "nickname"
USER_NAME = "user name"
MISSPELT = "misspelt name"


class NameVariants:
    """Variants of some names.

    Attributes:
        exact: name forms of the tokens and of their hyphenated parts.
        initials: initials of each name of several tokens, at least two letters. firsts: their first
            letters.
        particles: particles that occur in the names.
    """

    def __init__(self, names: Iterable[Name]) -> None:
        names = tuple(names)
        spelt = [[form for token in name if (form := name_form(token))] for name in names]
        parts = [part for name in names for token in name for part in (token, *token.split("-"))]
        self.exact = frozenset(
            form for part in parts if len(form := name_form(part)) > 1 and form not in PARTICLES
        )
        self.particles = frozenset(form for name in spelt for form in name if form in PARTICLES)
        letters = ("".join(form[0] for form in name if form not in PARTICLES) for name in spelt)
        # `jms` and `js` for John Michael Smith.
        self.initials = frozenset(
            row for all_ in letters if len(all_) > 1 for row in (all_, all_[0] + all_[-1])
        )
        self._short = (
            frozenset[str]().union(*(nicknames().get(form, frozenset()) for form in self.exact))
            - self.exact
        )
        self._users = frozenset(user for name in spelt for user in _user_names(name)) - self.exact
        self.firsts = frozenset(row[0].upper() for row in self.initials)
        self._others = self.exact | self._users | self._short
        self._near = _by_ends(self.exact)

    @staticmethod
    @lru_cache(maxsize=1 << 9)  # about the number of patients of a batch
    def of(*names: Name) -> NameVariants:
        """Return the variants of these names, computed once."""
        return NameVariants(names)

    def why(self, word: str) -> str:
        """Return the kind of variant that a word (lower case, no possessive ending) is; empty if it
        is none.
        """
        form = name_form(word)
        if form in self.exact or (
            "-" in word and any(name_form(part) in self.exact for part in word.split("-"))
        ):
            return EXACT_NAME
        if form in self._users and not lexical_classes(form) and not is_word(form):
            return USER_NAME
        if form in self._short:
            return NICKNAME
        return MISSPELT if self.misspelt(form) else ""

    def among(self, words: AbstractSet[str], odd: AbstractSet[str] | None = None) -> dict[str, str]:
        """Return word -> kind of variant for those of some words that are variants.

        Args:
            odd: the words that are not `exact_match_only`, if known.
        """
        odd = set(filterfalse(exact_match_only, words)) if odd is None else odd
        return {word: why for word in (words & self._others) | odd if (why := self.why(word))}

    def misspelt(self, form: str) -> str | None:
        """Return the alphabetically first name that a form misspells; None if the form is a word or
        a usual name.
        """
        if len(form) < SHORTEST_MISSPELLED or lexical_classes(form) & _OTHER:
            return None
        near = {name for end in _ends(form) for name in self._near.get(end, ())}
        return min((name for name in near if is_near(form, name)), default=None)

    def initialled(self, text: str, *, bare: bool) -> list[tuple[int, int]]:
        """Return the ranges of `J.S.` and `J. S.` in a text; with `bare`, also of `JS` after with,
        by, per or for.
        """
        if not self.initials:
            return []
        letters = [item.upper() for item in sorted(self.initials)]
        position = 0
        ranges = list[tuple[int, int]]()
        for match in _DOT.finditer(text):
            start = match.start()
            end = next(
                (end for initials in letters if (end := _dotted_end(text, start, initials))), 0
            )
            if end and start >= position:
                ranges.append((start, end))
                position = end
        if bare:
            ranges += [match.span() for match in _TIGHT.finditer(text) if match[0] in letters]
        return sorted(ranges)


def _dotted_end(text: str, offset: int, letters: str) -> int:
    """Return the end of letters separated by dots that begin at an offset; 0 if they do not match.

    This is not a regular expression because compiling one per patient takes longer than the
    comparison.
    """
    for number, letter in enumerate(letters, 1):
        if text[offset : offset + 1] != letter:
            return 0
        offset += 1
        dot = text[offset : offset + 1] == "."
        if number == len(letters):
            end = offset + dot
            return 0 if text[end : end + 1].isalnum() or text[end : end + 1] == "_" else end
        if not dot:
            return 0
        offset += 2 if text[offset + 1 : offset + 2] in (" ", "\t") else 1
    return 0


@lru_cache(maxsize=1 << 13)
def exact_match_only(word: str) -> bool:
    """Whether a word can only be an exact variant, not a misspelling or part of one; true for most
    words.
    """
    if "-" in word or name_form(word) != word:
        return False
    return len(word) < SHORTEST_MISSPELLED or bool(lexical_classes(word) & _OTHER)


def is_met(text: str, start: int) -> bool:
    """Whether the text before an offset introduces a person (`spoke with`, `Mr.`), so that lower
    case can be a name.
    """
    return _MEETING.search(text, max(0, start - 40), start) is not None


def _user_names(name: list[str]) -> Iterator[str]:
    """Yield `jsmith`, `smithj`, `johnsmith` and `smithjohn` for John Smith."""
    given_name = name[0]
    family = name[-1]
    if len(name) > 1 and len(family) > 2:
        users = (
            given_name[0] + family,
            family + given_name[0],
            given_name + family,
            family + given_name,
        )
        yield from (user for user in users if len(user) > 4)


def _by_ends(forms: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return an index of the names by the beginnings and ends that their misspellings preserve.

    Two edits are allowed only in long names with an unchanged first letter. A transposition in the
    middle of four letters preserves one letter at each end.
    """
    ranges: dict[str, tuple[str, ...]] = {}
    for form in forms:
        first, last, head, tail = _ends(form)
        short = len(form) == SHORTEST_MISSPELLED
        long = len(form) >= SHORTEST_TWO_EDITS
        ends = (first, last) if short else (first, head, tail) if long else (head, tail)
        for end in ends if len(form) >= SHORTEST_MISSPELLED else ():
            ranges[end] = (*ranges.get(end, ()), form)
    return ranges


def _ends(form: str) -> tuple[str, str, str, str]:
    """Return the first letter, the last one, the first two and the last two, with a sign for the
    side.
    """
    return f"{form[:1]}<", f">{form[-1:]}", f"{form[:2]}<", f">{form[-2:]}"


def is_near(form: str, name: str) -> bool:
    """Whether a form misspells a name: one edit, or two in a name of nine letters with the same
    first letter.
    """
    long = len(name) >= SHORTEST_TWO_EDITS and form[0] == name[0]
    return within_one_edit(form, name) or (long and _edits(form, name) == 2)


def within_one_edit(first: str, second: str) -> bool:
    """Whether two words differ by at most one insertion, deletion, substitution or
    transposition.
    """
    if abs(len(first) - len(second)) > 1:
        return False
    shorter, longer = sorted((first, second), key=len)
    index = next(
        (i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter)
    )
    if len(shorter) < len(longer):
        return shorter[index:] == longer[index + 1 :]
    swapped = (
        shorter[index : index + 2] == longer[index : index + 2][::-1]
        and shorter[index + 2 :] == longer[index + 2 :]
    )
    return swapped or shorter[index + 1 :] == longer[index + 1 :]


def _edits(first: str, second: str) -> int:
    """Return the optimal string alignment distance of two words."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        last = row
        row = [i]
        earlier = before
        for j, b in enumerate(second, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                best = min(best, earlier[j - 2] + 1)
            row.append(best)
        before = last
    return row[-1]
