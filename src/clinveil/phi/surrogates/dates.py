"""Dates: one secret offset a patient for all notes, exact arithmetic on real dates, printed as they were written.

The offset is never zero and at most a year either way; intervals between a patient's full dates are kept exactly, and
times of day are not touched. A month with its year moves as its 15th day does, so it may be half a month off. A date
that cannot be read (no year, a range, a feast) gets a typed tag: the year is never guessed. Shifting dates is not
Safe Harbor (45 CFR 164.514(b)(2) leaves only the year); it is for expert determination and limited data sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache

from clinveil.core.keys import Key
from clinveil.phi.detectors.dates import MONTHS

LARGEST_OFFSET = 365  # days
_LATEST_SHORT_YEAR = 49  # '49 is 2049, '50 is 1950

Printer = Callable[[date], str]
_MONTH = r"(?P<M>[A-Za-z]{3,9}\.?)"
_FORMS = (
    re.compile(r"(?P<m>\d{1,2})(?P<s>\s?[/.-]\s?)(?P<d>\d{1,2})(?P=s)(?P<y>\d{4}|\d{2})"),
    re.compile(r"(?P<y>\d{4})(?P<s>[/.-])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})"),
    re.compile(r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})"),
    re.compile(
        rf"(?P<d>\d{{1,2}})(?P<o>st|nd|rd|th)?(?P<a>(?:\s+day)?(?:\s+of)?[\s-]*){_MONTH}(?P<b>[\s,'-]*)(?P<y>\d{{4}}"
        rf"|\d{{2}})"
    ),
    re.compile(
        rf"{_MONTH}(?P<a>[\s-]*(?:the\s)?)(?P<d>\d{{1,2}})(?P<o>st|nd|rd|th)?(?P<b>[\s,'-]+)(?P<y>\d{{4}}|\d{{2}})",
        re.I,
    ),
    re.compile(r"(?P<m>\d{1,2})(?P<s>/)(?P<y>\d{4})"),
    re.compile(rf"{_MONTH}(?P<b>(?:\s+of)?[\s,'/-]*)(?P<y>\d{{4}}|(?<=')\d{{2}}|(?<='\s)\d{{2}})", re.I),
)


def offset(key: Key, patient_id: str) -> timedelta:
    """The patient's secret offset: uniform on the whole days from -365 to 365 without 0."""
    days = 1 + key.stream("date-shift", patient_id).below(2 * LARGEST_OFFSET)
    return timedelta(days if days <= LARGEST_OFFSET else LARGEST_OFFSET - days)


def shifted(key: Key, patient_id: str, original: str) -> str | None:
    """The date moved by the patient's offset in its own format, or None where it cannot be read."""
    read = parse(original)
    if read is None:
        return None
    day, printer = read
    try:
        return printer(day + offset(key, patient_id))
    except OverflowError:
        return None


@lru_cache(maxsize=1 << 12)
def parse(text: str) -> tuple[date, Printer] | None:
    """The date that a text is, and how to print another one in the same way; None if it is no full date.

    Month before day where both are possible, as American notes have it.
    """
    for pattern in _FORMS:
        if match := pattern.fullmatch(text.strip()):
            return _read(match)
    return None


def _read(match: re.Match[str]) -> tuple[date, Printer] | None:
    parts = match.groupdict()
    month = _month(parts)
    if month is None:
        return None
    day = int(parts["d"]) if parts.get("d") else 15
    swapped = "m" in parts and "d" in parts and month > 12 >= day and match.start("y") > 0
    if swapped:
        day, month = month, day
    try:
        return date(_year(parts["y"]), month, day), lambda new: _printed(match, new, swapped=swapped)
    except ValueError:
        return None


def _month(parts: dict[str, str | None]) -> int | None:
    if parts.get("m"):
        return int(parts["m"] or 0)
    name = (parts["M"] or "").rstrip(".").lower()
    return next((i for i, month in enumerate(MONTHS, 1) if len(name) >= 3 and _is_month(name, month.lower())), None)


def _is_month(name: str, month: str) -> bool:
    return month.startswith(name) and (len(name) <= 4 or name == month)


def _year(text: str | None) -> int:
    year = int(text or 0)
    if len(text or "") == 4:
        return year
    return year + (2000 if year <= _LATEST_SHORT_YEAR else 1900)


def _printed(match: re.Match[str], new: date, *, swapped: bool) -> str:
    """The matched text with the numbers and names of another date in the same places."""
    month, day = (new.day, new.month) if swapped else (new.month, new.day)
    wide = match.start("y") == 0
    values: dict[str, Callable[[str], str]] = {
        "m": lambda old: _padded(month, old, wide=wide),
        "d": lambda old: _padded(day, old, wide=wide),
        "y": lambda old: f"{new.year:04d}" if len(old) == 4 else f"{new.year % 100:02d}",
        "M": lambda old: _month_like(MONTHS[new.month - 1], old),
        "o": lambda old: _ordinal(new.day, old),
    }
    out, position = [], 0
    for (start, end), name in sorted((match.span(name), name) for name in values if match.groupdict().get(name)):
        out += [match.string[position:start], values[name](match[name])]
        position = end
    return "".join([*out, match.string[position:]])


def _padded(number: int, old: str, *, wide: bool) -> str:
    """With a leading zero where the old one had it, or where the year stands first (2019-03-04, 20190304)."""
    return f"{number:02d}" if old.startswith("0") or (wide and len(old) == 2) else str(number)


def _month_like(name: str, old: str) -> str:
    bare = old.rstrip(".")
    short = bare.lower() not in {month.lower() for month in MONTHS} or (len(bare) == 3 and bare.lower() != "may")
    name = name[:3] if short else name
    name = name.upper() if bare.isupper() else name.lower() if bare.islower() else name
    return name + old[len(bare) :]


def _ordinal(day: int, old: str) -> str:
    ending = "th" if 10 < day % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return ending.upper() if old.isupper() else ending
