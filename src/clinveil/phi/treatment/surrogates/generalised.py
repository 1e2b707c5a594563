"""Generalisation: the year of a date, 90+ for ages, three digits of a postal code, the state of a
city.

Follows 45 CFR 164.514(b)(2)(i). A date keeps its year unless it may be the birth year of a person
over 89. Ages over 89 form one class. A postal code keeps three digits if more than 20,000 people
share them, and becomes 000 otherwise. If a value cannot be generalised with certainty, the result
is None and the caller writes a tag.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from clinveil.lexicons import word_list
from clinveil.phi.detection.detector import words
from clinveil.phi.treatment.dates import DATE_BRACKET, parse

OLD_AGE = "90+"
# A birth in this year or before allows an age of 90 or more; the age detector uses the same limit.
LAST_OLD_YEAR = 1939
_LAST_YEAR = 26  # two digits up to this are a year of this century, not a birth year of the last
# Three-digit prefixes shared by 20,000 people or fewer: the list in the guidance of the Department
# of Health of 2012 (census of 2000), and those below the limit in the census of 2010.
SPARSE = words(
    "036 059 063 102 202 203 204 205 369 556 692 753 772 790 821 823 830 831 878 879 884 890 893"
)
_YEAR = re.compile(r"(?<!\d)(?:1[89]|2[01])\d{2}(?!\d)|(?<=\d[/.-])\d{2}$|(?<=['’])\s?\d{2}(?!\d)")
_YEARS = re.compile(r"(?:19|20)\d\d\s?(?:-|–|/|to|through|until|till)\s?(?:19|20)?\d\d")
_ZIP = re.compile(r"(\d{3})\d{2}(?:-?\d{4})?")
_NEXT_STATE = re.compile(r",?\s+(?:[A-Z]{2}\b|" + "|".join(sorted(word_list("states"))) + ")")


def year(original: str, after: str = "") -> str | None:
    """Return `3/4/2019` -> 2019, `12/8/61` -> '61, `Dec '19` -> '19; None without one certain,
    recent year.
    """
    if (bracket := DATE_BRACKET.search(original)) and bracket["kind"]:
        return None
    parsed = parse(original)
    written = original.strip()
    if parsed is None and _YEARS.fullmatch(written):  # a range of years, which alone may stay
        numbers = [int(number) for number in re.findall(r"\d{4}", written)]
        return written if all(number > LAST_OLD_YEAR for number in numbers) else None
    if parsed is None:
        years = {match[0].strip() for match in _YEAR.finditer(written)}
    else:
        years = {full if (full := str(parsed[0].year)) in written else full[2:]}
    if len(years) != 1:
        return None
    written_year = years.pop()
    if len(written_year) == 2:  # '29 may be 1929 or 2029
        return None if _LAST_YEAR < int(written_year) <= LAST_OLD_YEAR % 100 else f"'{written_year}"
    return written_year if int(written_year) > LAST_OLD_YEAR else None


def old_age(original: str, after: str = "") -> str | None:
    """Return the class of ages over 89, or None for a year or date of birth."""
    return None if re.search(r"\d{4}|/", original) else OLD_AGE


def three_digits(original: str, after: str = "") -> str | None:
    """Return `02114-1234` -> 021**, or 000** for a sparse area; None for codes outside the United
    States.
    """
    match = _ZIP.fullmatch(original.strip())
    return None if match is None else "000**" if match[1] in SPARSE else f"{match[1]}**"


def state(original: str, after: str = "") -> str | None:
    """Return `Seattle` -> Washington; None for an unknown or ambiguous city, or if its state
    follows in the text.
    """
    if _NEXT_STATE.match(after):
        return None
    return _states().get(" ".join(original.split()).casefold())


@cache
def _states() -> dict[str, str]:
    file = files("clinveil.phi.treatment.surrogates").joinpath("city_states.toml")
    cities = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        town.replace("_", " ").casefold(): name.replace("_", " ")
        for name, towns in cities.items()
        for town in towns.split()
    }


GENERALISED: dict[str, Callable[[str, str], str | None]]
GENERALISED = {"DATE": year, "AGE": old_age, "ZIP": three_digits, "CITY": state}
