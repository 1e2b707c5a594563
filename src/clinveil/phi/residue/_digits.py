"""Shapes of digits: dates, phone numbers and other numbers, and the clinical shapes that are none
of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import NamedTuple

from clinveil.phi.residue._addresses import Shape

_SEPARATOR = r"(?:&#?[0-9a-zA-Z]{1,8};|[-./:_#*\\~]{1,2}|,(?=\d{3}(?!\d)))"
_AREA = r"\(\d{2,5}\)"
_RUN = re.compile(rf"(?:{_AREA}[-./]?)?\d+(?:{_SEPARATOR}\d+)+|{_AREA}[-./]?\d+|\d{{6,}}")
_SPACED = re.compile(
    rf"(?<!\d)(?<!\d[ .,/:-])(?:{_AREA}|\d{{1,6}})(?:(?: | - |-)\d{{1,6}}){{1,15}}(?!"
    r" ?[\d/:]|[.,-]\d)"
)
_GROUP = re.compile(r"\d+")
_VALUE = r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}|\d{1,4}00)(?:\.\d{1,3})?"
_CLINICAL = re.compile(
    rf"{_VALUE}(?:/{_VALUE}){{0,7}}"  # 1,240,000 · 166/116 · 7.38/67/86/97 · 500/400 · 37.5/25
    rf"|\d{{1,4}}:{_VALUE}|\d{{1,4}}:\d+000"  # ratios: 1:200,000
    r"|\d{2,3}/\d{2,3}-\d{2,3}/\d{2,3}"  # a range of blood pressures
    r"|\d{1,2}/(?P<of>\d{1,2})-\d{1,2}/(?P=of)"  # a range of scores: 3/10-4/10
    r"|\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?(?:-\d{1,2}:\d\d(?::\d\d)?)?"  # times
    r"|\d{0,4}\.\d+"  # decimals
    r"|\d{3,4}000"  # 152000: a count
    r"|\d(?:[./-]\d)+"  # single digits: 2.1.1.3, 1-2-3
)
_ASCENDING = re.compile(
    r"(?P<low>\d{1,4}(?:\.\d{1,3})?)-(?P<high>\d{1,3}(?:,\d{3})+|\d{1,4}(?:\.\d{1,3})?)"
)
_UNIT = re.compile(
    r"\s?(?:%|°|[xX] ?10|(?:mc?g|[µu]g|[nk]?g|m?L|dL|cc|mm3?|cm|mEq|[mnpµu]mol|mmHg|mm Hg"
    r"|units?|IU|cells|copies|colonies|cfu|Hz|rpm|beats|bpm|pounds|lbs?|per|/(?:mm|mc?L|[µu]L|hpf"
    r"|cumm|dL|mL|kg|L|min))(?![A-Za-z]))"
)
_CODE = re.compile(
    r"(?:CPT|HCPCS|ICD|LOINC|SNOMED|NDC|RxNorm|RXCUI|DRG|NCT|PMID|DOI)"
    r"[\w /-]{0,12}[#:]{0,2}\s{0,2}\(?(?:[\d.,-]{1,12}[ ,;]{1,2}){0,3}\Z",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"(?:2\.16|1\.2|1\.3)(?:\.\d+){3,}")  # an object identifier of XML or HL7
_COLOUR = re.compile(
    r"(?:colou?r|background|border[\w-]*|fill|stroke)\s?[:=][\w\s\"']{0,20}#\Z", re.IGNORECASE
)
_PHONE_LENGTHS = frozenset(
    {
        (3, 3, 4),
        (1, 3, 3, 4),
        (2, 3, 3, 4),
        (5, 6),
        (4, 6),
        (3, 4, 4),
        (4, 3, 4),
        (4, 3, 3),
        (5, 3, 3),
        (2, 4, 6),
        (3, 7),
    }
    | {(2, 2, 2, 2, 2), (2, 2, 3, 4), (10,)}
)
_SPACED_LENGTHS = _PHONE_LENGTHS - {(4, 3, 3), (10,)} | {
    (3, 2, 4),
    (3, 3, 3),
    (2, 2, 2),
    (3, 3),
    (4, 4),
    (5, 5),
    (4, 4, 4),
    (4, 4, 4, 4),
    (2, 2, 2, 2),
    (3, 6),
    (6, 3),
}
_PHONES_IN_ROWS = frozenset(
    {(3, 3, 4), (1, 3, 3, 4), (2, 3, 3, 4), (3, 4, 4), (2, 4, 6), (3, 2, 4)}
)
_SPELLED = 9  # single digits with a space between them
_LONGEST_RUN = 400  # characters; a longer run is not examined
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_MONTHS = re.compile(rf"(?<![^\W_]){_MONTH}(?![^\W\d_])", re.IGNORECASE)
_NUMBER_AFTER = re.compile(
    r"\.?,?[ \t]{0,2}['/_-]{0,2}(?:of[ \t])?(?P<number>\d{1,4})(?!\d|\.\d|[ \t]?%)"
)
_NUMBER_BEFORE = re.compile(
    r"(?<!\d)(?P<number>\d{1,4})(?:st|nd|rd|th)?(?:[ \t]of)?[ \t./_-]{0,2}\Z"
)
_LETTER_BEFORE = re.compile(r"(?<![^\W\d_])[^\W\d_]-\Z")
_QUARTER = re.compile(r"(?<![^\W_])Q[1-4][ \t/'-]{0,2}(?:19|20)\d\d(?!\d)")
_SHORT_YEAR = re.compile(r"(?<![\w\"'])'\d\d(?![\w'\"]|\.\d)")
# A treated span next to the digits: they are the rest of an identifier.
_CUT_BEFORE = re.compile(r"\0[-./_]?\Z")
_CUT_AFTER = re.compile(r"[-./_]?\0")
_PARTS_OF_DATES = frozenset("/-._")
# Denominators of scores and fractions: 13/15, 6/14, 1/16, 28/30. Another number over 12 is the day
# of a month.
_SCORES = frozenset({14, 15, 16, 18, 20, 24, 25, 28, 30})


def digit_shapes(text: str, *, years: bool) -> Iterator[Shape]:
    """Yield dates, phone numbers and other numbers; `years`: also ranges of years."""
    for match in _RUN.finditer(text):
        yield from _of_run(text, match, years=years)
    yield from _spaced(text)
    yield from _named_months(text, years=years)
    if years:
        yield from ((*match.span(), "DATE") for match in _QUARTER.finditer(text))
        if "'" in text:
            yield from ((*match.span(), "DATE") for match in _SHORT_YEAR.finditer(text))


class _DigitGroup(NamedTuple):
    """Digits of a run, and the separator before them."""

    start: int
    end: int
    digits: str
    separator: str


def _groups(text: str, start: int, end: int) -> list[_DigitGroup]:
    groups = list[_DigitGroup]()
    position = start
    entity = "&" in text[start:end]
    for match in (_NO_ENTITY if entity else _GROUP).finditer(text, start, end):
        if match[0][0] == "&":
            continue
        groups.append(
            _DigitGroup(*match.span(), match[0], unescape(text[position : match.start()]))
        )
        position = match.end()
    return groups


_NO_ENTITY = re.compile(r"&#?[0-9a-zA-Z]{1,8};|\d+")


def _of_run(text: str, match: re.Match[str], *, years: bool) -> Iterator[Shape]:
    """Yield the dates of a run, and what remains of it if that has six digits or more."""
    if match.end() - match.start() > _LONGEST_RUN:
        yield (match.start(), match.end(), "ID")
        return
    if _OBJECT.fullmatch(match[0]):
        return
    groups = _groups(text, match.start(), match.end())
    if _is_internet(groups):
        yield (match.start(), match.end(), "IP")
        return
    first = index = 0
    while index < len(groups):
        size = _date_size(groups[index : index + 4], years=years)
        if size:
            yield from _number(text, groups[first:index])
            yield (groups[index].start, groups[index + size - 1].end, "DATE")
            first = index = index + size
        else:
            index += 1
    yield from _number(text, groups[first:])


def _date_size(groups: Sequence[_DigitGroup], *, years: bool) -> int:
    """Return how many of the next groups are one date; 0 if none."""
    if len(groups) < 2:
        return 0
    numbers = [int(group.digits) if len(group.digits) <= 4 else 0 for group in groups]
    lengths = [len(group.digits) for group in groups]
    marks = [group.separator for group in groups[1:]]
    alike = len(groups) > 2 and marks[0] == marks[1] and marks[0] in _PARTS_OF_DATES
    if alike and _is_full_date(numbers, lengths, marks[0]):
        return 3
    if marks == ["/", "-", "/"] and _is_short_date(numbers[:2]) and max(lengths[:3]) <= 2:
        if _is_short_date(numbers[2:]):  # scores have one denominator: 3/5-4/5
            return 2 if numbers[1] != numbers[3] else 0
        return 4 if 1 <= numbers[2] <= 31 and lengths[3] in (2, 4) else 0  # 1/12-15/93
    return 2 if _is_two_part_date(groups, numbers, lengths, years=years) else 0


def _is_full_date(numbers: Sequence[int], lengths: Sequence[int], mark: str) -> bool:
    a, b, c = numbers[:3]
    if lengths[0] == 4:
        return _is_year(a) and 1 <= b <= 12 and 1 <= c <= 31 and max(lengths[1:3]) <= 2
    if max(lengths[:2]) > 2 or not 2 <= lengths[2] <= 4 or (mark == "." and lengths[2] == 3):
        return False
    if lengths[2] == 4 and not 1800 <= c <= 2199:
        return False
    return _is_short_date((a, b))


def _is_short_date(pair: Sequence[int]) -> bool:
    """Whether two numbers are a month and a day, in any order."""
    low, high = sorted(pair[:2])
    return 1 <= low <= 12 and high <= 31


def _is_year(number: int) -> bool:
    return 1880 <= number <= 2099


def _is_two_part_date(
    groups: Sequence[_DigitGroup], numbers: Sequence[int], lengths: Sequence[int], *, years: bool
) -> bool:
    mark = groups[1].separator
    if mark not in ("/", "-"):
        return False
    if lengths[0] == 4 and _is_year(numbers[0]) and groups[0].separator in ("", "-", "/"):
        if lengths[1] == 4:
            return years and _is_year(numbers[1]) and numbers[0] <= numbers[1]
        later = numbers[1] > numbers[0] % 100 and numbers[0] >= 1950
        return lengths[1] == 2 and (1 <= numbers[1] <= 12 or (years and later))
    if lengths[1] == 4 and lengths[0] <= 2:
        return (
            1 <= numbers[0] <= 12
            and _is_year(numbers[1])
            and (numbers[1] % 100 > 0 or lengths[0] == 2)
        )
    return mark == "/" and _is_month_and_number(groups, numbers, lengths)


def _is_month_and_number(
    groups: Sequence[_DigitGroup], numbers: Sequence[int], lengths: Sequence[int]
) -> bool:
    """Whether `9/03` or `3/13` is a month with a day or a year: a zero in front, or a day that no
    score has.
    """
    if max(lengths[:2]) > 2 or groups[0].separator in (".", "/") or numbers[0] == 0:
        return False
    if len(groups) > 2 and groups[2].separator in (".", "/"):
        return False
    if "0" in (groups[0].digits[0], groups[1].digits[0]):
        return min(numbers[:2]) <= 12 and (numbers[1] > 0 or lengths[1] == 2)
    return numbers[0] <= 12 < numbers[1] <= 31 and numbers[1] not in _SCORES


def _number(text: str, groups: Sequence[_DigitGroup]) -> Iterator[Shape]:
    """Yield a number of six digits or more that is not a clinical shape."""
    lengths = tuple(len(group.digits) for group in groups)
    if sum(lengths) < 6:
        return
    start = groups[0].start
    end = groups[-1].end
    phone = (
        lengths in _PHONE_LENGTHS
        or lengths == (3, 4)
        or (lengths[0] == 1 and lengths[1:] in _PHONE_LENGTHS)
    )
    social = lengths == (3, 2, 4)
    written = text[start:end] if end - start <= _LONGEST_RUN else ""
    if (
        written
        and not (social or (phone and "," not in written))
        and _is_clinical(text, start, end, written, groups)
    ):
        return
    if lengths == (3, 4) and (_is_range(written) or _UNIT.match(text, end)):
        return
    yield (start, end, "PHONE" if phone else "ID")


def _is_clinical(
    text: str, start: int, end: int, written: str, groups: Sequence[_DigitGroup]
) -> bool:
    if _CUT_BEFORE.search(text, max(0, start - 2), start) or _CUT_AFTER.match(text, end):
        return False
    if _CLINICAL.fullmatch(written) or _is_range(written):
        return True
    if (
        len(groups) == 2
        and groups[1].separator == "-"
        and len(groups[1].digits) == 1
        and _is_loinc(groups)
    ):
        return True
    if len(groups) > 2 and all(len(group.digits) <= 2 for group in groups):
        numbers = [int(group.digits) for group in groups]
        if all(number == numbers[0] + index for index, number in enumerate(numbers)):
            return True  # a list: 8-9-10-11
    before = text[max(0, start - 70) : start]
    return any((_UNIT.match(text, end), _CODE.search(before), _COLOUR.search(before)))


def _is_range(written: str) -> bool:
    """Whether the text is a range of values: decimals, numbers of equal length, or round
    numbers.
    """
    match = _ASCENDING.fullmatch(written)
    if match is None:
        return False
    low = match["low"]
    high = match["high"].replace(",", "")
    if "." in written or "," in written:
        return float(low) <= float(high) or "," in written
    if low[0] == "0" or high[0] == "0" or int(low) >= int(high):
        return False
    return len(low) == len(high) or int(low) % 10 == int(high) % 10 == 0


def _is_loinc(groups: Sequence[_DigitGroup]) -> bool:
    """Whether the last digit is the check digit of a LOINC code (Luhn)."""
    total = 0
    for index, digit in enumerate(reversed(groups[0].digits)):
        doubled = int(digit) * (2 if index % 2 == 0 else 1)
        total += doubled // 10 + doubled % 10
    return (10 - total % 10) % 10 == int(groups[1].digits)


def _is_internet(groups: Sequence[_DigitGroup]) -> bool:
    dotted = len(groups) == 4 and all(group.separator == "." for group in groups[1:])
    bytes_ = dotted and all(len(group.digits) <= 3 and int(group.digits) <= 255 for group in groups)
    return bytes_ and any(len(group.digits) > 1 for group in groups)  # not a heading: 2.1.1.3


def _spaced(text: str) -> Iterator[Shape]:
    """Yield numbers with spaces between their groups: 020 7946 0018, (216) 555-0144, 536 22
    1234.
    """
    for match in _SPACED.finditer(text):
        if " " not in match[0]:
            continue
        groups = [digits.span() for digits in _GROUP.finditer(text, *match.span())]
        first, last = _spaced_number([end - start for start, end in groups])
        if last and not _UNIT.match(text, groups[last - 1][1]):
            lengths = tuple(end - start for start, end in groups[first:last])
            yield (
                groups[first][0],
                groups[last - 1][1],
                "PHONE" if lengths in _PHONE_LENGTHS else "ID",
            )


def _spaced_number(lengths: Sequence[int]) -> tuple[int, int]:
    """Return the range of groups that are a number by their lengths: all of them, or those of a
    phone in a row.
    """
    spelled = len(lengths) >= _SPELLED and max(lengths) == 1
    if spelled or tuple(lengths) in _SPACED_LENGTHS:
        return 0, len(lengths)
    for first in range(len(lengths) - 2):
        for last in range(min(len(lengths), first + 5), first + 2, -1):
            if tuple(lengths[first:last]) in _PHONES_IN_ROWS:
                return first, last
    return 0, 0


def _named_months(text: str, *, years: bool) -> Iterator[Shape]:
    """Yield a month's name with a day or a year next to it: March 3, 3rd of March, Mar 2019,
    24-Dec.
    """
    for match in _MONTHS.finditer(text):
        if _LETTER_BEFORE.search(text[max(0, match.start() - 3) : match.start()]):
            continue  # A-Dec
        after = _NUMBER_AFTER.match(text, match.end())
        before = _NUMBER_BEFORE.search(text[max(0, match.start() - 12) : match.start()])
        if not match[0][0].isupper() and match[0].lower() in (
            "may",
            "mar",
            "march",
            "jun",
            "dec",
            "sep",
            "oct",
        ):
            after = after if after and len(after["number"]) == 4 else None
            before = None
        if after and _is_day_or_year(after["number"]):
            yield (match.start(), after.end(), "DATE")
        elif before and _is_day_or_year(before["number"]):
            start = match.start() - len(before[0])
            yield (start, match.end(), "DATE")


def _is_day_or_year(digits: str) -> bool:
    number = int(digits)
    return 1 <= number <= 31 if len(digits) <= 2 else len(digits) == 4 and _is_year(number)
