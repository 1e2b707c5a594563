"""What every match of a pattern must hold, read off the parsed pattern: a rule is tried only where it can match.

Everything is a superset of what the pattern allows: a place that is not named here holds no match. A pattern is walked
as a sequence; strings that must stand there in full ("chart", or one of "phone", "fax") are gathered with the edges of
words about them, and so are runs of characters (four digits; a digit, a slash, a digit). The rarest wins. This is the
idea of the prefilters of RE2 (R. Cox, "Regular expression matching with a trigram index", 2012), with places added.

Python's parser is private (`re._parser`); what is used of it is the same in 3.11 to 3.14, and a node that is not known
is taken to match anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib import import_module
from typing import Any, NamedTuple

_parser = import_module("re._parser")
_op = import_module("re._constants")

MANY = 1 << 20
"""A width that no note has: unbounded."""
NEAR = 4
"""So few places before a spot are tried one by one."""
EDGE = "|"
"""In a string: no ASCII letter stands here."""
_MOST_STRINGS = 256
_MOST_ITEMS = 8
_FAR = 64


def _mask(characters: Iterable[str]) -> int:
    return sum({1 << ord(c) for c in characters})


_OTHERS = 1 << 128
_ALL = (1 << 129) - 1
_ASCII = [chr(code) for code in range(128)]
_LETTERS = _mask(c for c in _ASCII if c.isalpha())
_DIGITS = _mask("0123456789")
_NUMERIC = _DIGITS | _OTHERS
_CATEGORIES = {
    _op.CATEGORY_DIGIT: _DIGITS | _OTHERS,
    _op.CATEGORY_SPACE: _mask(c for c in _ASCII if c.isspace()) | _OTHERS,
    _op.CATEGORY_WORD: _LETTERS | _DIGITS | _mask("_") | _OTHERS,
}
_CATEGORIES |= {
    _op.CATEGORY_NOT_DIGIT: _ALL & ~_DIGITS,
    _op.CATEGORY_NOT_SPACE: _ALL & ~_CATEGORIES[_op.CATEGORY_SPACE] | _OTHERS,
    _op.CATEGORY_NOT_WORD: _ALL & ~_CATEGORIES[_op.CATEGORY_WORD] | _OTHERS,
}
# How often characters stand in notes, roughly: it chooses between filters and changes no result.
_SHARE = (
    dict.fromkeys(_ASCII, 0.0005)
    | {c: 0.0015 for c in _ASCII if c.isupper() or c.isdigit()}
    | dict(zip("eaintorsldchmupfgybvwkxqzj", (90 / 1.14**n / 1000 for n in range(26)), strict=True))
    | {" ": 0.16, EDGE: 0.2, ".": 0.013, ",": 0.011, "\n": 0.005, "-": 0.003, "/": 0.001}
)


@cache
def _share(chars: int) -> float:
    return min(1.0, sum(share for c, share in _SHARE.items() if chars >> ord(c) & 1))


class Reach(NamedTuple):
    """What a piece of a pattern can consume: ASCII characters as bits, all others as one more, and how many."""

    chars: int = 0
    low: int = 0
    high: int = 0

    def then(self, other: Reach) -> Reach:
        """This piece, and after it another."""
        return Reach(self.chars | other.chars, self.low + other.low, min(MANY, self.high + other.high))

    def either(self, other: Reach) -> Reach:
        """This piece or another."""
        return Reach(self.chars | other.chars, min(self.low, other.low), max(self.high, other.high))

    def times(self, low: int, high: int) -> Reach:
        """This piece over and over."""
        return Reach(self.chars, self.low * low, min(MANY, self.high * high))

    def source(self) -> str:
        """A pattern of as many characters of these."""
        listed = "".join(f"\\x{code:02x}" for code in range(128) if self.chars >> code & 1 != self.chars >> 128)
        sign = f"[{'^' * (self.chars >> 128)}{listed}]" if listed else r"[\s\S]"
        return f"{sign}{{{self.low},{self.high if self.high < MANY else ''}}}"


ANYTHING = Reach(_ALL, 0, MANY)
NOTHING = Reach()


class Literal(NamedTuple):
    """A string of ASCII letters and edges; in lower case where it stands for any case."""

    text: str
    any_case: bool


class Strings(NamedTuple):
    """One of these stands in every match, after what `before` can consume."""

    literals: frozenset[Literal]
    before: Reach

    @property
    def cost(self) -> float:
        """Expected work for each character of a note."""
        found = sum(reduce(lambda p, c: p * _SHARE[c], text, 2.0 if folded else 1.0) for text, folded in self.literals)
        return found * _work(self.before)


class Run(NamedTuple):
    """Such runs of characters stand in every match, after what `before` can consume."""

    items: tuple[Reach, ...]
    before: Reach

    @property
    def digits(self) -> int:
        """How many digits in a row, where it is nothing else; else 0."""
        return self.items[0].low if len(self.items) == 1 and not self.items[0].chars & ~_NUMERIC else 0

    @property
    def signs(self) -> str:
        """The few ASCII characters of which it is one, where it is nothing else; else none."""
        chars = self.items[0].chars
        few = len(self.items) == 1 and self.items[0].low == 1 and chars < _OTHERS and chars.bit_count() <= 3
        return "".join(c for c in _ASCII if few and chars >> ord(c) & 1)

    @property
    def cost(self) -> float:
        """Expected work for each character of a note; a look for digits is shared between rules, signs are quick."""
        found = reduce(lambda p, item: p * _share_of(item), self.items, 1.0) * _work(self.before)
        return found if self.digits else found + (0.001 if self.signs else 0.04 + _share(self.items[0].chars) * 0.2)


def _share_of(item: Reach) -> float:
    """How often a piece stands in notes, roughly; a digit is often followed by another."""
    share = _share(item.chars)
    return share ** min(item.low, 1) * (0.5 if not item.chars & ~_NUMERIC else share) ** max(0, item.low - 1)


def _work(before: Reach) -> float:
    return 1.0 + before.high if before.high <= NEAR else 15.0


Anchor = Strings | Run


def _both_cases(chars: int) -> int:
    """The same in upper and lower case; other letters match ASCII ones then (a long s an s)."""
    return chars | _mask(c.swapcase() for c in _ASCII if chars >> ord(c) & 1) | (_OTHERS if chars & _LETTERS else 0)


def _of_set(members: Any, any_case: bool) -> int:
    """The ASCII characters of a class; all of them where it holds something that is not known."""
    chars, negated = 0, False
    for op, value in members:
        if op is _op.NEGATE:
            negated = True
        elif op is _op.LITERAL:
            chars |= 1 << value if value < 128 else _ALL
        elif op is _op.RANGE:
            chars |= _mask(_ASCII[value[0] : value[1] + 1]) if value[1] < 128 else _ALL
        else:
            chars |= _CATEGORIES.get(value, _ALL)
    return _ALL if negated else _both_cases(chars) if any_case else chars


def _negated(members: Any) -> bool:
    return any(op is _op.NEGATE for op, _ in members)


@dataclass
class _Walk:
    """One sequence of a pattern, from left to right.

    Attributes:
        any_case: whether case is ignored here.
        current: the strings that may stand between `before` and here.
        items: what is consumed, piece by piece.
        found: anchors so far.
        exact: whether `current` says all there is to say.
        seen: characters that assertions read.
        groups: what each group consumes.
    """

    any_case: bool
    current: frozenset[Literal] = frozenset({Literal("", False)})
    items: list[Reach] = field(default_factory=list)
    found: list[Strings] = field(default_factory=list)
    exact: bool = True
    seen: list[Reach] = field(default_factory=list)
    groups: dict[int, Reach] = field(default_factory=dict)
    before: Reach = NOTHING

    @property
    def total(self) -> Reach:
        """All that is consumed."""
        return reduce(Reach.then, self.items, NOTHING)

    def walk(self, nodes: Any) -> _Walk:
        """Take in a sequence."""
        for op, value in nodes:
            getattr(self, f"_{str(op).lower()}", self._unknown)(value)
        return self

    def finish(self) -> Strings | None:
        """The cheapest anchor of the sequence."""
        self._flush()
        return min(self.found, key=lambda strings: strings.cost, default=None)

    # Pieces of a sequence.

    def _unknown(self, value: Any) -> None:
        self._break(ANYTHING)

    def _literal(self, value: int) -> None:
        letter = chr(value) if value < 128 else ""
        if letter.isalpha():
            text = letter.lower() if self.any_case else letter
            self._strings(frozenset({Literal(text, self.any_case)}), Reach(self._chars(letter), 1, 1))
        elif letter:
            self._cut(Reach(_mask(letter), 1, 1))
        else:
            self._break(Reach(_ALL, 1, 1))

    def _chars(self, letter: str) -> int:
        return _both_cases(_mask(letter)) if self.any_case else _mask(letter)

    def _in(self, members: Any) -> None:
        reach = Reach(_of_set(members, self.any_case), 1, 1)
        letters = [c for c in _ASCII if reach.chars >> ord(c) & 1]
        plain = all(op in (_op.LITERAL, _op.RANGE) for op, _ in members)
        if plain and not reach.chars & ~_LETTERS and len(letters) <= 6:
            texts = {c.lower() for c in letters} if self.any_case else letters
            self._strings(frozenset(Literal(text, self.any_case) for text in texts), reach)
        elif not reach.chars & _LETTERS and not _negated(members):
            self._cut(reach)
        else:
            self._break(reach)

    def _not_literal(self, value: int) -> None:
        self._break(Reach(_ALL, 1, 1))

    def _any(self, value: None) -> None:
        self._break(Reach(_ALL, 1, 1))

    def _at(self, where: Any) -> None:
        if where is _op.AT_BOUNDARY:
            self.current = frozenset(Literal(_edged(text), folded) for text, folded in self.current)

    def _subpattern(self, value: Any) -> None:
        group, add, drop, inside = value
        outer, first = self.any_case, len(self.items)
        self.any_case = (outer or bool(add & re.IGNORECASE)) and not drop & re.IGNORECASE
        self.walk(inside)
        self.any_case = outer
        if group is not None:
            self.groups[group] = reduce(Reach.then, self.items[first:], NOTHING)

    def _atomic_group(self, inside: Any) -> None:
        self.walk(inside)

    def _groupref(self, group: int) -> None:
        reach = self.groups.get(group, ANYTHING)
        self._break(Reach(_both_cases(reach.chars) if self.any_case else reach.chars, reach.low, reach.high))

    def _branch(self, value: Any) -> None:
        forks = [self._fork(branch) for branch in value[1]]
        reach = reduce(Reach.either, (self._since(fork) for fork in forks))
        if all(fork.exact for fork in forks):
            self._become(frozenset[Literal]().union(*(fork.current for fork in forks)), reach)
            return
        best = [strings for fork in forks if (strings := fork.finish()) is not None]
        if len(best) == len(forks):
            literals = frozenset[Literal]().union(*(strings.literals for strings in best))
            self.found.append(Strings(literals, reduce(Reach.either, (strings.before for strings in best))))
        self._break(reach)

    def _max_repeat(self, value: Any) -> None:
        low, high, inside = value[0], min(MANY, int(value[1])), value[2]
        fork = self._fork(inside)
        once = self._since(fork)
        reach = once.times(low, high)
        if fork.exact and high == 1:
            self._become(fork.current | (frozenset() if low else self.current), reach)
        elif _sign(inside) and not once.chars & _LETTERS:
            self._signs(low, reach)
        else:
            best = fork.finish() if low else None
            self.found += [best] if best is not None else []
            first = fork.items[len(self.items) :] if low else []
            self._break(*first, once.times(low - 1, high - 1) if low else reach)

    def _signs(self, low: int, reach: Reach) -> None:
        """Characters that are no letters, or perhaps none of them."""
        if low:
            self._cut(reach)
        elif all(text == EDGE for text, _ in self.current):
            self.exact, self.before = False, self.total.then(reach)
            self.items.append(reach)
        else:
            self._break(reach)

    _min_repeat = _possessive_repeat = _max_repeat

    def _assert(self, value: Any) -> None:
        self._read(value[1])

    def _assert_not(self, value: Any) -> None:
        """`(?<!\\w)` before a string and `(?!\\w)` after it are edges of a word."""
        direction, inside = value
        self._read(inside)
        if not self._refuses_letters(inside):
            return
        if direction < 0 and all(text in ("", EDGE) for text, _ in self.current):
            self.current = frozenset({Literal(EDGE, False)})
        elif direction > 0:
            self.current = frozenset(Literal(_edged(text) if text else text, folded) for text, folded in self.current)

    # What they are made of.

    def _fork(self, inside: Any) -> _Walk:
        """This walk, gone on through a part."""
        fork = _Walk(self.any_case, self.current, list(self.items), groups=self.groups, seen=self.seen)
        fork.before = self.before
        return fork.walk(inside)

    def _since(self, fork: _Walk) -> Reach:
        """What a fork consumed."""
        return reduce(Reach.then, fork.items[len(self.items) :], NOTHING)

    def _read(self, inside: Any) -> None:
        self.seen.append(_Walk(self.any_case, groups=self.groups, seen=self.seen).walk(inside).total)

    def _refuses_letters(self, inside: Any) -> bool:
        nodes = list(inside)
        if len(nodes) == 1 and nodes[0][0] is _op.BRANCH:
            return any(self._refuses_letters(branch) for branch in nodes[0][1][1])
        if len(nodes) != 1 or nodes[0][0] is not _op.IN or _negated(nodes[0][1]):
            return False
        # Without either, the letters that fold to ASCII ones (a long s) would not be refused.
        all_letters = self.any_case or (_op.CATEGORY, _op.CATEGORY_WORD) in list(nodes[0][1])
        return all_letters and not _LETTERS & ~_of_set(nodes[0][1], self.any_case)

    def _strings(self, literals: frozenset[Literal], reach: Reach) -> None:
        """One of these strings goes on what stood here."""
        joined = (
            Literal((one + other).replace(EDGE + EDGE, EDGE), folded or any_case)
            for one, folded in self.current
            for other, any_case in literals
        )
        self._become(frozenset(joined), reach)

    def _become(self, strings: frozenset[Literal], reach: Reach) -> None:
        if len(strings) > _MOST_STRINGS:
            self._break(reach)
            return
        self.current = strings
        self.items.append(reach)

    def _cut(self, reach: Reach) -> None:
        """Something that holds no letter: an edge on both its sides."""
        self.current = frozenset(Literal(_edged(text) if text else text, folded) for text, folded in self.current)
        self._break(reach)
        self.current = frozenset({Literal(EDGE, False)})

    def _break(self, *pieces: Reach) -> None:
        """Something of which no strings are known."""
        self._flush()
        self.exact = False
        self.items += pieces
        self.before, self.current = self.total, frozenset({Literal("", False)})

    def _flush(self) -> None:
        if all(text.strip(EDGE) for text, _ in self.current):
            folded = (Literal(text.lower() if any_case else text, any_case) for text, any_case in self.current)
            self.found.append(Strings(frozenset(folded), self.before))


def _edged(text: str) -> str:
    return text if text.endswith(EDGE) else text + EDGE


def _sign(inside: Any) -> bool:
    """Whether a repeated part is one class or sign without a negation."""
    nodes = list(inside)
    return len(nodes) == 1 and (
        (nodes[0][0] is _op.IN and not _negated(nodes[0][1])) or (nodes[0][0] is _op.LITERAL and nodes[0][1] < 128)
    )


class Required(NamedTuple):
    """What is known of all matches of a pattern.

    Attributes:
        anchor: what each of them holds; None where nothing is worth looking for.
        whole: what a match consumes, and what its assertions of any width read after it.
        ahead: how far its other assertions read on.
    """

    anchor: Anchor | None
    whole: Reach
    ahead: int


@cache
def required(pattern: re.Pattern[str]) -> Required:
    """What every match of a pattern holds."""
    walk = _Walk(bool(pattern.flags & re.IGNORECASE)).walk(_parser.parse(pattern.pattern, pattern.flags))
    strings, total = walk.finish(), walk.total
    whole = reduce(Reach.then, (seen for seen in walk.seen if seen.high >= _FAR), total)
    ahead = sum(seen.high for seen in walk.seen if seen.high < _FAR)
    anchors: list[Anchor] = [*_runs(walk.items), *([strings] if strings else [])]
    best = min(anchors, key=lambda anchor: anchor.cost, default=None)
    return Required(best if best is not None and total.low and best.cost < 1.0 else None, whole, ahead)


def _runs(items: list[Reach]) -> Iterator[Run]:
    """The runs of a sequence that begin and end with something that must be there."""
    merged = list(_digits_together(items))
    for first, head in enumerate(merged):
        before = reduce(Reach.then, merged[:first], NOTHING)
        for last in range(first, min(len(merged), first + _MOST_ITEMS)):
            if head.low and merged[last].low:
                yield Run(tuple(merged[first : last + 1]), before)


def _digits_together(items: list[Reach]) -> Iterator[Reach]:
    """Pieces that follow each other and are of digits, as one; pieces of no width left out."""
    held = Reach()
    for item in (item for item in items if item.high):
        if not item.chars & ~_NUMERIC:
            held = held.then(Reach(_NUMERIC, item.low, item.high))
            continue
        if held.high:
            yield held
        held = Reach()
        yield item
    if held.high:
        yield held
