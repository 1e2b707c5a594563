"""Generated identifiers of many kinds, for canaries.

Names come from lists (census, and the locale lists of the package Faker, read as data), restricted to the test part
(`held_out`); from ordinary words; or from no list: syllables that form neither a word nor a known name.
Numbers have the format of the number that they replace, or another usual format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType

from numpy.random import Generator

from clinveil.lexicons.ambiguity import FAMILIAR_FAMILY, USUAL_FAMILY, USUAL_GIVEN, lexical_classes, unlisted_name
from clinveil.lexicons.names import all_given_names, held_out, name_form, surnames
from clinveil.phi.detection.detectors.dates import MONTHS

Pool = tuple[Sequence[str], Sequence[str]]
"""First names and surnames."""

UNLISTED = "in no list"
_LOCALES: Mapping[str, tuple[str, ...]] = {
    "Spanish and Portuguese": ("es_MX", "es_ES", "pt_BR"),
    "French and Italian": ("fr_FR", "it_IT"),
    "German and Dutch": ("de_DE", "nl_NL"),
    "Polish and Finnish": ("pl_PL", "fi_FI"),
    "Turkish": ("tr_TR",),
    "Indian and Pakistani": ("en_IN", "en_PK"),
    "Indonesian": ("id_ID",),
    "West African": ("yo_NG", "ig_NG", "ha_NG", "tw_GH"),
    "Southern and East African": ("zu_ZA", "sw"),
}
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]{3,}(?:['-][A-Za-zÀ-ɏ]{2,})?")


_DOMAINS = ("mail.example", "clinic.example", "home.example.org")
_STREETS = ("Street", "Avenue", "Road", "Lane", "Drive", "Court")


@cache
def name_pools() -> Mapping[str, Pool]:
    """Return kind of name -> first names and surnames. `UNLISTED` has empty lists; its names are generated."""
    given, family = all_given_names(), surnames()
    usual = (_kept(n for n, share in given.items() if share >= USUAL_GIVEN),
             _kept(n for n, share in family.items() if share >= FAMILIAR_FAMILY))  # fmt: skip
    rare = (_kept(n for n, share in given.items() if share < USUAL_GIVEN),
            _kept(n for n, share in family.items() if share < USUAL_FAMILY))  # fmt: skip
    words = _kept(n for n, share in family.items() if share >= USUAL_FAMILY and lexical_classes(n) & 4 and len(n) > 3)
    pools = {"usual": usual, "rare": rare, "that are words": (usual[0], words), UNLISTED: ((), ())}
    return MappingProxyType(pools | {people: _of_locales(locales) for people, locales in _LOCALES.items()})


def _kept(names: object) -> list[str]:
    return sorted({name.capitalize() for name in names if held_out(name)})  # type: ignore[attr-defined]


def _of_locales(locales: tuple[str, ...]) -> Pool:
    providers = [import_module(f"faker.providers.person.{locale}").Provider for locale in locales]
    return _names(providers, "first_name"), _names(providers, "last_name")


def _names(providers: Sequence[type], kind: str) -> list[str]:
    lists = (getattr(p, attribute) for p in providers for attribute in dir(p) if kind in attribute)
    names = {str(name) for names in lists if isinstance(names, list | tuple | dict | set) for name in names}
    return sorted(name for name in names if _LATIN.fullmatch(name) and held_out(name))


def invented_name(kind: str, *, family: bool, rng: Generator, exclude: str = "") -> str:
    """Return a capitalised first name or surname of a kind, different from `exclude`."""
    if kind == UNLISTED:
        return unlisted_name(lambda n: int(rng.integers(n)))
    pool = name_pools()[kind][family]
    drawn = _choice(pool, rng)
    return drawn if name_form(drawn) != name_form(exclude) else invented_name(kind, family=family, rng=rng, exclude="")


def _choice(items: Sequence[str], rng: Generator) -> str:
    return items[int(rng.integers(len(items)))]


def _number(low: int, high: int) -> Callable[[Generator], int]:
    return lambda rng: int(rng.integers(low, high + 1))


_PARTS: Mapping[str, Callable[[Generator], int]] = {
    **{"d": _number(1, 28), "dd": _number(10, 28), "m": _number(1, 12), "mm": _number(10, 12)},
    **{"yyyy": _number(1941, 2023), "yy": _number(10, 23), "n3": _number(200, 989), "n4": _number(1000, 9899)},
    **{"n2": _number(11, 98), "n6": _number(100_100, 998_900), "n7": _number(1_001_000, 9_989_000)},
    **{"old": _number(90, 107), "house": _number(3, 2999)},
}
SHAPES: Mapping[str, tuple[str, ...]] = {
    "DATE": (
        *("{m}/{d}/{yyyy}", "{mm}/{dd}/{yy}", "{month} {d}, {yyyy}", "{dd} {month} {yyyy}", "{yyyy}-{mm}-{dd}"),
        *("{mon} {d}", "{d} {mon} {yyyy}", "{m}/{dd}", "{month} {d}th", "{mon}. {d}, {yyyy}", "{dd}.{mm}.{yyyy}"),
    ),
    "PHONE": ("({n3}) {n3}-{n4}", "{n3}-{n3}-{n4}", "{n3}.{n3}.{n4}", "+1 {n3} {n3} {n4}", "{n3}{n3}{n4}", "{n3}-{n4}"),
    "MRN": ("{n7}", "{n2}-{n2}-{n3}", "{n6}", "{n3}-{n4}", "0{n7}", "{letter}{n6}"),
    "SSN": ("{n3}-{n2}-{n4}", "{n3} {n2} {n4}"),
    "EMAIL": ("{given}.{family}@{domain}", "{letter}{family}{n2}@{domain}", "{family}_{n2}@{domain}"),
    "AGE": ("{old}",),
    "ADDRESS": ("{house} {family} {street}", "{house} {given} {street}, Apt {n2}", "{house} {family} {street_short}"),
}
SHAPES = {**SHAPES, "FAX": SHAPES["PHONE"], "ID": SHAPES["MRN"]}
_DIGIT, _LETTER = re.compile(r"\d"), re.compile("[A-Z]")


def invented(label: str, original: str, rng: Generator) -> tuple[str, str]:
    """Generate an identifier of a label; also return whether it has the `same form` as the original or `another
    form`.
    """
    same = label in ("MRN", "ID", "PHONE", "FAX", "SSN") and rng.integers(2) == 0
    if same and _DIGIT.search(original):
        digits = _DIGIT.sub(lambda match: str(rng.integers(1, 10)), original)
        return _LETTER.sub(lambda match: chr(65 + int(rng.integers(26))), digits), "same form"
    return _filled(_choice(SHAPES[label], rng), rng), "another form"


def _filled(shape: str, rng: Generator) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: _part(match[1], rng), shape)


def _part(name: str, rng: Generator) -> str:
    if name in _PARTS:
        return str(_PARTS[name](rng))
    if name in ("given", "family"):
        return invented_name("rare", family=name == "family", rng=rng)
    drawn = {"month": MONTHS, "mon": [m[:3] for m in MONTHS], "domain": _DOMAINS, "street": _STREETS,
             "street_short": ("St", "Ave", "Rd", "Blvd"), "letter": list("ABDEHKMNRT")}[name]  # fmt: skip
    return _choice(drawn, rng)
