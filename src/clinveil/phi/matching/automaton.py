"""Automaton that accepts every match of a pattern, and some other text.

Each piece of the pattern that consumes one character is a position (V. Glushkov, "The abstract theory of automata",
1961), with the characters that it accepts and the positions that may follow. Assertions are ignored, except for what
they require of the character before a match, and long repetitions become unbounded. The automaton therefore accepts a
superset of the pattern's matches. `match_starts.py` runs it at candidate offsets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clinveil.phi.matching.anchors import ALL, ASCII, DIGITS, LETTERS, OTHERS, Run, mask
from clinveil.phi.matching.required import CATEGORIES, both_cases, parsed
from clinveil.phi.matching.required import opcodes as _op

_WORD = LETTERS | DIGITS | mask("_")
_FOLDING = mask("iIsSkK")  # ASCII letters that a non-ASCII letter can match if case is ignored
_COPIES_OF_ONE, _COPIES, _OPTIONAL = 16, 3, 4
_MOST_POSITIONS = 1 << 13
_REPEATS = (_op.MAX_REPEAT, _op.MIN_REPEAT, _op.POSSESSIVE_REPEAT)


class Automaton(NamedTuple):
    """Positions, numbered from 0.

    Attributes:
        chars: characters that each accepts. follow: positions that may follow each. first: possible first positions.
        ends: positions with which a match may end.
        before: characters allowed before a match that begins with an ASCII character; the start of the text always is.
    """

    chars: list[int]
    follow: list[frozenset[int]]
    first: frozenset[int]
    ends: frozenset[int]
    before: int


class _Part(NamedTuple):
    """Part of a pattern: whether it may be empty, and its possible first and last positions."""

    empty: bool = True
    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()


class _TooLargeError(Exception):
    """The automaton has too many positions to be useful."""


def members(value: Any, any_case: bool) -> tuple[int, bool]:
    """Return the characters of a class, and whether its ASCII characters are exact."""
    chars, exact, negated = 0, True, False
    for op, of in value:
        low, high = (of, of) if op is _op.LITERAL else of if op is _op.RANGE else (0, -1)
        negated = negated or op is _op.NEGATE
        if op is _op.CATEGORY:
            chars |= CATEGORIES.get(of, ALL)
            exact = exact and of in CATEGORIES
        elif op not in (_op.NEGATE, _op.LITERAL, _op.RANGE):
            return ALL, False
        chars |= mask(ASCII[low : high + 1]) | (OTHERS if high >= len(ASCII) else 0)
        if high >= len(ASCII) and any_case:
            chars, exact = chars | _FOLDING, False
    chars = both_cases(chars) if any_case else chars
    if negated:
        return (ALL & ~chars | OTHERS if exact else ALL), exact
    return chars, exact


@dataclass
class _Builder:
    """Builds the automaton of a parsed pattern."""

    any_case: bool
    chars: list[int] = field(default_factory=list)
    follow: list[set[int]] = field(default_factory=list)

    def sequence(self, nodes: Any) -> _Part:
        part = _Part()
        for op, value in nodes:
            part = self._then(part, self._node(op, value))
        return part

    def of_items(self, run: Run) -> _Part:
        """Add a run of characters."""
        part = _Part()
        for item in run.items:
            part = self._then(part, self._copies(lambda chars=item.chars: self._one(chars), item.low, item.high, True))
        return part

    def _node(self, op: Any, value: Any) -> _Part:
        if op is _op.LITERAL or op is _op.IN:
            return self._one(members([(op, value)] if op is _op.LITERAL else value, self.any_case)[0])
        if op is _op.ANY or op is _op.NOT_LITERAL:
            return self._one(ALL)
        if op is _op.SUBPATTERN:
            return self._group(*value)
        if op is _op.ATOMIC_GROUP:
            return self.sequence(value)
        if op is _op.BRANCH:
            return self._either([self.sequence(branch) for branch in value[1]])
        if op in _REPEATS:
            single = len(value[2]) == 1 and value[2][0][0] in (_op.LITERAL, _op.IN, _op.ANY, _op.NOT_LITERAL)
            return self._copies(lambda: self.sequence(value[2]), int(value[0]), int(value[1]), single)
        if op in (_op.AT, _op.ASSERT, _op.ASSERT_NOT):
            return _Part()
        return self._star(self._one(ALL))

    def _group(self, group: Any, add: int, drop: int, inside: Any) -> _Part:
        outer = self.any_case
        self.any_case = (outer or bool(add & re.IGNORECASE)) and not drop & re.IGNORECASE
        part = self.sequence(inside)
        self.any_case = outer
        return part

    def _one(self, chars: int) -> _Part:
        if len(self.chars) >= _MOST_POSITIONS:
            raise _TooLargeError
        self.chars.append(chars)
        self.follow.append(set())
        position = frozenset({len(self.chars) - 1})
        return _Part(False, position, position)

    def _then(self, first: _Part, second: _Part) -> _Part:
        for position in first.last:
            self.follow[position] |= second.first
        firsts = first.first | second.first if first.empty else first.first
        lasts = first.last | second.last if second.empty else second.last
        return _Part(first.empty and second.empty, firsts, lasts)

    def _either(self, parts: list[_Part]) -> _Part:
        first = frozenset[int]().union(*(part.first for part in parts))
        last = frozenset[int]().union(*(part.last for part in parts))
        return _Part(any(part.empty for part in parts), first, last)

    def _star(self, part: _Part) -> _Part:
        """Repeat a part any number of times, including zero."""
        self._then(part, part)
        return part._replace(empty=True)

    def _copies(self, make: Any, low: int, high: int, single: bool) -> _Part:
        """Repeat a part at least `low` times and at most `high` times; large numbers become unbounded."""
        part, required = _Part(), min(low, _COPIES_OF_ONE if single else _COPIES)
        for _ in range(required):
            part = self._then(part, make())
        if required < low or high - low > (_OPTIONAL if single else 1):
            return self._then(part, self._star(make()))
        rest = _Part()
        for _ in range(high - low):
            rest = self._then(make(), rest)._replace(empty=True)
        return self._then(part, rest)


def automaton(pattern: re.Pattern[str] | Run) -> Automaton | None:
    """Return the automaton of a pattern or a run; None if it would be too large or a match may be empty."""
    builder = _Builder(isinstance(pattern, re.Pattern) and bool(pattern.flags & re.IGNORECASE))
    nodes = None if isinstance(pattern, Run) else parsed(pattern)
    try:
        part = builder.of_items(pattern) if isinstance(pattern, Run) else builder.sequence(nodes)
    except _TooLargeError:
        return None
    if part.empty:
        return None
    first = 0
    for position in part.first:
        first |= builder.chars[position]
    before = ALL if nodes is None else _before(nodes, first, builder.any_case)
    return Automaton(builder.chars, list(map(frozenset, builder.follow)), part.first, part.last, before)


def _before(nodes: Any, first: int, any_case: bool) -> int:
    """Return the characters allowed before a match, from the assertions at its start."""
    allowed = ALL
    for op, value in nodes:
        if op is _op.AT and value is _op.AT_BOUNDARY:
            if not first & ~_WORD & ~OTHERS:
                allowed &= ALL & ~_WORD
        elif op is _op.ASSERT_NOT and value[0] < 0:
            allowed &= ~_refused(value[1], any_case)
        elif op not in (_op.AT, _op.ASSERT, _op.ASSERT_NOT):
            break
    return allowed & ALL | OTHERS


def _refused(nodes: Any, any_case: bool) -> int:
    """Return the ASCII characters that a negative lookbehind certainly rejects."""
    if len(nodes) != 1 or nodes[0][0] not in (_op.LITERAL, _op.IN):
        return 0
    op, value = nodes[0]
    chars, exact = members([(op, value)] if op is _op.LITERAL else value, any_case)
    return chars & ~OTHERS if exact else 0
