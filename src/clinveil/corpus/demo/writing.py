"""Writing styles of clinicians: date formats and misspellings."""

from __future__ import annotations

import re
from datetime import date

from clinveil.corpus.demo.grammar import Draw, Phi, pick
from clinveil.corpus.demo.language import misspellings

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
STYLES = ("long", "long", "us", "us", "iso", "short", "european", "dashed", "terse")
FULL = ("long", "us", "iso", "european")
_WORD = re.compile(r"\b[a-z]{5,}\b")
KNOWN = 0.5


def written(ordinal: int, style: str) -> str:
    """Return the date of a proleptic ordinal in one of the styles."""
    day = date.fromordinal(ordinal)
    year, month, number = day.year, MONTHS[day.month - 1], day.day
    match style:
        case "long":
            return f"{month} {number}, {year}"
        case "us":
            return f"{day.month:02d}/{number:02d}/{year}"
        case "iso":
            return f"{year}-{day.month:02d}-{number:02d}"
        case "short":
            return f"{month[:3]} {number}, {year}"
        case "european":
            return f"{number} {month} {year}"
        case "dashed":
            return f"{number:02d}-{month[:3]}-{year}"
        case "terse":
            return f"{day.month}/{number}/{year % 100:02d}"
        case "day":
            return f"{month} {number}"
        case "month":
            return f"{month} {year}"
    raise ValueError(style)


class Calendar:
    """The dates mentioned in one note, before and after its visit."""

    __slots__ = ("born", "draw", "last", "style", "visit")

    def __init__(self, born: int, visit: int, draw: Draw) -> None:
        self.born, self.visit, self.draw = born, visit, draw
        self.style, self.last = pick(STYLES, draw), visit - 400

    def phi(self, ordinal: int) -> Phi:
        """Return a date in the author's style."""
        return Phi("DATE", written(ordinal, self.style))

    def past(self) -> Phi:
        """Return a date up to three years before the visit; a recent one sometimes lacks the year."""
        self.last = self.visit - 5 - int(self.draw() ** 2 * 1000)
        recent = self.visit - self.last < 300
        return Phi("DATE", written(self.last, "day" if recent and self.draw() < 0.12 else self.style))

    def month(self) -> Phi:
        """Return a month and year, up to eleven years before the visit."""
        return Phi("DATE", written(self.visit - 40 - int(self.draw() ** 2 * 4000), "month"))

    def later(self) -> Phi:
        """Return a date one to nine days after the last mentioned one, before the visit."""
        return self.phi(min(self.last + 1 + int(self.draw() * 9), self.visit - 1))

    def past_year(self) -> str:
        """Return a year of adult life before the visit (a year alone is not PHI)."""
        first, last = self.born // 365.2425 + 17, self.visit // 365.2425
        return str(int(last - self.draw() ** 1.5 * (last - first)))


def misspell(text: str, draw: Draw) -> str:
    """Return the text with one longer lower-case word misspelt; unchanged if it has none."""
    spans = [match.span() for match in _WORD.finditer(text)]
    if not spans:
        return text
    start, end = pick(spans, draw)
    return text[:start] + slip(text[start:end], draw) + text[end:]


def slip(word: str, draw: Draw) -> str:
    """Return a misspelt word: a common misspelling, or a letter transposed, dropped or doubled."""
    known = misspellings().get(word)
    if known and draw() < KNOWN:
        return pick(known, draw)
    position, kind = 1 + int(draw() * (len(word) - 2)), draw()
    if kind < 0.5:
        return word[:position] + word[position + 1] + word[position] + word[position + 2 :]
    if kind < 0.8:
        return word[:position] + word[position + 1 :]
    return word[:position] + word[position] + word[position:]
