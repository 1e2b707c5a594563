"""Shift dates by one secret offset per patient, in calendar arithmetic, and print them in their
original format.

The offset is that of the patient table (`date_shift`, days), or else drawn from the key: never zero
and at most 365 days in either direction. Intervals between full dates of a patient are exact, and
times of day do not change. Both ends of a range move; an end without a year has the year of the
other end. Dates in MIMIC's brackets keep their brackets. A month with a
year moves as its 15th day, and one month further if it would not change; its order with other dates
is kept.

Whether 3/4/2019 is in March or in April follows from the other numeric dates of the note, then from
those of all notes of the patient (`read_order`), or from the setting `date_order`.

What cannot move exactly gets a typed tag: a date without a year (the year is never guessed), a
holiday, a year alone, and 3/4/2019 if the notes of the patient have both orders.
A true year or weekday next to shifted dates would disclose the offset, so `date_spans` adds both to
the findings. A weekday moves with the dates. Shifted dates do not satisfy Safe Harbor (45 CFR
164.514(b)(2) allows only the year); they are for expert determination and limited data sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from clinveil.core import Key
from clinveil.phi.detection.detectors.dates import MONTHS

if TYPE_CHECKING:
    from clinveil.corpus import Patient

DateOrder = Literal["auto", "day-first", "month-first"]
# what a numeric date shows: 13/4/2019, 4/13/2019
DAY_FIRST = 1
MONTH_FIRST = 2
LARGEST_OFFSET = 365  # days
_LATEST_SHORT_YEAR = 49  # '49 is 2049, '50 is 1950

Printer = Callable[[date], str]
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAY = rf"(?:{'|'.join(WEEKDAYS)}|Mon|Tues?|Weds?|Thu(?:rs?)?|Fri|Sat|Sun)\b\.?"
_WHOLE = frozenset(month.lower() for month in MONTHS)
_MONTH = r"(?P<M>[A-Za-z]{3,9}\.?)"
_FORMS = (
    re.compile(r"(?P<m>\d{1,2})(?P<s>\s?[/.-]\s?)(?P<d>\d{1,2})(?P=s)'?(?P<y>\d{4}|\d{2})"),
    re.compile(r"(?P<y>\d{4})(?P<s>[/.-])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})"),
    re.compile(r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})"),
    re.compile(
        rf"(?P<d>\d{{1,2}})(?P<o>st|nd|rd|th)?(?P<a>(?:\s+day)?(?:\s+of)?[\s-]*){_MONTH}"
        rf"(?P<b>[\s,'-]*)(?P<y>\d{{4}}"
        rf"|\d{{2}})"
    ),
    re.compile(
        rf"{_MONTH}(?P<a>[\s./-]*(?:the\s)?)(?P<d>\d{{1,2}})(?P<o>st|nd|rd"
        rf"|th)?(?:(?P<b>[\s,./'-]+)(?P<y>\d{{4}})"
        r"|(?P<b2>,\s?'?|\s'|(?<=-\d)-|(?<=-\d\d)-)(?P<y2>\d{2}))",
        re.I,
    ),
    re.compile(rf"(?P<y>\d{{4}})(?P<b>[\s-]+){_MONTH}(?P<a>[\s-]+)(?P<d>\d{{1,2}})"),
    re.compile(r"(?P<y>\d{4})\s?年\s?(?P<m>\d{1,2})\s?月\s?(?P<d>\d{1,2})\s?日"),
    re.compile(r"(?P<m>\d{1,2})(?P<s>-/|[/-])(?P<y>\d{4})"),
    re.compile(
        rf"{_MONTH}(?P<b>(?:\s+of)?[\s,'/-]*)(?P<y>\d{{4}}|(?<=')\d{{2}}|(?<='\s)\d{{2}})", re.I
    ),
    # `2019-03` is a month.
    re.compile(r"(?P<y>\d{4})(?P<s>-)(?P<m>\d{2})"),
)
_NUMERIC = re.compile(r"(?<!\d)(?<!\d[/.-])(\d{1,2})\s?([/.-])\s?(\d{1,2})\s?\2\s?'?\d{2,4}")
_ORDINAL = r"(?:st|nd|rd|th)?"
_TO = r"\s?(?:-|to|and|through|thru|until)\s?"
# A range within one month: the last day is separate from month and year.
_DAYS = (
    re.compile(rf"(?P<head>[A-Za-z]{{3,9}}\.?\s+\d{{1,2}}{_ORDINAL})(?P<to>{_TO})"
    rf"(?P<end>\d{{1,2}}{_ORDINAL})"
               r"(?P<tail>[\s,]+\d{4})"),
    re.compile(rf"(?P<end>\d{{1,2}}{_ORDINAL})(?P<to>{_TO})(?P<head>\d{{1,2}}{_ORDINAL}"
    rf"(?:\s+of)?\s+[A-Za-z]{{3,9}}\.?)"
               r"(?P<tail>[\s,]+\d{4})"),
)  # fmt: skip
_BETWEEN = re.compile(
    r"\s?(?:-|–|/|&|\bto\b|\band\b|\bthrough\b|\bthru\b|\buntil\b|\btill\b)\s?", re.I
)
_YEAR_LAST = re.compile(r"(?<=[/.-])(?:\d{4}|\d{2})$|(?<=[\s,/-])\d{4}$|(?<=')\d{2}$")
# Days of one month in figures: 3/4-9/2019.
_DAYS_IN_FIGURES = re.compile(r"(\d{1,2}/)(\d{1,2})(\s?-\s?)(\d{1,2})(/(?:\d{4}|\d{2}))")
_WEEKDAY_FIRST = re.compile(rf"(?P<day>{WEEKDAY})(?P<gap>,?\s+(?:the\s+)?)(?=\S)", re.I)
_WEEKDAY_LAST = re.compile(rf"(?P<gap>,?\s+\(?)(?P<day>{WEEKDAY})(?P<end>\)?)$", re.I)
# A MIMIC bracket with a date, a partial date, or only a type (`[**Month/Day (2) 3**]`).
_KIND = r"(?:month|day|year|weekday)(?:[/ ](?:month|day|year))*|dates?(?:\s+range)?|holiday"
DATE_BRACKET = re.compile(
    rf"\[\*\*\s*(?:(?P<kind>(?:{_KIND})\s*(?:\([^)\n]{{0,20}}\))?\s*\d*)|(?P<date>(?:1[6-9]"
    rf"|2[0-3])\d\d(?:[/.-]\d{{1,2}}){{0,2}}"
    r"|\d{1,2}[/-]\d{1,2}(?:[/-](?:\d{4}|\d{2}))?|\d{1,2}-?/\d{4}"
    rf"|(?:\d{{1,2}}\s)?(?:{'|'.join(month[:3] for month in MONTHS)})[a-z]*\.?(?:\s\d{{1,2}})?"
    rf"(?:,?\s\d{{4}})?))"
    r"\s*\*\*\]",
    re.I,
)
WEEKDAY_ALONE = re.compile(rf"(?<![^\W_])(?:{'|'.join(WEEKDAYS)})s?(?![^\W_])", re.I)
_TIME_LAST = re.compile(r"(?:T|,?\s+(?:at\s+)?)\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?$")


@lru_cache(maxsize=1 << 9)
def offset(key: Key, patient_id: str) -> timedelta:
    """Return the patient's secret offset: uniform over the days from -365 to 365 without 0."""
    days = 1 + key.stream("date-shift", patient_id).below(2 * LARGEST_OFFSET)
    return timedelta(days if days <= LARGEST_OFFSET else LARGEST_OFFSET - days)


def offset_of(key: Key, patient_id: str, patient: Patient | None = None) -> timedelta:
    """Return the patient's offset: that of the patient table, or the secret one of the key."""
    if patient is not None and patient.date_shift is not None:
        return timedelta(patient.date_shift)
    return offset(key, patient_id)


def shifted(
    key: Key,
    patient_id: str,
    original: str,
    *,
    day_first: bool | None = False,
    patient: Patient | None = None,
) -> str | None:
    """Return the date moved by the patient's offset in its own format, or None if it cannot be
    moved exactly.

    Args:
        day_first: whether 3/4/2019 is 3 April; None if unknown (`read_order`).
        patient: the known patient; the table may contain the offset.
    """
    return shifted_by(offset_of(key, patient_id, patient), original, day_first=day_first)


def shifted_by(by: timedelta, original: str, *, day_first: bool | None = False) -> str | None:
    """Return the date moved by some days in its own format, or None if it cannot be moved
    exactly.
    """
    try:
        return _Shift(by, day_first).moved(original.strip())
    except OverflowError:
        return None


def is_numeric(text: str) -> bool:
    """Return whether a date has its day and month in figures, next to each other, and a year after
    them.
    """
    return _NUMERIC.search(text) is not None


def order_shown(dates: Iterable[str]) -> int:
    """Return what the numeric dates show of their order: a sum of `DAY_FIRST` and `MONTH_FIRST`, or
    0.
    """
    pairs = [
        (int(first), int(second)) for text in dates for first, _, second in _NUMERIC.findall(text)
    ]
    day_first = any(12 < first <= 31 and second <= 12 for first, second in pairs)
    month_first = any(first <= 12 < second <= 31 for first, second in pairs)
    return DAY_FIRST * day_first + MONTH_FIRST * month_first


def read_order(setting: DateOrder, of_note: int, of_patient: int) -> bool | None:
    """Return whether numeric dates of a note are read day first; None if the patient's notes show
    both orders.

    Args:
        of_note, of_patient: what the dates of the note, and of all notes of the patient, show
            (`order_shown`).
    """
    if setting != "auto":
        return setting == "day-first"
    for shown in (of_note, of_patient):
        if shown in (DAY_FIRST, MONTH_FIRST):
            return shown == DAY_FIRST
    return None if of_note | of_patient else False


class _Shift:
    def __init__(self, by: timedelta, day_first: bool | None) -> None:
        self._by = by
        self._day_first = day_first

    def moved(self, text: str) -> str | None:
        """Move a date, a MIMIC bracket, a date with weekday or time, a weekday, or a range."""
        if match := DATE_BRACKET.fullmatch(text):
            inside = match["date"] and self.moved(match["date"])
            return inside and f"[**{inside}**]"
        if WEEKDAY_ALONE.fullmatch(text):
            return self._weekday(text)
        if match := _WEEKDAY_FIRST.match(text):
            rest = self.moved(text[match.end() :])
            return rest and self._weekday(match["day"]) + match["gap"] + rest
        if not text[-1:].isdigit() and (match := _WEEKDAY_LAST.search(text)):
            rest = self.moved(text[: match.start()])
            return rest and rest + match["gap"] + self._weekday(match["day"]) + match["end"]
        if ":" in text and (match := _TIME_LAST.search(text)):
            rest = self.moved(text[: match.start()])
            return rest and rest + match[0]
        read = parse(text, self._day_first)
        return self._range(text) if read is None else self._single(text, read[0], read[1])

    def _single(self, text: str, day: date, printer: Printer) -> str:
        """Move one date; a month without a day always changes."""
        moved = printer(day + self._by)
        return (
            printer(day + timedelta(31 if self._by.days > 0 else -31)) if moved == text else moved
        )

    def _weekday(self, name: str) -> str:
        """Return the shifted weekday in the same length and case. A wrong weekday stays wrong."""
        plural = name[-1] in "sS" and name[-4:-1].lower() == "day"
        bare = name[:-1] if plural else name.rstrip(".")
        index = next(i for i, day in enumerate(WEEKDAYS) if day[:3].lower() == bare[:3].lower())
        new = WEEKDAYS[(index + self._by.days) % 7]
        new = new if len(bare) > 5 else new[:3]
        return (new.upper() if bare.isupper() else new.lower() if bare.islower() else new) + name[
            len(bare) :
        ]

    def _range(self, text: str) -> str | None:
        """Move two dates joined by a word or dash; the first may lack a year, the last a month."""
        for pattern in _DAYS:
            if match := pattern.fullmatch(text):
                return self._days(match)
        if match := _DAYS_IN_FIGURES.fullmatch(text):
            month, first, gap, last, year = match.groups()
            if int(last) <= int(first) or (len(year) < 5 and int(last) <= 12):  # 3/4-3/11
                return None
            return self._joined(month + first + year, gap, month + last + year, year_of="last")
        for between in _BETWEEN.finditer(text):
            first = text[: between.start()]
            last = text[between.end() :]
            start = self._with_year(first, last, first=True)
            end = self._with_year(last, first, first=False)
            if start and end:
                year_of = "last" if start != first else "first" if end != last else ""
                return self._joined(start, between[0], end, year_of=year_of)
        return None

    def _joined(self, first: str, gap: str, last: str, *, year_of: str) -> str | None:
        """Move both ends of a range.

        Args:
            year_of: the only end that has a year in the note (`first`, `last`), or an empty string.
                The other end is printed without one if it is the same.
        """
        start = self.moved(first)
        end = self.moved(last)
        if start is None or end is None:
            return None
        of_start = _YEAR_LAST.search(start)
        of_end = _YEAR_LAST.search(end)
        if not year_of or not of_start or not of_end or of_start[0][-2:] != of_end[0][-2:]:
            return start + gap + end
        if year_of == "last":
            return _without_year(start, of_start) + gap + end
        return start + gap + _without_year(end, of_end)

    def _with_year(self, text: str, other: str, *, first: bool) -> str | None:
        """Return one end of a range, with the year of the other end if it has none.

        Args:
            first: whether it is the first end. An end on the wrong side of the other one is in an
                adjacent year.
        """
        if parse(text, self._day_first):
            return text
        year = _YEAR_LAST.search(other)
        known = parse(other, self._day_first)
        if year is None or known is None:
            return None
        between = re.search(r"[/.-]", text)
        elided = "'" if other[year.start() - 1] == "'" else ""
        sign = between[0] if between else ", " if "," in other else f" {elided}"
        for step in (0, -1 if first else 1):
            number = (int(year[0]) + step) % 10 ** len(year[0])
            complete = f"{text}{sign}{number:0{len(year[0])}d}"
            read = parse(complete, self._day_first)
            if read and (read[0] <= known[0] if first else read[0] >= known[0]):
                return complete
        return None

    def _days(self, match: re.Match[str]) -> str | None:
        """Move both ends of `March 4-7, 2019`, under one month if they still share it."""
        month_first = match.start("head") == 0
        other = re.sub(rf"\d{{1,2}}{_ORDINAL}", match["end"], match["head"], count=1)
        first = self.moved(match["head"] + match["tail"])
        last = self.moved(other + match["tail"])
        if first is None or last is None:
            return None
        if not month_first:
            first, last = last, first
        tail = re.findall(r"[\s,]+\d{4}$", last)[0]
        if not first.endswith(tail):
            return first + match["to"] + last
        head = first.removesuffix(tail)
        if month_first:
            same = head.split()[0] == last.split()[0]
            return head + match["to"] + (last.split(maxsplit=1)[1] if same else last)
        same = head.split()[-1] == last.removesuffix(tail).split()[-1]
        month = re.match(r"\w+", head)
        return (month[0] if same and month else head) + match["to"] + last


def _without_year(text: str, year: re.Match[str]) -> str:
    return text[: year.start()].rstrip("/.,'- ")


@lru_cache(maxsize=1 << 10)
def parse(text: str, day_first: bool | None = False) -> tuple[date, Printer] | None:
    """Return the date of a text and a printer of other dates in the same format, or None without a
    known year.

    Ambiguous dates are read month first, as in American notes, or day first, or not at all if
    `day_first` is None.
    """
    for pattern in _FORMS:
        if match := pattern.fullmatch(text.strip()):
            break
    else:
        return None
    parts = match.groupdict()
    if parts.get("y2"):
        parts["y"] = parts["y2"]
    if parts.get("m"):
        month = int(parts["m"])
    else:
        name = parts["M"].rstrip(".").lower()
        names = enumerate((month.lower() for month in MONTHS), 1)
        month = (
            9 if name == "sept" else next((i for i, full in names if name in (full, full[:3])), 0)
        )
    day = int(parts["d"]) if parts.get("d") else 15
    numeric = {"m", "d"} <= parts.keys() and match.start("y") > 0
    if numeric and day_first is None and day != month and max(day, month) <= 12:
        return None
    swapped = numeric and day <= 12 and (month > 12 or bool(day_first))
    if swapped:
        day, month = month, day
    year = int(parts["y"])
    if len(parts["y"]) == 2:
        year += 2000 if year <= _LATEST_SHORT_YEAR else 1900
    try:
        return date(year, month, day), lambda new: _printed(match, new, swapped=swapped)
    except ValueError:
        return None


def _printed(match: re.Match[str], new: date, *, swapped: bool) -> str:
    """Return the matched text with the numbers and names of another date."""
    month, day = (new.day, new.month) if swapped else (new.month, new.day)
    ending = (
        "th" if 10 < new.day % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(new.day % 10, "th")
    )
    groups = match.groupdict()
    numbers = [groups[name] for name in "md" if groups.get(name)]
    # Single digits are zero-padded if one was, or if all numbers of a numeric format have two
    # digits.
    wide = any(number.startswith("0") for number in numbers) or (
        all(len(number) == 2 for number in numbers)
        and ("M" not in groups or "-" in (groups.get("a") or ""))
    )
    values: dict[str, Callable[[str], str]] = {
        "m": lambda old: f"{month:02d}" if wide else str(month),
        "d": lambda old: f"{day:02d}" if wide else str(day),
        "y": lambda old: f"{new.year:04d}" if len(old) == 4 else f"{new.year % 100:02d}",
        "y2": lambda old: f"{new.year % 100:02d}",
        "M": lambda old: _month_like(MONTHS[new.month - 1], old),
        "o": lambda old: ending.upper() if old.isupper() else ending,
    }
    out = []
    position = 0
    for (start, end), name in sorted(
        (match.span(name), name) for name in values if groups.get(name)
    ):
        out += [match.string[position:start], values[name](match[name])]
        position = end
    return "".join([*out, match.string[position:]])


def _month_like(name: str, old: str) -> str:
    bare = old.rstrip(".")
    short = bare.lower() not in _WHOLE or (len(bare) == 3 and bare.lower() != "may")
    name = name[:3] if short else name
    return (name.upper() if bare.isupper() else name.lower() if bare.islower() else name) + old[
        len(bare) :
    ]
