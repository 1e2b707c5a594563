"""All that identifies one invented patient, as slots of the templates with their PHI labels."""

from __future__ import annotations

from clinveil.corpus.demo import places
from clinveil.corpus.demo.grammar import Draw, Phi, Vocabulary, pick
from clinveil.corpus.demo.names import Name, ascii_letters

_BIOMETRICS = ("fingerprint FP-{}", "voiceprint VP-{}", "iris scan IR{}", "retinal scan R{}", "palm print PP-{}")
_PHOTOS = ("full-face photograph IMG_{}.jpg", "facial photograph DSC0{}.JPG", "face photo IMG-{}.png",
           "portrait photograph P{}.jpg")  # fmt: skip
_PLANS = ("{}{}A", "XQ{}{}", "{}-{}", "W{}{}")
_MAILBOXES = ("{0}.{1}", "{0}{1}", "{0[0]}{1}", "{1}.{0}", "{0}_{1}")


def identifiers(name: Name, where: places.Town, index: int, draw: Draw) -> Vocabulary:
    """The identifiers of the patient of an index; they are the same in all of the patient's notes."""
    fields: Vocabulary = {}
    for group in (_names(name), _whereabouts(where, draw), _reach(name, where, draw), _numbers(name, index, draw)):
        fields |= {slot: Phi(label, text) for slot, (label, text) in group.items()}
    for slot in ("plan_name", "vehicle_make", "maker", "study_name"):
        fields[slot] = places.named(slot, where, draw)
    fields["state"] = where.state
    return fields


def _names(name: Name) -> dict[str, tuple[str, str]]:
    parts = {"first": name.given, "middle": name.middle, "last": name.family, "full": name.full, "native": name.native}
    return {slot: ("NAME", text) for slot, text in parts.items()}


def _whereabouts(where: places.Town, draw: Draw) -> dict[str, tuple[str, str]]:
    organisations = {slot: places.named(slot, where, draw) for slot in ("employer", "church", "nursing_home")}
    return {
        "street": ("ADDRESS", places.street_address(draw)),
        "city": ("CITY", where.name),
        "other_city": ("CITY", places.town(draw).name),
        "zip": ("ZIP", places.postal_code(where, draw)),
        "old_hospital": ("HOSPITAL", places.named("hospital", where, draw)),
        **{slot: ("HOSPITAL", text) for slot, text in organisations.items()},
    }


def _reach(name: Name, where: places.Town, draw: Draw) -> dict[str, tuple[str, str]]:
    first, last = ascii_letters(name.given) or "me", ascii_letters(name.family) or "home"
    mailbox = pick(_MAILBOXES, draw).format(first, last) + pick(("", "", places.digits(2, draw)), draw)
    return {
        "phone": ("PHONE", places.telephone(where, draw)),
        "kin_phone": ("PHONE", places.telephone(where, draw)),
        "email": ("EMAIL", f"{mailbox}@{places.domain(draw)}"),
        "url": ("URL", places.web_address(f"{last}{places.digits(3, draw)}", draw)),
        "ip": ("IP", places.internet_address(draw)),
    }


def _numbers(name: Name, index: int, draw: Draw) -> dict[str, tuple[str, str]]:
    def digits(count: int) -> str:
        return places.digits(count, draw)

    initial = (ascii_letters(name.family) or "x")[0].upper()
    return {
        "mrn": ("MRN", places.record_number(index, draw)),
        "ssn": ("SSN", f"9{digits(2)}-{digits(2)}-{digits(4)}"),
        "member": ("HEALTH_PLAN", pick(_PLANS, draw).format(digits(3), digits(6))),
        "account": ("ACCOUNT", f"{digits(4)}-{digits(6)}"),
        "driver_license": ("LICENSE", f"{initial}{digits(3)}-{digits(4)}"),
        "plate": ("VEHICLE", places.plate(draw)),
        "vin": ("VEHICLE", places.vehicle_number(draw)),
        "serial": ("DEVICE", f"{pick('ABKLPZ', draw)}{pick('NRT', draw)}{digits(7)}"),
        "biometric": ("BIOMETRIC", pick(_BIOMETRICS, draw).format(digits(5))),
        "photo": ("PHOTO", pick(_PHOTOS, draw).format(digits(4))),
        "study_id": ("ID", f"{pick(('S', 'B', 'ST-', 'LAB'), draw)}{digits(2)}-{digits(4)}"),
    }
