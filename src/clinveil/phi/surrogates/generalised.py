"""Coarser values in the place of exact ones: the year, 90+, three digits of a postal code, the state of a town.

After the list of 45 CFR 164.514(b)(2)(i): a date keeps its year, but not one that may be the birth of somebody over 89;
ages over 89 are one class; a postal code keeps three digits where more than 20,000 people share them, and is 000 where
not. What cannot be made coarser for certain gives None, and the caller writes a tag.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from clinveil.lexicons.words import word_list
from clinveil.phi.surrogates.dates import DATE_BRACKET, parse

OLD_AGE = "90+"
# A birth of that year or before makes an age of 90 or more possible; the detector of ages draws the same line.
LAST_OLD_YEAR = 1939
# First digits that 20,000 people or fewer share: the list of the Department of Health's guidance of 2012 (census of
# 2000), and those that fell under the line in the census of 2010.
SPARSE = frozenset(
    [
        "036",
        "059",
        "063",
        "102",
        "202",
        "203",
        "204",
        "205",
        "369",
        "556",
        "692",
        "753",
        "772",
        "790",
        "821",
        "823",
        "830",
        "831",
        "878",
        "879",
        "884",
        "890",
        "893",
    ]
)
_YEAR = re.compile(r"(?<!\d)(?:1[89]|2[01])\d{2}(?!\d)|(?<=\d[/.-])\d{2}$|(?<=['’])\s?\d{2}(?!\d)")
_ZIP = re.compile(r"(\d{3})\d{2}(?:-?\d{4})?")
_NEXT_STATE = re.compile(r",?\s+(?:[A-Z]{2}\b|" + "|".join(sorted(word_list("states"))) + ")")


def year(original: str, after: str = "") -> str | None:
    """`3/4/2019` -> 2019, `12/8/61` -> '61, `Dec '19` -> '19; None without a year, with two, or where it may be old."""
    if (bracket := DATE_BRACKET.search(original)) and bracket["kind"]:
        return None
    read, written = parse(original), original.strip()
    if read is None:
        years = {match[0].strip() for match in _YEAR.finditer(written)}
    else:
        years = {whole if (whole := str(read[0].year)) in written else whole[2:]}
    if len(years) != 1:
        return None
    found = years.pop()
    if len(found) == 2:  # '29 may be 1929 as well as 2029
        return None if int(found) <= LAST_OLD_YEAR % 100 and not _recent(found) else f"'{found}"
    return found if int(found) > LAST_OLD_YEAR else None


def _recent(short: str) -> bool:
    """Whether two digits are taken for a year of this century rather than for a birth in the last."""
    return int(short) < 27


def old_age(original: str, after: str = "") -> str | None:
    """All ages over 89 are one class; a year or date of birth that gives one away has none."""
    return None if re.search(r"\d{4}|/", original) else OLD_AGE


def three_digits(original: str, after: str = "") -> str | None:
    """`02114-1234` -> 021**, 000** where few live; None for a code that is none of the United States."""
    match = _ZIP.fullmatch(original.strip())
    if match is None:
        return None
    return "000**" if match[1] in SPARSE else f"{match[1]}**"


def state(original: str, after: str = "") -> str | None:
    """`Seattle` -> Washington; None for a town that is not known, that several states have, or whose state follows."""
    if _NEXT_STATE.match(after):
        return None
    return _states().get(" ".join(original.split()).casefold())


@cache
def _states() -> dict[str, str]:
    file = files("clinveil.phi.surrogates").joinpath("city_states.toml")
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        town.replace("_", " ").casefold(): name.replace("_", " ")
        for name, towns in said.items()
        for town in towns.split()
    }


GENERALISED: dict[str, Callable[[str, str], str | None]] = {
    "DATE": year,
    "AGE": old_age,
    "ZIP": three_digits,
    "CITY": state,
}
