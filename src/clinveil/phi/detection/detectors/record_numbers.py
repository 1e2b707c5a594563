"""Record, account, licence and device numbers. The label comes from the words before the number, or
from its format.

Medical codes lack such cue words and stay: ICD, CPT, LOINC, NDC, TNM, genes, trials, laboratory
values.
"""

from __future__ import annotations

import re

from clinveil.phi.detection.detector import (
    ALONE_BEGIN,
    ALONE_END,
    ANY_END,
    BEGIN,
    CODE_BEGIN,
    CODE_END,
    END,
    WHOLE_END,
    Rule,
    RuleDetector,
    after,
    before,
)
from clinveil.phi.detection.detectors._number_cues import CUES
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import FAR, Anchor

_I = re.IGNORECASE
# Digits and capitals with separators; at least one digit, at least three characters.
_NUMBER = (
    r"(?P<phi>(?!\d+-(?:year|month|week"
    r"|day))(?=#?[A-Z*./_-]{0,6}\d)(?=#?[\w*./-]{2,}?\w)#?[A-Z0-9*_]+(?:(?:[-./]"
    r"|\s(?=\d{2,}(?![A-Z\d])))[A-Z0-9*]+)*)(?![A-Z\d]|[-./][A-Z\d])"
)
# Words, punctuation, JSON quotes and XML tags may separate a label from its number.
_SEPARATOR = r"\s*(?:is|was|of|are)?[^A-Za-z\d*]{0,6}"
_CODE = re.compile(
    r"\b(?:ndc|loinc|cpt|icd|icd-?10|icd-?9|hcpcs|drg|snomed|rxnorm|omim|cas|pmid|doi|isbn|gtin"
    r"|grch\d+"
    r"|catalog|model|code\sagain|part|procedure|diagnosis)\W*(?:code|no\.?|#)?\W*(?:is\W*)?$"
)
# Before a bare number of seven or eight digits: a count, not a record number.
_COUNT = re.compile(
    r"(?:ferritin|platelets?|plt|plts|ck|cpk|count|counts|copies|load|units?|wbc|rbc|bnp|dimer|ldh"
    r"|troponin|viral"
    r"|pcr|hcg"
    r"|afp|psa|ast|alt|amylase|lipase|dose|total|cost|\$|population|over|about|of|than|least|titer"
    r"|level|was|at|to)\W*$"
)
_COUNTED = re.compile(
    r"\s*(?:copies|iu|units?|cells|/\s?[a-z]{1,3}(?![a-z])|per|x10|k/|mg|ml|ng|cfu|colonies"
    r"|dollars|people)"
)
_PUBLIC = (
    "NCT",
    "PMC",
    "ISBN",
    "GSE",
    "ISRC",
    "EPIC",
    "GRCH",
    "PMID",
    "ENST",
    "ENSG",
    "COVI",
    "SARS",
)


def _no_code(match: re.Match[str], note: NoteView) -> bool:
    return not _CODE.search(before(match, note, 20))


def _unpublished(match: re.Match[str], note: NoteView) -> bool:
    """Reject medical codes and numbers of public trials or papers."""
    return not match["phi"].startswith(_PUBLIC) and _no_code(match, note)


_NUMBERED = re.compile(
    r"(?:\b(?:number|no\.?|num\.?|nr\.?|id|code|refer\w*(?:\smade)?\sto)|#)[\s:.#]*(?:is"
    r"|was)?[\W_]{0,6}$"
)
_GLUED_UNIT = re.compile(r"[a-z]{1,3}(?![a-z])")
# Letters before digits that are a code or an amount, not a word before a number.
_GLUED = re.compile(r"(?:^|[^a-z])(?:[a-z]{1,2}|nct|pmid|pmc|chr|loc|cd|hcpcs|snomed|usd)$")


_TIME_STAMP = re.compile(
    r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d"
    r"|2[0-3])[0-5]\d(?:[0-5]\d)?(?:\d{3})?"
)


def _no_time_stamp(match: re.Match[str], note: NoteView) -> bool:
    """Reject a date with a time of day (20190304101500)."""
    return not _TIME_STAMP.fullmatch(match["phi"])


def _bare(match: re.Match[str], note: NoteView) -> bool:
    """Accept bare numbers: nine digits, seven unless something is counted, five if a cue
    precedes.
    """
    digits = match["phi"].lstrip("#")
    lead = before(match, note, 20)
    if (
        len(set(digits)) == 1
        or _TIME_STAMP.fullmatch(digits)
        or _CODE.search(lead)
        or _GLUED.search(lead)
    ):
        return False
    if len(digits) < 9 and _GLUED_UNIT.match(after(match, note, 4)):  # 12345mg
        return False
    if len(digits) >= 9 or _NUMBERED.search(lead):
        return True
    counted = _COUNTED.match(after(match, note, 12)) or _COUNT.search(lead)
    return len(digits) >= 7 and not counted


def _lettered(match: re.Match[str], note: NoteView) -> bool:
    """Accept one letter with six digits; with five (J12345 may be a code) only after a word for a
    number.
    """
    digits = sum(c.isdigit() for c in match["phi"])
    named = match["phi"][1].isalpha() or digits >= 6 or _NUMBERED.search(before(match, note, 20))
    return bool(named) and _unpublished(match, note)


def _seven(match: re.Match[str], note: NoteView) -> bool:
    return len(match["phi"]) >= 9 and _no_code(match, note)


def _cue_is_a_word(match: re.Match[str], note: NoteView) -> bool:
    """Reject cues inside a word: `fin` in `finger4`. The first word of the match must end before
    the number.
    """
    word = re.match("[A-Za-z]+", match[0])
    return word is None or match.start() + word.end() <= match.start("phi")


def _cued(label: str, example: str, score: float = 0.95, anchor: Anchor | None = None) -> Rule:
    pattern = rf"(?<![A-Z0-9]){CUES[label]}{_SEPARATOR}{_NUMBER}"
    return Rule.any_case(label, pattern, example, score=score, check=_cue_is_a_word, anchor=anchor)


_GAP = r"[\W_]{0,6}"
_INSURED = re.compile(
    r"\b(?:Medicare|Medicaid|Cigna|Aetna|Humana|Kaiser|Blue\s?(?:Cross|Shield)|BCBS"
    r"|United\s?Health(?:care)?|UHC|Anthem"
    r"|Tricare|Champus|Molina|Centene|Wellcare|Medi-?Cal|Bupa|policy"
    rf"|health\splan:\s?[A-Z]\w+)[\W_]{{1,6}}"
    rf"(?P<phi>[A-Z]{{0,3}}-?\d{{3,}}-?\d{{3,}}[A-Z]?\d*){ANY_END}",
    _I,
)
# Initials and staff number in a signature; initials of author and typist.
_STAFF = re.compile(
    r"\b(?i:by|per|initials?|signed|sig|entered|dictated|rn|md|staff|tech|user|operator)[\W_]{1,6}"
    rf"(?P<phi>[A-Z]{{2,3}}\d{{1,5}}|[A-Z]{{2,3}}[/:][a-z]{{2,3}}"
    rf"|[A-Z]{{2,3}}/[A-Z]{{2,3}}(?=\s*[.\n]|\s*$)){CODE_END}"
)
# National numbers of the United Kingdom, Brazil, Sweden, Italy, France, Singapore, India and
# Ireland.
_NATIONAL = (
    (
        r"(?:QQ|[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z])\s?\d{2}\s?\d{2}\s?\d{2}\s?[A-D]",
        "NI {QQ 12 34 56 C}.",
        Anchor(digits=2, within=3, first="[A-Z]", after="[^A-Za-z]"),
    ),
    (r"\d{3}\.\d{3}\.\d{3}-\d{2}", "CPF {123.456.789-09}.", Anchor(digits=3, after=r"\D")),
    (r"\d{6}[-+]\d{4}", "Personnummer {850709-9805}.", Anchor(digits=6, after=r"\D")),
    (
        r"[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]",
        "Codice {RSSMRA80A01H501U}.",
        Anchor(digits=3, within=12, first="[A-Z]", after="[^A-Za-z]"),
    ),
    (
        r"[12]\s\d{2}\s\d{2}\s\d{2}\s\d{3}\s\d{3}(?:\s\d{2})?",
        "NIR {1 85 05 78 006 084 36}.",
        Anchor(digits=2, within=2, first="[12]", after=r"\D"),
    ),
    (
        r"[STFGM]\d{7}[A-Z]",
        "NRIC {S1234567D}.",
        Anchor(digits=7, within=1, first="[FGMST]", after="[^A-Za-z]"),
    ),
    (r"\d{4}\s\d{4}\s\d{4}", "Aadhaar {2345 6789 0123}.", Anchor(digits=4, after=r"\D")),
    (r"\d{7}[A-W][A-IW]?", "PPSN {1234567FA}.", Anchor(digits=7, after=r"\D")),
)
_TYPIST = re.compile(
    r"^[\W_]{0,4}(?P<phi>[A-Z]{2,3}[/:][a-z]{2,3}(?:/?\d+)?)[^A-Za-z\d\n]{0,4}$", re.M
)


def _begin(pattern: str) -> str:
    """Return the border before a pattern, by its first character."""
    return CODE_BEGIN if pattern.startswith(("[A-Z", "(?:QQ", "[STFGM")) else ALONE_BEGIN


RULES = (
    _cued(
        "MRN",
        "MRN {00-12-345} and Unit No {1234567}.",
        anchor=Anchor(
            "*ray UR* chart ehr* empi* emr* film health history hosp* ipp* med* mpi* mr*"
            " m patient* pid* pt* record umrn* unit urn*",
            within=2,
            first="[A-Za-z]",
            after="[^A-Za-z]",
        ),
    ),
    _cued(
        "SSN",
        "Social security number is {536 22 1234}.",
        anchor=Anchor(
            "aadhaar* bsn* cpf* file fiscale* fiscal itin* last national nino* nir* ni"
            " nric* personnummer* pps* sin* soc* ss* s tfn*",
            within=7,
            first="[A-Za-z]",
            after="[^A-Za-z]",
        ),
    ),
    _cued(
        "ACCOUNT",
        "Account number: {A-99812}.",
        anchor=Anchor(
            "account* acct* bank* billing* card* check* credit debit guarantor* har*"
            " iban* invoice* receipt routing*"
        ),
    ),
    _cued(
        "HEALTH_PLAN",
        "Member ID {XYZ123456}; NHS {943 476 5919}.",
        anchor=Anchor(
            "ahcip* auth* beneficiary* chi coverage* group* hbn* health hic* hpbn*"
            " insurance* insured* mbi* medicaid* medicare* member* msp* nhi* nhs* ohip*"
            " payer* personal phn* policy* prior rx* subscriber*",
            within=FAR,
            first="[A-Za-z]",
            after="[^A-Za-z]",
        ),
    ),
    _cued(
        "LICENSE",
        "License no. {D1234567}; NPI: {1234567893}",
        anchor=Anchor(
            "board certificate certification dea* dl* gmc* lic* nmc* npi* passport*"
            " registration upin*"
        ),
    ),
    _cued(
        "VEHICLE",
        "VIN {1HGCM82633A004352}.",
        anchor=Anchor("licence license plate* tag vehicle vin*"),
    ),
    _cued(
        "DEVICE",
        "S/N {PJN123456H}; lot # {3344AB}; not serials8.",
        anchor=Anchor(
            "batch* catalog* device generator imei* implant lot* mac* model* part* pump"
            " ref* ser* sn s udi*"
        ),
    ),
    _cued(
        "ID",
        'Accession {S19-12345}; specimen # {77-123}; "case_id", encounter {88123}.',
        0.94,
        anchor=Anchor(
            "accession* application* badge* barcode* booking* case claim* complaint*"
            " confirmation* csn* dictation* docket* document* donor* employee* enc* fin*"
            " id* incident* job* order participant* petition* prescription* provider*"
            " ref* requisition* rx* sample* site* specimen staff* student* study*"
            " subject* tracking* transcription* trial* user* visit*"
        ),
    ),
    *(
        Rule(
            "SSN",
            re.compile(rf"{_begin(pattern)}(?P<phi>{pattern}){ANY_END}"),
            example,
            anchor=anchor,
        )
        for pattern, example, anchor in _NATIONAL
    ),
    Rule(
        "HEALTH_PLAN",
        re.compile(rf"{ALONE_BEGIN}(?P<phi>\d{{4}}\s\d{{5}}\s\d(?:[/-]\d)?){WHOLE_END}"),
        "Medicare {2123 45670 1}.",
        anchor=Anchor(digits=4, after=r"\D"),
    ),
    Rule(
        "MRN",
        re.compile(rf"\bchart\s*:{_GAP}(?P<phi>[A-Z]{{0,2}}-?\d{{3,}}-?\d{{1,7}}){END}", _I),
        "Chart: {923-4528}",
        anchor=Anchor("chart*"),
    ),
    Rule(
        "ACCOUNT",
        re.compile(rf"\b(?:account|acct)[\W_]{{1,6}}(?P<phi>\d[\d-]{{5,18}}\d){END}", _I),
        "The bill goes to account {9318-197640}.",
        anchor=Anchor("account acct"),
    ),
    Rule(
        "HEALTH_PLAN",
        _INSURED,
        "Health plan: Cigna {368-899777}; BlueCross {123-45678}",
        anchor=Anchor(
            "aetna* anthem* bcbs* blue* bupa* centene* champus* cigna* health humana*"
            " kaiser* medi* molina* policy* tricare* uhc* united* wellcare*"
        ),
    ),
    Rule(
        "VEHICLE",
        re.compile(
            r"\b(?i:plates?|registration|reg\.?)(?:\s(?:number|no\.?"
            r"|is))?[\W_]{1,6}(?P<phi>[A-Z]{2}\d{2}\s?[A-Z]{3}"
            rf"|[A-Z]{{2,4}}[ -]?\d{{2,4}}[A-Z]?|\d{{1,4}}[ -]?[A-Z]{{2,4}}"
            rf"|\d[A-Z]{{3}}\d{{3}}){CODE_END}"
        ),
        "Plate {XCM 6435}, seen twice; registration {AB12 CDE}.",
        anchor=Anchor("plate* reg*"),
    ),
    Rule(
        "SSN",
        re.compile(
            rf"{BEGIN}(?P<phi>(?:\d{{3}}|[xX*]{{3}})[-.](?:\d{{2}}|[xX*]{{2}})[-.]\d{{4}}){END}"
        ),
        "With {536-22-1234} on file.",
        score=0.9,
        anchor=Anchor(digits=4, within=7, first=r"[\d*Xx]", after=r"\D"),
    ),
    Rule(
        "ACCOUNT",
        re.compile(
            rf"{BEGIN}(?P<phi>\d{{4}}(?:([ -])\d{{4}}\2\d{{4}}\2\d{{4}}|([ -])\d{{6}}\3\d{{5}}"
            rf"|\d{{9,15}})){WHOLE_END}"
        ),
        "Card {4111 1111 1111 1112}.",
        check=_no_time_stamp,
        anchor=Anchor(digits=4, after=r"\D"),
    ),
    Rule(
        "ACCOUNT",
        re.compile(
            rf"{CODE_BEGIN}(?P<phi>[A-Z]{{2}}\d{{2}}(?:[A-Z]{{0,4}}\d{{6,}}[A-Z0-9]*"
            rf"|(?: [A-Z0-9]{{4}}){{3,7}}(?: [A-Z0-9]{{1,3}})?)){CODE_END}"
        ),
        "To {GB29NWBK60161331926819} by Monday.",
        anchor=Anchor(digits=2, within=2, first="[A-Z]", after="[^A-Za-z]"),
    ),
    Rule(
        "VEHICLE",
        re.compile(
            rf"{CODE_BEGIN}(?P<phi>(?=[A-Z]*\d)(?=\d*[A-Z])[A-HJ-NPR-Z0-9]{{13}}\d{{4}}){CODE_END}"
        ),
        "A Honda, {1HGCM82633A004352}.",
        score=0.8,
        anchor=Anchor(digits=4, within=13, first=r"[A-Z\d]", after="[^A-Za-z]"),
    ),
    Rule(
        "HEALTH_PLAN",
        re.compile(
            rf"{BEGIN}(?P<phi>[1-9][A-Z][A-Z0-9]\d-?[A-Z][A-Z0-9]\d-?[A-Z]{{2}}\d{{2}}){END}"
        ),
        "Covered: {1EG4-TE5-MK73}.",
        anchor=Anchor(digits=1, after=r"\D"),
    ),
    Rule(
        "DEVICE",
        re.compile(r"(?P<phi>\(01\)\s?\d{14}(?:\s?\(\d{2}\)\s?[\w-]+)*)"),
        "Label {(01)00643169001763(17)210331(21)A5512}.",
        anchor=Anchor(digits=14, within=5, first="[(]"),
    ),
    Rule(
        "DEVICE",
        re.compile(
            rf"\bMAC\b(?:\saddress)?[\W_]{{1,6}}(?P<phi>"
            rf"(?:[0-9A-F]{{2}}[:-]){{5}}[0-9A-F]{{2}}){CODE_END}",
            _I,
        ),
        "Pump MAC {00:1A:2B:3C:4D:5E}.",
        anchor=Anchor("mac"),
    ),
    Rule(
        "MRN",
        re.compile(rf"{ALONE_BEGIN}(?P<phi>\d{{2,3}}-\d{{2,3}}-\d{{2,3}}){ALONE_END}"),
        "Under {00-12-345} in the book, not NDC 123-45-67 and not 12-14-16.",
        score=0.7,
        check=_seven,
        anchor=Anchor(digits=2, after=r"\D"),
    ),
    Rule(
        "ID",
        re.compile(rf"{CODE_BEGIN}(?P<phi>[A-Z]{{1,4}}-?\d{{2}}-\d{{3,7}}){CODE_END}"),
        "Slides {S19-12345} were read.",
        score=0.8,
        check=_unpublished,
        anchor=Anchor(digits=3, within=8, first="[A-Z]", after="[^A-Za-z]"),
    ),
    Rule(
        "ID",
        re.compile(rf"{ALONE_BEGIN}(?<!\$)(?P<phi>#?\d{{5,12}}){ALONE_END}"),
        "Under {123456789}, filed as {8812345}, room no. {88123}; a count of 1250000, ferritin"
        " 12345, model # 12345.",
        score=0.7,
        check=_bare,
        anchor=Anchor(digits=5, within=1, first=r"[\d#]", after=r"[^\d$]"),
    ),
    Rule(
        "ID",
        re.compile(rf"{CODE_BEGIN}(?P<phi>[A-Z]{{1,4}}-?\d{{5,12}}){CODE_END}"),
        "Under {AB-987654} or {M1234567}, not LOINC 2345-7, J12345 or NCT01234567.",
        score=0.7,
        check=_lettered,
        anchor=Anchor(digits=5, within=5, first="[A-Z]", after="[^A-Za-z]"),
    ),
    Rule(
        "ID",
        _STAFF,
        "Seen by {JW17} on the ward.",
        score=0.6,
        anchor=Anchor(
            "by dictated entered initials initial md operator per rn signed sig staff tech user"
        ),
    ),
    Rule(
        "ID",
        _TYPIST,
        "{JW/ab}",
        score=0.6,
        anchor=Anchor(signs="/:", within=7, first=r"\D", after=r"\n"),
    ),
)

RECORD_NUMBERS = RuleDetector("record_numbers", RULES)
