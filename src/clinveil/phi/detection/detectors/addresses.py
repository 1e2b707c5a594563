"""Street addresses, post-office boxes, postal codes and cities. States and countries may stay.

Covers American, Canadian, British and continental European formats: house number before or after
the street, postal codes with letters.
"""

from __future__ import annotations

import re

from clinveil.lexicons import LexicalClass, is_word, lexical_classes, word_list
from clinveil.phi.detection.detector import (
    ALONE_BEGIN,
    BEGIN,
    CODE_BEGIN,
    CODE_END,
    END,
    WORD_END,
    Rule,
    RuleDetector,
    words,
)
from clinveil.phi.detection.detectors._places_abroad import RULES as ABROAD
from clinveil.phi.detection.detectors._places_abroad import tail
from clinveil.phi.detection.letter_case import AnyCase
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import FAR, Anchor

_CAP = r"[A-Z][\w'.]*(?:-[A-Z]\w*)?"
_KIND = (
    r"(?:Street|Str|St|Avenue|Ave|Av|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Circle|Cir"
    r"|Way|Place|Pl|Terrace"
    r"|Ter|Parkway|Pkwy|Highway|Hwy|Square|Sq|Trail|Trl|Turnpike|Tpke|Crescent|Cres|Close|Grove"
    r"|Alley|Row|Heights|Hill"
    r"|Gardens|Gdns|Mews|Walk|Loop|Plaza|Pike|Crossing|Ridge|Point|Wharf|Quay|Parade|Esplanade"
    r"|Landing|STREET|STR|ST"
    r"|AVENUE|AVE|ROAD|RD|BOULEVARD|BLVD|LANE|LN|DRIVE|DR|COURT|CT|CIRCLE|CIR|WAY|PLACE|PL|TERRACE"
    r"|PARKWAY|PKWY|HIGHWAY"
    r"|HWY|SQUARE|TRAIL|CRESCENT|CLOSE|GROVE|GARDENS)"
)
_FLAT = (
    r"(?:\.?,?\s*(?:(?:Apt|Apartment|Suite|Ste|Unit|Room|Rm|Floor|Fl|APT|SUITE|STE|UNIT"
    r"|#)\.?\s*#?\s?[A-Z]?\d*-?[A-Z]?\b))?"
)
_ABBREVIATIONS = words(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM"
    " NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC PR ON QC BC AB MB SK NS NB NL PE"
    " NSW QLD VIC TAS"
)
# Also words, degrees or medical abbreviations: they need a postal code or a known city.
_DOUBTFUL = words(
    "MD PA OR IN ME OK HI CO ND DE LA AL ID MS MA NP ON PE NB RI PR SC MO OH MI VA CT CA PT AB"
    " BC NS"
)
_STATE = "(?:" + "|".join(sorted(_ABBREVIATIONS, key=lambda state: (-len(state), state))) + ")"
_ZIP = r"\d{5}(?:-\d{4})?"
_LIVES = (
    r"(?:live[sd]?|living|resid(?:es?|ed|ing|ent)|mov(?:ed|es|ing)|return(?:ed|s|ing)?\s+home"
    r"|born|grew\s+up|raised|native|travel(?:s|ed|led|ing)?|relocated"
    r"|flew|visit(?:s|ed|ing)?|works|worked|vacation(?:ing)?|trip|hometown|emigrated|immigrated"
    r"|commutes?)"
)
_PERSON_IS = (
    r"(?:(?:\b(?:[Pp]atient|[Pp]t|[Hh]e|[Ss]he|[Hh]usband|[Ww]ife|[Mm]other|[Ff]ather|[Ff]amily"
    r"|[Pp]arents|[Ss]on|[Dd]aughter|[Pp]artner|[Tt]hey)|\b(?:Mr|Mrs|Ms|Dr)\.?\s[A-Z][\w'-]+)"
    r"\s(?:is|was|are|were)|\b(?:man|woman|gentleman|lady|boy|girl|[Oo]riginally|[Hh]ails?"
    r"|[Hh]ailing))\s+from"
)
_BORN = (
    r"(?:born(?:\s+and\s+(?:raised|bred))?|raised|gr[eo]w(?:n|s|ing)?\s+up|(?:im|e)migrated"
    r"|native|resident|residents|hometown)\s+(?:in|from|to|of|near|is|outside)"
)
_CLAUSE_END = re.compile(
    r"[.,;)\n]|\Z|\s+(?:with|and|in|last|from|to|where|when|after|for|since|by|on|this|about|at"
    r"|because|but|or|who|recently|originally|next|as|before|until|\d)\b"
)
# Wards, homes and times after `born in` and `is from`.
_NO_ORIGINS = words(
    "january february march april may june july august september october november december spring"
    " summer autumn winter monday tuesday wednesday thursday friday saturday sunday hospital tele"
    " clinic rehab rehabilitation hospice recovery medicine surgery icu ccu ward unit room floor"
    " home house facility shelter nursing skilled assisted section apartment emergency er ed prison"
    " jail theatre or breech vertex labor labour outpatient inpatient pediatrics oncology"
    " cardiology neurology psychiatry orthopedics radiology dialysis work school church clinics our"
)
_I = re.IGNORECASE
_COMPASS = r"(?:[NSEW]|NE|NW|SE|SW)"
# The full stop of an abbreviation. Before a capital and at a line end it ends the sentence.
_DOT = r"(?:\.(?=,|[ \t]+[a-z(]))?"
_AFTER_STREET = (
    rf"(?:\s+{_COMPASS}\b(?![/']){_DOT}|\.\s+{_COMPASS}(?=,|\s+[a-z#\d]|[ \t]*(?:\n|\Z)))?"
)
_CITIES = word_list("cities") | {"New York"}
# States, countries and other large regions that may stay, in lower case.
_REGIONS = word_list("states") | word_list("countries")
_WIDE = frozenset(region.lower() for region in _REGIONS) - {"new york"}
# Units before `drive`, `walk` and `way`: not a street.
_MEASURED = words(
    "minute minutes min mins hour hours hr mile miles block blocks day days week weeks step steps"
    " lane way x"
)


def _is_city(match: re.Match[str], note: NoteView) -> bool:
    """Accept a place that is not a state and not an ordinary word; cities of the list may be
    words.
    """
    town = " ".join(match["phi"].split())
    if town.lower() in _WIDE:
        return False
    return town in _CITIES or not any(
        lexical_classes(part) & (LexicalClass.WORD | LexicalClass.EPONYM) for part in town.split()
    )


def _is_home(match: re.Match[str], note: NoteView) -> bool:
    """Accept also a listed town that is a word, and a word of shorthand only: `moved to Hope`,
    `moved to Spiro`, but not `works in Physio`.
    """
    if match["phi"].split()[0].lower() in _NO_ORIGINS:
        return False
    if _is_city(match, note):
        return True
    if match[0].lower().startswith("work"):
        return False
    town = match["phi"]
    if town in word_list("word_towns"):
        return _CLAUSE_END.match(note.plain, match.end("phi")) is not None
    lower = town.lower()
    return lower in word_list("shorthand") and not is_word(lower) and len(lower) > 4


def _is_origin(match: re.Match[str], note: NoteView) -> bool:
    """Accept any capitalised word that is said to be a person's origin: `born in Hope`; not a ward
    or a month.
    """
    town = " ".join(match["phi"].split())
    first = town.split()[0].lower()
    if town.lower() in _WIDE or first in _NO_ORIGINS or first in word_list("shorthand"):
        return False
    return not lexical_classes(first) & LexicalClass.FUNCTION


def _city_of_state(match: re.Match[str], note: NoteView) -> bool:
    town = " ".join(match["phi"].split())
    if town in _CITIES:
        return True
    return match["state"] not in _DOUBTFUL and _is_city(match, note)


def _known_city(match: re.Match[str], note: NoteView) -> bool:
    town = " ".join(match["phi"].split())
    if not any(" ".join(town.split()[:count]) in _CITIES for count in (1, 2, 3)):
        return False
    owner, following = re.findall(
        r"\A('s)?\s*([a-z]*)", note.plain[match.end("phi") : match.end("phi") + 30]
    )[0]
    if any(part.lower() in word_list("eponym_nouns") for part in town.split()[1:]):
        return False
    if owner and lexical_classes(town) & LexicalClass.EPONYM:  # died of Huntington's
        return False
    return following not in word_list("eponym_nouns") | {
        "study",
        "diet",
        "heart",
        "health",
        "state",
    }


def _unlikely_name(match: re.Match[str], note: NoteView) -> bool:
    """Accept a listed city without usual first names or frequent surnames in it (not Charlotte,
    Jackson).
    """
    if " ".join(match["phi"].split()) not in _CITIES:
        return False
    return _known_city(match, note) and not any(
        lexical_classes(part) & LexicalClass.FAMILIAR for part in match["phi"].split()
    )


def _street(match: re.Match[str], note: NoteView) -> bool:
    """Reject `2 Residents Dr. Smith`, where `Dr` is a title, and matches that cross an empty
    line.
    """
    if re.search(r"\n\s*\n", match["phi"]):
        return False
    following = note.plain[match.end("phi") : match.end("phi") + 3]
    if match["kind"] in ("Dr", "DR") and re.match(r"\.?\s?[A-Z]", following):
        return False
    parts = match["phi"].split()
    # Head CT.
    if (
        match["kind"].isupper()
        and len(match["kind"]) < 4
        and any(part[:2].istitle() for part in parts)
    ):
        return False
    name = note.plain[match.start("phi") : match.start("kind")].split()
    return not any(
        part.lower() in _MEASURED or (part.endswith(".") and len(part) > 5) for part in name
    )


def _plain_street(match: re.Match[str], note: NoteView) -> bool:
    """Reject lower-case matches that are distances or counts (`2 lane road`)."""
    return not any(
        part in _MEASURED or part in word_list("function") for part in match["phi"].lower().split()
    )


def _postcode(match: re.Match[str], note: NoteView) -> bool:
    """Accept Canadian (M5B 1W8) and British (SW1A 2AA) codes; reject vertebrae with an ordinal (T1
    3RD).
    """
    return bool(_CANADIAN.fullmatch(match["phi"]) or _BRITISH.fullmatch(match["phi"]))


_UNIT_LETTERS = words("LT RT ML MG KG CC CM MM IU AM PM HR MD SS SA SD MR PO IV IM QD HS")


def _continental(match: re.Match[str], note: NoteView) -> bool:
    """Accept digits after a country letter, with postal letters that are not a unit (1016 GV), or
    after a house
    number.
    """
    if match["letters"]:
        return match["letters"].strip() not in _UNIT_LETTERS
    if match["country"]:
        return True
    house = re.search(r"[a-z.] \d{1,4}[a-z]?,[\W_]{1,6}$", note.plain[: match.start()][-20:])
    return house is not None and re.search(r"(?<!\d)\d{5}(?!\d)", match[0]) is not None


_CITY_RUN = r"(?P<phi>(?:(?:St|Ft|Mt)\.\s)?[A-Z][a-z]+(?:[ -][A-Z][a-z]+){0,2})"
_STATE_NAMES = "|".join(sorted(name.replace(" ", r"\s") for name in _REGIONS))
_REGION_WORDS = " ".join(f"*{re.split('[^A-Za-z]', name)[0]}*" for name in sorted(_REGIONS))
_STATE_WORDS = " ".join(sorted(_ABBREVIATIONS))
_STATE_ENDS = " ".join(f"*{state}" for state in sorted(_ABBREVIATIONS))
_STATE_PARTS = " ".join(f"*{state}*" for state in sorted(_ABBREVIATIONS))
_FACILITY = (
    r"(?:clinic|office|hospital|facility|location|campus|practice|branch|site|center|area|ER|ED)"
)
# A house number: 14, 14a, 14-A, 14 bis, 14-16, 14 1/2.
_HOUSE = r"\d{1,6}(?:\s?-?[A-Za-z](?![A-Za-z])|\s(?:bis|ter|quater))?(?:-\d+)?(?:\s1/2)?"
_STREET = re.compile(
    rf"{ALONE_BEGIN}(?P<phi>{_HOUSE},?\s+"
    rf"(?:(?:[NSEW]|NE|NW|SE|SW|North|South|East|West)\.?\s+)?(?:(?:{_CAP}|\d{{1,3}}(?:st|nd|rd|th"
    rf"|ST|ND|RD|TH))\s+)"
    rf"{{1,4}}(?P<kind>{_KIND}){WORD_END}{_DOT}{_AFTER_STREET}{_FLAT})"
)
_BOX = re.compile(r"(?<![a-z])(?P<phi>P\.?\s?O\.?\s+Box\s+#?\d+)", _I)
_RURAL = re.compile(
    r"(?<![A-Za-z])(?P<phi>(?:R\.?R\.?|H\.?C\.?|Rural\sRoute|GPO"
    r"|Post\sOffice)(?:\s?#?\d+,?)?\s+Box\s+\d+)"
)
_FOREIGN_BOX = re.compile(r"(?<![A-Za-z])(?P<phi>(?:Postfach|Postbus)\s\d+)")
_NUMBERED_ROAD = re.compile(
    rf"{ALONE_BEGIN}(?P<phi>\d{{1,6}}\s(?:County|State|Old|US)\s(?:Road|Rd|Route|Hwy"
    rf"|Highway)\s\d{{1,4}}){END}"
)
_AFTER_ADDRESS = re.compile(
    rf"\b(?:address|lives at|residing at|resides at|living at|home is|lived at"
    rf"|stays at)(?: is)?[\W_]{{1,6}}"
    rf"(?P<phi>\d{{1,6}}(?:\s+\w[\w'-]*){{1,4}}?\s+{_KIND}\b"
    rf"|\d{{1,6}}(?:\s+(?-i:[A-Z][a-z])[\w'-]*){{1,4}})",
    _I,
)
_RESIDENCE = re.compile(
    r"\b(?i:nursing\shome|care\shome|group\shome|assisted\sliving|residence|facility|lives\s(?:on"
    r"|in|at)|resides\s(?:on|in|at)"
    r"|discharged\sto|placed\sat|address)[\W_]{1,6}(?P<phi>(?:[A-Z][a-z]+\s){1,2}(?:Court|Row"
    r"|Place|Close|Mews|Gardens|Grove"
    r"|Crescent|Square|Way|Manor|House|Lodge|Heights|Terrace|Circle|Trail|Street|Road"
    r"|Lane))(?![A-Za-z])"
)
_FLAT_ALONE = re.compile(
    r"(?<!operating )(?<!operative )(?<![A-Z])(?P<phi>(?:Apt|Apartment|Suite|Ste"
    r"|(?-i:Flat))\.?\s*#?\s?\d{1,5}[A-Z]?)(?![A-Z\d])",
    _I,
)
_LOWER = re.compile(
    r"(?<!\d)(?<!\d[.,/:-])(?P<phi>\d{1,6}[a-z]?\s(?:(?:n|s|e|w|north|south|east"
    r"|west)\.?\s)?[a-z]+(?:\s[a-z]+)?\s(?:street|avenue|ave"
    r"|road|boulevard|blvd|lane|drive|court|terrace)(?![a-z])(?:\.?,?\s(?:apt|apartment|unit"
    r"|suite)\.?\s?#?\w{1,4}\b)?)"
)
_NAMELESS = re.compile(
    rf"\b(?:on|at|of|from|near|in|to|our|off|the)[\W_]{{1,6}}"
    rf"(?P<phi>(?:(?:[A-Z][a-z]+\s){{1,2}}(?:and|&)\s)?(?:(?:[NSEW]\.?|North|South|East|West)\s)?"
    rf"(?:(?:[A-Z][a-z]+\s){{1,2}}(?:Street|Avenue|Ave\b{_DOT}|Road|Boulevard|Blvd\b{_DOT}|Lane"
    rf"|Drive|Parkway|Terrace)"
    rf"|\d{{1,3}}(?:st|nd|rd|th)\s(?:[Ss]treet|[Aa]ve(?:nue)?)))(?![A-Za-z])"
)
_NUMBER_AFTER = re.compile(
    r"(?<![A-Za-z\d])(?P<phi>[A-Z\xc0-\xde]\w*(?:[ -][A-Z\xc0-\xde]\w+)?(?:strasse|str\.|weg|platz"
    r"|allee|gasse|damm|ufer|vej"
    r"|gade|gata|gatan|veien|straat|laan|gracht|plein|dijk|katu|utca"
    r"|svej)\s+\d{1,4}\s?[a-zA-Z]?)(?![A-Za-z\d%]|[.-]\d)"
)
_ROMANCE = re.compile(
    r"\b(?P<phi>(?:Via|Viale|Piazza|Corso|Calle|C/|Avenida|Avda?\.?|Plaza|Paseo|Rua|Rue|Chemin"
    r"|ul\.|ulica|Ulica"
    r"|Carrer)\s+(?:(?:de|du|des|della|del|dei|di|da|do|dos|la|las|los|le|les|l'"
    r"|d')\s?){0,3}[A-Z\xc0-\xde][\w'.-]*(?:\s[A-Z\xc0-\xde][\w'.-]*){0,3},?\s+"
    r"(?:n[º°o.]{0,2}\s*)?\d{1,4}[A-Za-z]?)"
    r"(?![A-Za-z\d%]|[.-]\d)"
)
_RUE = re.compile(
    r"(?<!\d)(?<!\d[.,/:-])(?P<phi>\d{1,4}(?:\s?(?:bis|ter))?,?\s+(?:rue|avenue|boulevard|bd"
    r"|chemin|impasse|quai"
    r"|Rue|Avenue|Boulevard|Bd|Chemin|Quai)\s+(?:(?:de|du|des|la|le|les|l'"
    r"|d')\s?){0,3}[A-Z\xc0-\xde][\w'-]*(?:[\s-][A-Z\xc0-\xde][\w'-]*){0,3})"
)
_CUED_ZIP = re.compile(
    r"(?<![a-z])(?:zip(?:[\s_]?code)?|post(?:al)?[\s_]?code|plz)(?![a-z])[\"']?\s*(?:is)?[\W_]{0,6}"
    r"(?P<phi>(?=[A-Z]{0,2}\d)[A-Z0-9]{2,5}(?:[ -]?[A-Z0-9]{3,4})?)(?![A-Z\d])",
    _I,
)
_OUTWARD = r"[A-PR-UWYZ](?:\d[A-Z\d]?|[A-HK-Y]\d[A-Z\d]?)"
_INWARD = r"\d[ABD-HJLNP-UW-Z][ABD-HJLNP-UW-Z\d]"
_CANADIAN = re.compile(r"[ABCEGHJ-NPR-TVXY]\d[A-Z][ -]\d[A-Z]\d")
_BRITISH = re.compile(
    r"(?![CLST]\d \dTH)[A-Z]{1,2}\d[A-Z\d]? (?!1ST|2ND|3RD|\dHR|\dLB|\dDR|\dQD)\d[A-Z]{2}"
)
_CONTINENTAL = r"(?P<country>(?:D|A|CH|F|B|NL|DK|S|I|E|FI|NO|L)-)?\d{4,5}(?P<letters>\s[A-Z]{2})?"
_TOWN = r"[A-Z\xc0-\xde][a-zß-ÿ]{2,}(?:[ -][A-Z\xc0-\xde][a-zß-ÿ]+)?"

RULES = (
    Rule(
        "ADDRESS",
        _STREET,
        "He lives at {123 Oak Street, Apt 4B}, Boston; once {14 ACACIA AVENUE}, Leeds.",
        check=_street,
        anchor=Anchor(digits=1, after=r"\D"),
    ),
    Rule(
        "ADDRESS",
        _BOX,
        "Mail to {P.O. Box 45}.",
        score=0.95,
        anchor=Anchor("box", within=FAR, first="[Pp]", after="[^A-Za-z]"),
    ),
    Rule(
        "ADDRESS",
        _RURAL,
        "Mail to {RR 2 Box 34}.",
        score=0.95,
        anchor=Anchor("Box", within=FAR, first="[GHPR]", after="[^A-Za-z]"),
    ),
    Rule(
        "ADDRESS",
        _FOREIGN_BOX,
        "Mail to {Postfach 12}.",
        score=0.95,
        anchor=Anchor("*Postbus *Postfach"),
    ),
    Rule(
        "ADDRESS",
        _NUMBERED_ROAD,
        "At {4411 County Road 12} since May.",
        score=0.9,
        anchor=Anchor("County Old State US", within=7, first=r"\d", after=r"\D"),
    ),
    Rule(
        "ADDRESS",
        _AFTER_ADDRESS,
        "He lives at {12 Elmwood Park}, and walks.",
        score=0.8,
        anchor=Anchor("address* home lived lives living resides residing stays"),
    ),
    Rule(
        "ADDRESS",
        _RESIDENCE,
        "Nursing home: {Willow Court}; lives in {Elm Row}.",
        score=0.7,
        anchor=Anchor(
            "address* assisted care discharged facility* group lives nursing placed"
            " residence* resides"
        ),
    ),
    Rule(
        "ADDRESS",
        _FLAT_ALONE,
        "Ring at {Apt 4B}.",
        score=0.7,
        anchor=Anchor("Flat* apartment* apt* ste* suite*"),
    ),
    Rule(
        "ADDRESS",
        _LOWER,
        "lives at {123 oak street}, a 20 minute drive.",
        score=0.7,
        check=_plain_street,
        anchor=Anchor(
            "ave* blvd* boulevard* court* drive* lane* road* street* terrace*",
            within=FAR,
            first=r"\d",
            after=r"\D",
        ),
    ),
    Rule(
        "ADDRESS",
        _NAMELESS,
        "Seen in the office on {Elm Street}, or at {5th avenue}.",
        score=0.6,
        anchor=Anchor(
            "*Avenue* *Ave *Blvd *Boulevard* *Drive* *Lane* *Parkway* *Road* *Street*"
            " *Terrace* ave* street*",
            within=FAR,
            first="[afinot]",
            after=r"\W",
        ),
    ),
    Rule(
        "ADDRESS",
        _NUMBER_AFTER,
        "Wohnt in der {Hauptstrasse 12}, or at {Vesterskovvej 79}.",
        score=0.8,
        anchor=Anchor(
            "*allee* *damm* *dijk* *gade* *gasse* *gata* *gracht* *katu* *laan* *platz*"
            " *plein* *straat* *strasse* *str *ufer* *utca* *veien* *vej* *weg*",
            within=FAR,
            first="[A-Z]",
            after="[^A-Za-z]",
        ),
    ),
    Rule(
        "ADDRESS",
        _ROMANCE,
        "Lives at {Calle de Alcalá, 45}.",
        score=0.8,
        anchor=Anchor(
            "Avd* Avenida* Calle* Carrer* Chemin* Corso* C Paseo* Piazza* Plaza* Rua*"
            " Rue* Via* ulica* ul"
        ),
    ),
    Rule(
        "ADDRESS",
        _RUE,
        "Lives at {12, rue de la Paix}.",
        score=0.8,
        anchor=Anchor(
            "avenue bd boulevard chemin impasse quai rue", within=FAR, first=r"\d", after=r"\D"
        ),
    ),
    Rule(
        "CITY",
        re.compile(rf"{_CITY_RUN},?\s+{_STATE}\b\.?,?[^\w\n]{{1,4}}{_ZIP}(?!\d)"),
        "sent to {Boston}, MA 02114.",
        score=0.95,
        anchor=Anchor(_STATE_WORDS, within=FAR, first="[A-Z]"),
    ),
    Rule(
        "ZIP",
        re.compile(rf"(?<![A-Za-z\d]){_STATE}(?![A-Za-z])\.?,?[\W_]{{1,6}}(?P<phi>{_ZIP})(?!\d)"),
        "sent to Boston, MA {02114}.",
        score=0.95,
        anchor=Anchor(_STATE_PARTS),
    ),
    Rule(
        "ZIP",
        _CUED_ZIP,
        "Moved; zip {60601}.",
        anchor=Anchor("plz* post* zip*"),
    ),
    Rule(
        "ZIP",
        re.compile(rf"{CODE_BEGIN}(?P<phi>{_OUTWARD}[ -]{_INWARD}){CODE_END}"),
        "In {M5B 1W8} since May, in {SW1A 2AA} before; B12 level, T1 3RD.",
        check=_postcode,
        anchor=Anchor(digits=1, within=5, first="[A-Z]", after="[^A-Za-z]"),
    ),
    Rule(
        "ZIP",
        re.compile(rf"{BEGIN}(?<!\d[.,-])(?P<phi>{_CONTINENTAL})[\W_]{{1,5}}(?={_TOWN})"),
        "Hauptweg 12, {10115} Berlin, {D-80331} München, {1016 GV} Amsterdam; 1500 ML Bolus.",
        score=0.6,
        check=_continental,
        anchor=Anchor(digits=4, within=3, first=r"[A-Z\d]", after=r"\D"),
    ),
    Rule(
        "CITY",
        re.compile(rf"(?<![\w.-]){_CONTINENTAL},?\s(?P<phi>{_TOWN})"),
        "Hauptweg 12, 10115 {Berlin}, or D-80331 {München}.",
        score=0.9,
        check=_continental,
        anchor=Anchor(digits=4, within=3, first=r"[A-Z\d]", after=r"[^\w.-]"),
    ),
    Rule(
        "CITY",
        re.compile(rf"(?<!\w){_CITY_RUN},\s?(?P<state>{_STATE})\b(?!\w)"),
        "He came from {Boston}, MA, alone.",
        score=0.6,
        check=_city_of_state,
        anchor=Anchor(_STATE_ENDS, within=FAR, first="[A-Z]", after=r"\W"),
    ),
    Rule(
        "CITY",
        re.compile(rf"^{_CITY_RUN},\s?{_STATE}\b[ \t]*\r?$", re.M),
        "{Springfield}, IL",
        score=0.8,
        anchor=Anchor(_STATE_ENDS, within=FAR, first="[A-Z]", after=r"\n"),
    ),
    Rule(
        "CITY",
        re.compile(rf"(?<!\w){_CITY_RUN},\s?(?:{_STATE_NAMES})\b"),
        "seen in {Wichita}, Kansas.",
        score=0.7,
        check=_is_city,
        anchor=Anchor(_REGION_WORDS, within=FAR, first="[A-Z]", after=r"\W"),
    ),
    Rule(
        "CITY",
        re.compile(
            rf"\b(?i:{_LIVES})\s+(?:\w+\s+){{0,5}}?(?:in|to|from|near|of"
            rf"|outside)\s+(?:the\s+)?{_CITY_RUN}"
        ),
        "She moved with her husband to {Wichita}.",
        score=0.7,
        check=_is_home,
        anchor=Anchor(
            "born* commute* emigrated* flew* grew hometown* immigrated* live* living*"
            " moved* moves* moving* native* raised* relocated* reside* residing* return*"
            " travel* trip* vacation* visit* worked* works*"
        ),
    ),
    Rule(
        "CITY",
        re.compile(rf"(?:{_PERSON_IS}|\b(?i:{_BORN}))\s+{_CITY_RUN}"),
        "She was born in {Hope}, and he is from {Bath}; born in May.",
        score=0.9,
        check=_is_origin,
        anchor=Anchor(
            "born* emigrated* from* grew* grow* hometown* immigrated* native* raised* resident*",
            within=FAR,
            first="[A-Za-z]",
            after=r"\W",
        ),
    ),
    Rule(
        "CITY",
        re.compile(
            rf"(?:\b(?:man|woman|male|female|patient|pt|gentleman|lady|boy|girl|student|originally"
            rf"|[Hh]e"
            rf" is|[Ss]he is)"
            rf"|\b[A-Z]\.)\s+from\s+{_CITY_RUN}"
        ),
        "Julia K. from {Wichita}, treated here.",
        score=0.6,
        check=_is_city,
        anchor=Anchor("from", within=FAR, first="[A-Za-z]", after=r"\W"),
    ),
    Rule(
        "CITY",
        re.compile(rf"\b(?:in|from|to|near|at|of|outside)\b,?\s+{_CITY_RUN}"),
        "A flight from {Chicago}.",
        score=0.6,
        check=_known_city,
        anchor=Anchor("at from in near of outside to"),
    ),
    Rule(  # outranks listed names and the tagger
        "CITY",
        re.compile(rf"\b(?:in|from|to|near|at|outside)\s+{_CITY_RUN}"),
        "She is from {Springfield}.",
        score=1.0,
        check=_unlikely_name,
        anchor=Anchor("at from in near outside to"),
    ),
    Rule(
        "CITY",
        re.compile(rf"\b(?:our|the|a|in)\s+{_CITY_RUN}(?=\s+{_FACILITY}\b)"),
        "Seen in our {Boston} office.",
        score=0.6,
        check=_known_city,
        anchor=Anchor("a in our the"),
    ),
    Rule(
        "CITY",
        re.compile(
            rf"(?:[Hh]ospital|[Cc]enter|[Cc]linic|[Oo]ffice|(?:Hopkins|Langone|Sinai)(?!\sHosp"
            rf"|\sMed)|(?:Street|St|Avenue|Ave)\.?),?\s+(?:in\s+)?{_CITY_RUN}"
        ),
        "Mayo Clinic, {Rochester}",
        score=0.6,
        check=_known_city,
        anchor=Anchor(
            "*Ave* *Hopkins* *Langone* *Sinai* *St* *center* *clinic* *hospital* *office*"
        ),
    ),
    Rule(
        "CITY",
        re.compile(
            r"(?<!\w)(?P<phi>[A-Z][a-z]+(?:\s[A-Z][a-z]+)?\s(?:County|Parish|Township))(?!\w)"
        ),
        "A man from {Orange County}.",
        score=0.6,
        anchor=Anchor("County Parish Township", within=FAR, first="[A-Z]", after=r"\W"),
    ),
    Rule(
        "CITY",
        re.compile(
            r"\b(?:in|from|at|to|Hospital,|Clinic,|Center,)\s+(?P<phi>NYC|LA|SF"
            r"|DC)\b(?=[\s,.?)](?!\w*\s*enlargement))"
        ),
        "He is from {NYC}.",
        score=0.5,
        anchor=Anchor("DC LA NYC SF", within=FAR, first="[CHafit]", after=r"\W"),
    ),
)

ADDRESSES = AnyCase(RuleDetector("addresses", (*RULES, *ABROAD), follow=tail))
