"""Numbers that name a person or a thing: the label comes from the words before them.

Codes of medicine have no such words before them and stay: ICD, CPT, LOINC, NDC, TNM, laboratory values.
"""

from __future__ import annotations

import re

from clinveil.phi.detector import Rule, RuleDetector, before, detectors
from clinveil.phi.note import NoteView

_I = re.IGNORECASE
# Digits and capitals with separators; at least one digit, at least three characters.
_NUMBER = (
    r"(?P<phi>(?=#?[A-Z*./-]{0,6}\d)(?=#?[\w*./-]{3})#?[A-Z0-9*]+(?:(?:[-./]|\s(?=\d{2,}\b))[A-Z0-9*]+)*)(?!\w|[-./]\w)"
)
_NO = r"(?:numbers?|no\.?|num\.?|nbr\.?|#|id|code)"
_SEPARATOR = r"\s*(?:is|was|of|are)?[\s:#=.,(-]{0,4}"
_DRUG_CODE = re.compile(r"\b(?:ndc|loinc|cpt|icd|hcpcs|drg|snomed|rxnorm)\W*(?:code)?\W*$")

_CUES = {
    "MRN": rf"(?:mrn|mr\s?{_NO}|mr#|medical\s+record(?:s)?(?:\s+{_NO})?|med(?:ical)?\.?\s+rec(?:ord)?\.?"
    rf"(?:\s+{_NO})?|record\s+{_NO}"
    rf"|unit\s+{_NO}|hospital\s+{_NO}|(?:patient|pt)\.?\s*{_NO}|chart\s+{_NO}|health\s+record\s+{_NO}|emr\s*{_NO}"
    rf"|ehr\s*{_NO})",
    "SSN": rf"(?:ssn|ss\s?#|soc(?:ial)?\.?\s+sec(?:urity)?\.?(?:\s+{_NO})?)",
    "ACCOUNT": rf"(?:(?:account|acct\.?|billing|invoice|bank|credit\s+card|card)\s*{_NO}|acct\.?:|account:|iban)",
    "HEALTH_PLAN": rf"(?:(?:insurance|policy|member(?:ship)?|subscriber|beneficiary|plan|group"
    rf"|medicaid|medicare"
    rf"|insurance\s+plan|health\s+plan|plan\s+beneficiary|medicare\s+beneficiary|payer|hicn?|mbi|hpbn|hbn|coverage)"
    rf"\s*(?:beneficiary\s*)?(?:{_NO}\s*)+|hicn|mbi|hpbn|hbn|ohip|nhs\s+{_NO})",
    "LICENSE": rf"(?:licen[sc]e\s*(?:plate\s*)?{_NO}?|dea\s*{_NO}?|npi\s*{_NO}?|certificat(?:e"
    rf"|ion)\s+{_NO}"
    rf"|passport\s*{_NO}?|registration\s+{_NO}|dl\s?{_NO})",
    "VEHICLE": rf"(?:vin\s*{_NO}?|vehicle\s+(?:identification\s+)?{_NO}|plate\s*{_NO}?|tag\s+{_NO})",
    "DEVICE": rf"(?:serial\s*{_NO}?|s/n|sn:|ser\.?\s+{_NO}|device\s+{_NO}|implant\s+{_NO}|lot\s*(?:{_NO}|:)|udi|imei)",
    "ID": rf"(?:accession\s*{_NO}?|specimen\s+{_NO}|case\s+(?:no\.?|number|#)|order\s+{_NO}|visit\s+{_NO}"
    rf"|encounter\s*{_NO}|csn|fin"
    rf"|requisition\s*{_NO}?|(?:study|job|document|dictation|transcription|confirmation|claim|claims|referral"
    rf"|reference|ref\.?|site|sample"
    rf"|employee|badge|staff|student|user|trial|subject|participant)\s+{_NO}|\bid(?:\s+(?:no\.?|number|#))?\s*[:#]"
    rf"|id\s+(?:is\s+)?(?=\d))",
}


def _no_code(match: re.Match[str], note: NoteView) -> bool:
    return not _DRUG_CODE.search(before(match, note, 16))


def _long_number(match: re.Match[str], note: NoteView) -> bool:
    return _no_code(match, note) and len(set(match["phi"])) > 1


def _cue_is_a_word(match: re.Match[str], note: NoteView) -> bool:
    """`fin` in `finger4` is no cue: the first word of the match does not run into the number."""
    word = re.match("[A-Za-z]+", match[0])
    return word is None or match.start() + word.end() <= match.start("phi")


def _cued(label: str, example: str) -> Rule:
    pattern = rf"(?<![A-Z0-9]){_CUES[label]}{_SEPARATOR}{_NUMBER}"
    return Rule.any_case(label, pattern, example, score=0.95, check=_cue_is_a_word)


_INSURED = re.compile(
    r"\b(?:Medicare|Medicaid|Cigna|Aetna|Humana|Kaiser|Blue\s?(?:Cross|Shield)|BCBS|United\s?Health(?:care)?|Anthem"
    r"|Tricare|policy"
    r"|health\splan:\s?[A-Z]\w+)[\s:,#]{1,3}(?P<phi>[A-Z]{0,3}-?\d{3,}-?\d{3,}[A-Z]?\d*)\b",
    _I,
)
RULES = (
    _cued("MRN", "MRN {00-12-345} and Unit No {1234567}."),
    _cued("SSN", "Social security number is {536 22 1234}."),
    _cued("ACCOUNT", "Account number: {A-99812}."),
    _cued("HEALTH_PLAN", "Member ID {XYZ123456}."),
    _cued("LICENSE", "License no. {D1234567}; NPI: {1234567893}"),
    _cued("VEHICLE", "VIN {1HGCM82633A004352}."),
    _cued("DEVICE", "S/N {PJN123456H}; lot # {3344AB}; not serials8."),
    _cued("ID", "Accession {S19-12345}; specimen # {77-123}."),
    Rule("MRN", re.compile(r"\bchart\s*:\s*(?P<phi>[A-Z]{0,2}-?\d{3,}-?\d{1,7})\b", _I), "Chart: {923-4528}"),
    Rule(
        "ACCOUNT",
        re.compile(r"\b(?:account|acct)\s+(?P<phi>\d[\d-]{5,18}\d)\b", _I),
        "The bill goes to account {9318-197640}.",
    ),
    Rule("HEALTH_PLAN", _INSURED, "Health plan: Cigna {368-899777}; BlueCross {123-45678}"),
    Rule(
        "ID",
        re.compile(r"\bnumber\s+(?:is\s+|was\s+)?(?P<phi>[A-Z]{0,2}-?\d{6,12})\b", _I),
        "Number {1234567} was called; ferritin 1234567.",
    ),
    Rule(
        "VEHICLE",
        re.compile(r"\b(?i:plates?)[\s:#]+(?P<phi>[A-Z]{2,4}[ -]?\d{2,4}|\d{1,4}[ -]?[A-Z]{2,4})\b"),
        "Plate {XCM 6435}, seen twice.",
    ),
    Rule(
        "SSN",
        re.compile(r"(?<![\w-])(?P<phi>(?:\d{3}|[xX*]{3})[-.](?:\d{2}|[xX*]{2})[-.]\d{4})(?![\w-])"),
        "With {536-22-1234} on file.",
        score=0.9,
    ),
    Rule(
        "ACCOUNT",
        re.compile(r"(?<![\w-])(?P<phi>\d{4}(?:([ -])\d{4}\2\d{4}\2\d{4}|([ -])\d{6}\3\d{5}|\d{9,15}))(?![\w-])"),
        "Card {4111 1111 1111 1112}.",
    ),
    Rule(
        "ACCOUNT",
        re.compile(r"(?<!\w)(?P<phi>[A-Z]{2}\d{2}(?:[A-Z]{0,4}\d{6,}[A-Z0-9]*|(?: [A-Z0-9]{4}){3,7}))(?!\w)"),
        "To {GB29NWBK60161331926819} by Monday.",
    ),
    Rule(
        "VEHICLE",
        re.compile(r"(?<!\w)(?P<phi>(?=[A-Z]*\d)(?=\d*[A-Z])[A-HJ-NPR-Z0-9]{17})(?!\w)"),
        "A Honda, {1HGCM82633A004352}.",
        score=0.8,
    ),
    Rule(
        "ID",
        re.compile(r"(?<![\w-])(?P<phi>[A-Z]{1,4}-?\d{2}-\d{3,7})(?![\w-])"),
        "Slides {S19-12345} were read.",
        score=0.8,
    ),
    Rule(
        "ID",
        re.compile(r"(?<![\w.,/-])(?P<phi>#?\d{9,12})(?![\w/-]|[.,]\d)"),
        "Under {123456789} in the book.",
        score=0.7,
        check=_long_number,
    ),
    Rule(
        "ID",
        re.compile(r"(?<![\w-])(?P<phi>[A-Z]{2,4}-?\d{5,10})(?![\w-])"),
        "Under {AB-987654}, not LOINC 2345-7.",
        score=0.7,
        check=_no_code,
    ),
)

detectors.register("record-numbers")(RuleDetector("record_numbers", RULES))
