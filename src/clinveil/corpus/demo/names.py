"""Names of synthetic people: US census frequencies, name lists of other cultures, words, eponyms,
other scripts.

The census lists are in `lexicons.names`; those of other cultures come from the package `Faker`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import Literal, NamedTuple

from clinveil.corpus.demo.grammar import Draw, pick
from clinveil.corpus.demo.language import language
from clinveil.lexicons import given_names, surnames

OTHER_CULTURE = 0.24
MIXED = 0.3
WORDLIKE = 0.03
NATIVE = 0.012
ACCENT = 0.4
HYPHEN = 0.03
MIDDLE = 0.75
LEAST_SHARE = 0.00005
_LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ'’ -]+")
_IRISH = re.compile(r"O(BRIEN|BRYANT?|CONNOR|CONNELL|DONNELL|DONOGHUE|DRISCOLL|GRADY|GORMAN|HARA"
r"|KEEFE|LEARY)$|"
                    r"O(MALLEY|MEARA|NEAL|NEILL?|REILLY|ROURKE|SHEA|SULLIVAN|TOOLE|HANLON"
                    r"|DELL)$")  # fmt: skip
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


class Frequencies(NamedTuple):
    """Names and the cumulative sums of their frequencies."""

    names: list[str]
    cumulative: list[float]

    def draw_name(self, draw: Draw) -> str:
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
    # The list has three decimals; a small minimum share keeps names with a share that is rounded to
    # 0.
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

    def listed(kind: str, both: str) -> list[str]:
        names = getattr(provider, kind, None) or getattr(provider, both, None) or ()
        return sorted({name for name in names if _LATIN.fullmatch(name) and name[0].isupper()})

    kinds = [
        ("first_names", "female"),
        ("first_names", "male"),
        ("last_names", "female"),
        ("last_names", "male"),
    ]
    return Culture(*(listed(f"{both}_{sex}", both) for both, sex in kinds))


@cache
def _native() -> dict[str, list[Name]]:
    names: dict[str, list[Name]] = {"F": [], "M": []}
    for row in language().names["native"].split("; "):
        first_name, family, written, sex = row.split("|")
        names[sex].append(Name(first_name, "", family, written))
    return names


@cache
def _accents() -> dict[str, str]:
    return dict(pair.split("=") for pair in language().names["accents"].split("; "))


def given_name(sex: str, draw: Draw) -> str:
    """Return a given name of the census, or rarely a word."""
    kind: Literal["female", "male"] = "female" if sex == "F" else "male"
    if draw() < WORDLIKE:
        return pick(language().names[kind].split("; "), draw)
    return _accented(census(kind).draw_name(draw), draw)


def family_name(draw: Draw) -> str:
    """Return a family name of the census, or rarely a word or eponym; some are hyphenated."""
    chance = draw()
    if chance < WORDLIKE:
        return pick(language().names["last"].split("; "), draw)
    name = _accented(census("last").draw_name(draw), draw)
    return f"{name}-{census('last').draw_name(draw)}" if chance < WORDLIKE + HYPHEN else name


def person_name(sex: str, draw: Draw) -> Name:
    """Return a full name: mostly of the census, a quarter of other cultures, some mixed."""
    if draw() < NATIVE:
        return pick(_native()[sex], draw)
    first_name = given_name(sex, draw)
    family = family_name(draw)
    middle = given_name(sex, draw) if draw() < MIDDLE else ""
    if draw() < OTHER_CULTURE:
        culture = pick(cultures(), draw)
        firsts = culture[sex == "M"]
        lasts = culture[2 + (sex == "M")]
        family = pick(lasts, draw)
        if draw() > MIXED:
            first_name = pick(firsts, draw)
            middle = pick(firsts, draw) if middle and draw() < MIDDLE else ""
    return Name(first_name, middle, family, f"{first_name} {family}")


def ascii_letters(name: str) -> str:
    """Return the name in lower-case ASCII letters, for an e-mail address."""
    folded = unicodedata.normalize("NFKD", name).lower()
    return "".join(c for c in folded if "a" <= c <= "z")


def _accented(name: str, draw: Draw) -> str:
    accented = _accents().get(name)
    return accented if accented and draw() < ACCENT else name
