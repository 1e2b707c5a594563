"""Names of many cultures from the locale lists of the package Faker (MIT), read as data: nothing is generated.

Only names in Latin script are taken; a locale that Faker cannot import is a fault of the installation and raises.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from clinveil.lexicons.forms import name_form

_PIECE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@cache
def world_given() -> frozenset[str]:
    """First names of all locales, as name forms of at least three letters."""
    return frozenset(_forms("first_name"))


@cache
def world_surnames() -> frozenset[str]:
    """Surnames of all locales, as name forms of at least three letters."""
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
    """Each word of each name: `José Luis` gives two."""
    for name in names:
        for piece in _PIECE.findall(name):
            form = name_form(piece)
            if len(form) >= 3 and form.isascii():
                yield form
