"""Named hospitals, clinics, schools, employers and other organisations."""

from __future__ import annotations

import re
from functools import lru_cache

from clinveil.lexicons import (
    FAMILIAR_FAMILY,
    LexicalClass,
    is_word,
    lexical_classes,
    surnames,
    word_list,
)
from clinveil.phi.detection.detector import Rule, RuleDetector, after, before, words
from clinveil.phi.detection.letter_case import AnyCase
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import FAR, Anchor

_KIND = (
    r"(?:Hosp\.|(?:Hospitals?|Med(?:ical|\.)\s+(?:Center|Centre|Group|Associates|College|Ctr\.?)"
    r"|Clinics?"
    r"|Health(?:care)?\s+(?:System|Center|Centre|Network|Services|Partners|Trust)|Healthcare"
    r"|Infirmary|Hospice"
    r"|(?:Nursing|Veterans|Retirement)\s+(?:Home|Facility|Center)|Rehab(?:ilitation)?\s+(?:Center"
    r"|Hospital|Facility)"
    r"|Rehab|(?:Cancer|Heart|Surgery|Surgical|Care|Trauma|Urgent\s+Care|Community\s+Health"
    r"|Family\s+Health|Dialysis"
    r"|Senior|Women's|Children's|Eye|Spine|Pain|Wellness|Birth|Imaging|Community|Treatment"
    r"|Recovery|Day)\s+(?:Center"
    r"|Centre)|Sanatorium|Sanitarium|University|Elementary(?:\s+School)?|High\s+School"
    r"|Middle\s+School|Primary\s+School"
    r"|Grammar\s+School|Academy|Manor|Pharmacy|Physicians|Family\s+(?:Practice|Medicine)"
    r"|Pediatrics|Senior\s+Living"
    r"|Assisted\s+Living|Care\s+Home|Surgery(?=\sin\s[A-Z])|Retirement\s+(?:Home|Community|Village)"
    r"|Correctional\s+(?:Facility|Institution|Center)|Prison|Jail|Penitentiary"
    r"|NHS\s+(?:Foundation\s+)?Trust"
    r"|Foundation\s+Trust|Health\s+Board|Medical\s+Practice|Medical\s+School|Institute|(?:Primary"
    r"|Urgent)\s+Care"
    r"|Walk-in\s+Clinic|Hosp|Ctr)(?!\w))"
)
# Within a name: a line break only where the line is long enough to have been wrapped.
_S = r"(?:[^\S\n]|(?<=.{60})\n)"
_PIECE = r"[A-Z][\w'&]*\.?(?:-[A-Z]\w*)?"
_NAMED = (
    rf"(?<![\w-])(?P<phi>{_PIECE}(?:{_S}(?:{_PIECE}|of|the|and|de"
    rf"|&)){{0,5}}{_S}{_KIND}(?:{_S}(?:of|at)\s+"
    rf"(?:the\s+)?{_PIECE}(?:{_S}{_PIECE})?)?)"
)
# Kind before the name: University of Leeds, Cancer Center in New York, Hospital Clinico San Carlos,
# Hôpital Necker.
_KIND_FIRST = (
    rf"\b(?P<phi>(?:University(?:\sHospitals?)?\sof|(?:Cancer|Medical|Heart|Trauma|Surgery"
    rf"|Burn)\s(?:Center"
    rf"|Centre)\s(?:of|in|at)|Hospitals?\s(?:of|for)|Institute\sof|College\sof|Bank\sof|Hopital"
    rf"|Hospital\s(?:Universitario|General\sde|Cl[ií]nico)|Klinikum|Universit[aä]tsklinikum"
    rf"|Ospedale|Policlinico"
    rf"|Clinique|Centre\sHospitalier(?:\sUniversitaire)?)(?:\s(?:the|de|la|du|von"
    rf"|di))?\s[A-Z\xc0-\xde][\w'-]*(?:{_S}[A-Z\xc0-\xde][\w'-]*){{0,2}})"
)
_UPPER_CASE = re.compile(r"[A-Z .,'&-]+")
# Kinds in German, French, Spanish, Italian and Portuguese, and public bodies, before the name.
_ABROAD = re.compile(
    r"(?<![\w-])(?P<phi>(?:(?:Universit[aä]ts)?[Kk]linik(?:um)?|Krankenhaus|Charit[eé]|Praxis"
    r"|H[oô]pital|H[oô]tel-Dieu"
    r"|CH(?:R?U)?\s(?=[A-Z\xc0-\xde][a-z]|de\s)|Centre\sHospitalier|Clinique|Cl[ií]nica|Hospital"
    r"|Centro\s(?:de\sSalud"
    r"|M[eé]dico)|Institut(?:o)?|Istituto|Ospedale|Policlinico|Azienda\sOspedaliera|A?USL|ASL"
    r"|Casa\sdi\sCura|Santa\sCasa"
    r"|UBS|UPA|HSE|Te\sWhatu\sOra)(?:\s?(?:(?:de|du|des|della|delle|del|dei|di|da|do|das|dos|la"
    r"|las|los|le|les|am|im|von|der"
    r"|General|Universitario|Nacional|Municipal)\s|d'|l')?\d{0,2}\s?(?:de\s)?"
    r"(?!(?:Tel|Fax|Phone|No|ID|MRN|Ward|Unit|Dept)\b)[A-Z\xc0-\xde][\w'-]+){0,3}(?:\s\d{1,2}\b)?)"
    r"(?!\w)"
)
_KIND_AFTER = re.compile(
    r"(?<![\w-])(?P<phi>(?!(?:At|In|From|The|By"
    r"|To)\s)[A-Z\xc0-\xde][\w'-]*(?:\s[A-Z\xc0-\xde][\w'-]*|\s(?:of|and"
    r"|II)){0,4}[\s-](?:Krankenhaus|Klinik(?:um)?"
    r"|Spital|Poliklinik|Polyclinic|DHB|Aged\sCare|Rest\sHome|(?:Health\s)?Sciences\sCent(?:re|er)"
    r"|Medical\sCollege|Health"
    r"|Base\sHospital|Surgery|Medical|General)(?:,\s[A-Z]\w+)?)(?![\w-]|\s(?:[Hh]istory"
    r"|[Pp]ractitioner|[Rr]ecord|[Aa]nesth|Services?))"
)
_BODY = re.compile(
    r"(?<!\w)(?P<phi>(?:[A-Z\xc0-\xde][\w'-]+\s){0,3}(?:District|Regional|High|Supreme"
    r"|Constitutional|Administrative|County"
    r"|Crown|Assize|Magistrates'?|Military|Criminal|Civil|Family|Labour"
    r"|Provincial)\sCourt(?:\sof\s[A-Z]\w+)?"
    r"|Court\sof\s(?:Appeal|Cassation|First\sInstance|Session|Human\sRights)"
    r"|European\sCourt\sof\sHuman\sRights"
    r"|Ministry\sof\s[A-Z]\w+|Public\sProsecutor's\sOffice|[A-Z]\w+\sPolice\s(?:Station"
    r"|Headquarters))(?!\w)"
)
_OUR_LADY = re.compile(
    r"(?<!\w)(?P<phi>(?:Our\sLady(?:'s)?(?:\sof\s[A-Z]\w+)?|Bons\sSecours"
    r"|Mater(?:\sMisericordiae)?|St\.?\s[A-Z]\w+(?:'s?|s')"
    r"|AIIMS)(?:,?\s[A-Z]\w+)?)(?!\w)"
)
# Words before a kind of institution that do not make it a name.
_PLAIN = words(
    "the this that our a an his her their local outside another any same other nearby current prior"
    " previous outlying referring each my your transferring area day main teaching acute long-term"
    " skilled in at to from of and by for with into emergency department as patient outpatient"
    " inpatient internal admitted admission discharge transfer primary no home"
)
_NAMES_ANYWAY = words(
    "central city county university children's childrens mercy memorial community regional general"
    " st veterans va"
)
# Wards, services and objects of a hospital or office; capitalised, they are still not names.
_WARDS = words(
    "floor medicine surgery emergency room unit intensive care icu micu sicu nicu picu ccu pacu ed"
    " er or ward telemetry step stepdown down oncology cardiology radiology pathology psychiatry"
    " neurology neurosurgery orthopedics pediatrics rehab rehabilitation hospice nursing home labor"
    " delivery recovery recover observation physical therapy occupational speech social work"
    " services service clinic office outpatient inpatient urgent primary family internal general"
    " anesthesia interventional operating same day pain wound endoscopy dialysis infusion"
    " laboratory lab triage he she it the i we they patient his her their our this that nutrition"
    " dietary pharmacy chemo mri ct xray ultrasound today discharge admission hospital facility"
    " assisted living group january february march april may june july august september october"
    " november december monday tuesday wednesday thursday friday saturday sunday cath"
    " catheterization spring summer fall winter north south east west if when as and christmas"
    " thanksgiving osh snf ltac ltach pcp ems weight construction dr aa na ca ged nurse teacher ot"
    " driver retail sales education alcoholics anonymous mr mrs ms dr mhps"
)

_GENERIC = words(
    "university college school high middle elementary primary secondary night graduate state mental"
    " institution agencies community health air force army navy military government"
)
# Specialties and purposes of clinics: `Pediatric Urology Clinic` is a kind of clinic, not a name.
_SPECIALTY = re.compile(
    r"\w+(?:olog(?:y|ic|ical)|iatr(?:y|ics?)|surg(?:ery|ical)|paedics?|pedics?|metry|therapy"
    r"|thoracic|rectal|plastic|ortho|neuro"
    r"|onc)"
    r"|occupational|wheelchair|spine|pm&r|sports|wound|allergy|immunization|coumadin"
    r"|anticoagulation|diabetes|asthma"
    r"|memory|travel|vascular|renal|hepatic|liver|transplant|fertility|obstetrics?|ob|gyn"
    r"|gynecologic|ob/gyn|ob-gyn|ent"
    r"|eye|hand|foot|headache|movement|disorders?|stroke|epilepsy|seizure|heart|failure|breast"
    r"|lung|general|internal"
    r"|medicine|medical|behavioral|mental|same|day|pre-?op|preoperative|follow-?up|faculty"
    r"|resident|ortho"
    r"|development(?:al)?|infectious|diseases?|high|risk|well|child|baby|women's|men's|geriatric"
    r"|adult|adolescent|the"
    r"|and|of|&|in|community|surgical|nursing|skilled|family|primary|care|urgent|student|employee"
    r"|prenatal|weight|loss"
)


def _foreign(match: re.Match[str], note: NoteView) -> bool:
    """Accept a kind with a name that is not an English word: Hospital La Paz, not Hospital
    Course.
    """
    pieces = re.split(r"[\s'-]", match["phi"])
    if pieces[0] in ("Charité", "Charite", "Hôtel"):
        return True
    names = [piece for piece in pieces[1:] if piece[:1].isupper()]
    return (
        any(not is_word(name.lower()) or not name.isascii() for name in names)
        and not match["phi"].isupper()
    )


def _by_name(match: re.Match[str], note: NoteView) -> bool:
    """Accept a place or name before a kind that is also a word: Monash Health, Changi General, not
    Mental Health.
    """
    pieces = re.split(r"[\s-]", match["phi"].split(",")[0])
    lead = before(match, note, 24)
    kind = pieces[-1]
    if kind in ("Medical", "General", "Health", "Surgery"):
        preposition = re.search(r"(?:\b(?:at|from|to|in|by)|hospital:|under)\s(?:the\s)?$", lead)
        return (
            bool(preposition)
            and not _only_kind([piece.lower() for piece in pieces[:-1]])
            and pieces[0].lower() not in _WARDS
        )
    return any(_named(piece.lower()) for piece in pieces[:-1] if piece.lower() not in _PLAIN)


def _only_kind(pieces: list[str]) -> bool:
    return all(_SPECIALTY.fullmatch(piece) for piece in pieces)


def _head(name: str) -> str:
    return re.split(rf"\s(?={_KIND})", name, maxsplit=1)[0]


def _called(match: re.Match[str], note: NoteView) -> bool:
    """Require a distinguishing word before the kind: `Pain Clinic` is a kind, `Elm Clinic` is a
    name.
    """
    name = match["phi"]
    if _UPPER_CASE.fullmatch(name) and len(name) > 60:
        return False
    pieces = [piece.strip(".,").lower() for piece in _head(name).split()]
    if _only_kind(pieces) and not re.search(r"[Hh]osp|Med(?:ical|\.) C", name):
        return False
    return any(_named(p) for p in pieces if p not in _PLAIN)


def _called_there(match: re.Match[str], note: NoteView) -> bool:
    pieces = [piece.strip(".,").lower() for piece in match["phi"].split()[:-1]]
    if _only_kind(pieces):
        return False
    return any(_named(p) for p in pieces if p not in _PLAIN)


def _not_only_kind(match: re.Match[str], note: NoteView) -> bool:
    """Reject `Cardiology Associates`, a kind of practice."""
    return not _only_kind([piece.strip(".,").lower() for piece in match["phi"].split()[:-1]])


def _somewhere(match: re.Match[str], note: NoteView) -> bool:
    """Accept capitalised words after a preposition if none is a ward, medical term, state or
    calendar word.
    """
    pieces = [piece.strip(".,'").lower().removesuffix("'s") for piece in match["phi"].split()]
    short = len(match["phi"]) < 4 and match["phi"].isupper() and " to " in match[0]
    if short or re.search(r"[\d&]", match["phi"]) or _GENERIC.issuperset(pieces):
        return False
    if any(
        piece in _WARDS or piece in word_list("states") or piece.title() in word_list("states")
        for piece in pieces
    ):
        return False
    tail = re.match(r"'?s?\s+([a-z]+)", note.plain[match.end("phi") : match.end("phi") + 20])
    if tail and tail[1] in word_list("eponym_nouns"):
        return False
    first = pieces[0]
    return (
        _named(first)
        and first not in word_list("clinical")
        and not any(lexical_classes(piece) & LexicalClass.EPONYM for piece in pieces)
    )


def _employs(match: re.Match[str], note: NoteView) -> bool:
    """Accept an employer or school unless a word is medical or a ward. Upper and lower case are
    accepted.
    """
    pieces = [piece.strip(".,'").lower().removesuffix("'s") for piece in match["phi"].split()]
    if re.match(
        r"\s(?:trial|study|registry|protocol|program|class|group|arm)", after(match, note, 12)
    ):
        return False
    wide = " ".join(pieces).title().removeprefix("State Of ") in word_list(
        "states"
    ) or _GENERIC.issuperset(pieces)
    content = [piece for piece in pieces if piece not in ("and", "of", "&", "the")]
    return not wide and not any(p in _WARDS or p in word_list("clinical") for p in content)


_NOT_INSTITUTIONS = words(
    "PMH OSH NSVH ESRH LVH BPH IVH SAH SDH EDH ICH PTH TSH LH FSH GH ADH ACTH MCH MMC RMC LMC BMC"
    " SMC IMC CMC"
)


def _initials(match: re.Match[str], note: NoteView) -> bool:
    return match["phi"] not in _NOT_INSTITUTIONS


@lru_cache(maxsize=1 << 12)
def _named(piece: str) -> bool:
    """Return whether a word distinguishes institutions; medical words must be familiar surnames."""
    if piece in word_list("clinical") and piece not in _NAMES_ANYWAY:
        return surnames().get(piece, 0.0) >= FAMILIAR_FAMILY
    return (
        piece in _NAMES_ANYWAY
        or not is_word(piece)
        or piece in word_list("common")
        or bool(lexical_classes(piece) & LexicalClass.NAME)
    )


_INSTRUMENT = re.compile(
    r"(?:\s+[A-Z][\w-]+){0,3}\s+(?:[Ss]cale|[Ss]core|[Ii]nventory|[Tt]est|[Cc]riteria|[Ii]ndex"
    r"|[Cc]lassification|[Pp]rotocol|[Qq]uestionnaire|[Aa]ssessment)\b"
)


def _not_eponym(match: re.Match[str], note: NoteView) -> bool:
    tail = re.match(r"\s+([a-z]+)", note.plain[match.end("phi") : match.end("phi") + 20])
    if _INSTRUMENT.match(note.plain, match.end("phi")):
        return False  # `by the Emory Ambulation Scale`
    return not (tail and tail[1] in word_list("eponym_nouns"))


_NAMES = "|".join(
    re.escape(n).replace(r"\ ", r"\s+")
    for n in sorted(word_list("hospitals"), key=lambda n: (-len(n), n))
)
_NAME_WORDS = " ".join(
    f"*{re.split('[^A-Za-z]', name)[0]}*" for name in sorted(word_list("hospitals"))
)
_LISTED = re.compile(
    rf"\b(?:at|to|from|in|by|of|with|the|seen|visited|and)\s+(?:the\s+)?(?P<phi>(?:{_NAMES})(?:\s+"
    rf"(?:{_KIND}"
    rf"|University|E[RD]\b))?)(?!\w)"
)
_SAINT = r"\b(?:at|to|from|in|by|of)\s+(?P<phi>(?:St|Saint)\.?\s[A-Z][\w-]+(?:'s)?)"
# Lower-case kinds and short forms count only after a preposition of place.
_PLACED = (
    rf"\b(?:at|to|from|in|our|the|by)\s+(?:our\s+|the\s+)?(?P<phi>(?:{_PIECE}\s){{1,3}}(?:hospital"
    rf"|clinic|pharmacy"
    rf"|infirmary|nursing home|medical center|health center|high"
    rf" school|university|General|Health(?:\sCare)?"
    rf"|Med(?:ical)?(?:\.?\sC(?:en)?te?r)?|Memorial|Presbyterian|Methodist|Baptist|Oncology"
    rf"|Pediatrics))\b"
)
# Employers, churches, clubs, homes: after a preposition of place or affiliation.
_ORGANISATION = (
    rf"\b(?:at|for|with|attends|to|by|is|joined|from"
    rf"|of)\s+(?:the\s+)?(?P<phi>(?:{_PIECE}\s){{1,3}}(?:Foods?|Dairy"
    rf"|Trucking|(?:Steel\s)?Works|Company|Co\.|Inc\b\.?|LLC|LLP|Ltd\b\.?|GmbH"
    rf"|Corp(?:oration)?\b\.?|Industries"
    rf"|(?:\w+\s)?Church|(?:Public\s)?Library|(?:\w+\s)?League|(?:\w+\s)?Club|Bank|Airlines"
    rf"|Enterprises|Associates"
    rf"|Brothers|Temple|Mosque|Synagogue|Parish|Electric|Insurance|Press|Times"
    rf"|Police(?:\sDepartment)?|Fire\sDepartment"
    rf"|School\sDistrict|Farms?|Supermarkets?|Restaurant|(?:Retirement\s)?Residence|Lodge|Garage"
    rf"|Bakery|Construction"
    rf"|Motors|Logistics|School|College)(?!\w)|Hotel\s[A-Z]\w+)"
)
# A name after `at` alone: words of small letters after a capital.
_AT = (
    r"\bat\s(?P<phi>[A-Z\xc0-\xde][a-z\xdf-\xff]{3,}(?:['-][A-Z]\w+)?"
    r"(?:\s[A-Z\xc0-\xde][a-z\xdf-\xff']+){0,2})"
    r"(?=[,.;\n]|\s(?:[a-z]|on|in|with|for|and)\w*)"
)
_RUN = (
    r"(?P<phi>(?!(?:I|A|The|He|She|We|It)\b)[A-Z\xc0-\xde][\w&'-]+"
    rf"(?:{_S}(?:(?:of|and|&){_S})?[A-Z\xc0-\xde][\w&'-]+){{0,3}})(?!\w)"
)
_CARED = (
    r"\b(?:(?i:seen|treated|evaluated|hospitali[sz]ed|followed|transferred|visit|visited|referred"
    r"|registered|assessed"
    r"|admitted|discharged|surgery|presented|care|examined|stay|summary|letter|operated|reviewed"
    r"|operation|imaging"
    r"|investigated)\s(?:[a-z]+\s){0,2}?(?:at|from)|(?i:referred|transferred"
    r"|admitted)\sto)\s+(?:the\s+)?"
)
_SHORT = re.compile(
    r"\b(?i:then|transferr?(?:red|ring)?|tx'?d|xfer(?:red)?|admitted|admission|seen"
    r"|hospitali[sz]ed|presented"
    r"|discharged|treated|followed|surgery|care|referred|stay|sent|went"
    r"|taken)\s(?:[a-z]+\s){0,3}?(?:at|to|from"
    r"|by)\s+(?P<phi>[A-Z]{1,3}(?:H|MC|GH|CH))\b"
)
_EMPLOYED = (
    r"\b(?:works?|worked|working|employed|employee|job|interns?|interned|volunteers?|volunteered"
    r"|retired)"
    r"\s(?:[a-z-]+\s){0,4}?(?:at|for|by|with|from|of)\s+(?:the\s+)?"
)
_TAUGHT = (
    r"\b(?:attends|attended|attending|enrolled\s(?:at|in)|student\sat|graduated\sfrom|graduate\sof"
    r"|studies\sat"
    r"|studied\sat|studying\sat|teaches\sat|taught\sat|teacher\sat|professor\sat|goes\sto"
    r"|grade\sat|freshman\sat"
    r"|sophomore\sat|junior\sat|senior\sat|coach\sat|nurse\sat|engineer\sat|manager\sat|clerk\sat"
    r"|[Ee]mployer:"
    r"|EMPLOYER:)\s+(?:the\s+)?"
)

RULES = (
    Rule(
        "HOSPITAL",
        re.compile(_NAMED),
        "{Saranac Sanatorium}, then {Mercy Hospital}; not the pain clinic.",
        score=0.8,
        check=_called,
        anchor=Anchor(
            "*Academy* *Assisted *Clinic* *Correctional *Ctr* *Elementary* *Foundation"
            " *Grammar *Healthcare* *Health *Hosp* *Infirmary* *Institute* *Jail* *Manor*"
            " *Medical *NHS *Nursing *Pediatrics* *Penitentiary* *Pharmacy* *Physicians*"
            " *Primary *Prison* *Rehab* *Retirement *Sanatorium* *Sanitarium* *Surgery*"
            " *University* *Urgent *Veterans Associates* Center* Centre* College*"
            " Facility* Group* Home* Living* Medicine* Practice* School*",
            within=FAR,
            first="[A-Z]",
            after=r"[^\w-]",
        ),
    ),
    Rule(
        "HOSPITAL",
        re.compile(_KIND_FIRST),
        "Studied at the {University of Leeds}.",
        score=0.8,
        anchor=Anchor(
            "*tsklinikum* Bank Center Centre Clinique* College Hopital* Hospitalier*"
            " Hospitals Hospital Institute Klinikum* Ospedale* Policlinico* University*",
            within=10,
            first="[A-Z]",
            after=r"\W",
        ),
    ),
    Rule(
        "HOSPITAL",
        _ABROAD,
        "Seen at {Hospital La Paz}, then at {Klinikum Großhadern} and {CHU de Rennes}, Hospital"
        " Day 3.",
        score=0.7,
        check=_foreign,
        anchor=Anchor(
            "*klinik* *pital* ASL* AUSL* CHRU CHU CH Casa Centro Charit* Cl* Dieu* HSE*"
            " Institut* Istituto* Krankenhaus* Ospedale* Ospedaliera* Policlinico*"
            " Praxis* Santa UBS* UPA* USL* Whatu",
            within=15,
            first="[A-Zk]",
            after=r"[^\w-]",
        ),
    ),
    Rule(
        "HOSPITAL",
        _KIND_AFTER,
        "At {Monash Health}, at {Bedok Polyclinic}, not Mental Health.",
        score=0.6,
        check=_by_name,
        anchor=Anchor(
            "*Sciences Aged DHB* General* Health* Hospital* Klinik* Krankenhaus* Medical*"
            " Poliklinik* Polyclinic* Rest Spital* Surgery*",
            within=FAR,
            first="[A-Z]",
            after=r"[^\w-]",
        ),
    ),
    Rule(
        "HOSPITAL",
        _BODY,
        "Heard by the {Kadıköy District Court} and the {Ministry of Justice}.",
        score=0.6,
        anchor=Anchor(
            "Court* European Headquarters* Ministry Prosecutor Station*",
            within=FAR,
            first="[A-Z]",
            after=r"\W",
        ),
    ),
    Rule(
        "HOSPITAL",
        _OUR_LADY,
        "Seen at {Our Lady of Lourdes, Drogheda}.",
        score=0.6,
        check=_not_eponym,
        anchor=Anchor("AIIMS* Lady* Mater* Secours* St*", within=5, first="[ABMOS]", after=r"\W"),
    ),
    Rule(
        "HOSPITAL",
        re.compile(_SAINT),
        "Treated at {St. Vincent's}.",
        score=0.7,
        check=_not_eponym,
        anchor=Anchor("Saint* St*", within=FAR, first="[abfiot]", after=r"\W"),
    ),
    Rule(
        "HOSPITAL",
        re.compile(_PLACED),
        "Seen at {Elm clinic}.",
        score=0.7,
        check=_called_there,
        anchor=Anchor(
            "*Baptist* *General* *Health* *Med* *Memorial* *Methodist* *Oncology*"
            " *Pediatrics* *Presbyterian* *clinic* *health *hospital* *infirmary*"
            " *medical *nursing *pharmacy* *university* school*",
            within=FAR,
            first="[abfiot]",
            after=r"\W",
        ),
    ),
    Rule(
        "HOSPITAL",
        re.compile(_ORGANISATION),
        "She works for {Maier Foods}.",
        score=0.6,
        check=_not_only_kind,
        anchor=Anchor(
            "*Airlines* *Associates* *Bakery* *Bank* *Brothers* *Church* *Club* *College*"
            " *Company* *Construction* *Corporation *Corp *Co *Dairy* *Electric*"
            " *Enterprises* *Farm* *Food* *Garage* *GmbH* *Hotel *Inc *Industries*"
            " *Insurance* *LLC* *LLP* *League* *Library* *Lodge* *Logistics* *Ltd"
            " *Mosque* *Motors* *Parish* *Police* *Press* *Residence* *Restaurant*"
            " *School* *Supermarket* *Synagogue* *Temple* *Times* *Trucking* *Works*"
            " Department* District*",
            within=FAR,
            first="[abfijotw]",
            after=r"\W",
        ),
    ),
    Rule(
        "HOSPITAL",
        _LISTED,
        "Transferred from {BWH} to {MGH}.",
        score=0.7,
        check=_not_eponym,
        anchor=Anchor(_NAME_WORDS, within=FAR, first="[A-Za-z]", after=r"\W"),
    ),
    Rule(
        "HOSPITAL",
        re.compile(_CARED + _RUN),
        "Last seen at {Cedar Crest}, treated at Surgery.",
        score=0.6,
        check=_somewhere,
        anchor=Anchor(
            "admitted assessed care discharged evaluated examined followed hospitalised"
            " hospitalized imaging investigated letter operated operation presented"
            " referred registered reviewed seen stay summary surgery transferred treated"
            " visited visit"
        ),
    ),
    Rule(
        "HOSPITAL",
        re.compile(_AT),
        "Had his graft at {Westmead}, then at Surgery.",
        score=0.5,
        check=_somewhere,
        anchor=Anchor("at"),
    ),
    Rule(
        "HOSPITAL",
        _SHORT,
        "He was transferred to {SMH}, then from OSH.",
        score=0.6,
        check=_initials,
        anchor=Anchor(
            "admission* admitted* care* discharged* followed* hospitalised* hospitalized*"
            " presented* referred* seen* sent* stay* surgery* taken* then* transfer*"
            " treated* tx* went* xfer*"
        ),
    ),
    Rule(
        "HOSPITAL",
        re.compile(rf"(?:{_EMPLOYED}|{_TAUGHT}){_RUN}"),
        "He works nights at {Walmart}, attends {Lincoln}; retired from Surgery.",
        score=0.6,
        check=_employs,
        anchor=Anchor(
            "attended* attending* attends* clerk coach employed employee employer"
            " engineer enrolled freshman goes grade graduated graduate interned interns"
            " intern job junior manager nurse professor retired senior sophomore student"
            " studied studies studying taught teacher teaches volunteered volunteers"
            " volunteer worked working works work"
        ),
    ),
)
HOSPITALS = AnyCase(RuleDetector("hospitals", RULES))
