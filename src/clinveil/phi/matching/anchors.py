"""Anchors: strings or runs of characters that every match of a pattern contains, and the cost of searching for them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, reduce
from typing import NamedTuple

MANY = 1 << 20
"""Width used for unbounded; notes are shorter."""
NEAR = 4
"""Largest number of start offsets before an anchor that are tried one by one."""
EDGE = "|"
"""Marks a position in a string that is not next to an ASCII letter."""


def mask(characters: Iterable[str]) -> int:
    """Return the bit mask of some ASCII characters."""
    return sum({1 << ord(c) for c in characters})


OTHERS = 1 << 128
ALL = (1 << 129) - 1
ASCII = [chr(code) for code in range(128)]
LETTERS = mask(c for c in ASCII if c.isalpha())
DIGITS = mask("0123456789")
NUMERIC = DIGITS | OTHERS
# Approximate character frequencies in notes: they choose between filters and do not affect results.
_SHARE = (
    dict.fromkeys(ASCII, 0.0005)
    | {c: 0.0015 for c in ASCII if c.isupper() or c.isdigit()}
    | dict(zip("eaintorsldchmupfgybvwkxqzj", (90 / 1.14**n / 1000 for n in range(26)), strict=True))
    | {" ": 0.16, EDGE: 0.2, ".": 0.013, ",": 0.011, "\n": 0.005, "-": 0.003, "/": 0.001}
)


# The same for frequent whole words.
_FREQUENT_WORDS = {
    word: share
    for share, words in (
        (0.008, "the and of was to Dr"),
        (0.003, "a in with is on patient for at he she no"),
        (
            0.001,
            "his her by from or as are had has that be dr this which there not right left history pain mg normal it",
        ),
    )
    for word in words.split()
}


@cache
def _share(chars: int) -> float:
    return min(1.0, sum(share for c, share in _SHARE.items() if chars >> ord(c) & 1))


class Reach(NamedTuple):
    """Characters that a piece of a pattern can consume, and how many.

    Attributes:
        chars: one bit per ASCII character, and one for all others. low, high: smallest and largest number.
    """

    chars: int = 0
    low: int = 0
    high: int = 0

    def then(self, other: Reach) -> Reach:
        """Return the reach of this piece followed by another."""
        return Reach(self.chars | other.chars, self.low + other.low, min(MANY, self.high + other.high))

    def either(self, other: Reach) -> Reach:
        """Return the reach of this piece or another."""
        return Reach(self.chars | other.chars, min(self.low, other.low), max(self.high, other.high))

    def times(self, low: int, high: int) -> Reach:
        """Return the reach of this piece repeated `low` to `high` times."""
        return Reach(self.chars, self.low * low, min(MANY, self.high * high))

    def source(self) -> str:
        """Return a regular expression for the reach."""
        listed = "".join(f"\\x{code:02x}" for code in range(128) if self.chars >> code & 1 != self.chars >> 128)
        char_class = f"[{'^' * (self.chars >> 128)}{listed}]" if listed else r"[\s\S]"
        return f"{char_class}{{{self.low},{self.high if self.high < MANY else ''}}}"


ANYTHING = Reach(ALL, 0, MANY)
NOTHING = Reach()


class Literal(NamedTuple):
    """String of ASCII letters and edges; in lower case if it matches any case."""

    text: str
    any_case: bool


class Strings(NamedTuple):
    """Strings of which every match contains one, after the characters consumed by `before`."""

    literals: frozenset[Literal]
    before: Reach

    @property
    def cost(self) -> float:
        """Expected work per character of a note."""
        return sum(_share_of_string(*literal) for literal in self.literals) * _work(self.before)


class Run(NamedTuple):
    """Runs of characters that every match contains, after the characters consumed by `before`."""

    items: tuple[Reach, ...]
    before: Reach

    @property
    def digits(self) -> int:
        """Number of consecutive digits if the anchor is a single run of digits, else 0."""
        return self.items[0].low if len(self.items) == 1 and not self.items[0].chars & ~NUMERIC else 0

    @property
    def signs(self) -> str:
        """The ASCII characters if the anchor is a single character out of at most three, else an empty string."""
        chars = self.items[0].chars
        few = len(self.items) == 1 and self.items[0].low == 1 and chars < OTHERS and chars.bit_count() <= 3
        return "".join(c for c in ASCII if few and chars >> ord(c) & 1)

    @property
    def mixed(self) -> bool:
        """Whether the anchor is neither a run of digits nor a single character out of at most three."""
        return not self.digits and not self.signs

    @property
    def cost(self) -> float:
        """Expected work per character of a note; the search for digits is shared between rules, signs are cheap."""
        work = reduce(lambda p, item: p * _share_of(item), self.items, 1.0) * _work(self.before)
        return work if self.digits else work + (0.001 if self.signs else 0.04 + _share(self.items[0].chars) * 0.2)


def _share_of_string(text: str, folded: bool) -> float:
    probability = reduce(lambda p, c: p * _SHARE[c], text, 2.0 if folded else 1.0)
    return max(probability, _FREQUENT_WORDS.get(text.strip(EDGE), 0.0) if text.endswith(EDGE) else 0.0)


def _share_of(item: Reach) -> float:
    """Return the approximate frequency of a piece in notes; a digit is often followed by another."""
    share = _share(item.chars)
    return share ** min(item.low, 1) * (0.5 if not item.chars & ~NUMERIC else share) ** max(0, item.low - 1)


def _work(before: Reach) -> float:
    return 1.0 + before.high if before.high <= NEAR else 15.0


Anchor = Strings | Run
