"""Whether a year of birth can belong to a person over 89: such ages are identifiers.

The age is judged in the year of the note: the latest year of its dates, without dates of birth and
of the future. A note without such a date is judged in the current year. Only years are compared, so
a person who turns 90 in that year counts as over 89.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache

OLDEST = 89  # years; 45 CFR 164.514(b)(2)(i)(C)
_CENTURY = 100
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    rf"(?<![\d/.-])(?:\d{{1,2}}(?P<sign>[/.-])\d{{1,2}}(?P=sign)(?P<last>\d{{4}}|\d{{2}})"
    rf"|(?P<first>(?:19|20)\d\d)[/.-]?\d\d[/.-]?\d\d"
    rf"|(?:\d{{1,2}}(?:st|nd|rd|th)?(?:\sof)?[\s-])?{_MONTH}(?:[\s-]\d{{1,2}}(?:st|nd|rd|th)?)?"
    rf"(?:,?\s|-)(?P<named>(?:19|20)\d\d))(?!\d|[/.-]\d)",
    re.IGNORECASE,
)
_BIRTH = re.compile(
    r"(?:\bdob|d\.o\.b|\bbirth(?:[_\s]?da(?:te|y))?|\bborn|\bb\.)(?:\s+(?:is|was|on|in|the))*"
    r"[\W_]{0,12}\Z",
    re.IGNORECASE,
)
_REACH = 32  # characters before a date that may name it a date of birth


def can_be_over_89(birth_year: int, text: str) -> bool:
    """Return whether a person born in a year can be over 89 in the year of a note."""
    return note_year(text) - birth_year > OLDEST


@lru_cache(maxsize=8)
def note_year(text: str) -> int:
    """Return the latest year of the dates of a note, or the current year if it has none."""
    current = date.today().year
    return max((year for year in _years(text, current) if year <= current), default=current)


def full_year(digits: str, latest: int) -> int:
    """Return the year of two or four digits; two digits mean the last such year up to `latest`."""
    year = int(digits)
    if len(digits) > 2:
        return year
    return latest - (latest - year) % _CENTURY


def _years(text: str, current: int) -> Iterator[int]:
    for match in _DATE.finditer(text):
        start = match.start()
        if not _BIRTH.search(text, max(0, start - _REACH), start):
            yield full_year(match["last"] or match["first"] or match["named"], current)
