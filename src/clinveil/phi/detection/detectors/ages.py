"""Ages over 89, in digits and in words. Younger ages may stay (45 CFR 164.514(b)(2)(i)(C)).

A year of birth is treated as an age over 89 if its person can be over 89 in the year of the note
(`can_be_over_89`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache, partial

from clinveil.phi.detection.detector import BEGIN, WORD_BEGIN, WORD_END, Rule, RuleDetector, before
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import FAR, Anchor

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


_OLD = r"(?:9\d|1[0-2]\d)"
_OLDS = rf"{_OLD}(?:\s?(?:-|to|or|/)\s?{_OLD})?"  # 91-92
# Not a part of a decimal, a ratio or a comparison; a range of ages is one.
_FROM = rf"{BEGIN}(?<!\d[.,/:])(?<![<>])"
_GAP = r"[\W_]{1,6}"
_UNIT = (
    r"(?:[\s-]*(?:years?|yrs?)\b(?!\s*(?:ago|later|history|duration|prior|of\s(?!age)"
    r"|and\s(?:above|older)"
    r"|or\s(?:older|more)))"
    # misspelt units such as yeras
    r"|\s(?!days?|hours?|hrs?|weeks?|months?|mos?)[a-z]{3,6}\sof\sage\b"
    r"|[\s-]*y\.?\s?/?o\b|\s?[\s-]?y(?:o?[MF])?\b|[\s-]*y\.o\.)"
)
_CENTURY = 100
_UNITS_WORD = "(?:one|two|three|four|five|six|seven|eight|nine)"
_WORDS = (
    rf"(?:ninety(?:[\s-]*{_UNITS_WORD})?|(?:one|a)[\s-]hundred(?:(?:\s+and)?[\s-]+{_UNITS_WORD})?)"
)
_TEMPERATURE = re.compile(r"temp|fever|febrile|\bt[:\s]|max|spo2|sat|degree|°")
_KIN = (
    r"(?:mother|father|mom|mum|dad|grandmother|grandfather|grandma|grandpa|aunt|uncle|sister"
    r"|brother|wife|husband"
    r"|spouse|mgm|mgf|pgm|pgf)"
)
_PERSON = rf"(?:patient|pt|he|she|{_KIN}|man|woman|lady|gentleman|resident|veteran)"
# Text allowed after an age without a unit; never a unit of measurement.
_ALONE = (
    r"(?=[^\w\n%°]{0,3}(?:[,;:)|\]}\"'*<=>_~/\\!?•-](?!\d)|\.(?!\d)|$|\n)|\s+(?:and|with|who|but"
    r"|when|now|today|today's|this|from"
    r"|of|after|in\s(?:the|a|\d{4}|[jfmasond][a-z]{2,8})|by|due|because|living|lives|at\shome|next"
    r"|last|on\s(?:her|his)"
    r"|she|he|the\spatient)(?![a-z]))"
)
_OTHER_UNIT = (
    r"(?!\d|[.,/:]\d|\s?%|\s*-?(?:mg|ml|months|deg|°|days|weeks|hours|minutes|kg|lb|pounds|cm|mm"
    r"|beats|bpm|percent))"
)


def _no_temperature(match: re.Match[str], note: NoteView) -> bool:
    return not _TEMPERATURE.search(before(match, note, 25))


_RATE = re.compile(
    r"temp|fever|spo2|\bsat|pulse|rate|\bhr\b|\bbp\b|pressure|oxygen|running|held|stay"
)


def _no_rate(match: re.Match[str], note: NoteView) -> bool:
    return not _RATE.search(before(match, note, 30))


_OLD_PERSON = re.compile(
    rf"{_FROM}{_OLD}(?:{_UNIT}|\s?[MF](?![a-z]))|(?<![a-z])(?:aged?"
    rf"|turned){_GAP}{_OLD}{_OTHER_UNIT}|ninety",
    re.IGNORECASE,
)


def _birth_year_of_an_old_person(match: re.Match[str], note: NoteView) -> bool:
    """Return whether a person of a birth year of four digits can be over 89."""
    return can_be_over_89(int(next(filter(None, match.group("y1", "y2")))), note.plain)


def _short_birth_year_of_an_old_person(match: re.Match[str], note: NoteView) -> bool:
    """Return whether a person of a birth year of two digits can be over 89.

    A year that can be of the current century counts only in a note with an age over 89.
    """
    latest = full_year(match["year"], note_year(note.plain))
    if can_be_over_89(latest, note.plain):
        return True
    child = latest // _CENTURY == note_year(note.plain) // _CENTURY
    return child and can_be_over_89(latest - _CENTURY, note.plain) and _is_old(note.plain)


@lru_cache(maxsize=8)
def _is_old(text: str) -> bool:
    return _OLD_PERSON.search(text) is not None


_rule = partial(Rule.any_case, "AGE")
RULES = (
    _rule(
        rf"{_FROM}(?P<phi>{_OLDS})(?:[^A-Za-z\d%°]{{0,4}}{_UNIT}|{_UNIT})",
        "A {97}-year-old female, once {94} yo, {95}yoM or {96} yrs; now {98} yeras of age, not 96"
        " hours of age.",
        anchor=Anchor(digits=2, after=r"[^\d<>]"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?:age|aged|age of|age is|turned|turns|turning|age/sex"
        rf"|ages)(?![a-z])[\W_]{{0,6}}(?P<phi>{_OLDS})"
        rf"{_OTHER_UNIT}",
        "Aged {92}. She turned {100}. He turned 90 degrees.",
        anchor=Anchor("age* turned* turning* turns*"),
    ),
    _rule(
        rf"{WORD_BEGIN}{_PERSON}(?:'s)?\s(?:(?:is|was|turned|turns|being|will\sbe"
        rf"|will\sturn)\s)?(?:(?:now|just|almost|nearly|about"
        rf"|currently|a|an)\s)?[\W_]{{0,6}}(?P<phi>{_OLDS}){_ALONE}",
        "Pt is {94}. His mother was {96}, his pulse was 96.",
        score=0.7,
        anchor=Anchor(
            "aunt* brother* dad* father* gentleman* grandfather* grandma* grandmother*"
            " grandpa* he* husband* lady* man* mgf* mgm* mom* mother* mum* patient* pgf*"
            " pgm* pt* resident* she* sister* spouse* uncle* veteran* wife* woman*"
        ),
    ),
    _rule(
        rf"\b(?:died|dead|deceased|passed(?:\saway)?|expired|lived|alive|living|diagnosed|retired"
        rf"|d\.|until|{_KIN})\b"
        rf"[^\w\n]{{1,6}}(?:[a-z]+\s){{0,3}}?(?:(?:at|to"
        rf"|until)\s)?(?:be\s)?(?:the\s)?(?:age\s)?(?:of\s)?[\W_]{{0,6}}(?P<phi>{_OLD}){_ALONE}",
        "Father died at {96}; mother, alive at {93}.",
        score=0.7,
        anchor=Anchor(
            "alive* aunt* brother* dad* dead* deceased* diagnosed* died* d expired*"
            " father* grandfather* grandma* grandmother* grandpa* husband* lived* living*"
            " mgf* mgm* mom* mother* mum* passed* pgf* pgm* retired* sister* spouse*"
            " uncle* until* wife*"
        ),
    ),
    _rule(
        rf"{WORD_BEGIN}at[\W_]{{1,6}}(?P<phi>{_OLD})(?=[^A-Za-z\d%°]{{1,6}}(?:she|he|the\spatient"
        rf"|pt|patient)(?![a-z]))",
        "At {94}, she lives alone; pulse at 94, she rested.",
        score=0.7,
        check=_no_rate,
        anchor=Anchor("at"),
    ),
    _rule(
        r"\b(?:(?:in|of)\s+(?:her|his|their|the\spatient's|pt's)|(?:patient|pt|woman|man|lady"
        r"|gentleman|mother|father"
        r"|grandmother|grandfather)\s+in\s+(?:the)?)"
        r"\s*(?:very\s)?(?:early|mid|late|upper)?[\W_]{0,6}(?P<phi>9\d'?s|nineties"
        r"|1[0-2]0'?s)(?![a-z])",
        "She is in her {90s}; her rate is in the 90s.",
        anchor=Anchor(
            "father gentleman grandfather grandmother in lady man mother of patient pt woman"
        ),
    ),
    _rule(
        rf"{_FROM}(?<!tc-)(?<!tc\s)(?<!technetium[-\s])(?P<phi>{_OLD})(?=(?:/[MF]|[MF]"
        rf"|[^A-Za-z\d%°]{{0,3}}\s[MF]\s(?:with|w/|who|s/p|h/o|hx|admitted|presents|here|p/w))"
        rf"\b(?![/-]))",
        "Came in: {91}F with cough, {94} M with none, {95}/F.",
        check=_no_temperature,
        anchor=Anchor(digits=2, after=r"[^\d<>]"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?P<phi>{_WORDS})(?=[\W_]{{0,4}}(?:years?|yrs?)(?:[\s-]*(?:old|of age)"
        rf"|\b(?!\s(?:ago|later))))",
        "A {ninety-three} year old man.",
        anchor=Anchor("hundred* ninety*", within=4, first="[ANOano]", after="[^A-Za-z]"),
    ),
    _rule(
        rf"\b(?:age|aged|is|was|turned|turning|at|just|age of|almost|nearly|now"
        rf"|to be){_GAP}(?P<phi>ninety(?:[\s-]+{_UNITS_WORD})?)"
        rf"{WORD_END}(?!\s*(?:percent|per|degrees?|minutes|days|mg|ml|hours|seconds|over|beats"
        rf"|pounds|kilo|on\s|-?degree))",
        "He is {ninety-three}, and turned ninety degrees.",
        anchor=Anchor("ninety*", within=13, first="[A-Zaijntw]", after=r"\W"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?P<phi>nonagenarian|centenarian){WORD_END}",
        "A {nonagenarian} in good health.",
        anchor=Anchor("centenarian nonagenarian"),
    ),
    _rule(
        rf"(?<![a-z\d])(?P<phi>(?:9\d|1[01]\d)(?:st|nd|rd|th)|ninetieth|ninety-\w+th"
        rf"|hundredth){_GAP}birthday",
        "Near her {95th} birthday.",
        anchor=Anchor("birthday*", within=FAR, first="[19HNhn]", after="[^A-Za-z]"),
    ),
    _rule(
        r"\b(?:dob|d\.o\.b\.?|date of birth|birth\s?date"
        r"|born(?:\s+on)?)[\W_]{0,6}(?:is\s+)?[\W_]{0,6}(?P<phi>(?:\d{1,2}[/.-]\d{1,2}"
        r"[/.-]|[a-z]{3,9}\.?\s+\d{1,2},?\s+|\d{1,2}\s+[a-z]{3,9}\.?\s+)"
        r"(?P<y1>(?:18|19|20)\d\d)|(?P<y2>(?:18|19|20)\d\d)[/-]?\d\d[/-]?\d\d)(?!\d)",
        "DOB: {03/04/1921}, not DOB 03/04/1961.",
        score=0.95,
        check=_birth_year_of_an_old_person,
        anchor=Anchor("birth* born* dob* d", within=8, first="[BDbd]", after=r"\W"),
    ),
    _rule(
        r"\b(?:born|b\.|dob|d\.o\.b\.?|yob|(?:year|date)\sof\sbirth|birth\s?(?:year"
        r"|date))[\W_]{1,6}(?:was\s)?(?:in\s+)?"
        r"(?:the\s+)?(?:year\s+)?[\W_]{0,6}(?:[x*_]{1,2}[/-][x*_]{1,2}[/-])?"
        r"(?P<phi>(?P<y1>(?:18|19|20)\d\d)(?P<y2>)s?)(?!\d|[/-]\d)",
        "Born in {1925} in Canada, his wife born in 1961.",
        check=_birth_year_of_an_old_person,
        anchor=Anchor(digits=4, within=FAR, first="[BDYbdy]", after=r"\W"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?:dob|d\.o\.b\.?|date of birth|birth\s?date|born(?:\s+(?:on"
        rf"|in))?)[\W_]{{0,6}}"
        r"(?P<phi>(?:\d{1,2}[/.-]\d{1,2}[/.-]|[a-z]{3,9}\.?\s+\d{1,2},?\s+'?"
        r"|')(?P<year>\d{2}))(?!\d|[/.-]\d)",
        "DOB {03/04/31}, or DOB 03/04/71.",
        score=0.95,
        check=_short_birth_year_of_an_old_person,
        anchor=Anchor("birth* born* dob* d", within=8, first="[BDbd]", after="[^A-Za-z]"),
    ),
)

AGES = RuleDetector("ages", RULES)
