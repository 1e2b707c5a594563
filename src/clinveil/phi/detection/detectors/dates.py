"""Dates, except a bare year, which may stay (45 CFR 164.514(b)(2)(i)(C)). Times of day also stay.

Fractions, scores and doses look like dates without a year (strength 3/4, murmur 2/6, BP 120/80).
Two numbers that cannot be one of these (3/24, 12/07) are a date after any word. The others need a
temporal word, the name of an examination, or a full date of the same month in the note. Relative
dates (last week) and weekdays stay. A weekday next
to a date is part of the date: next to a shifted date it would disclose the offset modulo seven
days. Years in a range (2014-2017) and quarters are dates.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial

from clinveil.phi.detection.detector import (
    ALONE_BEGIN,
    ALONE_END,
    ANY_END,
    BEGIN,
    CODE_BEGIN,
    END,
    WHOLE_BEGIN,
    WHOLE_END,
    WORD_BEGIN,
    WORD_END,
    Rule,
    RuleDetector,
    after,
    before,
)
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import Anchor

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
MONTH = (
    r"(?:(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december)(?![a-z])"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)(?![a-z])\.?)"
)
WEEKDAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tues?|wed|thur?s?|fri|sat"
    r"|sun)(?![a-z])\.?)"  # any case
)
_DAY = r"(?:[12]\d|3[01]|0?[1-9])"
_ORDINAL = r"(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20|21)\d{2}"
_SHORT_YEAR = r"(?:'\s?\d{2}|\d{2}(?![\d/:.%]|\s*(?:mg|ml|%|y)))"
# Between a word and its date.
_GAP = r"[\W_]{1,6}"
_TIME_WORD = re.compile(
    rf"(?:\b(?:on|since|by|until|till|from|dated?|seen|through|thru|before|after|between|visit|as"
    rf" of|d/c'?d?|dob"
    rf"|admitted|discharged|surgery|due|effective|started|stopped|scheduled|circa|labs?|drawn|lmp"
    rf"|edd|edc|appt"
    rf"|appointment|f/u|week of|wk of|admit|adm|admission|discharge|expires?|last"
    rf" (?:seen|dose|visit|period)|signed"
    r"|written|performed|collected|resulted|received|ordered|given|on or"
    rf" about|{WEEKDAY},?)|\b(?:s/p"
    rf"|status post)\s(?:[a-z-]+\s){{1,3}}|\d/\d{{1,2}}\s?(?:-|to|and|&))[\W_]{{0,6}}$"
)
# Examinations and procedures, which are noted with their date.
_EXAMINATION = re.compile(
    r"\b(?:ct|cta|cth|mri|mra|mrcp|cxr|kub|xr|x-?rays?|films?|echo|tte|tee|ekg|ecg|eeg|emg|us|u/s"
    r"|ultrasound|duplex"
    r"|doppler|dexa|pet|scan|imaging|mammogram|cath|pci|cabg|angiogram|biopsy|bx|colonoscopy|egd"
    r"|ercp|bronch|pfts?|lp"
    r"|cx|cultures?|bcx|ucx|ua|cbc|bmp|cmp|lfts?|inr|path|pathology|op|note|report|transplant"
    r"|chemo|hd|dialysis"
    r"|intubated|extubated|transfused|transferred)[\W_]{1,3}$"
)
_SCORE_WORD = re.compile(
    r"strength|murmur|apgar|pain|\bbp\b|score|vision|grade|station|motor|reflex|muscle|power|pulse"
    r"|oriented|acuity"
    r"|class|stage|weeks|gestation|scale|level|systolic|dtr|criteria|lead|out"
    r" of|rated|\bva\b|\bnpa\b|mallampati|gcs"
    r"|bipap|cpap|\bpsv?\b|peep|\bsimv\b|\bvent\b|gleason|likert|nodes?\b|lymph|\bcores?\b"
    r"|quadrant|\bratio\b|tender"
    r"|edema|bruit|\brub\b|\bsem\b|mmse|mini-mental|moca|phq|\bcage\b|fio2|barthel|\badls?\b"
    r"|flexion|extension|flexor"
    r"|extensor|biceps|triceps|deltoid|quadriceps|hamstring|\bgrip\b|abduct|adduct|dorsiflex"
    r"|\bknee jerk|suture"
    r"|\bo[dsu]\b|pupil|\bwbc\b|mixture|chief complaint|\binsulin|humulin|novolog|percocet|vicodin"
    r"|norco|lortab|lorcet|suboxone|lotrel|vytorin|caduet|hctz|exforge"
    r"|hyzaar|tylenol|hydrocodone|amlodipine|\bjoints?\b|\bpoints?\b"
    r"|\bdilut|\bjaeger|\bsnellen|\bcdr?\b|c/d|cup|\b(?:cycle|session|day|dose|course|step)\s#?$"
)
# Further away, these still make a score of a fraction: reflexes, pupils, strength, recall, pain.
_EXAMINED = re.compile(
    r"reflex|pupil|motor|strength|extremit|recall|patella|achilles|ankle|rotation|flexor|flexion"
    r"|extens|muscle"
    r"|plantar|\bpain|murmur|pulses|\b[rlb][ul]e\b|\b[ul]es?\b|worst|apgar|visual"
)
_MEASURE = re.compile(
    r"[\s-]*(?:mg|ml|mcg|cc|cm|mm|kg|g\b|%|units?|tablets?|tabs?|caps|strength|murmur|weeks?|times"
    r"|inch|teaspoons?|tsp"
    r"|cup|of (?:the|a|an|his|her|all)\b|bilat|throughout|systolic|intensity|hpf|pills?|ppd"
    r"|packs?\b|and symmetric"
    r"|degrees|minutes|hours|days\b|doses\b|point|l\b|pain|power|in\b(?!\s+(?:the|a|our|clinic|ed"
    r"|er)\b)|h\b|hrs?\b"
    r"|th?s?\b|nodes?\b|lymph|cores?\b|quadrants?|joints?|teeth|sem\b|holosystolic|diastolic"
    r"|ejection|edema|pitting"
    r"|pulses|reflex|scale|way\b|months?\b|years?\b|yrs?\b|dilution|visits?\b|sessions?|cycles?"
    r"|criteria|oz\b|ounce|gallon|pints?"
    r"|size|normal\b|k\b|port\b|trocar|visiport|subxiphoid|flex\b|coil|french|fr\b|screw|mixture"
    r"|recall|word\b|[+-]?\s?b?[rl]?[ul]e\b"
    r"|distal|proximal|patella|ankle|decreasing|on exposure|and non-?reactive|o[dsu]\b|symmet"
    r"|equal|and (?:equal|symmetric|intact)|equivalent|patients|prn)"
)
_FRACTION = re.compile(r"\d\s$")  # 24 2/7 weeks
_CODED = re.compile(r"(?:^|[^a-z])[a-z]$|\b(?:po|pt)$")  # q4/6, L4/5, x3/7
_SMALL = re.compile(r"[1-6]/[1-6]")
_PAIR = re.compile(r"\d{1,2}/\d{1,2}")
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 10)
_FULL_DATE = re.compile(rf"(?<!\d)(\d{{1,2}})[/-](\d{{1,2}})[/-](?:{_YEAR}|\d{{2}})(?!\d)")
# In British notation 3/7, 2/52 and 1/12 are days, weeks and months.
_DURATION = re.compile(r"\d{1,2}/(?:7|52|12)")
_LASTED = re.compile(
    r"(?:\b(?:for|after|in|within|over|every|x|past|last|next|another|further|only)\s)$"
)
_LASTS = re.compile(
    r"\s?(?:ago|course|history|hx|h/o|of\b|post|more|then|later|off|supply|script|duration|prior"
    r"|old|only|x\b)"
)


def _day_month(match: re.Match[str], note: NoteView) -> bool:
    """Return whether the numbers are a valid day and month in either order."""
    first, second = (int(n) for n in re.findall(r"\d+", match["phi"])[:2])
    orders = ((first, second), (second, first))
    return any(1 <= month <= 12 and 1 <= day <= _LONGEST[month - 1] for month, day in orders)


_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _duration(match: re.Match[str], note: NoteView) -> bool:
    """Return whether a fraction is a number of days, weeks or months: `for 3/7`, `2/52 ago`."""
    if not _DURATION.fullmatch(match["phi"]):
        return False
    weeks = match["phi"].endswith("/52")
    return weeks or bool(
        _LASTED.search(before(match, note, 12)) or _LASTS.match(after(match, note, 10))
    )


def _clause(match: re.Match[str], note: NoteView) -> str:
    """Return the text before a match within its clause."""
    return re.split(r"[.;,\n]\s", before(match, note, 30))[-1]


def _partial(match: re.Match[str], note: NoteView) -> bool:
    """Accept a day and month without a year after a temporal word, unless the context is a
    score.
    """
    if (
        not _day_month(match, note)
        or _duration(match, note)
        or _MEASURE.match(after(match, note, 16))
        or _SCORE_WORD.search(_clause(match, note))
    ):
        return False
    start = match.start("phi")
    lead = before(match, note, 36)
    if _FRACTION.search(lead) or _CODED.search(lead):
        return False
    written_as_date = _no_fraction(match["phi"])
    if (not written_as_date or _SMALL.fullmatch(match["phi"])) and _EXAMINED.search(
        before(match, note, 80)
    ):
        return False
    heads_line = not note.plain[:start].rpartition("\n")[2].strip(" \t-*•")
    if _TIME_WORD.search(lead) or (heads_line and after(match, note, 1) in (":", ",", "-")):
        return True
    inches = re.fullmatch(r"\d{1,2}/(?:2|4|8|16)", match["phi"])
    if inches and after(match, note, 1) == '"' and note.plain[start - 1 : start] != '"':
        return False
    if _SMALL.fullmatch(match["phi"]) and after(match, note, 1) in ("+", "-"):  # reflexes 2/2+
        return False
    bracketed = (
        lead.endswith("(") and after(match, note, 1) == ")" and not _SMALL.fullmatch(match["phi"])
    )
    return (
        written_as_date
        or bracketed
        or bool(_EXAMINATION.search(lead))
        or _near_date(match["phi"], note)
    )


def _no_fraction(text: str) -> bool:
    """Return whether one of the numbers `3/24`, `12/07`, `11/9` is written as in a date, not as a
    fraction.
    """
    if _DURATION.fullmatch(text):
        return False
    pairs = [pair.split("/") for pair in _PAIR.findall(text)]
    return any(
        second[0] == "0"
        or first[0] == "0"
        or int(first) > int(second)
        or int(second) not in _DENOMINATORS
        for first, second in pairs
    )


def _near_date(text: str, note: NoteView) -> bool:
    """Return whether a full date of the note has the month of a date without a year, or the one
    before or after.
    """
    numbers = [tuple(int(number) for number in pair.split("/")) for pair in _PAIR.findall(text)]
    months = _months(note.plain)
    return any(
        first != second
        and any(
            (month - number) % 12 in (0, 1, 11) for month in months for number in (first, second)
        )
        for first, second in numbers
    )


@lru_cache(maxsize=8)
def _months(text: str) -> frozenset[int]:
    """Return the numbers that are the month of a full date of a text, in either order."""
    return frozenset(
        int(number) for pair in _FULL_DATE.findall(text) for number in pair if int(number) <= 12
    )


def _spelled(match: re.Match[str], note: NoteView) -> bool:
    """Decide for spelled months; May, March and abbreviations are also words or drugs.

    Without a year, a lower-case one of these needs an ordinal or a temporal word, and no month
    counts before a unit.
    """
    if re.search(r"(?:19|20|21)\d\d\b|'\s?\d\d", match["phi"]):
        return True
    if _MEASURE.match(after(match, note, 16)) and not re.match(
        r"\s*(?:in|of)\b", after(match, note, 16)
    ):
        return False
    month = re.search(MONTH, match["phi"], re.I)
    lower = month is not None and month[0].islower() and month[0].rstrip(".") in _WORDS
    return not lower or bool(
        re.search(r"\d(?:st|nd|rd|th)", match["phi"]) or _TIME_WORD.search(before(match, note, 20))
    )


_WORDS = (
    "may",
    "march",
    "mar",
    "dec",
    "sep",
    "jun",
    "jan",
    "sept",
    "oct",
    "nov",
    "feb",
    "apr",
    "aug",
)


def _festive(match: re.Match[str], note: NoteView) -> bool:
    return not re.match(
        r"\s*(?:disease|factor|tree|light|card|pudding|cactus)", after(match, note, 10)
    )


def _late_year(match: re.Match[str], note: NoteView) -> bool:
    """Accept `3/87`: a month and a two-digit year that cannot be a day. Before 1950 it needs a
    temporal word.
    """
    month, year = (int(n) for n in match["phi"].split("/"))
    lead = before(match, note, 36)
    if not 1 <= month <= 12 or 0 < year <= 31:
        return False
    if (31 < year < 50 or year == 60) and not _TIME_WORD.search(lead):
        return False
    return not (
        _duration(match, note)
        or _MEASURE.match(after(match, note, 16))
        or _SCORE_WORD.search(_clause(match, note))
        or _FRACTION.search(lead)
        or _CODED.search(lead)
    )


def _short_range(match: re.Match[str], note: NoteView) -> bool:
    """Accept a range of which one end or both lack the year; without any year, as a date without a
    year.
    """
    pairs = [tuple(int(n) for n in pair.split("/")) for pair in _PAIR.findall(match["phi"])]
    if not all(1 <= min(pair) <= 12 and max(pair) <= 31 for pair in pairs):
        return False
    if match["year"]:
        return True
    same = len({second for _, second in pairs}) == 1 and pairs[0][1] in _DENOMINATORS
    return _partial(match, note) and (not same or bool(_TIME_WORD.search(before(match, note, 36))))


def _day_range(match: re.Match[str], note: NoteView) -> bool:
    """Accept `3/4-9/2019`, and `3/24-27/19` if the last day cannot be a month."""
    month = int(match["m"])
    first = int(match["d"])
    last = int(match["e"])
    return 1 <= month <= 12 and 1 <= first < last <= 31 and (len(match["y"]) == 4 or last > 12)


_UNIT_OF_YEAR = re.compile(
    r"\s*-?\s*(?:mg|ml|mcg|cc|g\b|kg|units?|iu\b|cal|kcal|hours?\b|hrs?\b|h\b|%|ft\b|steps|m[lg]\b"
    r"|calorie|feet|am\b|pm\b|gram)"
)


def _years(match: re.Match[str], note: NoteView) -> bool:
    """Accept years in order, not times of day (1900-2000 hours) or amounts."""
    first = int(match["first"])
    last = int(match["last"])
    last += first - first % 100 if last < 100 else 0
    lead = before(match, note, 24)
    if not 1900 <= first < last <= min(2049, first + 60) or _UNIT_OF_YEAR.match(
        after(match, note, 12)
    ):
        return False
    return not re.search(
        r"(?:calori|kcal|intake|volume|dose|\bat|hours|time|shift|diet)\b[\W_]{0,3}$", lead
    )


def _elided_year(match: re.Match[str], note: NoteView) -> bool:
    """Accept `'98`, but not a closing quotation mark or a unit."""
    return not _MEASURE.match(after(match, note, 16))


def _of_date(match: re.Match[str], note: NoteView) -> bool:
    """Reject a weekday followed by a word that is not a month."""
    word = re.search(r"([a-z]+)\.?\s\d$", match[0], re.IGNORECASE)
    return word is None or re.fullmatch(MONTH, word[1], re.IGNORECASE) is not None


def _month_alone(match: re.Match[str], note: NoteView) -> bool:
    """Reject May, March, April, June and August after only `and`, `or`, `to` or `of`."""
    weak = match[0][:3].lower() in ("and", "or ", "to ", "of ")
    paired = re.search(
        rf"{MONTH}\s*$",
        before(match, note, 24)[: -len(match[0]) + len(match["phi"])],
        re.IGNORECASE,
    )
    return bool(paired) or not (
        weak and match["phi"] in ("May", "March", "April", "June", "August")
    )


_LAST = rf"(?:[\s,-]+{_YEAR}|,?[\s-]+{_SHORT_YEAR})?"
_TO = r"\s?(?:-|to|and|through|thru|until|till|&)\s?"
_FESTIVALS = (
    r"christmas(?:\s(?:eve|day))?|thanksgiving(?:\sday)?|halloween|hanukkah|ramadan|passover"
    r"|diwali|yom\skippur"
    r"|rosh\shashanah|juneteenth|(?-i:Easter(?:\s(?:Sunday|Monday))?|Good\sFriday|Ash\sWednesday"
    r"|Palm\sSunday|Eid"
    r"|Mardi\sGras|Lent|Pentecost|Kwanzaa|Boxing\sDay|(?:Chinese|Lunar)\sNew\sYear"
    r"|Super\sBowl\sSunday)"
    r"|new\syear'?s?\s(?:eve|day)|(?:(?:labor|memorial|veterans|independence|valentine'?s"
    r"|mother'?s|father'?s|columbus"
    r"|presidents'?|canada|patriots'?|st\.?\spatrick'?s|martin\sluther\sking(?:,?\sjr\.?)?"
    r"|mlk)\sday)"
    r"|(?:fourth|4th)\sof\sjuly"
)
_MONTHS = (
    "january february march april may june july august september october november december"
    " jan feb mar apr jun jul aug sept sep oct nov dec"
)
_FOREIGN = (
    r"(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    r"|janvier|f[ée]vrier"
    r"|avril|juin|juillet|ao[ûu]t|septembre|octobre|novembre|d[ée]cembre|januar|februar|m[äa]rz"
    r"|juni|juli|oktober"
    r"|dezember|mars|mai|gennaio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre)"
)

_rule = partial(Rule.any_case, "DATE")
RULES = (
    _rule(
        rf"{BEGIN}(?P<phi>\d{{1,2}}\s?([/-])\s?\d{{1,2}}\s?\2\s?(?:{_YEAR}|'?\d{{2}})"
        rf"(?:/\d{{1,2}}([/-])\d{{1,2}}\3(?:{_YEAR}|\d{{2}}))?)(?!\d|/\d{{1,2}}(?!\d))",
        "Seen on {3/4/2019}, again on {03 / 14 / 2021} and from {3/5/19/3/8/19}.",
        check=_day_month,
        anchor=Anchor(digits=1, after=r"\D"),
    ),
    _rule(
        rf"{BEGIN}(?P<phi>\d{{1,2}}\.\d{{1,2}}\.{_YEAR}){END}",
        "Visit of {4.3.2019} noted.",
        check=_day_month,
        anchor=Anchor(digits=4, within=6, first=r"\d", after=r"\D"),
    ),
    _rule(
        rf"{BEGIN}(?<!\d\.)(?P<phi>(?:\d\d|\d(?=\.0))\.\d\d\.\d\d)(?!\d|\.\d)",
        "Visit of {14.05.21} noted.",
        check=_day_month,
        anchor=Anchor(digits=2, within=3, first=r"\d", after=r"\D"),
    ),
    # A range of which the first or the last date lacks the year.
    _rule(
        rf"{ALONE_BEGIN}(?P<phi>\d{{1,2}}/\d{{1,2}}{_TO}\d{{1,2}}/\d{{1,2}}(?P<year>/(?:{_YEAR}"
        rf"|\d{{2}}))?){ALONE_END}",
        "In hospital {12/24-12/27/19}, away from {3/4-3/11}.",
        score=0.95,
        check=_short_range,
        anchor=Anchor(signs="/", within=2, first=r"\d", after=r"\D"),
    ),
    _rule(
        rf"{BEGIN}(?P<phi>\d{{1,2}}/\d{{1,2}}/(?:{_YEAR}"
        rf"|\d{{2}}){_TO}\d{{1,2}}/\d{{1,2}}){ALONE_END}",
        "In hospital {12/24/2019-12/27}, then home.",
        score=0.95,
        check=_day_month,
        anchor=Anchor(signs="/", within=2, first=r"\d", after=r"\D"),
    ),
    _rule(
        rf"{BEGIN}(?P<phi>(?P<m>\d{{1,2}})/(?P<d>\d{{1,2}})\s?-\s?(?P<e>\d{{1,2}})/(?P<y>{_YEAR}"
        rf"|\d{{2}}))(?!\d|/\d)",
        "In hospital {3/4-9/2019}, then home.",
        score=0.95,
        check=_day_range,
        anchor=Anchor(signs="/", within=2, first=r"\d", after=r"\D"),
    ),
    # The next two rules overlap with the date by one character, so weekday and date merge into one
    # span.
    _rule(
        rf"{WORD_BEGIN}(?P<phi>{WEEKDAY},?\s(?:the\s)?(?:\d|[jfmasond]))(?:(?<=\d)\d?(?:[/-]\d"
        rf"|{_ORDINAL}\s(?:of\s)?{MONTH})"
        rf"|(?<=\d)\d{{3}}-\d|(?<=\w)[a-z]{{2,8}}\.?\s\d)",
        "On {Monday, 3}/4/2019, {Mon 2}019-03-04 and {Tuesday, M}arch 5.",
        check=_of_date,
        anchor=Anchor(
            "friday* fri monday* mon saturday* sat sunday* sun thursday* thurs thur thus"
            " thu tuesday* tues tue wednesday* wed"
        ),
    ),
    _rule(
        rf"(?:[/-]|\d,\s)(?P<phi>\d{{2,4}},?\s\(?{WEEKDAY}\)?){WORD_END}",
        "Seen 3/4/{2019 (Monday)}.",
        anchor=Anchor(
            "*friday* *fri *monday* *mon *saturday* *sat *sunday* *sun *thursday* *thurs"
            " *thur *thus *thu *tuesday* *tues *tue *wednesday* *wed",
            within=10,
            first=r"[\d/-]",
        ),
    ),
    _rule(
        rf"{WORD_BEGIN}(?:on|dated?|dob|seen|since|from|until|born|vom|den"
        rf"|of){_GAP}(?P<phi>\d{{1,2}}\.\d{{1,2}}\.\d{{2}})(?!\d|\.\d)",
        "Visit of {4.3.19} noted.",
        check=_day_month,
        anchor=Anchor(digits=2, within=17, first="[A-Za-z]", after="[^A-Za-z]"),
    ),
    _rule(
        rf"{BEGIN}(?P<phi>{_YEAR}(?:([-/.])(?:1[0-2]|0?[1-9])\2{_DAY}|\s{MONTH}\s{_DAY})){END}",
        "Seen {2019-03-04} and {2019 Mar 4}.",
        anchor=Anchor(digits=4, after=r"\D"),
    ),
    _rule(
        rf"{ALONE_BEGIN}(?P<phi>{_YEAR}-(?:0[1-9]|1[0-2])(?:{_TO}{_YEAR}-(?:0[1-9]"
        rf"|1[0-2]))?){ALONE_END}",
        "Seen in {2019-03}.",
        anchor=Anchor(digits=4, after=r"\D"),
    ),
    _rule(
        rf"{BEGIN}(?<!\d/)(?P<phi>(?:1[0-2]|0?[1-9])/{_YEAR})(?!\d|/\d)",
        "Since {10/2018} no attacks.",
        anchor=Anchor(digits=4, within=3, first=r"\d", after=r"\D"),
    ),
    _rule(
        rf"{ALONE_BEGIN}(?P<phi>(?:0[1-9]|1[0-2])-{_YEAR}){ALONE_END}",
        "Since {10-2018} no attacks.",
        score=0.7,
        anchor=Anchor(digits=4, within=3, first="[01]", after=r"\D"),
    ),
    _rule(
        rf"{WHOLE_BEGIN}(?P<phi>(?:19|20)\d{{2}}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d"
        rf"|3[01]))(?=T?\d{{4,6}}Z?{ANY_END}"
        rf"|{WHOLE_END})",
        "Born {19700304}.",
        anchor=Anchor(digits=8, after=r"\D"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?:dob|d\.o\.b\.?|date\sof\s(?:birth|service|admission|discharge|death)|dos"
        rf"|birth\s?date|born){_GAP}"
        rf"(?P<phi>\d{{8}}|\d{{6}}){WHOLE_END}",
        "DOB: {03041970}; date of service {030419}.",
        anchor=Anchor(digits=6, within=23, first="[BDbd]", after="[^A-Za-z]"),
    ),
    _rule(
        rf"{WHOLE_BEGIN}(?P<phi>{_DAY}{_ORDINAL}(?:{_TO}{_DAY}{_ORDINAL})?(?:\s+day)?"
        rf"(?:\s+of)?(?:[\s-]*|[./]){MONTH}{_LAST}){ANY_END}",
        "Admitted the {2nd of March}, sent home on {4 March 2019}.",
        check=_spelled,
        anchor=Anchor(digits=1, after=r"\D"),
    ),
    _rule(
        rf"{BEGIN}(?P<phi>{_DAY}{_ORDINAL}(?:\sof)?\s{MONTH}{_TO}{_DAY}{_ORDINAL}"
        rf"(?:\sof)?\s{MONTH},?\s{_YEAR}){END}",
        "Away {24 Dec - 2 Jan 2020}.",
        score=0.95,
        anchor=Anchor(_MONTHS, within=8, first=r"\d", after=r"\D"),
    ),
    _rule(
        rf"{BEGIN}(?P<phi>{_DAY}(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?:{_YEAR}"
        rf"|\d{{2}})){END}",
        "Admitted {02FEB1971}.",
        anchor=Anchor(
            "*apr *aug *dec *feb *jan *jul *jun *mar *may *nov *oct *sep",
            within=2,
            first=r"\d",
            after=r"\D",
        ),
    ),
    _rule(
        rf"{BEGIN}(?P<phi>{_YEAR}\s?[年년]\s?\d{{1,2}}\s?[月월](?:\s?\d{{1,2}}\s?[日일号號])?)",
        "Seen {2019年3月4日}.",
        anchor=Anchor(digits=4, after=r"\D"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?:born|b\.|dob|d\.o\.b\.?|yob|(?:year|date)\sof\sbirth|birth\s?(?:year"
        rf"|date)){_GAP}(?:in{_GAP})?"
        rf"(?P<phi>19[4-9]\d|20[0-3]\d)(?!\d|[/.-]\d)",
        "She was born in {1962}.",
        score=0.8,
        anchor=Anchor(digits=4, within=27, first="[BDYbdy]", after="[^A-Za-z]"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?P<phi>{MONTH}[\s./-]*(?:the\s)?{_DAY}{_ORDINAL}(?:{_TO}{_DAY}{_ORDINAL})?"
        rf"(?:[\s,./-]+{_YEAR}|,\s?'?\d{{2}}|\s'\d{{2}}|-\d{{2}})?)(?!\d|[:.]\d|\s?%){ANY_END}",
        "On {March 4th, 2019}: fever; onset {Jan 9th '23}.",
        check=_spelled,
        anchor=Anchor(_MONTHS),
    ),
    _rule(
        rf"{WORD_BEGIN}(?P<phi>{MONTH}\s{_DAY}{_ORDINAL}"
        rf"(?:,?\s{_YEAR})?{_TO}{MONTH}\s{_DAY}{_ORDINAL},?\s{_YEAR}){END}",
        "Away {December 24 - January 2, 2020}.",
        score=0.95,
        anchor=Anchor(_MONTHS),
    ),
    _rule(
        rf"{WORD_BEGIN}(?P<phi>{MONTH}(?:(?:\s+of)?[\s,/-]*(?:{_YEAR}|'\s?\d{{2}})|-\d{{2}}))(?!\d"
        rf"|[/-]\d)",
        "Surgery in {Dec '19}, in {Apr-20} and in {March 2019}.",
        anchor=Anchor(_MONTHS),
    ),
    _rule(
        rf"{WORD_BEGIN}(?P<phi>{MONTH}(?:\s?/\s?|{_TO}){MONTH}(?:\s+of)?[\s,/-]+(?:{_YEAR}"
        rf"|'\s?\d{{2}})){END}",
        "Therapy {March-May 2019}, then none.",
        score=0.95,
        anchor=Anchor(_MONTHS),
    ),
    _rule(
        rf"{WORD_BEGIN}(?:in|since|last|this|next|early|late|mid|until|by|during|before|after|from"
        rf"|to|through|between|and|or"
        rf"|of){_GAP}(?P<phi>(?:(?-i:January|February|March|April|May|June|July|August|September"
        rf"|October|November|December"
        r"|(?:Jan|Feb|Sept|Oct|Nov|Dec)(?![a-z])\.?)|january|february|april|june|july|september"
        r"|october|november|december)"
        rf"(?:(?:-|/|\sto\s|\sthrough\s)(?-i:[A-Z])(?<=[JFMASOND])(?:anuary|ebruary|arch|pril|ay"
        rf"|une|uly|ugust|eptember"
        rf"|ctober|ovember|ecember))?){WORD_END}(?!\s+\d|'\d)",
        "Follow-up in {June}, or in {july}.",
        check=_month_alone,
        anchor=Anchor(
            "August* Dec* Feb* Jan* March* May* Nov* Oct* Sept* april* december*"
            " february* january* july* june* november* october* september*",
            within=13,
            first="[A-Za-z]",
            after="[^A-Za-z]",
        ),
    ),
    _rule(
        rf"{ALONE_BEGIN}(?P<phi>\d{{1,2}}/\d{{1,2}}(?:-\d{{1,2}})?)(?!/\d){ALONE_END}",
        "He was seen on {3/4} with a strength of 3/4, CT {3/24}.",
        score=0.6,
        check=_partial,
        anchor=Anchor(signs="/", within=2, first=r"\d", after=r"\D"),
    ),
    _rule(
        rf"{ALONE_BEGIN}(?P<phi>\d{{1,2}}/(?:[3-9]\d|00)){ALONE_END}",
        "Stent in {3/87}.",
        check=_late_year,
        anchor=Anchor(signs="/", within=2, first=r"\d", after=r"\D"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?:on|dated?|since|until){_GAP}(?P<phi>(?:0[1-9]-(?:0[1-9]|[12]\d|3[01])"
        rf"|1[0-2]-[0-3]\d))"
        rf"{ALONE_END}(?!\s?(?:mg|ml|units?|x\b|of\b|lb|kg))",
        "Seen on {03-14} in clinic.",
        score=0.6,
        anchor=Anchor("dated date on since until"),
    ),
    _rule(
        rf"{WORD_BEGIN}on\sthe{_GAP}(?P<phi>(?:[12]?\d(?:st|nd|rd|th)|3(?:0th"
        rf"|1st)))(?={_GAP}(?:of\s(?:this|last|next|the)\smonth"
        r"|at\s\d))",
        "He fell on the {4th} of last month.",
        score=0.6,
        anchor=Anchor("on"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?P<phi>(?:spring|summer|fall|autumn|winter)\s+(?:of\s+)?(?:{_YEAR}"
        rf"|'\d{{2}})){END}",
        "It started in the {Fall '02}, not in the fall.",
        anchor=Anchor("autumn fall spring summer winter"),
    ),
    _rule(
        rf"{CODE_BEGIN}(?P<phi>(?:Q[1-4]|[1-4]Q|[HF]Y?[12]|FY|(?:first|second|third|fourth|1st|2nd"
        rf"|3rd|4th|last)\squarter(?:\sof)?)"
        rf"[\s,/-]{{0,2}}(?:{_YEAR}|'\d{{2}})){END}",
        "Relapse in {Q3 2019}, stable since the {second quarter of 2020}.",
        anchor=Anchor("fy* f hy h q*", within=7, first=r"[A-Z\dfhlqst]", after="[^A-Za-z]"),
    ),
    _rule(
        rf"{ALONE_BEGIN}(?<!\$)(?P<phi>(?P<first>(?:19|20)\d\d)\s?(?:-|/|to|through|until"
        rf"|till)\s?(?P<last>(?:19|20)?\d\d)){ALONE_END}",
        "Seen in {2014-2017} and {1998-99}, 2100-2000 ml, at 1900-2000.",
        score=0.8,
        check=_years,
        anchor=Anchor(digits=4, after=r"[^\d$]"),
    ),
    _rule(
        r"(?<![\w'])(?P<phi>'\d\d)(?![\w'])",
        "Stent in {'98}, in the '90s.",
        score=0.7,
        check=_elided_year,
        anchor=Anchor(signs="'"),
    ),
    _rule(
        rf"{WORD_BEGIN}(?P<phi>{_FESTIVALS}){WORD_END}",
        "Symptoms began after {Thanksgiving}.",
        check=_festive,
        anchor=Anchor(
            "Boxing Chinese Easter* Eid* Friday* Kwanzaa* Lent* Lunar Mardi Pentecost*"
            " Sunday* Wednesday* canada* christmas* columbus* diwali* father* halloween*"
            " hanukkah* hashanah* independence* july* juneteenth* kippur* labor* luther"
            " memorial* mlk* mother* passover* patrick* patriots* presidents* ramadan*"
            " thanksgiving* valentine* veterans* year*",
            within=11,
            first="[A-Za-z4]",
            after="[^A-Za-z]",
        ),
    ),
    _rule(
        rf"{WHOLE_BEGIN}(?P<phi>{_DAY}(?:\.|er)?\s(?:de\s)?{_FOREIGN}(?:\s(?:de\s"
        rf"|del\s)?)?{_YEAR}){END}",
        "Nacido el {4 de marzo de 2019}.",
        anchor=Anchor(digits=4, within=23, first=r"\d", after=r"\D"),
    ),
)

DATES = RuleDetector("dates", RULES)
