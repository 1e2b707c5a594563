"""Dates: all elements but a bare year, which may stay (45 CFR 164.514(b)(2)(i)(C)); times of day stay too.

Fractions, scores and doses look like dates (strength 3/4, murmur 2/6, BP 120/80): a day and month without a year count
only where a word of time stands before them. Relative dates (last week) and days of the week are left alone.
"""

from __future__ import annotations

import re
from functools import partial

from clinveil.phi.detector import Rule, RuleDetector, after, before, detectors
from clinveil.phi.note import NoteView

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
MONTH = (
    r"(?:(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_DAY = r"(?:[12]\d|3[01]|0?[1-9])"
_ORDINAL = r"(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20|21)\d{2}"
_SHORT_YEAR = r"(?:'\s?\d{2}|\d{2}(?![\d/:.%]|\s*(?:mg|ml|%|y)))"
_TIME_WORD = re.compile(
    r"(?:\b(?:on|since|by|until|till|from|dated?|seen|through|thru|before|after|between|visit|as of|d/c|dob|admitted"
    r"|discharged|surgery|due|effective|started|stopped|scheduled|circa)|\d/\d{1,2}\s?(?:-|to|and|&))[:\s]*\(?$"
)
_SCORE_WORD = re.compile(
    r"strength|murmur|apgar|pain|\bbp\b|score|vision|grade|station|motor|reflex|muscle|power|pulse|oriented|acuity"
    r"|class|stage|weeks|gestation|scale|level|systolic|dtr|criteria|lead|out of|rated"
)
_MEASURE = re.compile(
    r"\s*(?:mg|ml|mcg|cc|cm|mm|kg|g\b|%|units?|tablets?|tabs?|caps|strength|murmur|weeks|times|inch|in\b)"
)


def _whole(match: re.Match[str], note: NoteView) -> bool:
    """Whether the numbers can be a day and a month in either order."""
    first, second = (int(n) for n in re.findall(r"\d+", match["phi"])[:2])
    return min(first, second) >= 1 and min(first, second) <= 12 and max(first, second) <= 31


def _clause(match: re.Match[str], note: NoteView) -> str:
    """What stands before a match in its own clause."""
    return re.split(r"[.;,\n]\s", before(match, note, 30))[-1]


def _partial(match: re.Match[str], note: NoteView) -> bool:
    """A day and a month without a year: only with a word of time, and not where scores stand."""
    if not _whole(match, note) or _MEASURE.match(after(match, note, 12)) or _SCORE_WORD.search(_clause(match, note)):
        return False
    start = match.start("phi")
    heads_line = start == 0 or note.plain[start - 1] in "\n"
    return bool(_TIME_WORD.search(before(match, note, 20))) or (heads_line and after(match, note, 1) in (":", ",", "-"))


def _spelled(match: re.Match[str], note: NoteView) -> bool:
    """May, March and short months are words and drugs too: they need their capital, and no unit after them."""
    month = re.search(r"[A-Za-z]{3,}", match["phi"])
    lower = month is not None and month[0].islower() and month[0] in ("may", "march", "mar", "dec", "sep", "jun")
    dosed = _MEASURE.match(after(match, note, 12))
    return not dosed and not (lower and not re.search(r"\d{4}", match["phi"]))


def _festive(match: re.Match[str], note: NoteView) -> bool:
    return not re.match(r"\s*(?:disease|factor|tree|light|card)", after(match, note, 10))


_LAST = rf"(?:[\s,-]+{_YEAR}|,?[\s-]+{_SHORT_YEAR})?"


_rule = partial(Rule.any_case, "DATE")
RULES = (
    _rule(
        rf"(?<![\d/.-])(?P<phi>\d{{1,2}}\s?([/-])\s?\d{{1,2}}\s?\2\s?(?:{_YEAR}|\d{{2}}))(?![\d/]|-\d|\.\d)",
        "Seen on {3/4/2019}, again on {03 / 14 / 2021}.",
        check=_whole,
    ),
    _rule(
        rf"(?<![\d/.-])(?P<phi>\d{{1,2}}\.\d{{1,2}}\.{_YEAR})(?![\d/-]|\.\d)",
        "Visit of {4.3.2019} noted.",
        check=_whole,
    ),
    _rule(rf"(?<![\d/.-])(?P<phi>{_YEAR}([-/.])(?:1[0-2]|0?[1-9])\2{_DAY})(?!\d|[-/.]\d)", "Seen {2019-03-04}."),
    _rule(rf"(?<![\d/.-])(?P<phi>(?:1[0-2]|0?[1-9])/{_YEAR})(?![\d/-])", "Since {10/2018} no attacks."),
    _rule(
        r"(?<![\d/.A-Za-z-])(?P<phi>(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?=T?\d{4,6}Z?\b|[^\w.-]"
        r"|[.](?!\d)|$)",
        "Born {19700304}.",
    ),
    _rule(
        rf"(?<![\w./])(?P<phi>{_DAY}{_ORDINAL}(?:\s?(?:-|to|and)\s?{_DAY}{_ORDINAL})?(?:\s+day)?"
        rf"(?:\s+of)?[\s-]*{MONTH}{_LAST})(?!\w)",
        "Admitted the {2nd of March}, sent home on {4 March 2019}.",
        check=_spelled,
    ),
    _rule(
        rf"\b(?P<phi>{MONTH}[\s-]*(?:the\s)?{_DAY}{_ORDINAL}(?:\s?(?:-|to|and|through)\s?{_DAY}{_ORDINAL})?"
        rf"(?:[\s,-]+{_YEAR}|,\s?'?\d{{2}}|\s'\d{{2}})?)(?![\w/:%]|\.\d)",
        "On {March 4th, 2019}; onset {Jan 9th '23}.",
        check=_spelled,
    ),
    _rule(
        rf"\b(?P<phi>{MONTH}(?:\s+of)?[\s,/-]*(?:{_YEAR}|'\s?\d{{2}}))(?!\w)",
        "Surgery in {Dec '19} and in {March 2019}.",
    ),
    _rule(
        r"\b(?:in|since|last|this|next|early|late|mid|until|by|during|before|after)[\s-]+(?P<phi>(?-i:January"
        r"|February|March|"
        r"April|May|June|July|August|September|October|November|December))\b(?!\s+\d)",
        "Follow-up in {June}.",
    ),
    _rule(
        r"(?<![\d/.-])(?P<phi>\d{1,2}/\d{1,2}(?:\s?(?:-|to)\s?\d{1,2}/\d{1,2})?)(?![\d/%-]|\.\d)",
        "He was seen on {3/4} with a strength of 3/4.",
        score=0.6,
        check=_partial,
    ),
    _rule(
        rf"\b(?P<phi>(?:spring|summer|fall|autumn|winter)\s+(?:of\s+)?(?:{_YEAR}|'\d{{2}}))(?!\w)",
        "It started in the {Fall '02}, not in the fall.",
    ),
    _rule(
        r"\b(?P<phi>(?-i:Christmas(?: Eve| Day)?|Thanksgiving(?: Day)?|Easter(?: Sunday)?|Halloween|New Year'?s?"
        r"(?: Eve| Day)"
        r"|Ramadan|Hanukkah|Passover|Diwali|(?:Labor|Memorial|Veterans|Independence|Valentine'?s|Mother'?s|Father'?s|"
        r"Columbus|Presidents'?) Day|(?:Fourth|4th) of July))\b",
        "Symptoms began after {Thanksgiving}.",
        check=_festive,
    ),
)

detectors.register("dates")(RuleDetector("dates", RULES))
