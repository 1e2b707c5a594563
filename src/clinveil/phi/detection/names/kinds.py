"""What a capitalised run of words is, if not a person: a medicine, a device, an abbreviation, a
town, an institution.

All tests look at the text next to the run, never at the run alone: nearly every product and town is
also a surname.
"""

from __future__ import annotations

import re

from clinveil.lexicons import LexicalClass, word_list
from clinveil.phi.detection.detector import words
from clinveil.phi.detection.names import cue_words
from clinveil.phi.detection.names.state import NameState, regions, shaped_like_name, unknown
from clinveil.phi.detection.note import Word

# characters of the text that are read on either side
_BEFORE = 100
_AFTER = 48
_DOSE = re.compile(
    r"\)?[ ,]{1,2}(?:\d[\d.,/-]*[ -]?(?:mg|mcg|g|ml|mL|mEq|units?|IU|%|tab(?:let)?s?|puffs?"
    r"|drops?)(?!\w)"
    r"|(?:\d\d?[ ])?(?:daily|nightly|weekly|monthly|(?:once|twice|three[ ]times)[ ](?:a[ ]day"
    r"|daily)|b\.?i\.?d|t\.?i\.?d"
    r"|q\.?[dhs]|qhs|qam|qpm|prn|p\.?o\b|at[ ](?:night|bedtime)|as[ ]needed|tablets?|capsules?"
    r"|cream|ointment|gel|lotion"
    r"|patch|pills?|inhaler|spray|drip|refills?|stopped|restarted|discontinued|d/c'?d)\b)"
)
_TAKEN = re.compile(
    r"(?:(?i:\btry(?:ing)?|\binstead[ ]of|\b(?:re)?start(?:ed|ing)?|\bbeg[au]n|\btak(?:es?|ing|en)"
    r"|\btook|\btried|\btrial[ ]of|\bswitch(?:ed)?[ ](?:from|to)"
    r"|\bchanged[ ]to|\bprescri\w+(?:[ ]for)?|\brx|\bocps?|\bcontracepti\w+|\bbirth[ ]control"
    r"|\bpills?|\bmed(?:ication)?s?"
    r"|\ballerg\w+|\bstop(?:ped)?|\bhold|\bheld|\bcontinued?|\brefill\w*|\busing|\buses"
    r"|\badd(?:ed)?|\bincreased?|\bresumed?"
    r"|\bdecreased?|\bwean\w*|\bdose[ ]of|\b(?:is|was|been|put|started|back|now|currently|remains"
    r"|maintained)[ ]on"
    r"|\bgiven|\bintolerant[ ]of|\breaction[ ]to)|(?:^|[.;\n][ ]{0,2}|- )On)"
    r"[ :]+(?:(?:[A-Z][\w-]+|then|and|or|on|to|with|the|since|daily|\d+\w*|[,;/+])[ ,]*){0,8}\Z",
)
_USED = re.compile(
    r"\b(?:us(?:ed|ing)|utiliz(?:ed|ing)|via|employ(?:ed|ing)|implant\w*|manufacturer|brand"
    r"|inserted|placed|deployed"
    r"|applied|(?:measured|grasped|stained|soaked|mixed|dissection)[ ]with|wrapped[ ]in"
    r"|secured[ ]with|closed[ ]with|dressed[ ]with|irrigated[ ]with|with[ ]the[ ]help[ ]of"
    r"|covered[ ]with"
    r"|(?:tube|stent|lens|graft|implant|catheter|device|drain|wire|balloon|dressing"
    r"|suture)s?[ ](?:used|utilized))"
    r"[ :]+(?:was[ ]|were[ ]|is[ ]|an?[ ]|the[ ]|two[ ]|\d+[ ]|[\w-]+[ ]and[ ])*\Z",
    re.I,
)
_MODEL = re.compile(
    r",?[ ](?:s/n|S/N|serial|model|lot|ref|plate)\b|[ -]?[A-Z]{1,3}-?\d|-?\d"
    r"|[ -]?\d[\d.]*[ -]?(?:mm|cm|Fr|French|gauge|inch)\b|[\xae\u2122]|[ ]?#\d"
)
# Authors and presidents: `as described by Rowland`, `Rowland et al.`, `the president (Grant)`.
_CITED = re.compile(
    r"\bas[ ](?:[a-z]+ly[ ])?(?:described|defined|popularized|popularised|proposed|modified)"
    r"(?:[ ]by)?[ ]\Z"
    r"|\b[Pp]resident(?:s|ial)?[a-z ]{0,40}(?:[(:\"]|[ ]as|[ ]is|[ ]was)[ ]?\"?"
    r"(?:[A-Z][a-z]+,[ ](?:and[ ])?){0,5}\Z"
)
_ET_AL = re.compile(r",?[ ]et\.?[ ]al\b")
_INSURED_BY = re.compile(
    r"\b(?:plan|insurance|insurer|payer|payor|carrier|coverage|policy)[ ]?[:#=][ ,]*\Z", re.I
)
_SECTION = re.compile(
    r"\b(?:history|histories|allerg(?:y|ies)|medications?|meds|anesthesia|anaesthesia|diet"
    r"|diagnos[ie]s|procedures?|findings?|impression|assessment|plan|labs?|imaging|exam|examination"
    r"|complications?|drains?|specimens?|habits|immunizations?|implants?|condition|surgery"
    r"|surgeries|psh|pmh)[ ]?:[ ,]*\Z",
    re.I,
)
_ENTRY_ENDS = re.compile(r"[ ]?(?:[.,;\n]|\Z)")
_LABEL_REACH = 32  # characters
_THINGS_VERB = re.compile(
    r"[ ](?:(?:has|have|had)[ ]taken[ ]effect|took[ ]the[ ]edge|made[ ]no[ ]difference"
    r"|agree[sd]?[ ]with[ ](?:him|her|them)\b"
    r"|(?:was|were)[ ](?:stopped|discontinued|added|titrated|tapered|refilled|tolerated)\b"
    r"(?![ ](?:on|from|by))|(?:showed|shows|revealed|reveals)[ ](?!me\b|us\b|him\b|her\b))"
)
_ARTICLE = re.compile(r"\b(?:an?|two|three|four|another|second|modified|standard|\d+)[ ]\Z", re.I)
_TITLED = re.compile(r"(?:Dr|Mr|Ms|Mrs)\.\s*\Z")
_LABEL = re.compile(r"([A-Za-z]+)[ ]?:[ ,]*\Z")
_ORDER = re.compile(r"[ ](?:the|an?|your|this|that|these|all|each|both|any|as|up|out|off|for|of)\b")
_NATIONALITIES = words(
    "american mexican canadian british english scottish welsh irish french german dutch belgian"
    " swiss austrian italian"
    " spanish portuguese greek turkish russian ukrainian polish czech hungarian romanian bulgarian"
    " swedish norwegian danish"
    " finnish icelandic chinese japanese korean vietnamese thai filipino indian pakistani persian"
    " iranian iraqi syrian arab"
    " arabic hebrew jewish muslim christian catholic hispanic latino latina caucasian african asian"
    " somali ethiopian nigerian"
    " cuban haitian puerto rican jamaican brazilian colombian cantonese mandarin tagalog hindi urdu"
    " punjabi farsi hmong"
)
# Eponyms of several words, some of which are also usual names.
_EPONYMOUS = frozenset(
    (
        "gilles de la tourette",
        "de la tourette",
        "moya moya",
        "arnold chiari",
        "hunt hess",
        "todd paresis",
        "todd paralysis",
        "jackson pratt",
        "charcot marie tooth",
        "guillain barre",
        "santa barbara",
        "jack daniel",
        "jack daniels",
        "jenny craig",
        "richard simmons",
        "george washington",
        "myasthenia gravis",
        "indigo carmine",
        "pink eye",
        "scottie dog",
        "blue cross",
        "blue shield",
        "pred forte",
        "boston sci",
        "boston scientific",
        "playboy bunny",
        "jesus christ",
        "virgin mary",
        "our lady of guadalupe",
        "santa claus",
        "mickey mouse",
        "marilyn monroe",
        "elvis presley",
        "von willebrand",
        "henoch schonlein",
    )
)
_GRADED = re.compile(r"[A-Z][\w'-]+ (?:[A-D]|[IVX]+)\.\s+[A-Z][\w-]+\Z")
_SPECIES = re.compile(r"[A-Z]\.? [a-z]{4,}\Z")
_THING_BEFORE = re.compile(
    r"(?:\b(?:protocol|manufacturer|brand|model|device)[ ]?:[ ,]*|\bexercised[ ](?:on"
    r"|using)[ ](?:an?[ ]|the[ ]|standard[ ])*"
    r"|\bpacks?[ ](?:a|per)[ ]day[ ]of[ ]|\b(?:ingestion|overdose|bottles?|doses?|tablets?)[ ]of[ ]"
    r"|\bstandard[ ])\Z",
    re.I,
)
_CODED = re.compile(r"[A-Z]{1,4}-[A-Z]+|[A-Z][a-z]+-[a-z]{3,}")
# A size or a kind of device within the next words: `Zimmer Biomet Taperloc Stem 12 mm`.
_DEVICE = re.compile(
    r"(?:[ ][A-Z][\w-]*){0,3}(?:[ ][a-z]{3,}(?<!ed))?[ ](?:[Ss]tent|[Ll]ens|[Cc]atheter|[Ww]ire"
    r"|[Ss]crew|[Pp]late|[Ii]mplant|[Ss]tem|[Bb]alloon"
    r"|[Ss]haver|[Ww]and|[Ss]ystem|[Ff]oam|[Ss]hoe|[Bb]oot|[Cc]ushion|[Mm]esh|[Dd]ressing|[Pp]ump"
    r"|[Mm]onitor|[Ll]aser|[Dd]ye"
    r"|[Gg]el|jeans|[Ss]pray|[Ss]olution|[Ss]oftware|[Pp]rotocol)s?\b|(?:["
    r" ][A-Z][a-z][\w-]*){1,3}[ ]\d"
)
_LONGEST_PHRASE = 4  # words
_RESULT = re.compile(
    r"\b(?:[Pp]ositive|[Nn]egative|[Ee]quivocal|[Bb]ilateral|[Mm]odified|[Ll]actated|[Pp]ost)[ ]\Z"
)
_OWNS = re.compile(r"'s?(?:[ ]([A-Za-z]+)|[.,;)]|\Z)")
MONTHS = words(
    "january february march april may june july august september october november december spring"
    " summer"
)
_NEXT_ITEM = re.compile(
    r"[\"']?(?:,[ ]?(?:and[ ])?|[ ](?:and|or|to|through)[ ])[\"']?([A-Z][a-z]+)"
)
_LAST_ITEM = re.compile(
    r"([A-Z][a-z]+)[\"']?(?:,[ ]?(?:and[ ])?|[ ](?:and|or|to|through)[ ])[\"']?\Z"
)

_ORGANISED = re.compile(
    r"(?:[ ](?:and|&)[ ](?:Associates|Sons?|Partners|Co\b)|[ -](?:USA|UK)\b|[ ](?:Inc|LLC|Ltd|Corp"
    r"|Co\b|Company|Limousines"
    r"|Motors|Center|Centre|Hospital|Clinic|Medical|Memorial|Health|Emergency|Diagnostic|Laborator"
    r"|Rehab|LTAC|LTACH|SNF"
    r"|Nursing|emergency|health|facility|hospital|clinic|office|campus|Services?|Building|Institute"
    r"|University|College|School|Church|Foods|Industries|Airlines|Bank|Insurance)\b)"
)
_ENDS_ORGANISED = re.compile(
    r"(?:diagnostics|[Ll]abs|[Ii]maging|[Tt]echnologies|[Ss]ystems|-USA|-UK|Health|Care)\Z"
)
_RESIDENT = re.compile(r"(?:,[ ][A-Z]\w+)?[ ](?:resident|native)\b")
_AT = re.compile(r"\b(?:at|At|outside[ ]hospital[ ]\()(?:[ ]the)?[ ]?\Z")
_WORKED = re.compile(
    r"\b(?:work(?:s|ed|ing)?|employed|retired|job|position|volunteer(?:s|ed)?|manager|insur(?:ance"
    r"|ed))[ ](?:[a-z-]+[ ]){0,3}?"
    r"(?:for|at|by|from|with|through)(?:[ ]the)?[ ]\Z",
    re.I,
)
_CARED = re.compile(
    r"\b(?:transfer(?:red)?|sent|taken|admitted|airlifted|brought"
    r"|discharged)[ ](?:[a-z]+[ ]){0,3}?(?:to|from)"
    r"(?:[ ]the)?[ ]\Z",
    re.I,
)
_IN = re.compile(r"\b(?:in|near|outside|In)[ ](?:downtown[ ]|rural[ ])?\Z")
_MOVED = re.compile(
    r"\b(?:mov(?:e|ed|ing)|relocat\w+|travel\w*|trips?|flew|flight|went|go|goes|going|drove|driv\w+"
    r"|came|comes|back|return\w*"
    r"|immigrat\w+|emigrat\w+|native|originally|commut\w+|live[sd]?|liv\w+|born|raised|resid\w+"
    r"|vacation\w*)"
    r"[ ](?:[a-z]+[ ]){0,4}?(?:to|from|of|in)[ ]\Z",
    re.I,
)
_BETWEEN_TOWNS = re.compile(r"\b(?:from|between)[ ][A-Z]\w+[ ](?:to|and)[ ]\Z")
_THEN_REGION = re.compile(r",[ ]?([A-Z][a-z]+(?:[ ][A-Z][a-z]+)?|[A-Z]{2})\b")
_STATES = words(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MA MI MN MS MO MT NE NV NH NJ NM NY"
    " NC ND OH OK OR SC SD"
    " TN TX UT VT VA WA WV WI WY DC UK USA"
)
_CLOSED = re.compile(r"[.,;)\n]|\Z")
_OWN = re.compile(r"'s?\b")
_PLACE_HEADS = words("San Santa Los Las El Fort Port Mount New Saint St North South East West Lake")


def is_term(state: NameState, first: int, end: int) -> bool:
    """Return whether a run of words is a medicine, a device, an abbreviation or an eponym, by what
    is next to it.
    """
    run = state.words[first:end]
    text = state.text
    single = run[0]
    before = text[max(0, single.start - _BEFORE) : single.start]
    after = text[run[-1].end : run[-1].end + _AFTER]
    if is_phrase(state, first, end) or _THING_BEFORE.search(before):
        return True
    if _CITED.search(before) or _ET_AL.match(after) or _INSURED_BY.search(before):
        return True
    alone = (
        _is_word_term(state, first, before, after)
        if len(run) == 1
        else _is_run_term(state, run, before)
    )
    given = any(word.classes & LexicalClass.USUAL_GIVEN and not word.ordinary for word in run)
    if unknown(single) and len(run) == 1 and _THINGS_VERB.match(after):
        return True
    lower = single.lower if len(run) == 1 else ""
    if alone or _is_medicine(lower, before, after, given=given, odd=unknown(single)):
        return True
    label = _LABEL.search(before)
    if (
        label
        and label[1].lower() not in cue_words.OF_PERSONS
        and all(word.ordinary for word in run)
    ):
        return True
    if given:
        return False
    if _MODEL.match(after) or _USED.search(before) or _DEVICE.match(after):
        return not _said_of_person(state, end)
    return state.before_adjectives_and_noun(end - 1) and not _TITLED.search(before)


def _is_word_term(state: NameState, index: int, before: str, after: str) -> bool:
    """Return whether one word is an eponym, an order or an abbreviation, judged by its form and its
    neighbours.
    """
    word = state.words[index]
    if _RESULT.search(before):
        return True
    if word.classes & LexicalClass.EPONYM and _owns_term(after):
        return True
    if word.ordinary and not before.rstrip()[-1:].isalnum() and _ORDER.match(after):
        return True  # `Mark the site.`
    if not shaped_like_name(word.text) and not word.shouted and not word.listed:
        return True  # ABGs, NSAIDs
    return bool(_CODED.fullmatch(word.text)) and not state.upper_context(index)  # RA-ERP, Weck-cels


def _is_run_term(state: NameState, run: list[Word], before: str) -> bool:
    """Return whether several words are a graded eponym, a species, or a thing after an article."""
    if run[0].classes & LexicalClass.EPONYM and _GRADED.match(
        state.text, run[0].start, run[-1].end
    ):
        return True  # Child-Pugh C. Killip
    if _SPECIES.match(state.text, run[0].start, run[-1].end) and not run[-1].listed:
        return True  # N gonorrhoeae
    given = any(word.classes & LexicalClass.USUAL_GIVEN and not word.ordinary for word in run)
    pair = run[0].classes & LexicalClass.GIVEN and run[-1].classes & LexicalClass.FAMILY
    return not given and not pair and _ARTICLE.search(before) is not None


def is_phrase(state: NameState, first: int, end: int) -> bool:
    """Return whether a run is a month next to another one, a nationality, or part of a known
    phrase.
    """
    word = state.words[first]
    text = state.text
    if end - first == 1 and word.lower in MONTHS:
        before = text[max(0, word.start - _BEFORE) : word.start]
        after = text[word.end : word.end + _AFTER]
        items = [
            match[1].lower()
            for match in (_LAST_ITEM.search(before), _NEXT_ITEM.match(after))
            if match
        ]
        if any(item in MONTHS for item in items):
            return True
    if end - first == 1 and word.lower in _NATIONALITIES:
        return True
    small = all(
        word.classes & LexicalClass.FUNCTION or len(word.text) == 1 or word.lower.endswith("n't")
        for word in state.words[first:end]
    )
    return (small and end - first > 1) or is_within_phrase(state, first, end)


def is_within_phrase(state: NameState, first: int, end: int) -> bool:
    """Return whether a run is part of an eponym or a brand of several words."""
    lowers = state.words.lowers
    for start in range(max(0, end - _LONGEST_PHRASE), first + 1):
        for stop in range(max(end, start + 2), min(len(lowers), start + _LONGEST_PHRASE) + 1):
            if " ".join(lowers[start:stop]) in _EPONYMOUS:
                return True
        for stop in range(first + 1, end):  # `Boston Sci Vercise`
            if start < first and " ".join(lowers[start:stop]) in _EPONYMOUS:
                return True
    return False


def fills_section(state: NameState, index: int) -> bool:
    """Return whether a word is all that a section of the note contains: `Reactions: Nome.`"""
    word = state.words[index]
    label = _SECTION.search(state.text, max(0, word.start - _LABEL_REACH), word.start)
    return label is not None and _ENTRY_ENDS.match(state.text, word.end) is not None


def _owns_term(after: str) -> bool:
    """Return whether an eponym owns no relative and nothing of a chart: `Hoffmann's is
    negative`.
    """
    match = _OWNS.match(after)
    return (
        match is not None and (match[1] or "").lower() not in cue_words.CHARTED | cue_words.PEOPLE
    )


def _is_medicine(lower: str, before: str, after: str, *, given: bool, odd: bool) -> bool:
    """Return whether a dose follows, or a word of taking precedes a product or a word that is in no
    list.
    """
    if _DOSE.match(after):
        return True
    product = lower in word_list("brands") or lower in word_list("products")
    return bool((product or (odd and not given)) and lower and _TAKEN.search(before))


def _said_of_person(state: NameState, end: int) -> bool:
    following = state.words.lowers[end] if end < len(state.words) and state.gap(end) == " " else ""
    return following in cue_words.SAYS | cue_words.LIVES


def is_organised(state: NameState, first: int, end: int) -> bool:
    """Return whether a word of institutions follows a run or ends it: `Kaiser facility`, `Premier
    Diagnostics`.
    """
    last = state.words[end - 1]
    return bool(_ORGANISED.match(state.text, last.end) or _ENDS_ORGANISED.search(last.text))


def label_of(state: NameState, first: int, end: int) -> str:
    """Return the label of a run of names by what is next to it: NAME, CITY or HOSPITAL."""
    run = state.words[first:end]
    text = state.text
    if not run or not run[0].capital:
        return "NAME"
    before = text[max(0, run[0].start - _BEFORE) : run[0].start]
    after = text[run[-1].end : run[-1].end + _AFTER]
    if _OWN.match(after):
        return "NAME"
    if is_organised(state, first, end) or _WORKED.search(before):
        return "HOSPITAL"
    if _RESIDENT.match(after):
        return "CITY"
    written = text[run[0].start : run[-1].end]
    if len(run) > 1 and run[-1].lower in regions() and "," in written:
        return "CITY"
    region = _THEN_REGION.match(after)
    if region and (region[1] in _STATES or region[1].lower() in regions()):
        return "CITY"
    town = written in word_list("cities") or (len(run) > 1 and run[0].text in _PLACE_HEADS)
    if town and not run[0].classes & LexicalClass.USUAL_GIVEN:
        return "CITY"
    closed = (
        _CLOSED.match(after) and (_IN.search(before) or _MOVED.search(before)) and len(run) == 1
    )
    if (
        run[0].classes & LexicalClass.USUAL_GIVEN
        and not run[0].ordinary
        and not town
        and not closed
    ):
        return "NAME"
    if _IN.search(before) or _MOVED.search(before) or _BETWEEN_TOWNS.search(before):
        return "CITY"
    if town and re.search(r"\b(?:to|from|at|the)[ ]\Z", before):
        return "CITY"
    if _AT.search(before) or _CARED.search(before):
        return "HOSPITAL"
    return "NAME"
