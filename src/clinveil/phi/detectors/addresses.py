"""Street lines, post-office boxes, postal codes, and cities by context; states and countries may stay."""

from __future__ import annotations

import re

from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.lexicons.words import word_list
from clinveil.phi.detector import Rule, RuleDetector, before, detectors, words
from clinveil.phi.note import NoteView

_CAP = r"[A-Z][\w'.]*(?:-[A-Z]\w*)?"
_KIND = (
    r"(?:Street|Str|St|Avenue|Ave|Av|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Circle|Cir|Way|Place|Pl"
    r"|Terrace|Ter"
    r"|Parkway|Pkwy|Highway|Hwy|Square|Sq|Trail|Trl|Turnpike|Tpke|Crescent|Cres|Close|Grove|Alley|Row|Heights|Hill)"
)
_FLAT = r"(?:,?\s*(?:Apt|Apartment|Suite|Ste|Unit|Room|Rm|Floor|Fl|#)\.?\s*#?\s?[A-Z]?\d*[A-Z]?\b)?"
_ABBREVIATIONS = words(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA"
    " RI SC SD TN TX UT VT VA WA WV WI WY DC PR ON QC BC AB MB SK NS NB NL PE"
)
# These are words, degrees or abbreviations of medicine too: they need a postal code or a known city.
_DOUBTFUL = words("MD PA OR IN ME OK HI CO ND DE LA AL ID MS MA NP ON PE NB RI PR SC MO OH MI VA CT CA PT AB BC")
_STATE = "(?:" + "|".join(sorted(_ABBREVIATIONS)) + ")"
_ZIP = r"\d{5}(?:-\d{4})?"
_LIVES = (
    r"(?:live[sd]?|living|resid(?:es?|ed|ing|ent)|moved|born|grew\s+up|raised|native|travel(?:s|ed|led|ing)?"
    r"|relocated|flew"
    r"|visit(?:s|ed|ing)?|works|worked|vacation(?:ing)?|trip|hometown|emigrated|immigrated)"
)
_I = re.IGNORECASE
_CITIES = word_list("cities")
# States, countries and other wide places that may stay, in lower case.
_WIDE = frozenset(state.lower() for state in word_list("states"))


def _a_city(match: re.Match[str], note: NoteView) -> bool:
    """Not a state, not an ordinary word; a list of cities overrules the latter."""
    place = " ".join(match["phi"].split())
    if place.lower() in _WIDE:
        return False
    return place in _CITIES or not any(
        lexical_classes(part) & (LexicalClass.WORD | LexicalClass.EPONYM) for part in place.split()
    )


def _city_of_state(match: re.Match[str], note: NoteView) -> bool:
    place = " ".join(match["phi"].split())
    if place in _CITIES:
        return True
    return match["state"] not in _DOUBTFUL and _a_city(match, note)


def _known_city(match: re.Match[str], note: NoteView) -> bool:
    place = " ".join(match["phi"].split())
    if not any(" ".join(place.split()[:count]) in _CITIES for count in (1, 2, 3)):
        return False
    tail = re.match(r"'?s?\s+([a-z]+)", note.plain[match.end("phi") : match.end("phi") + 30])
    return not (tail and (tail[1] in word_list("eponym_nouns") or tail[1] in ("study", "diet", "heart", "health")))


def _street(match: re.Match[str], note: NoteView) -> bool:
    """`2 Residents Dr. Smith` is no street: the abbreviation of drive is doubtful before a name."""
    tail = note.plain[match.end("phi") : match.end("phi") + 2]
    return not (match["kind"] == "Dr" and re.match(r"\.?\s?[A-Z]", tail) and "," not in tail)


def _zip(match: re.Match[str], note: NoteView) -> bool:
    return "loinc" not in before(match, note, 20)


_CITY_RUN = r"(?P<phi>(?:(?:St|Ft|Mt)\.\s)?[A-Z][a-z]+(?:[ -][A-Z][a-z]+){0,2})"
_STATE_NAMES = "|".join(sorted(name.replace(" ", r"\s") for name in word_list("states")))
_FACILITY = r"(?:clinic|office|hospital|facility|location|campus|practice|branch|site|center|area)"
_STREET = re.compile(
    rf"(?<![\w.-])(?P<phi>\d{{1,6}}[A-Z]?(?:-\d+)?,?\s+(?:(?:[NSEW]|NE|NW|SE|SW)\.?\s+)?(?:(?:{_CAP}|\d{{1,3}}(?:st"
    rf"|nd|rd|th))\s+)"
    rf"{{1,4}}(?P<kind>{_KIND})\b\.?(?:\s+(?:[NSEW]|NE|NW|SE|SW)\b\.?)?{_FLAT})"
)
_BOX = re.compile(r"\b(?P<phi>P\.?\s?O\.?\s+Box\s+#?\d+)", _I)
_AFTER_ADDRESS = re.compile(
    r"\b(?:address|lives at|residing at|resides at|living at|home is)(?: is)?[:\s]+"
    rf"(?P<phi>\d{{1,6}}(?:\s+\w[\w'-]*){{1,4}}?\s+{_KIND}\b|\d{{1,6}}(?:\s+(?-i:[A-Z][a-z])[\w'-]*){{1,4}})",
    _I,
)
_FLAT_ALONE = re.compile(r"\b(?P<phi>(?:Apt|Apartment|Suite|Ste)\.?\s*#?\s?\d{1,5}[A-Z]?)\b", _I)
_CUED_ZIP = re.compile(
    r"\b(?:zip(?:\s?code)?|postal code|postcode)\s*(?:is)?[:\s]*(?P<phi>[A-Z0-9]{3,5}(?:[ -]?[A-Z0-9]{3,4})?)\b", _I
)

RULES = (
    Rule("ADDRESS", _STREET, "He lives at {123 Oak Street, Apt 4B}, Boston.", check=_street),
    Rule("ADDRESS", _BOX, "Mail to {P.O. Box 45}.", score=0.95),
    Rule("ADDRESS", _AFTER_ADDRESS, "He lives at {12 Elmwood Park}, and walks.", score=0.8),
    Rule("ADDRESS", _FLAT_ALONE, "Ring at {Apt 4B}.", score=0.7),
    Rule(
        "CITY",
        re.compile(rf"{_CITY_RUN},?\s+{_STATE}\b\.?,?\s+{_ZIP}(?!\d)"),
        "sent to {Boston}, MA 02114.",
        score=0.95,
    ),
    Rule("ZIP", re.compile(rf"\b{_STATE}\b\.?,?\s+(?P<phi>{_ZIP})(?!\d)"), "sent to Boston, MA {02114}.", score=0.95),
    Rule("ZIP", _CUED_ZIP, "Moved; zip {60601}."),
    Rule("ZIP", re.compile(r"\b(?P<phi>[ABCEGHJ-NPR-TVXY]\d[A-Z] \d[A-Z]\d)\b"), "In {M5B 1W8} since May."),
    Rule(
        "ZIP",
        re.compile(r"(?:[A-Z][a-z]+),\s+(?:[A-Z][a-z]+\s){1,2}(?P<phi>\d{5}(?:-\d{4})?)(?!\d)"),
        "In Wichita, Kansas {67202}.",
        score=0.7,
        check=_zip,
    ),
    Rule(
        "CITY",
        re.compile(rf"(?<!\w){_CITY_RUN},\s?(?P<state>{_STATE})\b(?!\w)"),
        "He came from {Boston}, MA, alone.",
        score=0.6,
        check=_city_of_state,
    ),
    Rule("CITY", re.compile(rf"^{_CITY_RUN},\s?{_STATE}\b[ \t]*\r?$", re.M), "{Springfield}, IL", score=0.8),
    Rule(
        "CITY",
        re.compile(rf"(?<!\w){_CITY_RUN},\s?(?:{_STATE_NAMES})\b"),
        "seen in {Wichita}, Kansas.",
        score=0.7,
        check=_a_city,
    ),
    Rule(
        "CITY",
        re.compile(rf"\b(?i:{_LIVES})\s+(?:\w+\s+){{0,5}}?(?:in|to|from|near|of|outside)\s+(?:the\s+)?{_CITY_RUN}"),
        "She moved with her husband to {Wichita}.",
        score=0.7,
        check=_a_city,
    ),
    Rule(
        "CITY",
        re.compile(rf"\b(?:in|from|to|near|at|of|outside)\b,?\s+{_CITY_RUN}"),
        "A flight from {Chicago}.",
        score=0.6,
        check=_known_city,
    ),
    Rule(
        "CITY",
        re.compile(rf"\b(?:our|the|a|in)\s+{_CITY_RUN}(?=\s+{_FACILITY}\b)"),
        "Seen in our {Boston} office.",
        score=0.6,
        check=_known_city,
    ),
    Rule(
        "CITY",
        re.compile(rf"(?:[Hh]ospital|[Cc]enter|[Cc]linic|[Oo]ffice|Hopkins|Langone|Sinai),?\s+(?:in\s+)?{_CITY_RUN}"),
        "Mayo Clinic, {Rochester}",
        score=0.6,
        check=_known_city,
    ),
    Rule(
        "CITY",
        re.compile(
            r"\b(?:in|from|at|to|Hospital,|Clinic,|Center,)\s+(?P<phi>NYC|LA|SF|DC)\b(?=[\s,.?)](?!\w*\s*enlargement))"
        ),
        "He is from {NYC}.",
        score=0.5,
    ),
)

detectors.register("addresses")(RuleDetector("addresses", RULES))
