"""Anchors: text that every match of a pattern contains, declared next to the pattern.

A note is searched once for the anchors of all patterns, and a pattern is tried only near its own
(prefilters of RE2: R. Cox, "Regular expression matching with a trigram index", 2012, with offsets
added). A pattern without an anchor is tried at every offset. `tests/phi/test_matcher.py` proves
for each rule that no match lacks its anchor.
"""

from __future__ import annotations

from dataclasses import dataclass

EDGE = "|"
"""Marks a position in a string that is not next to an ASCII letter."""
FAR = 96
"""A match begins at most this many characters before its anchor."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Text that every match contains: one of several words, a run of digits, or one of some signs.

    Declare the rarest. Letters and digits mean ASCII here; other characters are always allowed.

    Attributes:
        words: separated by spaces: `fax` alone, `phone*` with letters after it, `*weg` with letters
            before it. A word in lower case is found in any case.
        digits: smallest length of the run of digits.
        signs: one of these characters.
        within: a match begins at most this many characters before its anchor, `FAR` if unlimited.
        first: class of the first character of a match, as in a pattern: `[A-Z]`. Any if empty.
        after: class of the character before a match, if there is one. Any if empty.
    """

    words: str = ""
    digits: int = 0
    signs: str = ""
    within: int = 0
    first: str = ""
    after: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.words, self.digits, self.signs))) != 1:
            raise ValueError("an anchor needs exactly one of words, digits and signs")

    @property
    def strings(self) -> tuple[str, ...]:
        """The words with an `EDGE` at each side where no letter follows."""
        return tuple(dict.fromkeys(map(_string, self.words.split())))


def _string(word: str) -> str:
    letters = word.strip("*")
    if not (letters.isascii() and letters.isalpha()):
        raise ValueError("a word of an anchor consists of ASCII letters")
    before = "" if word.startswith("*") else EDGE
    after = "" if word.endswith("*") else EDGE
    return before + letters + after
