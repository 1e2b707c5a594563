"""Surrogates of numbers, web and internet addresses, and of streets, cities and institutions.

Numbers: each digit becomes a digit, each letter a letter of the same case; other characters stay.
Keyed by letters and digits only, so 123-45-67 and 1234567 agree. Uniform over all strings of the
same format except the original. Letters and digits of other scripts become ASCII. Web and internet
addresses use ranges reserved for examples (RFC 2606, 5737, 3849). Places are invented; their kind
(Street, Hospital) stays.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable
from functools import cache
from math import prod

from clinveil.core import Key
from clinveil.lexicons import name_form
from clinveil.phi.detection.detector import words

_ALPHABETS = (string.digits, string.ascii_lowercase, string.ascii_uppercase)
DOMAINS = ("example.com", "example.net", "example.org")
_NETS = ("192.0.2", "198.51.100", "203.0.113")


def other_number(key: Key, patient_id: str, original: str) -> str | None:
    """Return another number of the same format, or None if the original has no digit or letter."""
    return _other("surrogate-number", key, patient_id, original)


def social_security_number(key: Key, patient_id: str, original: str) -> str | None:
    """Return a number as `other_number` does, beginning with 9: such numbers are never issued."""
    drawn = _other("surrogate-ssn", key, patient_id, original)
    first = next((i for i, c in enumerate(drawn or "") if c.isdigit()), None)
    if drawn is None or first is None:
        return drawn
    number = drawn[:first] + "9" + drawn[first + 1 :]
    if number != original:
        return number
    last = max(i for i, c in enumerate(number) if c.isdigit())
    return number[:last] + str((int(number[last]) + 1) % 10) + number[last + 1 :]


def _other(purpose: str, key: Key, patient_id: str, original: str) -> str | None:
    written = "".join(map(_ascii, original))
    slots = [
        (i, alphabet) for i, c in enumerate(written) for alphabet in _ALPHABETS if c in alphabet
    ]
    if not slots:
        return None
    form = "".join(c for c in original if c.isalnum()).casefold()
    size = prod(len(alphabet) for _, alphabet in slots)
    stream = key.stream(purpose, patient_id, form)
    number = 0
    # So long that the bias of the remainder is below 2**-64.
    for _ in range((size - 1).bit_length() // 64 + 2):
        number = number << 64 | stream.uint64()
    step = 1 + number % (size - 1)
    out = list(written)
    # Advance by `step` in the cyclic order of the format.
    for position, alphabet in reversed(slots):
        step, digit = divmod(step + alphabet.index(written[position]), len(alphabet))
        out[position] = alphabet[digit]
    return "".join(out)


def _ascii(c: str) -> str:
    """Return an ASCII letter or digit of the same kind; nothing for a combining mark."""
    if c.isascii():
        return c
    if not c.isalnum():
        return "" if unicodedata.category(c).startswith("M") else c
    return str(unicodedata.digit(c)) if c.isdigit() else "X" if c.isupper() else "x"


def url(key: Key, patient_id: str, original: str) -> str:
    """Return another address with the same scheme; nothing else of the original is kept."""
    stream = key.stream("surrogate-url", patient_id, original.casefold())
    scheme = re.match(r"(?:\w+://)?(?:www\.)?", original, re.IGNORECASE)
    path = "".join(stream.choice(string.ascii_lowercase) for _ in range(8))
    return f"{scheme[0] if scheme else ''}{stream.choice(DOMAINS)}/{path}"


def internet_address(key: Key, patient_id: str, original: str) -> str:
    """Return an address of a network reserved for documentation."""
    stream = key.stream("surrogate-ip", patient_id, original.casefold())
    if ":" in original:
        return f"2001:db8::{stream.below(1 << 16):x}:{stream.below(1 << 16):x}"
    address = f"{stream.choice(_NETS)}.{stream.below(256)}"
    net, _, host = address.rpartition(".")
    return f"{net}.{(int(host) + 1) % 256}" if address == original else address


_HEADS = (
    "Alder", "Amber", "Ash", "Barrow", "Beck", "Birch", "Bram", "Brier", "Caln", "Cald", "Corr",
    "Crest", "Dun", "East", "Elder", "Ever", "Fairn", "Fenn", "Glen", "Grim", "Haver", "Hazel",
    "Holm", "Kest", "Lang", "Lark", "Lind", "Marl", "Merr", "Mill", "North", "Oster", "Pell",
    "Penn", "Quarr", "Raven", "Red", "Rowan", "Sand", "Sel", "Stan", "Thorn", "Tarn", "Under",
    "Wex", "Whit", "Wind", "Yarr",
)  # fmt: skip
_TAILS = (
    "bourne", "bridge", "brook", "bury", "by", "combe", "cote", "cross", "dale", "den", "field",
    "ford", "gate", "ham", "haven", "hollow", "holt", "hurst", "leigh", "low", "mere", "mont",
    "more", "port", "ridge", "shaw", "stead", "stow", "thorpe", "ton", "vale", "wick", "wold",
    "worth",
)  # fmt: skip
_STREET_KINDS = re.compile(
    r"\b(?:Street|Str|St|Avenue|Ave|Av|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Circle|Cir"
    r"|Way|Place|Pl"
    r"|Terrace|Ter|Parkway|Pkwy"
    r"|Highway|Hwy|Square|Sq|Trail|Trl|Box)\b",
    re.IGNORECASE,
)
_INSTITUTION_KINDS = re.compile(
    r"\b(?:Hospital|Medical Center|Medical Centre|Clinic|Health System|Health"
    r" Center|Healthcare|Infirmary|Hospice"
    r"|Nursing Home|Nursing Facility"
    r"|Rehabilitation Center|Cancer Center|Heart Center|University|Elementary School|High"
    r" School|Middle School"
    r"|Academy|Manor|Pharmacy"
    r"|Pediatrics|School"
    r"|Family Medicine|Medical Associates|Primary"
    r" Care|Foods|Dairy|Trucking|Works|Company|Church|Library|League"
    r"|Club|Residence|Lodge|Garage|Bakery|Construction|College|Hotel|Inc|Corporation|Corp|LLC|Ltd"
    r"|Industries|Motors"
    r"|Bank|Insurance|Logistics|Airlines|Stores?|Restaurant|Farms?|Systems|Services|Plant|Factory"
    r"|Mills?|Steel"
    r"|Manufacturing|Electric|Energy|Laboratories|Group|Associates|Court|House|Center|Centre"
    r"|Home)\b",
    re.IGNORECASE,
)
# Words that many institutions share: the first other word of a long form is its short form.
_SHARED = words(
    "the of and for at in a an st saint general memorial regional community county city state "
    "national medical health"
    " healthcare system hospital hospitals center centre clinic university college department "
    "north south east west"
    " northern southern eastern western central district area childrens children's women's womens "
    "and veterans royal"
)
_LONG_FORMS = {
    "mass": "massachusetts",
    "mt": "mount",
    "ft": "fort",
    "presby": "presbyterian",
    "meth": "methodist",
}
_EMPLOYED = re.compile(
    r"\b(?:works?|worked|working|employ(?:ed|er|ment)|job|retired|position|hired"
    r"|laid\soff)\b[^.\n]{0,24}$",
    re.IGNORECASE,
)
_ACRONYM = re.compile(r"[A-Z]{2,5}")


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
    """Return a street line: other numbers of the same length, an invented street of the same
    kind.
    """
    number = re.match(r"\s*(\d+)", original)
    kind = kind_of_street(original)
    house = other_number(key, patient_id, number[1]) if number else None
    if kind.lower() == "box":
        return (
            "P.O. Box"
            f" {other_number(key, patient_id, ''.join(re.findall(r'[0-9]', original))) or '0'}"
        )
    street = f"{invented(key, 'surrogate-street', patient_id, original)} {kind}"
    return _case_of(f"{house} {street}" if house else street, original)


def institution(
    key: Key, patient_id: str, original: str, before: str = "", others: Iterable[str] = ()
) -> str:
    """Return an invented institution of the same kind, or a short form or company without one.

    Args:
        before: text before the institution, which can show that it is an employer.
        others: institutions of the note, of which the original can be the initials.
    """
    long = original
    if _ACRONYM.fullmatch(original):
        long = next((other for other in others if _initials(other) == original), original)
    name = invented(key, "surrogate-institution", patient_id, own_word(long))
    kinds = _INSTITUTION_KINDS.findall(original)
    if kinds:
        name = f"{name} {kinds[-1]}"
    elif long is original and _EMPLOYED.search(before):
        name = f"{name} Company"
    return (
        _case_of(name, original) if long is original and not _ACRONYM.fullmatch(original) else name
    )


def own_word(text: str) -> str:
    """Return the word that an institution shares with its short form: `riverside` of Riverside
    Community Hospital.
    """
    written_words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", text.lower())
    written_words = [_LONG_FORMS.get(word, word).removesuffix("'s") for word in written_words]
    return next((word for word in written_words if word not in _SHARED), text)


def _initials(text: str) -> str:
    """Return the initials of the capitalised words of an institution."""
    return "".join(word[0] for word in re.findall(r"[A-Z][A-Za-z']+", text))


def kind_of_institution(text: str) -> str:
    """Return the last word for an institution in a text, or `Hospital`."""
    return str([*_INSTITUTION_KINDS.findall(text), "Hospital"][-2:][0])


def kind_of_street(text: str) -> str:
    """Return the last word for a street in a text, or `Street`."""
    return str([*_STREET_KINDS.findall(text), "Street"][-2:][0])


def _case_of(name: str, original: str) -> str:
    return name.upper() if original.isupper() else name
