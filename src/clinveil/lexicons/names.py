"""First names and surnames with their frequencies, and the normalised form used for look-ups.

Source: the United States census of 1990, as distributed in the package `names` (US Census Bureau,
frequently occurring surnames and first names, public domain): 88,799 surnames, 4,275 female and
1,219 male first names. A frequency is a percentage of the population. Names of other cultures come
from the locale lists of the package Faker (MIT), which are read as data; nothing is generated. Only
names in Latin script are used. If Faker cannot import one of its locales, the installation is
broken and the error propagates.
"""

from __future__ import annotations

import pkgutil
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from hashlib import blake2b
from importlib import import_module
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

# Letters that Unicode does not decompose into a base letter and an accent.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)
Gender = Literal["female", "male", ""]
HELD_OUT_ONE_IN = 5
_PIECE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@lru_cache(maxsize=1 << 14)
def name_form(word: str) -> str:
    """Return the normalised form of a name, letters only: `José` -> jose, `O'Brien` -> obrien,
    `NUÑEZ` -> nunez.

    All spellings of a name share one form, so surrogates keyed by the form are consistent.
    """
    if word.isascii():
        return word.lower() if word.isalpha() else "".join(filter(str.isalpha, word.lower()))
    folded = unicodedata.normalize(
        "NFKD", unicodedata.normalize("NFKC", word).casefold()
    ).translate(_LETTERS)
    return "".join(c for c in folded if c.isalpha())


@cache
def surnames() -> Mapping[str, float]:
    """Return surname (lower case) -> percent of the population."""
    return _read("dist.all.last")


@cache
def given_names(gender: Literal["female", "male"]) -> Mapping[str, float]:
    """Return first name (lower case) -> percent of that gender."""
    return _read(f"dist.{gender}.first")


@cache
def all_given_names() -> Mapping[str, float]:
    """Return first name (lower case) -> mean of its female and male percentages."""
    female = given_names("female")
    male = given_names("male")
    shares = {name: (female.get(name, 0.0) + male.get(name, 0.0)) / 2 for name in (*female, *male)}
    return MappingProxyType(shares)


def gender_of(form: str) -> Gender:
    """Return the gender of more than nine in ten bearers of a first name, or an empty string."""
    female = given_names("female").get(form, 0.0)
    male = given_names("male").get(form, 0.0)
    if female > 9 * male:
        return "female"
    return "male" if male > 9 * female else ""


def _read(name: str) -> Mapping[str, float]:
    rows = (
        line.split()
        for line in files("names").joinpath(name).read_text(encoding="ascii").splitlines()
    )
    return MappingProxyType({row[0].lower(): float(row[1]) for row in rows if row})


@cache
def world_given() -> frozenset[str]:
    """Return the first names of all locales, as normalised forms of at least three letters."""
    return frozenset(_forms("first_name"))


@cache
def world_surnames() -> frozenset[str]:
    """Return the surnames of all locales, as normalised forms of at least three letters."""
    return frozenset(_forms("last_name"))


def _forms(kind: str) -> Iterator[str]:
    import faker.providers.person as person

    for module in pkgutil.iter_modules(person.__path__):
        provider = import_module(f"{person.__name__}.{module.name}").Provider
        for attribute in dir(provider):
            names = getattr(provider, attribute)
            if kind in attribute and isinstance(names, list | tuple | dict | set | frozenset):
                yield from _pieces(str(name) for name in names)


def _pieces(names: Iterator[str]) -> Iterator[str]:
    """Yield each word of each name: `José Luis` yields two."""
    for name in names:
        for piece in _PIECE.findall(name):
            form = name_form(piece)
            if len(form) >= 3 and form.isascii():
                yield form


@cache
def nicknames() -> Mapping[str, frozenset[str]]:
    """Return form -> forms of the same first name: William -> bill, billy, will, …, and Billy ->
    william, bill.
    """
    text = files("clinveil.lexicons").joinpath("data", "nicknames.txt").read_text(encoding="utf-8")
    groups = [line.split("/") for line in text.partition("\n")[2].split()]
    variants: dict[str, set[str]] = {}
    for full, *short in groups:
        variants.setdefault(full, set()).update(short)
        for nickname in short:
            variants.setdefault(nickname, set()).update((full, *short))
    return MappingProxyType({form: frozenset(others - {form}) for form, others in variants.items()})


@lru_cache(maxsize=1 << 16)
def held_out(name: str) -> bool:
    """Return whether a name belongs to the fifth reserved for tests; models trained on names never
    use these.

    It depends only on the normalised form.

    >>> [name for name in ("Nelson", "NELSON", "Smith") if held_out(name)]
    ['Nelson', 'NELSON']
    """
    digest = blake2b(name_form(name).encode(), digest_size=8, person=b"held-out name").digest()
    return int.from_bytes(digest, "big") % HELD_OUT_ONE_IN == 0
