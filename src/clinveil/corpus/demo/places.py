"""Synthetic places, organisations and identifiers, and a patient's identifiers as slots with PHI
labels.

Numbers are in ranges that are never assigned: social security numbers begin with 9, telephone
numbers have the exchange 555, and web and internet addresses are reserved for documentation (RFC
2606, RFC 5737).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from clinveil.corpus.demo.grammar import (
    Alternatives,
    Draw,
    Phi,
    Vocabulary,
    compile_rule,
    phrase,
    pick,
)
from clinveil.corpus.demo.language import language
from clinveil.corpus.demo.names import Name, ascii_letters, family_name

_RULES = {
    "street": "streets", "saint": "saints", "county": "counties", "hospital": "hospitals",
    "practice": "practices", "employer": "employers", "church": "churches",
    "nursing_home": "nursing_homes", "low_street": "low_street", "saint_word": "saint_word",
    "kind": "kinds", "unit": "units", "domain": "domains", "vehicle_make": "vehicles",
    "maker": "makers", "plan_name": "plans", "study_name": "studies",
}  # fmt: skip
_BIOMETRICS = (
    "fingerprint FP-{}",
    "voiceprint VP-{}",
    "iris scan IR{}",
    "retinal scan R{}",
    "palm print PP-{}",
)
_PHOTOS = ("full-face photograph IMG_{}.jpg", "facial photograph DSC0{}.JPG",
    "face photo IMG-{}.png",
           "portrait photograph P{}.jpg")  # fmt: skip
_PLANS = ("{}{}A", "XQ{}{}", "{}-{}", "W{}{}")
_MAILBOXES = ("{0}.{1}", "{0}{1}", "{0[0]}{1}", "{1}.{0}", "{0}_{1}")
UNIT = 0.2


class Town(NamedTuple):
    """A town with its state, the first digits of its postal codes, and its area code."""

    name: str
    state: str
    postal: str
    area: str


@cache
def _towns() -> list[Town]:
    return [Town(*row.strip().split("|")) for row in language().places["towns"].split(";")]


@cache
def _rules() -> dict[str, Alternatives]:
    return {rule: compile_rule(language().places[name]) for rule, name in _RULES.items()}


def town(draw: Draw) -> Town:
    """Return a random town."""
    return pick(_towns(), draw)


def named(rule: str, where: Town, draw: Draw) -> str:
    """Return the name of an organisation or thing: "hospital", "employer", "vehicle_make", …"""
    vocabulary: Vocabulary = {**_rules(), "town": where.name, "surname": family_name(draw)}
    return phrase(rule, vocabulary, draw)


def street_address(draw: Draw) -> str:
    """Return a house number and street, in a fifth of cases with a unit."""
    rules = _rules()
    house = 1 + int(draw() ** 2 * 9800)
    unit = f", {phrase('unit', rules, draw)}" if draw() < UNIT else ""
    return f"{house} {phrase('street', rules, draw)} {phrase('kind', rules, draw)}{unit}"


def postal_code(where: Town, draw: Draw) -> str:
    """Return a postal code of the town, in a tenth of cases with four more digits."""
    code = f"{where.postal}{digits(2, draw)}"
    return f"{code}-{digits(4, draw)}" if draw() < 0.1 else code


def digits(count: int, draw: Draw) -> str:
    """Return `count` random digits."""
    return str(int(draw() * 10**count)).zfill(count)


def telephone(where: Town, draw: Draw) -> str:
    """Return a telephone number with the exchange 555, in one of five formats."""
    area = where.area
    line = digits(4, draw)
    form = pick(
        ("({}) 555-{}", "{}-555-{}", "{}-555-{}", "{}.555.{}", "{} 555 {}", "+1 {} 555 {}"), draw
    )
    return form.format(area, line)


def domain(draw: Draw) -> str:
    """Return a domain reserved for documentation."""
    return phrase("domain", _rules(), draw)


def record_number(index: int, draw: Draw) -> str:
    """Return the medical record number of the patient of this index; unique for up to 9 million
    patients.
    """
    # 3 571 423 and 9 000 000 are coprime, so the map is one to one.
    number = str(1_000_000 + (index * 3_571_423 + 1_234_567) % 9_000_000)
    return pick((number, number, f"{number[:3]}-{number[3:]}", f"M{number}", f"H-{number}"), draw)


def identifiers(name: Name, where: Town, index: int, draw: Draw) -> Vocabulary:
    """Return the identifiers of the patient of an index, the same in all of the patient's notes."""
    parts = {
        "first": name.given,
        "middle": name.middle,
        "last": name.family,
        "full": name.full,
        "native": name.native,
    }
    fields: Vocabulary = {slot: Phi("NAME", text) for slot, text in parts.items()}
    groups = (_whereabouts(where, draw), _reach(name, where, draw), _numbers(name, index, draw))
    fields |= {slot: Phi(label, text) for group in groups for slot, (label, text) in group.items()}
    for slot in ("plan_name", "vehicle_make", "maker", "study_name"):
        fields[slot] = named(slot, where, draw)
    fields["state"] = where.state
    return fields


def _whereabouts(where: Town, draw: Draw) -> dict[str, tuple[str, str]]:
    organisations = {
        slot: named(slot, where, draw) for slot in ("employer", "church", "nursing_home")
    }
    return {
        "street": ("ADDRESS", street_address(draw)),
        "city": ("CITY", where.name),
        "other_city": ("CITY", town(draw).name),
        "zip": ("ZIP", postal_code(where, draw)),
        "old_hospital": ("HOSPITAL", named("hospital", where, draw)),
        **{slot: ("HOSPITAL", text) for slot, text in organisations.items()},
    }


def _reach(name: Name, where: Town, draw: Draw) -> dict[str, tuple[str, str]]:
    first = ascii_letters(name.given) or "me"
    last = ascii_letters(name.family) or "home"
    mailbox = pick(_MAILBOXES, draw).format(first, last) + pick(("", "", digits(2, draw)), draw)
    words = {
        "phone": ("PHONE", telephone(where, draw)),
        "kin_phone": ("PHONE", telephone(where, draw)),
        "email": ("EMAIL", f"{mailbox}@{domain(draw)}"),
    }
    page = f"{last}{digits(3, draw)}"
    scheme = pick(("https://www.", "http://www.", "www.", "https://"), draw)
    site = pick(("myhealth", "portal", "patients", "records"), draw)
    words["url"] = ("URL", f"{scheme}{site}.{domain(draw)}/{page}")
    if draw() < 0.125:
        address = f"2001:db8:{int(draw() * 65536):x}::{int(draw() * 65536):x}"
    else:
        address = f"{pick(('192.0.2', '198.51.100', '203.0.113'), draw)}.{1 + int(draw() * 254)}"
    return words | {"ip": ("IP", address)}


def _numbers(name: Name, index: int, draw: Draw) -> dict[str, tuple[str, str]]:
    def number(count: int) -> str:
        return digits(count, draw)

    def letters(alphabet: str, count: int) -> str:
        return "".join(pick(alphabet, draw) for _ in range(count))

    initial = (ascii_letters(name.family) or "x")[0].upper()
    plates = language().places["plates"]
    return {
        "mrn": ("MRN", record_number(index, draw)),
        "ssn": ("SSN", f"9{number(2)}-{number(2)}-{number(4)}"),
        "member": ("HEALTH_PLAN", pick(_PLANS, draw).format(number(3), number(6))),
        "account": ("ACCOUNT", f"{number(4)}-{number(6)}"),
        "driver_license": ("LICENSE", f"{initial}{number(3)}-{number(4)}"),
        "plate": (
            "VEHICLE",
            f"{letters(plates, 3)}{pick((' ', '-', ''), draw)}{number(3 + int(draw() * 2))}",
        ),
        "vin": ("VEHICLE", "1" + letters(plates + "0123456789", 10) + number(6)),
        "serial": ("DEVICE", f"{pick('ABKLPZ', draw)}{pick('NRT', draw)}{number(7)}"),
        "biometric": ("BIOMETRIC", pick(_BIOMETRICS, draw).format(number(5))),
        "photo": ("PHOTO", pick(_PHOTOS, draw).format(number(4))),
        "study_id": ("ID", f"{pick(('S', 'B', 'ST-', 'LAB'), draw)}{number(2)}-{number(4)}"),
    }
