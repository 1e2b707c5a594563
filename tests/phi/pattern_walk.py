"""Derive from a parsed pattern what each match contains, to check the anchors that rules declare.

All sets are supersets of what the pattern allows. Python's parser is private (`re._parser`); the
parts used here are the same in 3.11 to 3.14, and an unknown node is assumed to match anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import import_module
from itertools import takewhile
from typing import Any, NamedTuple

from clinveil.phi.matching.matcher import EDGE, FAR, Anchor

_parser = import_module("re._parser")
_op = import_module("re._constants")

MANY = 1 << 20  # unbounded
_MOST_STRINGS = 256


def mask(characters: Iterable[str]) -> int:
    """Return the bit mask of some ASCII characters."""
    return sum({1 << ord(c) for c in characters})


OTHERS = 1 << 128
ALL = (1 << 129) - 1
_ASCII = [chr(code) for code in range(128)]
_LETTERS = mask(c for c in _ASCII if c.isalpha())
_DIGITS = mask("0123456789")
_NUMERIC = _DIGITS | OTHERS
_WORD = _LETTERS | _DIGITS | mask("_")
_SPACES = mask(c for c in _ASCII if c.isspace())
_CATEGORIES = {
    _op.CATEGORY_DIGIT: _NUMERIC,
    _op.CATEGORY_SPACE: _SPACES | OTHERS,
    _op.CATEGORY_WORD: _WORD | OTHERS,
    _op.CATEGORY_NOT_DIGIT: ALL & ~_DIGITS,
    _op.CATEGORY_NOT_SPACE: ALL & ~_SPACES,
    _op.CATEGORY_NOT_WORD: ALL & ~_WORD,
}
# Approximate frequencies of characters and words in notes: they choose between anchors and do not
# affect results.
_SHARE = (
    dict.fromkeys(_ASCII, 0.0005)
    | {c: 0.0015 for c in _ASCII if c.isupper() or c.isdigit()}
    | dict(zip("eaintorsldchmupfgybvwkxqzj", (90 / 1.14**n / 1000 for n in range(26)), strict=True))
    | {" ": 0.16, EDGE: 0.2, ".": 0.013, ",": 0.011, "\n": 0.005, "-": 0.003, "/": 0.001}
)
_FREQUENT_WORDS = {
    word: share
    for share, words in (
        (0.008, "the and of was to dr"),
        (0.003, "a in with is on patient for at he she no"),
        (0.001, "his her by from or as are had has that be this which there not left history pain"),
    )
    for word in words.split()
}


class Reach(NamedTuple):
    """Characters that a piece of a pattern can consume, and how many.

    Attributes:
        chars: one bit per ASCII character, and one for all others. low, high: smallest and largest
            number.
    """

    chars: int = 0
    low: int = 0
    high: int = 0

    def then(self, other: Reach) -> Reach:
        """Return the reach of this piece followed by another."""
        return Reach(
            self.chars | other.chars, self.low + other.low, min(MANY, self.high + other.high)
        )

    def either(self, other: Reach) -> Reach:
        """Return the reach of this piece or another."""
        return Reach(self.chars | other.chars, min(self.low, other.low), max(self.high, other.high))

    def times(self, low: int, high: int) -> Reach:
        """Return the reach of this piece repeated `low` to `high` times."""
        return Reach(self.chars, self.low * low, min(MANY, self.high * high))


ANYTHING = Reach(ALL, 0, MANY)
NOTHING = Reach()


class Derived(NamedTuple):
    """Text that every match contains, after the characters consumed by `before`.

    Attributes:
        strings: it is one of these strings of letters and edges, in lower case if case is ignored;
            if empty,
        signs: it is one of these characters; if 0,
        digits: it is a run of at least this many digits. Non-ASCII characters count as digits.
    """

    before: Reach
    strings: frozenset[str] = frozenset()
    signs: int = 0
    digits: int = 0

    @property
    def cost(self) -> float:
        """Expected work per character of a note."""
        work = 1.0 + min(self.before.high, 96) / 4
        if self.digits:
            return 0.005 * 0.5**self.digits * work
        shares = [_SHARE[c] for c in _ASCII if self.signs >> ord(c) & 1]
        for text in self.strings:
            probability = reduce(lambda product, c: product * _SHARE[c], text, 2.0)
            word = _FREQUENT_WORDS.get(text.strip(EDGE), 0.0) if text.endswith(EDGE) else 0.0
            shares.append(max(probability, word))
        return sum(shares) * work


class Contained(NamedTuple):
    """Properties of all matches of a pattern.

    Attributes:
        anchors: each contained in every match.
        first: characters with which a match can begin. before: characters that can precede it, if
            there is any.
    """

    anchors: list[Derived]
    first: int
    before: int


def _of_set(members: Any, any_case: bool) -> int:
    """Return the characters of a class; all of them if it contains an unknown item or is a negation
    of non-ASCII.
    """
    chars = 0
    negated = False
    for op, value in members:
        low, high = (value, value) if op is _op.LITERAL else value if op is _op.RANGE else (0, -1)
        negated = negated or op is _op.NEGATE
        if op is _op.CATEGORY:
            chars |= _CATEGORIES.get(value, ALL)
        elif op not in (_op.NEGATE, _op.LITERAL, _op.RANGE):
            return ALL
        chars |= mask(_ASCII[low : high + 1]) | (OTHERS if high >= 128 else 0)
        if high >= 128 and any_case:  # some of them match ASCII letters
            chars |= mask("iIsSkK")
    if any_case:  # some non-ASCII letters match ASCII ones: a long s matches s
        chars |= mask(c.swapcase() for c in _ASCII if chars >> ord(c) & 1) | (
            OTHERS if chars & _LETTERS else 0
        )
    if not negated:
        return chars
    exact = not (any_case and chars & OTHERS and chars & mask("iIsSkK"))
    return ALL & ~chars | OTHERS if exact else ALL


def _negated(members: Any) -> bool:
    return any(op is _op.NEGATE for op, _ in members)


@dataclass
class _Visitor:
    """Visits one sequence of a pattern from left to right; its methods are named after the nodes.

    Attributes:
        any_case: whether case is ignored at the current node.
        current: possible strings between `before` and the current node.
        items: pieces consumed so far.
        found: string anchors found so far.
        exact: whether `current` describes the sequence completely.
        words: strings of a declaration to be checked.
    """

    any_case: bool
    words: tuple[str, ...] = ()
    current: frozenset[str] = frozenset({""})
    items: list[Reach] = field(default_factory=list)
    found: list[Derived] = field(default_factory=list)
    exact: bool = True
    before: Reach = NOTHING

    def visit(self, nodes: Any) -> _Visitor:
        """Visit the nodes of a sequence."""
        for op, value in nodes:
            getattr(self, f"_{str(op).lower()}", self._unknown)(value)
        return self

    def finish(self) -> Derived | None:
        """Return the string anchor that contains one of the words looked for, else the cheapest."""
        self._flush()
        return min(
            self.found,
            key=lambda anchor: (not _all_contain(anchor.strings, self.words), anchor.cost),
            default=None,
        )

    def _unknown(self, value: Any) -> None:
        self._break(ANYTHING)

    def _literal(self, value: int) -> None:
        self._in([(_op.LITERAL, value)])

    def _in(self, members: Any) -> None:
        reach = Reach(_of_set(members, self.any_case), 1, 1)
        texts = {c.lower() if self.any_case else c for c in _ASCII if reach.chars >> ord(c) & 1}
        if _lists_ascii(members) and not reach.chars & ~(_LETTERS | OTHERS) and len(texts) <= 6:
            joined = (
                (text + letter).replace(EDGE + EDGE, EDGE)
                for text in self.current
                for letter in texts
            )
            self._become(frozenset(joined), reach)
        elif not reach.chars & _LETTERS and not _negated(members):
            self._cut(reach)
        else:
            self._break(reach)

    def _any(self, value: Any) -> None:
        self._break(Reach(ALL, 1, 1))

    _not_literal = _any

    def _at(self, position: Any) -> None:
        if position is _op.AT_BOUNDARY:
            self.current = frozenset(map(_edged, self.current))

    def _subpattern(self, value: Any) -> None:
        _, add, drop, inside = value
        outer = self.any_case
        self.any_case = (outer or bool(add & re.IGNORECASE)) and not drop & re.IGNORECASE
        self.visit(inside)
        self.any_case = outer

    _atomic_group = visit

    def _branch(self, value: Any) -> None:
        forks = [self._fork(branch) for branch in value[1]]
        reach = reduce(Reach.either, (self._since(fork) for fork in forks))
        if all(fork.exact for fork in forks):
            self._become(frozenset[str]().union(*(fork.current for fork in forks)), reach)
            return
        best = [anchor for fork in forks if (anchor := fork.finish()) is not None]
        if len(best) == len(forks):
            strings = frozenset[str]().union(*(anchor.strings for anchor in best))
            self.found.append(
                Derived(reduce(Reach.either, (anchor.before for anchor in best)), strings)
            )
        self._break(reach)

    def _max_repeat(self, value: Any) -> None:
        low = value[0]
        high = min(MANY, int(value[1]))
        inside = value[2]
        fork = self._fork(inside)
        once = self._since(fork)
        reach = once.times(low, high)
        if fork.exact and high == 1:
            self._become(fork.current | (frozenset() if low else self.current), reach)
        elif _one_character(inside) and not once.chars & _LETTERS:
            (self._cut if low else self._break)(reach)
        else:
            best = fork.finish() if low else None
            self.found += [best] if best is not None else []
            first = fork.items[len(self.items) :] if low else []
            self._break(*first, once.times(low - 1, high - 1) if low else reach)

    _min_repeat = _possessive_repeat = _max_repeat

    def _assert(self, value: Any) -> None:
        """Ignore a positive assertion."""

    def _assert_not(self, value: Any) -> None:
        """`(?<!\\w)` before a string and `(?!\\w)` after it are edges of a word."""
        direction, inside = value
        if not self._rejects_letters(inside):
            return
        if direction < 0 and all(text in ("", EDGE) for text in self.current):
            self.current = frozenset({EDGE})
        elif direction > 0:
            self.current = frozenset(_edged(text) if text else text for text in self.current)

    def _rejects_letters(self, inside: Any) -> bool:
        nodes = list(inside)
        if len(nodes) == 1 and nodes[0][0] is _op.BRANCH:
            return any(self._rejects_letters(branch) for branch in nodes[0][1][1])
        if len(nodes) != 1 or nodes[0][0] is not _op.IN or _negated(nodes[0][1]):
            return False
        # Otherwise letters that fold to ASCII ones (a long s) would not be rejected.
        all_letters = self.any_case or (_op.CATEGORY, _op.CATEGORY_WORD) in list(nodes[0][1])
        return all_letters and not _LETTERS & ~_of_set(nodes[0][1], self.any_case)

    def _fork(self, inside: Any) -> _Visitor:
        """Return a copy of the visitor that has visited a part."""
        fork = _Visitor(
            self.any_case, self.words, self.current, list(self.items), before=self.before
        )
        return fork.visit(inside)

    def _since(self, fork: _Visitor) -> Reach:
        """Return what a fork consumed."""
        return reduce(Reach.then, fork.items[len(self.items) :], NOTHING)

    def _become(self, strings: frozenset[str], reach: Reach) -> None:
        if len(strings) > _MOST_STRINGS:
            self._break(reach)
            return
        self.current = strings
        self.items.append(reach)

    def _cut(self, reach: Reach) -> None:
        """Visit a piece without letters, which is an edge on both sides."""
        self.current = frozenset(_edged(text) if text else text for text in self.current)
        self._break(reach)
        self.current = frozenset({EDGE})

    def _break(self, *pieces: Reach) -> None:
        """Visit a piece without known strings."""
        self._flush()
        self.exact = False
        self.items += pieces
        self.before = reduce(Reach.then, self.items, NOTHING)
        self.current = frozenset({""})

    def _flush(self) -> None:
        if all(len(text) > 1 and text.strip(EDGE) for text in self.current):
            self.found.append(Derived(self.before, self.current))


def _edged(text: str) -> str:
    return text if text.endswith(EDGE) else text + EDGE


def _one_character(inside: Any) -> bool:
    """Whether a repeated part is a single class without negation, or a single character."""
    nodes = list(inside)
    return len(nodes) == 1 and (
        (nodes[0][0] is _op.IN and not _negated(nodes[0][1]))
        or (nodes[0][0] is _op.LITERAL and nodes[0][1] < 128)
    )


def contained(pattern: re.Pattern[str], words: tuple[str, ...] = ()) -> Contained:
    """Return what the matches of a pattern contain; of several strings, those with the words."""
    any_case = bool(pattern.flags & re.IGNORECASE)
    nodes = _parser.parse(pattern.pattern, pattern.flags)
    visitor = _Visitor(any_case, words).visit(nodes)
    visitor.finish()
    anchors = [*_of_pieces(visitor.items), *visitor.found]
    if not any(piece.low > 0 for piece in visitor.items):
        anchors = []
    first, _ = _first(nodes, any_case)
    return Contained(anchors, first, _allowed_before(nodes, first, pattern.flags))


def faults(pattern: re.Pattern[str], anchor: Anchor) -> list[str]:
    """Return the attributes of an anchor that the pattern does not imply."""
    derived = contained(pattern, anchor.strings)
    distances = [_distance(candidate, anchor) for candidate in derived.anchors]
    reached = min((distance for distance in distances if distance is not None), default=None)
    return [
        *(["words, digits or signs"] if reached is None else []),
        *(["within"] if reached is not None and min(reached, FAR) > anchor.within else []),
        *(["first"] if derived.first & ALL & ~_class(anchor.first) else []),
        *(["after"] if derived.before & ALL & ~_class(anchor.after) else []),
    ]


def _distance(derived: Derived, anchor: Anchor) -> int | None:
    """Return how far before a declared anchor a match can begin; None if it can lack the anchor."""
    if anchor.words:
        offsets = [_offset(text, anchor.strings) for text in derived.strings]
        inside = (
            None if None in offsets or not offsets else max(o for o in offsets if o is not None)
        )
    elif anchor.digits:
        inside = 0 if derived.digits >= anchor.digits else None
    else:
        inside = 0 if derived.signs and not derived.signs & ~mask(anchor.signs) else None
    return None if inside is None else derived.before.high + inside


def _offset(text: str, words: tuple[str, ...]) -> int | None:
    """Return the letters of a text before the first of some words that it contains."""
    places = [
        len(shape[: shape.index(word)].replace(EDGE, ""))
        for word in words
        if word in (shape := text.lower() if word == word.lower() else text)
    ]
    return min(places, default=None)


def _all_contain(strings: frozenset[str], words: tuple[str, ...]) -> bool:
    return all(_offset(text, words) is not None for text in strings)


def _class(source: str) -> int:
    """Return the characters of a class; those that are not ASCII are always allowed."""
    pattern = re.compile(source or r"[\s\S]")
    return mask(c for c in _ASCII if pattern.fullmatch(c)) | OTHERS


def declared(pattern: re.Pattern[str]) -> Anchor | None:
    """Return the rarest anchor of a pattern as a declaration; None if there is no useful one."""
    derived = contained(pattern)
    whole = (c for c in derived.anchors if not any(EDGE in s.strip(EDGE) for s in c.strings))
    best = min(whole, key=lambda candidate: candidate.cost, default=None)
    if best is None or best.cost >= 1.0:
        return None
    strings = [
        text
        for text in sorted(best.strings)
        if not any(_offset(text, (other,)) is not None for other in best.strings - {text})
    ]
    at_start = not best.before.high and not best.digits
    anchor = Anchor(
        words=" ".join(map(_starred, strings)),
        digits=best.digits,
        signs="".join(c for c in _ASCII if best.signs >> ord(c) & 1),
        within=min(best.before.high, FAR),
        first="" if not best.before.high else _written(derived.first),
        after="" if at_start else _written(derived.before),
    )
    # A shorter string can begin later than the one that it replaces.
    return replace(anchor, within=min(_distance(best, anchor) or 0, FAR))


def _starred(text: str) -> str:
    before = "" if text.startswith(EDGE) else "*"
    after = "" if text.endswith(EDGE) else "*"
    return before + text.strip(EDGE) + after


_CLASSES = (r"\d", "[A-Z]", "[A-Za-z]", r"\w", r"\D", "[^A-Za-z]", r"\W")


def _written(chars: int) -> str:
    """Return a short class that contains some characters; empty for all."""
    listed = [c for c in _ASCII if chars >> ord(c) & 1]
    if len(listed) <= 8:
        return _bracketed("", listed)
    others = [c for c in _ASCII if not chars >> ord(c) & 1]
    if not others:
        return ""
    fitting = [source for source in _CLASSES if not chars & ~_class(source)]
    exact = [source for source in fitting if not _class(source) & ~chars & ~OTHERS]
    if exact:
        return exact[0]
    return min(
        (source for source in (*fitting, *_extended(listed))),
        key=lambda source: (_class(source).bit_count(), len(source)),
        default="",
    )


def _bracketed(source: str, characters: list[str]) -> str:
    listed = "".join(
        "\\n" if c == "\n" else f"\\{c}" if c in "\\]^" else c
        for c in sorted(characters)
        if c != "-"
    )
    return (
        listed
        if listed == "\\n" and not source
        else f"[{source}{listed}{'-' * ('-' in characters)}]"
    )


def _extended(listed: list[str]) -> Iterator[str]:
    """Yield classes that are one of the usual ones and at most six other characters."""
    chars = mask(listed)
    for source in (r"\d", "A-Z", r"A-Z\d", "A-Za-z", r"\w"):
        more = [c for c in listed if not _class(f"[{source}]") >> ord(c) & 1]
        if len(more) <= 6:
            yield _bracketed(source, more)
    for source in (r"\d", "A-Za-z", r"\w"):
        rejected = [
            c for c in _ASCII if not chars >> ord(c) & 1 and not _class(f"[{source}]") >> ord(c) & 1
        ]
        if not chars & _class(f"[{source}]") & ~OTHERS and len(rejected) <= 6:
            yield _bracketed(f"^{source}", rejected)


def _of_pieces(items: list[Reach]) -> Iterator[Derived]:
    """Yield the anchors that are runs of digits, merged, or single characters out of at most
    three.
    """
    before = NOTHING
    for place, item in enumerate(items):
        if item.low and not item.chars & ~_NUMERIC:
            numeric = takewhile(lambda piece: not piece.chars & ~_NUMERIC, items[place:])
            yield Derived(before, digits=sum(piece.low for piece in numeric))
        elif item.low and item.chars < OTHERS and item.chars.bit_count() <= 3:
            yield Derived(before, signs=item.chars)
        before = before.then(item)


def _first(nodes: Any, any_case: bool) -> tuple[int, bool]:
    """Return the characters with which a match of some nodes can begin, and whether it can be
    empty.
    """
    chars = 0
    for op, value in nodes:
        if op in (_op.LITERAL, _op.IN):
            return chars | _of_set([(op, value)] if op is _op.LITERAL else value, any_case), False
        if op in (_op.AT, _op.ASSERT, _op.ASSERT_NOT):
            continue
        if op is _op.SUBPATTERN:
            inner = (any_case or bool(value[1] & re.IGNORECASE)) and not value[2] & re.IGNORECASE
            more, empty = _first(value[3], inner)
        elif op is _op.BRANCH:
            branches = [_first(branch, any_case) for branch in value[1]]
            more = reduce(int.__or__, (begun for begun, _ in branches))
            empty = any(free for _, free in branches)
        elif op in (_op.MAX_REPEAT, _op.MIN_REPEAT):
            more, empty = _first(value[2], any_case)
            empty = empty or not value[0]
        else:
            more = ALL
            empty = False
        chars |= more
        if not empty:
            return chars, False
    return chars, True


def _allowed_before(nodes: Any, first: int, flags: int) -> int:
    """Return the characters allowed before a match, from the assertions at its start."""
    allowed = ALL
    any_case = bool(flags & re.IGNORECASE)
    for op, value in nodes:
        if op is _op.AT and value is _op.AT_BOUNDARY and not first & ~_WORD & ~OTHERS:
            allowed &= ~_WORD
        elif op is _op.AT and value is _op.AT_BEGINNING:
            allowed &= mask("\n") if flags & re.MULTILINE else 0
        elif op is _op.ASSERT_NOT and value[0] < 0 and len(value[1]) == 1:
            ((of, what),) = value[1]
            members = what if of is _op.IN else [(of, what)]
            allowed &= ~_of_set(members, any_case) if _lists_ascii(members, _CATEGORIES) else ALL
        elif op not in (_op.AT, _op.ASSERT, _op.ASSERT_NOT):
            break
    return allowed & ALL | OTHERS


def _lists_ascii(members: Any, categories: Collection[Any] = ()) -> bool:
    """Whether a class lists ASCII characters and some categories only."""
    return all(
        (op is _op.LITERAL and value < 128)
        or (op is _op.RANGE and value[1] < 128)
        or (op is _op.CATEGORY and value in categories)
        for op, value in members
    )
