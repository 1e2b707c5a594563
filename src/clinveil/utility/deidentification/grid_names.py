"""The names of the grid by class and culture; all of them are from `held_out`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Literal, NamedTuple, TypeVar

from numpy.random import Generator, default_rng

from clinveil.corpus import spelt
from clinveil.lexicons import (
    given_names,
    held_out,
    name_form,
    surnames,
    vocabulary,
    word_list,
    world_given,
    world_surnames,
)

Sex = Literal["female", "male"]
SEXES: tuple[Sex, Sex] = ("female", "male")
# Surnames by rank in the census: the 1,000 most frequent, the next 9,000, all others.
BANDS = {
    "census common": slice(0, 1000),
    "census middle": slice(1000, 10_000),
    "census rare": slice(10_000, None),
}
CLASSES = (*BANDS, "words", "eponyms", "hyphenated", "particles", "unlisted")
PARTICLES = (
    "van der ",
    "van den ",
    "van ",
    "von ",
    "de la ",
    "de los ",
    "de ",
    "del ",
    "da ",
    "dos ",
    "di ",
    "della ",
    "le ",
    "du ",
    "ter ",
    "al-",
    "el-",
    "Al-",
    "El ",
    "bin ",
    "binti ",
    "ap ",
    "St. ",
    "Mac",
    "Mc",
    "O'",
    "D'",
    "O’",
)
_LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ'’ -]{2,}")
_ORDER = 3
_SHORTEST = 5
_LONGEST = 10
UNLISTED = 400
T = TypeVar("T")


class GridPerson(NamedTuple):
    """A person's name with its spelling; if a list has no gender, `sex` selects pronouns only."""

    given: str
    family: str
    sex: Sex


@dataclass(frozen=True)
class NameList:
    """Given names by gender and family names, to sample people from.

    Attributes:
        gendered: whether the given names have a gender.
    """

    female: Sequence[str]
    male: Sequence[str]
    family: Sequence[str]
    gendered: bool = True

    def person(self, rng: Generator, sex: Sex | None = None) -> GridPerson:
        """Sample a person, with all names equally likely; without `sex`, women and men are equally
        likely.
        """
        of: Sex = draw_one(SEXES, rng) if sex is None else sex
        return GridPerson(
            draw_one(self.female if of == "female" else self.male, rng),
            draw_one(self.family, rng),
            of,
        )


def draw_one(things: Sequence[T], rng: Generator) -> T:
    """Sample one of some items, all equally likely."""
    return things[int(rng.integers(len(things)))]


@cache
def name_lists() -> Mapping[tuple[str, str], NameList]:
    """Return all lists by (class, culture); the culture is empty for classes without one."""
    made = {(which, ""): _census(which) for which in BANDS}
    common = made["census common", ""]
    middle = made["census middle", ""]
    eponyms = _surnames(lambda form: form in word_list("eponyms") and held_out(form))
    made["words", ""] = _words(common)
    made["eponyms", ""] = NameList(common.female, common.male, eponyms)
    doubled = [f"{a}-{b}" for a, b in zip(common.family, middle.family[3:], strict=False)]
    made["hyphenated", ""] = NameList(
        _half_doubled(common.female), _half_doubled(common.male), doubled
    )
    particles = [p + name for p in PARTICLES for name in common.family[:40]]
    made["particles", ""] = NameList(common.female, common.male, particles)
    made["unlisted", ""] = NameList(
        _unlisted(given_names("female")), _unlisted(given_names("male")), _unlisted(surnames())
    )
    return made | {("culture", name): _culture(table) for name, table in _cultures().items()}


@cache
def _cultures() -> Mapping[str, Mapping[str, object]]:
    text = files(__package__).joinpath("cultures.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _surnames(kept: Callable[[str], bool], ranks: slice = slice(None)) -> list[str]:
    return [spelt(name.upper()) for name in list(surnames())[ranks] if kept(name)]


def _census(which: str) -> NameList:
    """Return a band of surnames, and given names (most frequent first), without those that are
    words.
    """

    def plain(form: str) -> bool:
        return held_out(form) and form not in vocabulary() and form not in word_list("eponyms")

    size = 100 if which == "census common" else None
    female, male = (
        [
            spelt(name.upper())
            for name in given_names(sex)
            if held_out(name) and name not in vocabulary()
        ][:size]
        for sex in SEXES
    )
    return NameList(female, male, _surnames(plain, BANDS[which]))


def _words(common: NameList) -> NameList:
    """Return names that are common words: all family names, and the given name of every second
    person.
    """
    family = _surnames(lambda form: form in vocabulary() and held_out(form), slice(0, 20_000))

    def given(sex: Sex, other: Sequence[str]) -> list[str]:
        words = [
            name.capitalize()
            for name in given_names(sex)
            if name in vocabulary() and held_out(name)
        ]
        return [*words, *other[: len(words)]]

    return NameList(given("female", common.female), given("male", common.male), family)


def _half_doubled(names: Sequence[str]) -> list[str]:
    half = len(names) // 2
    return [*names[:half], *(f"{a}-{b}" for a, b in zip(names[:half], names[half:], strict=False))]


def _unlisted(source: Iterable[str]) -> list[str]:
    """Return names that are in no list, generated from the letter sequences of listed names."""
    follows: dict[
        str, list[str]
    ] = {}  # three letters -> all letters that follow them; spaces mark the ends of names
    for name in source:
        padded = " " * _ORDER + name + " "
        for start in range(len(name) + 1):
            follows.setdefault(padded[start : start + _ORDER], []).append(padded[start + _ORDER])
    rng = default_rng(1990)
    made = dict[str, None]()
    while len(made) < UNLISTED:
        letters = " " * _ORDER
        while not letters.endswith(" ") or not letters.strip():
            letters += draw_one(follows[letters[-_ORDER:]], rng)
        name = letters.strip()
        if _SHORTEST <= len(name) <= _LONGEST and not _listed(name) and held_out(name):
            made[name.capitalize()] = None
    return list(made)


def _listed(form: str) -> bool:
    lists = (
        surnames(),
        given_names("female"),
        given_names("male"),
        world_given(),
        world_surnames(),
        vocabulary(),
    )
    return any(form in known for known in lists) or form in _bundled()


@cache
def _bundled() -> frozenset[str]:
    """Return the forms of the names in `cultures.toml`."""
    tables = _cultures().values()
    return frozenset(
        name_form(name)
        for table in tables
        for key in _KEYS
        for name in str(table.get(key, "")).split()
    )


_KEYS = ("female", "male", "family")
_ATTRIBUTES = {
    "female": (
        "first_names_female",
        "first_romanized_names_female",
        "first_names",
        "first_romanized_names",
    ),
    "male": (
        "first_names_male",
        "first_romanized_names_male",
        "first_names",
        "first_romanized_names",
    ),
    "family": (
        "last_names",
        "last_romanized_names",
        "unisex_last_names",
        "last_names_female",
        "last_names_male",
    ),
}


def _culture(table: Mapping[str, object]) -> NameList:
    female, male, family = (
        sorted({name for name in _of_culture(table, key) if held_out(name)}) for key in _KEYS
    )
    return NameList(female, male, family, gendered=female != male)


def _of_culture(table: Mapping[str, object], key: str) -> Iterator[str]:
    yield from (name.replace("_", " ") for name in str(table.get(key, "")).split())
    for locale in table.get("locales", ()):  # type: ignore[attr-defined]
        # Without inherited English names.
        provider = vars(import_module(f"faker.providers.person.{locale}").Provider)
        filled = (provider[name] for name in _ATTRIBUTES[key] if provider.get(name))
        listed = next(filled, ())
        yield from (
            name for name in map(str, listed) if _LATIN.fullmatch(name) and name[0].isupper()
        )
