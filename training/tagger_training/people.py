"""Names for training: census, many cultures, letter n-grams, and names that are words. Held-out
names are excluded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from clinveil.corpus import census, cultures
from clinveil.lexicons import (
    FAMILIAR_FAMILY,
    LexicalClass,
    all_given_names,
    held_out,
    lexical_classes,
    surnames,
    word_list,
    world_given,
    world_surnames,
)

_ORDER = 3
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_PART = re.compile(r"[^\W\d_]{2,}")
_PARTICLES = (
    "van ,van der ,von ,de ,de la ,del ,di ,da ,dos ,al-,El ,bin ,O',Mc,St. ,Ap ,ben ,Abu ,Le ,La"
    " ,D',Mac,ter "
)
_PARTICLES += ",Nguyen ,Ibn "


def may_train(name: str) -> bool:
    """Return whether no word or component of a name is held out for tests. Initials are ignored."""
    return not any(
        map(
            held_out,
            (word for word in (*_WORD.findall(name), *_PART.findall(name)) if len(word) > 1),
        )
    )


@dataclass(frozen=True)
class Person:
    """A name in its components."""

    given: str
    middle: str
    family: str


class Letters:
    """Character-level Markov model that generates names similar to those of a list; most are in no
    list.

    Args:
        order: letters that decide about the next one; with fewer, the names are less usual.
    """

    def __init__(self, names: Iterable[str], order: int = _ORDER) -> None:
        self._next: dict[str, list[str]] = defaultdict(list)
        self._order = order
        for name in names:
            padded = "^" * order + name.lower() + "$"
            for at in range(order, len(padded)):
                self._next[padded[at - order : at]].append(padded[at])

    def one(self, rng: Random) -> str:
        """Return a new capitalised name of 4 to 11 letters."""
        while True:
            letters = "^" * self._order
            while not letters.endswith("$") and len(letters) < 20:
                letters += rng.choice(self._next[letters[-self._order :]])
            if 4 <= len(name := letters.strip("^$")) <= 11:
                return name.capitalize()


class People:
    """Draw people.

    Args:
        real: additional full names of two or three words, for example of public figures.
    """

    def __init__(self, real: Sequence[str] = ()) -> None:
        self.real = [
            words for name in real if len(words := name.split()) in (2, 3) and may_train(name)
        ]

    def one(self, rng: Random) -> Person:
        """Return a person without held-out names."""
        while True:
            person = rng.choice(self._sources)(rng)
            if all(map(may_train, (person.given, person.family, person.middle))):
                return person

    @cached_property
    def _sources(self) -> list[Callable[[Random], Person]]:
        often = (
            (self._census, 4),
            (self._culture, 3),
            (self._world, 3),
            (self._lettered, 6),
            (self._words, 5),
        )
        return [
            source
            for source, times in (*often, (self._real, 4 if self.real else 0))
            for _ in range(times)
        ]

    def _census(self, rng: Random) -> Person:
        given, middle = (
            census(rng.choice(("female", "male"))).draw_name(rng.random) for _ in range(2)
        )
        return Person(given, middle, _family(census("last").draw_name(rng.random), rng))

    def _culture(self, rng: Random) -> Person:
        culture = rng.choice(cultures())
        sex = rng.randrange(2)
        middle = rng.choice(culture[sex])
        return Person(rng.choice(culture[sex]), middle, _family(rng.choice(culture[2 + sex]), rng))

    def _world(self, rng: Random) -> Person:
        given, family = (rng.choice(names).capitalize() for names in self._world_lists)
        return Person(given, rng.choice(self._world_lists[0]).capitalize(), _family(family, rng))

    def _lettered(self, rng: Random) -> Person:
        given, family = rng.choice(self._letters)
        both = rng.random() < 0.5
        return Person(
            given.one(rng) if both else census("female").one(rng.random),
            given.one(rng),
            _family(family.one(rng), rng),
        )

    def _words(self, rng: Random) -> Person:
        """Return a person whose first name or surname may also be a word or an eponym."""
        other = self._census(rng)
        families = rng.choice((self._family_words, self._family_words, self._eponyms))
        given = rng.choice(self._given_words).capitalize() if rng.random() < 0.3 else other.given
        return Person(given, other.middle, rng.choice(families).capitalize())

    def _real(self, rng: Random) -> Person:
        words = rng.choice(self.real)
        return Person(
            words[0], words[1] if len(words) == 3 else rng.choice(self.real)[0], words[-1]
        )

    @cached_property
    def _world_lists(self) -> tuple[list[str], list[str]]:
        return sorted(world_given()), sorted(world_surnames())

    @cached_property
    def _letters(self) -> list[tuple[Letters, Letters]]:
        usual = [name for name, share in surnames().items() if share >= FAMILIAR_FAMILY]
        lists = [(list(all_given_names()), usual), self._world_lists]
        lists += [
            ([*culture.female, *culture.male], list(culture.female_family))
            for culture in cultures()
        ]
        kept = [[[name for name in names if may_train(name)] for names in pair] for pair in lists]
        pairs = [(given, family) for given, family in kept if len(given) > 30 and len(family) > 30]
        return [
            (Letters(given, order), Letters(family, order))
            for given, family in pairs
            for order in (_ORDER, 2)
        ]

    @cached_property
    def _family_words(self) -> list[str]:
        return sorted(
            n for n, share in surnames().items() if share >= 0.002 and _is(n, LexicalClass.WORD)
        )

    @cached_property
    def _given_words(self) -> list[str]:
        return sorted(
            n
            for n, share in all_given_names().items()
            if share >= 0.005 and _is(n, LexicalClass.WORD)
        )

    @cached_property
    def _eponyms(self) -> list[str]:
        return sorted(n for n in word_list("eponyms") if n in surnames() and may_train(n))


def _is(name: str, kind: int) -> bool:
    return bool(lexical_classes(name) & kind) and len(name) > 2 and may_train(name)


def _family(name: str, rng: Random) -> str:
    """Return a surname; in 12 % of cases with a particle, or a double name with hyphen or space."""
    chance = rng.random()
    if chance < 0.05:
        return rng.choice(_PARTICLES.split(",")) + name
    if chance < 0.12:
        return f"{name}{rng.choice('-- ')}{census('last').one(rng.random)}"
    return name


def written(person: Person, form: str, rng: Random) -> str:
    """Return a name in the format of a template slot: full, rev, last, first, short, any, initials,
    caps or hl7.
    """
    return rng.choice(_FORMS[form]).format(
        g=person.given,
        m=person.middle,
        f=person.family,
        i=person.given[0],
        j=person.middle[:1] or "J",
        k=person.family[0],
        G=person.given.upper(),
        F=person.family.upper(),
    )


_RARE = ("{i}. {j}. {f}", "{g} {F}", "{g} {f} Jr.", "{g} {f}, Jr", "{i} {f}")
_FULL: tuple[str, ...] = ("{g} {f}",) * 8 + ("{g} {j}. {f}",) * 3
_FULL += ("{g} {m} {f}", "{i}. {f}", "{g} {j} {f}", "{g}  {f}", "{G} {F}", *_RARE)
_REV: tuple[str, ...] = ("{f}, {g}",) * 6
_REV += (
    "{f}, {g} {j}",
    "{f}, {g} {j}.",
    "{f},{g}",
    "{f}, {g} {m}",
    "{F}, {G}",
    "{F}, {g}",
    "{f}, {i}.",
)
_LAST = ("{f}",) * 9 + ("{F}",)
_FIRST = ("{g}",) * 12 + ("{G}",)
_SHORT = (
    "{i}. {f}",
    "{f} {i}",
    "{f} {i}.",
    "{g} {k}.",
    "{i}{j} {f}",
    "{i}.{f}",
    "{g} {k}",
    "{f} {i}{j}",
)
_FORMS = {
    "full": _FULL,
    "rev": _REV,
    "last": _LAST,
    "first": _FIRST,
    "short": _SHORT,
    "any": _FULL + _REV + _LAST + _FIRST + _SHORT,
    "initials": ("{i}{k}", "{i}{j}{k}"),
    "caps": ("{G} {F}", "{F}, {G}", "{F} {G}", "{F}, {G} {j}"),
    "hl7": ("{F}^{G}", "{F}^{G}^{j}", "{f}^{g}"),
}
