"""Dates, except a bare year, which may stay (45 CFR 164.514(b)(2)(i)(C)). Times of day also stay.

Fractions, scores and doses look like dates (strength 3/4, murmur 2/6, BP 120/80). A day and month without a year
therefore count only after a temporal word. Relative dates (last week) and weekdays stay. A weekday next to a date is
part of the date: next to a shifted date it would disclose the offset modulo seven days.
"""

from __future__ import annotations

import re
from functools import partial

from clinveil.phi.detection.detector import Rule, RuleDetector, after, before, detectors
from clinveil.phi.detection.note import NoteView

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
MONTH = (
    r"(?:(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tues?|wed|thur?s?|fri|sat|sun)\b\.?)"  # any case
_DAY = r"(?:[12]\d|3[01]|0?[1-9])"
_ORDINAL = r"(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20|21)\d{2}"
_SHORT_YEAR = r"(?:'\s?\d{2}|\d{2}(?![\d/:.%]|\s*(?:mg|ml|%|y)))"
_TIME_WORD = re.compile(
    rf"(?:\b(?:on|since|by|until|till|from|dated?|seen|through|thru|before|after|between|visit|as of|d/c'?d?|dob"
    rf"|admitted|discharged|surgery|due|effective|started|stopped|scheduled|circa|labs?|drawn|lmp|edd|edc|appt"
    rf"|appointment|f/u|week of|wk of|admit|adm|admission|discharge|expires?|last (?:seen|dose|visit|period)|signed"
    rf"|written|performed|collected|resulted|received|ordered|given|on or about|{WEEKDAY},?)|\b(?:s/p"
    rf"|status post)\s(?:[a-z-]+\s){{1,3}}|\d/\d{{1,2}}\s?(?:-|to|and|&))[:\s]*\(?$"
)
_SCORE_WORD = re.compile(
    r"strength|murmur|apgar|pain|\bbp\b|score|vision|grade|station|motor|reflex|muscle|power|pulse|oriented|acuity"
    r"|class|stage|weeks|gestation|scale|level|systolic|dtr|criteria|lead|out of|rated|\bva\b|\bnpa\b|mallampati|gcs"
)
_MEASURE = re.compile(
    r"\s*(?:mg|ml|mcg|cc|cm|mm|kg|g\b|%|units?|tablets?|tabs?|caps|strength|murmur|weeks|times|inch|teaspoons?|tsp|cup"
    r"|of (?:the|a|an|his|her|all)\b|bilat|throughout|systolic|intensity|hpf|pills?|ppd|packs?\b|and symmetric|\""
    r"|degrees|minutes|hours|days\b|doses\b|point|l\b|pain|power|in\b(?!\s+(?:the|a|our|clinic|ed|er)\b))"
)
_FRACTION = re.compile(r"\d\s$")
# In British notation 3/7, 2/52 and 1/12 are days, weeks and months.
_DURATION = re.compile(r"\d{1,2}/(?:7|52|12)")
_LASTED = re.compile(r"(?:\b(?:for|after|in|within|over|every|x|past|last|next|another|further|only)\s)$")
_LASTS = re.compile(
    r"\s?(?:ago|course|history|hx|h/o|of\b|post|more|then|later|off|supply|script|duration|prior|old|only|x\b)"
)


def _day_month(match: re.Match[str], note: NoteView) -> bool:
    """Return whether the numbers are a valid day and month in either order."""
    first, second = (int(n) for n in re.findall(r"\d+", match["phi"])[:2])
    return min(first, second) >= 1 and min(first, second) <= 12 and max(first, second) <= 31


def _duration(match: re.Match[str], note: NoteView) -> bool:
    """Return whether a fraction is a number of days, weeks or months: `for 3/7`, `2/52 ago`."""
    if not _DURATION.fullmatch(match["phi"]):
        return False
    weeks = match["phi"].endswith("/52")
    return weeks or bool(_LASTED.search(before(match, note, 12)) or _LASTS.match(after(match, note, 10)))


def _clause(match: re.Match[str], note: NoteView) -> str:
    """Return the text before a match within its clause."""
    return re.split(r"[.;,\n]\s", before(match, note, 30))[-1]


def _partial(match: re.Match[str], note: NoteView) -> bool:
    """Accept a day and month without a year after a temporal word, unless the context is a score."""
    if (
        not _day_month(match, note)
        or _duration(match, note)
        or _MEASURE.match(after(match, note, 16))
        or _SCORE_WORD.search(_clause(match, note))
    ):
        return False
    start, lead = match.start("phi"), before(match, note, 36)
    if _FRACTION.search(lead):  # 24 2/7 weeks
        return False
    heads_line = start == 0 or note.plain[start - 1] in "\n"
    return bool(_TIME_WORD.search(lead)) or (heads_line and after(match, note, 1) in (":", ",", "-"))


def _spelled(match: re.Match[str], note: NoteView) -> bool:
    """Decide for spelled months; May, March and abbreviations are also words or drugs.

    Without a year, a lower-case one of these needs an ordinal or a temporal word, and no month counts before a unit.
    """
    if re.search(r"(?:19|20|21)\d\d\b|'\s?\d\d", match["phi"]):
        return True
    if _MEASURE.match(after(match, note, 16)) and not re.match(r"\s*(?:in|of)\b", after(match, note, 16)):
        return False
    month = re.search(rf"\b{MONTH}", match["phi"], re.I)
    lower = month is not None and month[0].islower() and month[0].rstrip(".") in _WORDS
    return not lower or bool(
        re.search(r"\d(?:st|nd|rd|th)", match["phi"]) or _TIME_WORD.search(before(match, note, 20))
    )


_WORDS = ("may", "march", "mar", "dec", "sep", "jun", "jan", "sept", "oct", "nov", "feb", "apr", "aug")


def _festive(match: re.Match[str], note: NoteView) -> bool:
    return not re.match(r"\s*(?:disease|factor|tree|light|card|pudding|cactus)", after(match, note, 10))


def _late_year(match: re.Match[str], note: NoteView) -> bool:
    """Accept `in 3/87`: a month and a two-digit year that cannot be a day."""
    month, year = (int(n) for n in match["phi"].split("/"))
    return 1 <= month <= 12 and year > 31 and not _duration(match, note)


def _of_date(match: re.Match[str], note: NoteView) -> bool:
    """Reject a weekday followed by a word that is not a month."""
    word = re.search(r"([a-z]+)\.?\s\d$", match[0], re.IGNORECASE)
    return word is None or re.fullmatch(MONTH, word[1], re.IGNORECASE) is not None


def _month_alone(match: re.Match[str], note: NoteView) -> bool:
    """Reject May, March, April, June and August after only `and`, `or`, `to` or `of`."""
    weak = match[0][:3].lower() in ("and", "or ", "to ", "of ")
    paired = re.search(rf"{MONTH}\s*$", before(match, note, 24)[: -len(match[0]) + len(match["phi"])], re.IGNORECASE)
    return bool(paired) or not (weak and match["phi"] in ("May", "March", "April", "June", "August"))


_LAST = rf"(?:[\s,-]+{_YEAR}|,?[\s-]+{_SHORT_YEAR})?"
_TO = r"\s?(?:-|to|and|through|thru|&)\s?"
_FESTIVALS = (
    r"christmas(?:\s(?:eve|day))?|thanksgiving(?:\sday)?|halloween|hanukkah|ramadan|passover|diwali|yom\skippur"
    r"|rosh\shashanah|juneteenth|(?-i:Easter(?:\s(?:Sunday|Monday))?|Good\sFriday|Ash\sWednesday|Palm\sSunday|Eid"
    r"|Mardi\sGras|Lent|Pentecost|Kwanzaa|Boxing\sDay|(?:Chinese|Lunar)\sNew\sYear|Super\sBowl\sSunday)"
    r"|new\syear'?s?\s(?:eve|day)|(?:(?:labor|memorial|veterans|independence|valentine'?s|mother'?s|father'?s|columbus"
    r"|presidents'?|canada|patriots'?|st\.?\spatrick'?s|martin\sluther\sking(?:,?\sjr\.?)?|mlk)\sday)"
    r"|(?:fourth|4th)\sof\sjuly"
)
_FOREIGN = (
    r"(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|janvier|f[ée]vrier"
    r"|avril|juin|juillet|ao[ûu]t|septembre|octobre|novembre|d[ée]cembre|januar|februar|m[äa]rz|juni|juli|oktober"
    r"|dezember|mars|mai|gennaio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre)"
)

_rule = partial(Rule.any_case, "DATE")
RULES = (
    _rule(
        rf"(?<![\d/.-])(?P<phi>\d{{1,2}}\s?([/-])\s?\d{{1,2}}\s?\2\s?(?:{_YEAR}|'?\d{{2}}))(?![\d/]|-\d|\.\d)",
        "Seen on {3/4/2019}, again on {03 / 14 / 2021}.",
        check=_day_month,
    ),
    _rule(
        rf"(?<![\d/.-])(?P<phi>\d{{1,2}}\.\d{{1,2}}\.{_YEAR})(?![\d/-]|\.\d)",
        "Visit of {4.3.2019} noted.",
        check=_day_month,
    ),
    # The next two rules overlap with the date by one character, so weekday and date merge into one span.
    _rule(
        rf"\b(?P<phi>{WEEKDAY},?\s(?:the\s)?(?:\d|[jfmasond]))(?:(?<=\d)\d?(?:[/-]\d|{_ORDINAL}\s(?:of\s)?{MONTH})"
        rf"|(?<=\d)\d{{3}}-\d|(?<=\w)[a-z]{{2,8}}\.?\s\d)",
        "On {Monday, 3}/4/2019, {Mon 2}019-03-04 and {Tuesday, M}arch 5.",
        check=_of_date,
    ),
    _rule(
        rf"(?:[/-]|\d,\s)(?P<phi>\d{{2,4}},?\s\(?{WEEKDAY}\)?)(?!\w)",
        "Seen 3/4/{2019 (Monday)}.",
    ),
    _rule(
        r"\b(?:on|dated?|dob|seen|since|from|until|born|vom|den"
        r"|of)[:\s]{1,3}(?P<phi>\d{1,2}\.\d{1,2}\.\d{2})(?![\d/-]|\.\d)",
        "Visit of {4.3.19} noted.",
        check=_day_month,
    ),
    _rule(
        rf"(?<![\d/.-])(?P<phi>{_YEAR}(?:([-/.])(?:1[0-2]|0?[1-9])\2{_DAY}|-(?:0[1-9]|1[0-2])|\s{MONTH}\s{_DAY}))"
        rf"(?!\d|[-/.]\d)",
        "Seen {2019-03-04}, in {2019-03} and {2019 Mar 4}.",
    ),
    _rule(rf"(?<![\d/.-])(?P<phi>(?:1[0-2]|0?[1-9])/{_YEAR})(?![\d/-])", "Since {10/2018} no attacks."),
    _rule(
        r"(?<![\d/.A-Za-z-])(?P<phi>(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?=T?\d{4,6}Z?\b|[^\w.-]"
        r"|[.](?!\d)|$)",
        "Born {19700304}.",
    ),
    _rule(
        r"\b(?:dob|d\.o\.b\.?|date\sof\s(?:birth|service|admission|discharge|death)|dos|birth\s?date|born)[\s:]{1,3}"
        r"(?P<phi>\d{8}|\d{6})(?![\d/-]|\.\d)",
        "DOB: {03041970}; date of service {030419}.",
    ),
    _rule(
        rf"(?<![\w./])(?P<phi>{_DAY}{_ORDINAL}(?:{_TO}{_DAY}{_ORDINAL})?(?:\s+day)?"
        rf"(?:\s+of)?(?:[\s-]*|[./]){MONTH}{_LAST})(?!\w)",
        "Admitted the {2nd of March}, sent home on {4 March 2019}.",
        check=_spelled,
    ),
    _rule(
        rf"(?<![\w./-])(?P<phi>{_DAY}(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?:{_YEAR}|\d{{2}}))(?!\w)",
        "Admitted {02FEB1971}.",
    ),
    _rule(
        rf"(?<!\d)(?P<phi>{_YEAR}\s?[年년]\s?\d{{1,2}}\s?[月월](?:\s?\d{{1,2}}\s?[日일号號])?)",
        "Seen {2019年3月4日}.",
    ),
    _rule(
        r"\b(?:born|b\.|dob|d\.o\.b\.?|yob|(?:year|date)\sof\sbirth|birth\s?(?:year|date))[:\s]\s?(?:in\s)?"
        r"(?P<phi>19[4-9]\d|20[0-3]\d)(?![\d/.-]\d|\d)",
        "She was born in {1962}.",
        score=0.8,
    ),
    _rule(
        rf"\b(?P<phi>{MONTH}[\s./-]*(?:the\s)?{_DAY}{_ORDINAL}(?:{_TO}{_DAY}{_ORDINAL})?"
        rf"(?:[\s,./-]+{_YEAR}|,\s?'?\d{{2}}|\s'\d{{2}}|-\d{{2}})?)(?![\w/%]|[:.]\d)",
        "On {March 4th, 2019}: fever; onset {Jan 9th '23}.",
        check=_spelled,
    ),
    _rule(
        rf"\b(?P<phi>{MONTH}(?:(?:\s+of)?[\s,/-]*(?:{_YEAR}|'\s?\d{{2}})|-\d{{2}}))(?![\w/-])",
        "Surgery in {Dec '19}, in {Apr-20} and in {March 2019}.",
    ),
    _rule(
        r"\b(?:in|since|last|this|next|early|late|mid|until|by|during|before|after|from|to|through|between|and|or|of)"
        r"[\s-]+(?P<phi>(?-i:January|February|March|April|May|June|July|August|September|October|November|December"
        r"|(?:Jan|Feb|Sept|Oct|Nov|Dec)\b\.?)|january|february|april|june|july|september|october|november|december)\b"
        r"(?!\s+\d|')",
        "Follow-up in {June}, or in {july}.",
        check=_month_alone,
    ),
    _rule(
        r"(?<![\d/.-])(?P<phi>\d{1,2}/\d{1,2}(?:\s?(?:-|to)\s?\d{1,2}/\d{1,2})?)(?![\d/%-]|\.\d)",
        "He was seen on {3/4} with a strength of 3/4.",
        score=0.6,
        check=_partial,
    ),
    _rule(r"\b(?:in|since|until)\s(?P<phi>\d{1,2}/[3-9]\d)(?![\d/%-]|\.\d)", "Stent in {3/87}.", check=_late_year),
    _rule(
        r"\b(?:on|dated?|since|until)[:\s]{1,2}(?P<phi>(?:0[1-9]-(?:0[1-9]|[12]\d|3[01])|1[0-2]-[0-3]\d))"
        r"(?=[.,;\n)]|\s(?:at|in|for|with|by)\b|$)",
        "Seen on {03-14} in clinic.",
        score=0.6,
    ),
    _rule(
        r"\bon\sthe\s(?P<phi>(?:[12]?\d(?:st|nd|rd|th)|3(?:0th|1st)))(?=\s(?:of\s(?:this|last|next|the)\smonth"
        r"|at\s\d))",
        "He fell on the {4th} of last month.",
        score=0.6,
    ),
    _rule(
        rf"\b(?P<phi>(?:spring|summer|fall|autumn|winter)\s+(?:of\s+)?(?:{_YEAR}|'\d{{2}}))(?!\w)",
        "It started in the {Fall '02}, not in the fall.",
    ),
    _rule(rf"\b(?P<phi>{_FESTIVALS})\b", "Symptoms began after {Thanksgiving}.", check=_festive),
    _rule(
        rf"(?<![\d/.-])(?P<phi>{_DAY}(?:\.|er)?\s(?:de\s)?{_FOREIGN}(?:\s(?:de\s|del\s)?)?{_YEAR})(?!\d)",
        "Nacido el {4 de marzo de 2019}.",
    ),
)

detectors.register("dates")(RuleDetector("dates", RULES))
