"""Names by class and culture for the grid, only from `held_out`, which is not used for training."""

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

from clinveil.corpus.demo.names import spelt
from clinveil.lexicons.names import given_names, held_out, name_form, surnames, world_given, world_surnames
from clinveil.lexicons.words import vocabulary, word_list

Sex = Literal["female", "male"]
SEXES: tuple[Sex, Sex] = ("female", "male")
# Surnames by rank in the census: the 1,000 most frequent, the next 9,000, all others.
BANDS = {"census common": slice(0, 1000), "census middle": slice(1000, 10_000), "census rare": slice(10_000, None)}
CLASSES = (*BANDS, "words", "eponyms", "hyphenated", "particles", "unlisted")
PARTICLES = (
    *("van der ", "van den ", "van ", "von ", "de la ", "de los ", "de ", "del ", "da ", "dos ", "di ", "della "),
    *("le ", "du ", "ter ", "al-", "el-", "Al-", "El ", "bin ", "binti ", "ap ", "St. ", "Mac", "Mc", "O'", "D'", "O’"),
)
_LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ'’ -]{2,}")
_ORDER, _SHORTEST, _LONGEST = 3, 5, 10
T = TypeVar("T")


class Person(NamedTuple):
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

    def person(self, rng: Generator, sex: Sex | None = None) -> Person:
        """Sample a person, with all names equally likely; without `sex`, women and men are equally likely."""
        of: Sex = one(SEXES, rng) if sex is None else sex
        return Person(one(self.female if of == "female" else self.male, rng), one(self.family, rng), of)


def one(things: Sequence[T], rng: Generator) -> T:
    """Sample one of some items, all equally likely."""
    return things[int(rng.integers(len(things)))]


@cache
def name_lists(*, every: bool = False) -> Mapping[tuple[str, str], NameList]:
    """Return all lists by (class, culture); the culture is empty for classes without one.

    Args:
        every: also names that are not held out (for inspection; results are not valid as a test).
    """
    kept: Callable[[str], bool] = (lambda name: True) if every else held_out
    made = {(which, ""): _census(which, kept) for which in BANDS}
    common = made["census common", ""]
    made["words", ""] = _words(common, kept)
    made["eponyms", ""] = _with_family(common, _surnames(lambda form: form in word_list("eponyms") and kept(form)))
    made["hyphenated", ""] = _hyphenated(made["census common", ""], made["census middle", ""])
    made["particles", ""] = _with_family(common, [p + name for p in PARTICLES for name in common.family[:40]])
    made["unlisted", ""] = _unlisted(kept)
    return made | {("culture", name): _culture(table, kept) for name, table in _cultures().items()}


@cache
def _cultures() -> Mapping[str, Mapping[str, object]]:
    text = files(__package__).joinpath("cultures.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _given(sex: Sex, kept: Callable[[str], bool]) -> list[str]:
    """Return given names of the census, most frequent first, without those that are words."""
    return [spelt(name.upper()) for name in given_names(sex) if kept(name) and name not in vocabulary()]


def _surnames(kept: Callable[[str], bool], ranks: slice = slice(None)) -> list[str]:
    return [spelt(name.upper()) for name in list(surnames())[ranks] if kept(name)]


def _census(which: str, kept: Callable[[str], bool]) -> NameList:
    def plain(form: str) -> bool:
        return kept(form) and form not in vocabulary() and form not in word_list("eponyms")

    size = 100 if which == "census common" else None
    return NameList(_given("female", kept)[:size], _given("male", kept)[:size], _surnames(plain, BANDS[which]))


def _with_family(given: NameList, family: Sequence[str]) -> NameList:
    return NameList(given.female, given.male, family)


def _words(common: NameList, kept: Callable[[str], bool]) -> NameList:
    """Return names that are common words: all family names, and the given name of every second person."""
    family = _surnames(lambda form: form in vocabulary() and kept(form), slice(0, 20_000))

    def given(sex: Sex, other: Sequence[str]) -> list[str]:
        words = [name.capitalize() for name in given_names(sex) if name in vocabulary() and kept(name)]
        return [*words, *other[: len(words)]]

    return NameList(given("female", common.female), given("male", common.male), family)


def _hyphenated(common: NameList, middle: NameList) -> NameList:
    """Return double family names; half of the given names are double too."""

    def doubled(names: Sequence[str]) -> list[str]:
        half = len(names) // 2
        return [*names[:half], *(f"{a}-{b}" for a, b in zip(names[:half], names[half:], strict=False))]

    pairs = [f"{a}-{b}" for a, b in zip(common.family, middle.family[3:], strict=False)]
    return NameList(doubled(common.female), doubled(common.male), pairs)


def _unlisted(kept: Callable[[str], bool], size: int = 400) -> NameList:
    """Return names that are in no list, generated from the letter sequences of census names."""
    female, male, family = (_written(which, kept, size) for which in ("female", "male", "family"))
    return NameList(female, male, family)


def _written(which: str, kept: Callable[[str], bool], size: int) -> list[str]:
    source = surnames() if which == "family" else given_names("female" if which == "female" else "male")
    follows = _followers(source)
    rng, made = default_rng(1990), dict[str, None]()
    while len(made) < size:
        name = _one_written(follows, rng)
        if _SHORTEST <= len(name) <= _LONGEST and not _listed(name) and kept(name):
            made[name.capitalize()] = None
    return list(made)


def _followers(names: Iterable[str]) -> Mapping[str, str]:
    """Return three letters -> all letters that follow them, with repetitions; spaces mark the ends of names."""
    letters: dict[str, list[str]] = {}
    for name in names:
        padded = " " * _ORDER + name + " "
        for start in range(len(name) + 1):
            letters.setdefault(padded[start : start + _ORDER], []).append(padded[start + _ORDER])
    return {three: "".join(following) for three, following in letters.items()}


def _one_written(follows: Mapping[str, str], rng: Generator) -> str:
    name = " " * _ORDER
    while not name.endswith(" ") or not name.strip():
        name += one(follows[name[-_ORDER:]], rng)
    return name.strip()


def _listed(form: str) -> bool:
    lists = (surnames(), given_names("female"), given_names("male"), world_given(), world_surnames(), vocabulary())
    return any(form in known for known in lists) or form in _written_down()


@cache
def _written_down() -> frozenset[str]:
    tables = _cultures().values()
    return frozenset(name_form(name) for table in tables for key in _KEYS for name in str(table.get(key, "")).split())


_KEYS = ("female", "male", "family")
_ATTRIBUTES = {
    "female": ("first_names_female", "first_romanized_names_female", "first_names", "first_romanized_names"),
    "male": ("first_names_male", "first_romanized_names_male", "first_names", "first_romanized_names"),
    "family": ("last_names", "last_romanized_names", "unisex_last_names", "last_names_female", "last_names_male"),
}


def _culture(table: Mapping[str, object], kept: Callable[[str], bool]) -> NameList:
    found = {key: sorted({name for name in _of_culture(table, key) if kept(name)}) for key in _KEYS}
    return NameList(found["female"], found["male"], found["family"], gendered=found["female"] != found["male"])


def _of_culture(table: Mapping[str, object], key: str) -> Iterator[str]:
    yield from (name.replace("_", " ") for name in str(table.get(key, "")).split())
    for locale in table.get("locales", ()):  # type: ignore[attr-defined]
        own = vars(import_module(f"faker.providers.person.{locale}").Provider)  # without inherited English names
        listed = next((own[attribute] for attribute in _ATTRIBUTES[key] if own.get(attribute)), ())
        yield from (name for name in map(str, listed) if _LATIN.fullmatch(name) and name[0].isupper())
