"""Names of synthetic people: US census frequencies, name lists of other cultures, words, eponyms, other scripts.

The census lists are in `lexicons.names`; those of other cultures come from the package `Faker`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import Literal, NamedTuple

from clinveil.corpus.demo.grammar import Draw, pick
from clinveil.corpus.demo.language import language
from clinveil.lexicons.names import given_names, surnames

OTHER_CULTURE, MIXED, WORDLIKE, NATIVE = 0.24, 0.3, 0.03, 0.012
ACCENT, HYPHEN, MIDDLE = 0.4, 0.03, 0.75
LEAST_SHARE = 0.00005
_LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ'’ -]+")
_IRISH = re.compile(r"O(BRIEN|BRYANT?|CONNOR|CONNELL|DONNELL|DONOGHUE|DRISCOLL|GRADY|GORMAN|HARA|KEEFE|LEARY)$|"
                    r"O(MALLEY|MEARA|NEAL|NEILL?|REILLY|ROURKE|SHEA|SULLIVAN|TOOLE|HANLON|DELL)$")  # fmt: skip
_ITALIAN = re.compile(r"D(ANGELO|AMICO|AGOSTINO|AMBROSIO|ANDREA|ADDARIO|ALESSANDRO|ONOFRIO)$")
_SCOTTISH = re.compile(r"MC[A-Z]{3,}")


class Name(NamedTuple):
    """A full name by parts.

    Attributes:
        middle: "" if there is none.
        native: the name in the person's own script; for most the same name.
    """

    given: str
    middle: str
    family: str
    native: str

    @property
    def full(self) -> str:
        """Given and family name."""
        return f"{self.given} {self.family}"

    @property
    def tokens(self) -> tuple[str, ...]:
        """All parts, split at spaces."""
        return tuple(f"{self.given} {self.middle} {self.family}".split())


@dataclass(frozen=True)
class Frequencies:
    """Names and the cumulative sums of their frequencies."""

    names: list[str] = field(repr=False)
    cumulative: list[float] = field(repr=False)

    def one(self, draw: Draw) -> str:
        """Return a name, drawn by frequency."""
        return self.names[bisect(self.cumulative, draw() * self.cumulative[-1])]


def spelt(census: str) -> str:
    """Return a census name (capitals) in its usual spelling: McKay, O'Brien, D'Angelo, Smith."""
    if _SCOTTISH.fullmatch(census):
        return "Mc" + census[2:].capitalize()
    if _IRISH.fullmatch(census) or _ITALIAN.fullmatch(census):
        return f"{census[0]}'{census[1:].capitalize()}"
    return census.capitalize()


@cache
def census(which: Literal["last", "female", "male"]) -> Frequencies:
    """Return the census frequencies of surnames, or of the first names of women or men."""
    table = surnames() if which == "last" else given_names(which)
    # The list has three decimals; a small minimum share keeps names whose share is rounded to 0.
    shares = (max(share, LEAST_SHARE) for share in table.values())
    return Frequencies([spelt(name.upper()) for name in table], list(accumulate(shares)))


class Culture(NamedTuple):
    """The name lists of one locale."""

    female: list[str]
    male: list[str]
    female_family: list[str]
    male_family: list[str]


@cache
def cultures() -> list[Culture]:
    """Return the locales with enough names in Latin script."""
    return [_culture(locale) for locale in language().names["locales"]]


def _culture(locale: str) -> Culture:
    provider = import_module(f"faker.providers.person.{locale}").Provider

    def listed(*attributes: str) -> list[str]:
        names = next((names for a in attributes if (names := getattr(provider, a, None))), ())
        return sorted({name for name in names if _LATIN.fullmatch(name) and name[0].isupper()})

    return Culture(
        listed("first_names_female", "first_names"),
        listed("first_names_male", "first_names"),
        listed("last_names_female", "last_names"),
        listed("last_names_male", "last_names"),
    )


class _Special(NamedTuple):
    wordlike: dict[str, list[str]]
    accents: dict[str, str]
    native: dict[str, list[Name]]


@cache
def _special() -> _Special:
    table = language().names
    native: dict[str, list[Name]] = {"F": [], "M": []}
    for row in table["native"].split("; "):
        given, family, written, sex = row.split("|")
        native[sex].append(Name(given, "", family, written))
    wordlike = {key: table[key].split("; ") for key in ("female", "male", "last")}
    return _Special(wordlike, dict(pair.split("=") for pair in table["accents"].split("; ")), native)


def given_name(sex: str, draw: Draw) -> str:
    """Return a given name of the census, or rarely a word."""
    if draw() < WORDLIKE:
        return pick(_special().wordlike["female" if sex == "F" else "male"], draw)
    return _accented(census("female" if sex == "F" else "male").one(draw), draw)


def family_name(draw: Draw) -> str:
    """Return a family name of the census, or rarely a word or eponym; some are hyphenated."""
    special, chance = _special(), draw()
    if chance < WORDLIKE:
        return pick(special.wordlike["last"], draw)
    name = _accented(census("last").one(draw), draw)
    return f"{name}-{census('last').one(draw)}" if chance < WORDLIKE + HYPHEN else name


def person_name(sex: str, draw: Draw) -> Name:
    """Return a full name: mostly of the census, a quarter of other cultures, some mixed."""
    if draw() < NATIVE:
        return pick(_special().native[sex], draw)
    given, family = given_name(sex, draw), family_name(draw)
    middle = given_name(sex, draw) if draw() < MIDDLE else ""
    if draw() < OTHER_CULTURE:
        culture = pick(cultures(), draw)
        firsts, lasts = culture[:2], culture[2:]
        family = pick(lasts[sex == "M"], draw)
        if draw() > MIXED:
            given = pick(firsts[sex == "M"], draw)
            middle = pick(firsts[sex == "M"], draw) if middle and draw() < MIDDLE else ""
    return Name(given, middle, family, f"{given} {family}")


def ascii_letters(name: str) -> str:
    """Return the name in lower-case ASCII letters, for an e-mail address."""
    folded = unicodedata.normalize("NFKD", name).lower()
    return "".join(c for c in folded if "a" <= c <= "z")


def _accented(name: str, draw: Draw) -> str:
    accented = _special().accents.get(name)
    return accented if accented and draw() < ACCENT else name
