"""Fields of JSON, FHIR, XML and CDA pasted into a note: the key determines the label of the value.

FHIR R4 (Patient, Identifier, Address, Age) and CDA release 2 (id/@extension, addr) name the keys.
"""

from __future__ import annotations

import re
from functools import partial

from clinveil.phi.detection.detector import CODE_BEGIN, CODE_END, END, Rule, RuleDetector
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import Anchor


def _key(names: str) -> str:
    """Return a pattern of a key up to its value: `"id": "`, `<id>`, `<id value="`, `<Patient id="`.

    It begins with one sign, so that it is tried at few places of a note.
    """
    return (
        rf"[\"'<](?:(?:{names})[\"']\s?:\s?[\[\s]{{0,3}}[\"']?"
        rf"|(?:\w{{1,12}}:)?(?:{names})(?:\s(?:value|extension)\s?=\s?[\"']|>)"
        rf"|\w{{1,20}}\s(?:{names})\s?=\s?[\"'])\s?"
    )


def _has_digits(match: re.Match[str], note: NoteView) -> bool:
    """Reject values with fewer than three digits: a page, a count, a word."""
    return sum(character.isdigit() for character in match["phi"]) >= 3


def _has_digit(match: re.Match[str], note: NoteView) -> bool:
    return any(character.isdigit() for character in match["phi"])


_VALUE = r"(?P<phi>[^\"'<>\s,{}\[\]=][^\"'<>\n,{}\[\]=]{1,60}?)(?=\s?(?:[\"'<,}\]\n]|/>|$))"
_any_case = partial(Rule.any_case, score=0.96)
RULES = (
    _any_case(
        "MRN",
        _key(
            r"mrn|(?:patient|subject)[_-]?(?:id|identifier|number|no)|(?:medical"
            r"|hospital)?[_-]?record[_-]?(?:id|number|no)"
            r"|(?:hospital|unit|chart)[_-]?(?:number|no|id)"
        )
        + _VALUE,
        '"patientId": "{pt-881}"',
        check=_has_digits,
        anchor=Anchor(
            "*chart* *hospital* *mrn* *patient* *record* *subject* *unit*",
            within=31,
            first="[\"'<]",
        ),
    ),
    _any_case(
        "ID",
        _key(
            r"id|[a-z][\w-]{0,30}(?:[_-]id|(?-i:Id|ID)|identifier|[_-]?number|accession)"
            r"|identifier|accession"
        )
        + _VALUE,
        '("id":"{pt-77812}", <visitNumber>{V88123}</visitNumber>, "pageNumber": "12")',
        check=_has_digits,
        anchor=Anchor(signs="\"'<"),
    ),
    _any_case(
        "ID",
        r"\bidentifier[\"'>][^\n]{0,160}?[\"']value[\"']\s?:\s?[\"']" + _VALUE,
        '"identifier":[("value":"{77812}")]',
        check=_has_digits,
        anchor=Anchor("identifier"),
    ),
    _any_case(
        "ID",
        r"\bextension\s?=\s?[\"']" + _VALUE,
        'id root="1.2.3" extension="{77-812}"',
        check=_has_digits,
        anchor=Anchor("extension*"),
    ),
    _any_case(
        "ID",
        r"(?:Patient|Encounter|Practitioner|Person|RelatedPerson|EpisodeOfCare|Account|Coverage"
        r"|ServiceRequest)/"
        rf"(?P<phi>(?=[\w.-]{{0,30}}\d)[\w.-]{{2,64}}){CODE_END}",
        '"reference": "Patient/{pt-77}"',
        anchor=Anchor(
            "*account *coverage *encounter *episodeofcare *patient *person *practitioner"
            " *servicerequest",
            within=7,
        ),
    ),
    _any_case(
        "ID",
        rf"{CODE_BEGIN}(?P<phi>[\da-f]{{8}}-[\da-f]{{4}}-[\da-f]{{4}}-[\da-f]{{4}}"
        rf"-[\da-f]{{12}}){CODE_END}",
        "urn:uuid:{3f2504e0-4f89-41d3-9a0c-0305e82c3301}",
        anchor=Anchor(signs="-", within=8, first=r"[A-Z\dabcdef]", after="[^A-Za-z]"),
    ),
    _any_case(
        "CITY",
        _key(r"city|town|locality")
        + r"(?P<phi>[A-Za-z\xc0-\xff][^\"'<>\n,{}\[\]\d]{1,40}?)(?=\s?[\"'<])",
        '"city": "{Halton}", <city>{Troy}</city>',
        anchor=Anchor(
            "*city *locality *town city* extension* locality* town* value*",
            within=23,
            first="[\"'<]",
        ),
    ),
    _any_case(
        "ADDRESS",
        _key(r"line|street|streetName|streetAddress(?:Line)?|address[_-]?(?:line)?[_-]?\d?")
        + _VALUE,
        '"line":["{14 Lark Row}"], <streetAddressLine>{9 Elm}</streetAddressLine>, "line": "PICC"',
        check=_has_digit,
        anchor=Anchor("*address* *line* *street*", within=22, first="[\"'<]"),
    ),
    _any_case(
        "ZIP",
        _key(r"zip|zip[_-]?code|post(?:al)?[_-]?code")
        + r"(?P<phi>(?=[A-Z]{0,2}\d)[A-Z\d]{2,5}(?:[ -]?[A-Z\d]{3,4})?)(?![A-Z\d])",
        '"postalCode":"{44107}", <postalCode>{44107}</postalCode>',
        anchor=Anchor("*code* *post* *zip*", within=22, first="[\"'<]"),
    ),
    _any_case(
        "DATE",
        _key(
            r"dob|birth[_-]?(?:date|time)|(?:admission|admit|discharge|death|visit|service"
            r"|effective|birth)[_-]?(?:date|time|dateTime)"
            r"|effectiveTime|date"
        )
        + rf"(?P<phi>\d{{8}}|\d{{6}}|\d{{1,2}}/\d{{1,2}})(?=\d{{4,6}}{END}|{END})",
        '"dob": "{030482}", <birthTime value="{19820514}"/>',
        anchor=Anchor(
            "*admission* *admit* *birth* *date* *death* *discharge* *dob* *effective*"
            " *service* *visit*",
            within=22,
            first="[\"'<]",
        ),
    ),
    _any_case(
        "AGE",
        r"[\"'<]age[\"'>\s][^\n]{0,30}?value[\"']?\s?[:=]\s?[\"']?(?P<phi>9\d|1[0-2]\d)(?!\d"
        r"|[.,]\d)",
        '"age": ("value": {94}, "unit": "a")',
        anchor=Anchor("*value*", within=35, first="[\"'<]"),
    ),
)

KEYED_FIELDS = RuleDetector("keyed_fields", RULES)
