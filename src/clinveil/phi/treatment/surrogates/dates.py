"""Shift dates by one secret offset per patient, in calendar arithmetic, and print them in their original format.

The offset is never zero and at most 365 days in either direction. Intervals between full dates of a patient are exact,
and times of day do not change. A weekday next to a date moves with it; otherwise it would disclose the offset modulo 7.
Both ends of a range move. A month with a year moves as its 15th day, and one month further if it would not change. A
bare year moves as its middle. These two may therefore be off by half a month and half a year. A date that cannot be
read (no year, a holiday) gets a typed tag: the year is never guessed. Dates in MIMIC's brackets move by the same offset
and keep their brackets. Shifted dates do not satisfy Safe Harbor (45 CFR 164.514(b)(2) allows only the year); they are
for expert determination and limited data sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache

from clinveil.core.keys import Key
from clinveil.phi.detection.detectors.dates import MONTHS

LARGEST_OFFSET = 365  # days
_LATEST_SHORT_YEAR = 49  # '49 is 2049, '50 is 1950

Printer = Callable[[date], str]
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAY = rf"(?:{'|'.join(WEEKDAYS)}|Mon|Tues?|Weds?|Thu(?:rs?)?|Fri|Sat|Sun)\b\.?"
_WHOLE = frozenset(month.lower() for month in MONTHS)
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
    re.compile(r"(?P<m>\d{1,2})(?P<s>-/|[/-])(?P<y>\d{4})"),
    re.compile(rf"{_MONTH}(?P<b>(?:\s+of)?[\s,'/-]*)(?P<y>\d{{4}}|(?<=')\d{{2}}|(?<='\s)\d{{2}})", re.I),
    re.compile(r"(?P<y>\d{4})"),
)
_ORDINAL = r"(?:st|nd|rd|th)?"
_TO = r"\s?(?:-|to|and|through|thru|until)\s?"
# A range within one month: the last day is separate from month and year.
_DAYS = (
    re.compile(rf"(?P<head>[A-Za-z]{{3,9}}\.?\s+\d{{1,2}}{_ORDINAL})(?P<to>{_TO})(?P<end>\d{{1,2}}{_ORDINAL})"
               r"(?P<tail>[\s,]+\d{4})"),
    re.compile(rf"(?P<end>\d{{1,2}}{_ORDINAL})(?P<to>{_TO})(?P<head>\d{{1,2}}{_ORDINAL}(?:\s+of)?\s+[A-Za-z]{{3,9}}\.?)"
               r"(?P<tail>[\s,]+\d{4})"),
)  # fmt: skip
_BETWEEN = re.compile(r"\s?(?:-|–|to|and|through|thru|until)\s?", re.I)
_YEAR_LAST = re.compile(r"(?<=[/.-])(?:\d{4}|\d{2})$|(?<=[\s,])\d{4}$")
_WEEKDAY_FIRST = re.compile(rf"(?P<day>{WEEKDAY})(?P<gap>,?\s+(?:the\s+)?)(?=\S)", re.I)
_WEEKDAY_LAST = re.compile(rf"(?P<gap>,?\s+\(?)(?P<day>{WEEKDAY})(?P<end>\)?)$", re.I)
# A MIMIC bracket with a date, a partial date, or only a type (`[**Month/Day (2) 3**]`).
_KIND = r"(?:month|day|year|weekday)(?:[/ ](?:month|day|year))*|dates?(?:\s+range)?|holiday"
DATE_BRACKET = re.compile(
    rf"\[\*\*\s*(?:(?P<kind>(?:{_KIND})\s*(?:\([^)\n]{{0,20}}\))?\s*\d*)|(?P<date>(?:1[6-9]|2[0-3])\d\d(?:[/.-]\d{{1,2}}){{0,2}}"
    r"|\d{1,2}[/-]\d{1,2}(?:[/-](?:\d{4}|\d{2}))?|\d{1,2}-?/\d{4}"
    rf"|(?:\d{{1,2}}\s)?(?:{'|'.join(month[:3] for month in MONTHS)})[a-z]*\.?(?:\s\d{{1,2}})?(?:,?\s\d{{4}})?))"
    r"\s*\*\*\]",
    re.I,
)
_TIME_LAST = re.compile(r"(?:T|,?\s+(?:at\s+)?)\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?$")


@lru_cache(maxsize=1 << 9)
def offset(key: Key, patient_id: str) -> timedelta:
    """Return the patient's secret offset: uniform over the days from -365 to 365 without 0."""
    days = 1 + key.stream("date-shift", patient_id).below(2 * LARGEST_OFFSET)
    return timedelta(days if days <= LARGEST_OFFSET else LARGEST_OFFSET - days)


def shifted(key: Key, patient_id: str, original: str) -> str | None:
    """Return the date moved by the patient's offset in its own format, or None if it cannot be read."""
    try:
        return _moved(original.strip(), offset(key, patient_id))
    except OverflowError:
        return None


def _moved(text: str, by: timedelta) -> str | None:
    """Move a date, a MIMIC bracket, a date with weekday or time, or a range."""
    if match := DATE_BRACKET.fullmatch(text):
        inside = match["date"] and _moved(match["date"], by)
        return inside and f"[**{inside}**]"
    if match := _WEEKDAY_FIRST.match(text):
        rest = _moved(text[match.end() :], by)
        return rest and _weekday(match["day"], by) + match["gap"] + rest
    if not text[-1:].isdigit() and (match := _WEEKDAY_LAST.search(text)):
        rest = _moved(text[: match.start()], by)
        return rest and rest + match["gap"] + _weekday(match["day"], by) + match["end"]
    if ":" in text and (match := _TIME_LAST.search(text)):
        rest = _moved(text[: match.start()], by)
        return rest and rest + match[0]
    read = parse(text)
    return _range(text, by) if read is None else _single(text, *read, by)


def _single(text: str, day: date, printer: Printer, by: timedelta) -> str:
    """Move one date; a month without a day always changes."""
    moved = printer(day + by)
    return printer(day + timedelta(31 if by.days > 0 else -31)) if moved == text and len(text) != 4 else moved


def _weekday(name: str, by: timedelta) -> str:
    """Return the shifted weekday in the same length and case. A wrong weekday stays wrong."""
    bare = name.rstrip(".")
    index = next(i for i, day in enumerate(WEEKDAYS) if day[:3].lower() == bare[:3].lower())
    new = WEEKDAYS[(index + by.days) % 7]
    new = new if len(bare) > 5 else new[:3]
    return (new.upper() if bare.isupper() else new.lower() if bare.islower() else new) + name[len(bare) :]


def _range(text: str, by: timedelta) -> str | None:
    """Move two dates joined by a word or dash; the first may lack a year, the last a month."""
    for pattern in _DAYS:
        if match := pattern.fullmatch(text):
            return _days(match, by)
    for gap in _BETWEEN.finditer(text):
        first, last = text[: gap.start()], text[gap.end() :]
        if (
            (complete := _with_year(first, last))
            and parse(last)
            and (start := _moved(complete, by))
            and (end := _moved(last, by))
        ):
            year = _YEAR_LAST.search(start)
            if complete != first and year and start[year.start() :] == end[_year_start(end) :]:
                start = re.sub(r"[/.,\s-]+$", "", start[: year.start()])
            return start + gap[0] + end
    return None


def _year_start(text: str) -> int:
    match = _YEAR_LAST.search(text)
    return match.start() if match else len(text)


def _with_year(first: str, last: str) -> str | None:
    """Return the first date of a range, with the year of the last if it has none."""
    if parse(first):
        return first
    year = _YEAR_LAST.search(last)
    if year is None:
        return None
    sign = last[year.start() - 1] if last[year.start() - 1] in "/.-" else ", " if "," in last else " "
    complete = first + sign + year[0]
    return complete if parse(complete) else None


def _days(match: re.Match[str], by: timedelta) -> str | None:
    """Move both ends of `March 4-7, 2019`, under one month if they still share it."""
    month_first = match.start("head") == 0
    ends = match["head"] + match["tail"], _with_day(match["head"], match["end"]) + match["tail"]
    first, last = (_moved(text, by) for text in ends)
    if first is None or last is None:
        return None
    if not month_first:
        first, last = last, first
    tail = next(iter(re.findall(r"[\s,]+\d{4}$", last)))
    if not first.endswith(tail):
        return first + match["to"] + last
    head = first.removesuffix(tail)
    if month_first:
        same = head.split()[0] == last.split()[0]
        return head + match["to"] + (last.split(maxsplit=1)[1] if same else last)
    same = head.split()[-1] == last.removesuffix(tail).split()[-1]
    return (re.match(r"\w+", head)[0] if same else head) + match["to"] + last  # type: ignore[index]


def _with_day(text: str, day: str) -> str:
    return re.sub(r"\d{1,2}(?:st|nd|rd|th)?", day, text, count=1)


@lru_cache(maxsize=1 << 10)
def parse(text: str) -> tuple[date, Printer] | None:
    """Return the date of a text and a printer of other dates in the same format, or None without a known year.

    Ambiguous dates are read month first, as in American notes.
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
    day = int(parts["d"]) if parts.get("d") else 15 if len(parts) > 1 else 1
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
    if "M" not in parts:  # a bare year: its middle
        return 7
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
    """Return the matched text with the numbers and names of another date."""
    month, day = (new.day, new.month) if swapped else (new.month, new.day)
    wide = _padded(match)
    values: dict[str, Callable[[str], str]] = {
        "m": lambda old: f"{month:02d}" if wide else str(month),
        "d": lambda old: f"{day:02d}" if wide else str(day),
        "y": lambda old: f"{new.year:04d}" if len(old) == 4 else f"{new.year % 100:02d}",
        "M": lambda old: _month_like(MONTHS[new.month - 1], old),
        "o": lambda old: _ordinal(new.day, old),
    }
    out, position, groups = [], 0, match.groupdict()
    for (start, end), name in sorted((match.span(name), name) for name in values if groups.get(name)):
        out += [match.string[position:start], values[name](match[name])]
        position = end
    return "".join([*out, match.string[position:]])


def _padded(match: re.Match[str]) -> bool:
    """Return whether single digits are zero-padded: one was, or all have two digits in a numeric format."""
    parts = match.groupdict()
    numbers = [parts[name] or "" for name in "md" if parts.get(name)]
    if any(number.startswith("0") for number in numbers):
        return True
    return all(len(number) == 2 for number in numbers) and ("M" not in parts or "-" in (parts.get("a") or ""))


def _month_like(name: str, old: str) -> str:
    bare = old.rstrip(".")
    short = bare.lower() not in _WHOLE or (len(bare) == 3 and bare.lower() != "may")
    name = name[:3] if short else name
    name = name.upper() if bare.isupper() else name.lower() if bare.islower() else name
    return name + old[len(bare) :]


def _ordinal(day: int, old: str) -> str:
    ending = "th" if 10 < day % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return ending.upper() if old.isupper() else ending
