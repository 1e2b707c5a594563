"""Anchors of a pattern: strings or runs of characters that every match contains, derived from the parsed pattern.

All sets are supersets of what the pattern allows, so no match is lost. The pattern is visited as a sequence. Literal
strings ("chart", or one of "phone", "fax") are collected with the word boundaries around them, and so are runs of
characters (four digits; a digit, a slash, a digit). The rarest one is chosen. The method follows the prefilters of RE2
(R. Cox, "Regular expression matching with a trigram index", 2012), with offsets added.

Python's parser is private (`re._parser`). The parts used here are the same in 3.11 to 3.14, and an unknown node is
assumed to match anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib import import_module
from typing import Any, NamedTuple

from clinveil.phi.matching.anchors import (
    ALL,
    ANYTHING,
    ASCII,
    DIGITS,
    EDGE,
    LETTERS,
    MANY,
    NOTHING,
    NUMERIC,
    OTHERS,
    Anchor,
    Literal,
    Reach,
    Run,
    Strings,
    mask,
)

_parser = import_module("re._parser")
opcodes = import_module("re._constants")

_MOST_STRINGS = 256
_MOST_ITEMS = 8
_FAR = 64

CATEGORIES = {
    opcodes.CATEGORY_DIGIT: DIGITS | OTHERS,
    opcodes.CATEGORY_SPACE: mask(c for c in ASCII if c.isspace()) | OTHERS,
    opcodes.CATEGORY_WORD: LETTERS | DIGITS | mask("_") | OTHERS,
}
CATEGORIES |= {
    opcodes.CATEGORY_NOT_DIGIT: ALL & ~DIGITS,
    opcodes.CATEGORY_NOT_SPACE: ALL & ~CATEGORIES[opcodes.CATEGORY_SPACE] | OTHERS,
    opcodes.CATEGORY_NOT_WORD: ALL & ~CATEGORIES[opcodes.CATEGORY_WORD] | OTHERS,
}


def both_cases(chars: int) -> int:
    """Return the characters in both cases; some non-ASCII letters then match ASCII ones (a long s matches s)."""
    return chars | mask(c.swapcase() for c in ASCII if chars >> ord(c) & 1) | (OTHERS if chars & LETTERS else 0)


def _of_set(members: Any, any_case: bool) -> int:
    """Return the ASCII characters of a class; all of them if it contains an unknown item."""
    chars, negated = 0, False
    for op, value in members:
        if op is opcodes.NEGATE:
            negated = True
        elif op is opcodes.LITERAL:
            chars |= 1 << value if value < 128 else ALL
        elif op is opcodes.RANGE:
            chars |= mask(ASCII[value[0] : value[1] + 1]) if value[1] < 128 else ALL
        else:
            chars |= CATEGORIES.get(value, ALL)
    return ALL if negated else both_cases(chars) if any_case else chars


def _negated(members: Any) -> bool:
    return any(op is opcodes.NEGATE for op, _ in members)


@dataclass
class _Visitor:
    """Visits one sequence of a pattern from left to right.

    Attributes:
        any_case: whether case is ignored at the current node.
        current: possible strings between `before` and the current node.
        items: pieces consumed so far.
        found: anchors found so far.
        exact: whether `current` describes the sequence completely.
        seen: characters read by assertions.
        groups: characters consumed by each group.
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
        """Everything consumed so far."""
        return reduce(Reach.then, self.items, NOTHING)

    def visit(self, nodes: Any) -> _Visitor:
        """Visit the nodes of a sequence."""
        for op, value in nodes:
            getattr(self, f"_{str(op).lower()}", self._unknown)(value)
        return self

    def finish(self) -> Strings | None:
        """Return the cheapest anchor of the sequence."""
        self._flush()
        return min(self.found, key=lambda strings: strings.cost, default=None)

    # Nodes, named by their opcodes.

    def _unknown(self, value: Any) -> None:
        self._break(ANYTHING)

    def _literal(self, value: int) -> None:
        letter = chr(value) if value < 128 else ""
        if letter.isalpha():
            text = letter.lower() if self.any_case else letter
            self._strings(frozenset({Literal(text, self.any_case)}), Reach(self._chars(letter), 1, 1))
        elif letter:
            self._cut(Reach(mask(letter), 1, 1))
        else:
            self._break(Reach(ALL, 1, 1))

    def _chars(self, letter: str) -> int:
        return both_cases(mask(letter)) if self.any_case else mask(letter)

    def _in(self, members: Any) -> None:
        reach = Reach(_of_set(members, self.any_case), 1, 1)
        letters = [c for c in ASCII if reach.chars >> ord(c) & 1]
        plain = all(op in (opcodes.LITERAL, opcodes.RANGE) for op, _ in members)
        if plain and not reach.chars & ~LETTERS and len(letters) <= 6:
            texts = {c.lower() for c in letters} if self.any_case else letters
            self._strings(frozenset(Literal(text, self.any_case) for text in texts), reach)
        elif not reach.chars & LETTERS and not _negated(members):
            self._cut(reach)
        else:
            self._break(reach)

    def _not_literal(self, value: int) -> None:
        self._break(Reach(ALL, 1, 1))

    def _any(self, value: None) -> None:
        self._break(Reach(ALL, 1, 1))

    def _at(self, position: Any) -> None:
        if position is opcodes.AT_BOUNDARY:
            self.current = frozenset(Literal(_edged(text), folded) for text, folded in self.current)

    def _subpattern(self, value: Any) -> None:
        group, add, drop, inside = value
        outer, first = self.any_case, len(self.items)
        self.any_case = (outer or bool(add & re.IGNORECASE)) and not drop & re.IGNORECASE
        self.visit(inside)
        self.any_case = outer
        if group is not None:
            self.groups[group] = reduce(Reach.then, self.items[first:], NOTHING)

    def _atomic_group(self, inside: Any) -> None:
        self.visit(inside)

    def _groupref(self, group: int) -> None:
        reach = self.groups.get(group, ANYTHING)
        self._break(Reach(both_cases(reach.chars) if self.any_case else reach.chars, reach.low, reach.high))

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
        elif _sign(inside) and not once.chars & LETTERS:
            self._signs(low, reach)
        else:
            best = fork.finish() if low else None
            self.found += [best] if best is not None else []
            first = fork.items[len(self.items) :] if low else []
            self._break(*first, once.times(low - 1, high - 1) if low else reach)

    def _signs(self, low: int, reach: Reach) -> None:
        """Visit characters that are not letters, possibly repeated zero times."""
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
        if not self._rejects_letters(inside):
            return
        if direction < 0 and all(text in ("", EDGE) for text, _ in self.current):
            self.current = frozenset({Literal(EDGE, False)})
        elif direction > 0:
            self.current = frozenset(Literal(_edged(text) if text else text, folded) for text, folded in self.current)

    # Helpers.

    def _fork(self, inside: Any) -> _Visitor:
        """Return a copy of the visitor that has visited a part."""
        fork = _Visitor(self.any_case, self.current, list(self.items), groups=self.groups, seen=self.seen)
        fork.before = self.before
        return fork.visit(inside)

    def _since(self, fork: _Visitor) -> Reach:
        """Return what a fork consumed."""
        return reduce(Reach.then, fork.items[len(self.items) :], NOTHING)

    def _read(self, inside: Any) -> None:
        self.seen.append(_Visitor(self.any_case, groups=self.groups, seen=self.seen).visit(inside).total)

    def _rejects_letters(self, inside: Any) -> bool:
        nodes = list(inside)
        if len(nodes) == 1 and nodes[0][0] is opcodes.BRANCH:
            return any(self._rejects_letters(branch) for branch in nodes[0][1][1])
        if len(nodes) != 1 or nodes[0][0] is not opcodes.IN or _negated(nodes[0][1]):
            return False
        # Otherwise letters that fold to ASCII ones (a long s) would not be rejected.
        all_letters = self.any_case or (opcodes.CATEGORY, opcodes.CATEGORY_WORD) in list(nodes[0][1])
        return all_letters and not LETTERS & ~_of_set(nodes[0][1], self.any_case)

    def _strings(self, literals: frozenset[Literal], reach: Reach) -> None:
        """Append one of these strings to the current strings."""
        joined = (
            Literal((text + suffix).replace(EDGE + EDGE, EDGE), folded or any_case)
            for text, folded in self.current
            for suffix, any_case in literals
        )
        self._become(frozenset(joined), reach)

    def _become(self, strings: frozenset[Literal], reach: Reach) -> None:
        if len(strings) > _MOST_STRINGS:
            self._break(reach)
            return
        self.current = strings
        self.items.append(reach)

    def _cut(self, reach: Reach) -> None:
        """Visit a piece without letters, which is an edge on both sides."""
        self.current = frozenset(Literal(_edged(text) if text else text, folded) for text, folded in self.current)
        self._break(reach)
        self.current = frozenset({Literal(EDGE, False)})

    def _break(self, *pieces: Reach) -> None:
        """Visit a piece without known strings."""
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
    """Whether a repeated part is a single class without negation, or a single character."""
    nodes = list(inside)
    return len(nodes) == 1 and (
        (nodes[0][0] is opcodes.IN and not _negated(nodes[0][1]))
        or (nodes[0][0] is opcodes.LITERAL and nodes[0][1] < 128)
    )


class Required(NamedTuple):
    """Properties of all matches of a pattern.

    Attributes:
        anchor: contained in every match; None if there is no useful anchor.
        whole: characters of a match and of its wide assertions.
        ahead: number of characters that its other assertions read past the match.
    """

    anchor: Anchor | None
    whole: Reach
    ahead: int


def parsed(pattern: re.Pattern[str]) -> Any:
    """Return the nodes of a pattern."""
    return _parser.parse(pattern.pattern, pattern.flags)


@cache
def required(pattern: re.Pattern[str]) -> Required:
    """Return the anchor and the width of the matches of a pattern."""
    visitor = _Visitor(bool(pattern.flags & re.IGNORECASE)).visit(parsed(pattern))
    strings, total = visitor.finish(), visitor.total
    whole = reduce(Reach.then, (seen for seen in visitor.seen if seen.high >= _FAR), total)
    ahead = sum(seen.high for seen in visitor.seen if seen.high < _FAR)
    anchors: list[Anchor] = [*_runs(visitor.items), *([strings] if strings else [])]
    best = min(anchors, key=lambda anchor: anchor.cost, default=None)
    return Required(best if best is not None and total.low and best.cost < 1.0 else None, whole, ahead)


def _runs(items: list[Reach]) -> Iterator[Run]:
    """Yield the runs of a sequence that begin and end with a required piece."""
    merged = list(_merge_digits(items))
    for first, head in enumerate(merged):
        before = reduce(Reach.then, merged[:first], NOTHING)
        for last in range(first, min(len(merged), first + _MOST_ITEMS)):
            if head.low and merged[last].low:
                yield Run(tuple(merged[first : last + 1]), before)


def _merge_digits(items: list[Reach]) -> Iterator[Reach]:
    """Merge consecutive pieces of digits; drop pieces of width 0."""
    digits = Reach()
    for item in (item for item in items if item.high):
        if not item.chars & ~NUMERIC:
            digits = digits.then(Reach(NUMERIC, item.low, item.high))
            continue
        if digits.high:
            yield digits
        digits = Reach()
        yield item
    if digits.high:
        yield digits
