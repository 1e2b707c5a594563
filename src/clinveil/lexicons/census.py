"""Names of the United States census of 1990 with their frequencies, as the package `names` carries them.

Source: US Census Bureau, frequently occurring surnames and first names, 1990 (public domain): 88,799 surnames,
4,275 female and 1,219 male first names. A frequency is a share of the population in percent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

Gender = Literal["female", "male", ""]


@cache
def surnames() -> Mapping[str, float]:
    """Surname (lower case) -> percent of the population."""
    return _read("dist.all.last")


@cache
def given_names(gender: Literal["female", "male"]) -> Mapping[str, float]:
    """First name (lower case) -> percent of that gender."""
    return _read(f"dist.{gender}.first")


@cache
def all_given_names() -> Mapping[str, float]:
    """First name (lower case) -> mean of its two percentages."""
    female, male = given_names("female"), given_names("male")
    both = {name: (female.get(name, 0.0) + male.get(name, 0.0)) / 2 for name in (*female, *male)}
    return MappingProxyType(both)


def gender_of(form: str) -> Gender:
    """The gender that at least nine in ten bearers of a first name have, or an empty string."""
    female, male = given_names("female").get(form, 0.0), given_names("male").get(form, 0.0)
    if female > 9 * male:
        return "female"
    return "male" if male > 9 * female else ""


def _read(name: str) -> Mapping[str, float]:
    rows = (line.split() for line in files("names").joinpath(name).read_text(encoding="ascii").splitlines())
    return MappingProxyType({row[0].lower(): float(row[1]) for row in rows if row})
