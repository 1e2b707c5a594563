"""Invented streets, cities and institutions. The kind of place (Street, Hospital) stays."""

from __future__ import annotations

import re
from functools import cache

from clinveil.core.keys import Key
from clinveil.lexicons.names import name_form
from clinveil.phi.treatment.surrogates.numbers import other_number

_HEADS = (
    "Alder", "Amber", "Ash", "Barrow", "Beck", "Birch", "Bram", "Brier", "Caln", "Cald", "Corr", "Crest", "Dun",
    "East", "Elder", "Ever", "Fairn", "Fenn", "Glen", "Grim", "Haver", "Hazel", "Holm", "Kest", "Lang", "Lark",
    "Lind", "Marl", "Merr", "Mill", "North", "Oster", "Pell", "Penn", "Quarr", "Raven", "Red", "Rowan", "Sand",
    "Sel", "Stan", "Thorn", "Tarn", "Under", "Wex", "Whit", "Wind", "Yarr",
)  # fmt: skip
_TAILS = (
    "bourne", "bridge", "brook", "bury", "by", "combe", "cote", "cross", "dale", "den", "field", "ford", "gate",
    "ham", "haven", "hollow", "holt", "hurst", "leigh", "low", "mere", "mont", "more", "port", "ridge", "shaw",
    "stead", "stow", "thorpe", "ton", "vale", "wick", "wold", "worth",
)  # fmt: skip
_STREET_KINDS = re.compile(
    r"\b(?:Street|Str|St|Avenue|Ave|Av|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Circle|Cir|Way|Place|Pl"
    r"|Terrace|Ter|Parkway|Pkwy"
    r"|Highway|Hwy|Square|Sq|Trail|Trl|Box)\b",
    re.IGNORECASE,
)
_INSTITUTION_KINDS = re.compile(
    r"\b(?:Hospital|Medical Center|Medical Centre|Clinic|Health System|Health Center|Healthcare|Infirmary|Hospice"
    r"|Nursing Home|Nursing Facility"
    r"|Rehabilitation Center|Cancer Center|Heart Center|University|Elementary School|High School|Middle School"
    r"|Academy|Manor|Pharmacy"
    r"|Pediatrics|School"
    r"|Family Medicine|Medical Associates|Primary Care|Foods|Dairy|Trucking|Works|Company|Church|Library|League"
    r"|Club|Residence|Lodge|Garage|Bakery|Construction|College|Hotel)\b",
    re.IGNORECASE,
)


def invented(key: Key, purpose: str, patient_id: str, original: str) -> str:
    """Return one of 1,632 invented place names, never the original."""
    stream = key.stream(purpose, patient_id, name_form(original))
    names = len(_HEADS) * len(_TAILS)
    excluded = _numbered().get(original.casefold(), names)
    index = stream.below(names - (excluded < names))
    return _name_number(index + (index >= excluded))


@cache
def _numbered() -> dict[str, int]:
    return {_name_number(index).casefold(): index for index in range(len(_HEADS) * len(_TAILS))}


def _name_number(index: int) -> str:
    return _HEADS[index // len(_TAILS)] + _TAILS[index % len(_TAILS)]


def city(key: Key, patient_id: str, original: str) -> str:
    """Return an invented city."""
    return _case_of(invented(key, "surrogate-city", patient_id, original), original)


def address(key: Key, patient_id: str, original: str) -> str:
    """Return a street line: other numbers of the same length, an invented street of the same kind."""
    number = re.match(r"\s*(\d+)", original)
    kinds = _STREET_KINDS.findall(original)
    house = other_number(key, patient_id, number[1]) if number else None
    if kinds and kinds[-1].lower() == "box":
        return f"P.O. Box {other_number(key, patient_id, ''.join(re.findall(r'[0-9]', original))) or '0'}"
    street = f"{invented(key, 'surrogate-street', patient_id, original)} {kinds[-1] if kinds else 'Street'}"
    return _case_of(f"{house} {street}" if house else street, original)


def institution(key: Key, patient_id: str, original: str) -> str:
    """Return an invented institution of the same kind."""
    kinds = _INSTITUTION_KINDS.findall(original)
    name = invented(key, "surrogate-institution", patient_id, original)
    return _case_of(f"{name} {kinds[-1] if kinds else 'Hospital'}", original)


def _case_of(name: str, original: str) -> str:
    return name.upper() if original.isupper() else name
