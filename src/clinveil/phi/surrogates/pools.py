"""The names that surrogates are drawn from: 88,799 census surnames by frequency, and those of the world's lists.

A surrogate is drawn from a pool of names of its role (and of its origin, where that can be told), each by its share of
the population; names that the census does not count have the share of its rarest. Whoever knows these lists can
subtract them from released notes: a name that stands in none is no surrogate, so it was missed. The lists are large so
that little is left over: of the people of the United States nine in ten bear a surname of the pool.
"""

from __future__ import annotations

import tomllib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from itertools import accumulate
from typing import Any, Literal

from clinveil.core.keys import Stream
from clinveil.lexicons.names import (
    all_given_names,
    gender_of,
    given_names,
    name_form,
    surnames,
    world_given,
    world_surnames,
)

# The census writes 0.000 for its 70,000 rarest surnames, which share the 10.9 % that the others leave of its 90.5 %.
RAREST = 0.00015
Role = Literal["family", "female", "male", "given"]
_ENGLISH = ("en_GB", "en_IE")
_USUAL = 0.03  # percent of the population: a name of that share that English has too is taken for English
_OPEN = 2  # a name of more cultures than that is of none
_CERTAIN = frozenset({"spanish", "arabic", "indian", "vietnamese", "chinese", "korean", "japanese"})
_LATIN = {"zh_CN": "romanized", "zh_TW": "romanized", "ja_JP": "romanized"}


class Pool:
    """Names with their shares, in alphabetical order."""

    def __init__(self, names: Sequence[str], shares: Mapping[str, float]) -> None:
        self._names = names
        self._ends = array("d", accumulate(shares[name] for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, as they are looked up."""
        return tuple(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: str) -> bool:
        return self._at(name) is not None

    def _at(self, name: str) -> int | None:
        at = bisect_left(self._names, name)
        return at if at < len(self._names) and self._names[at] == name else None

    def draw(self, stream: Stream, original: str) -> str | None:
        """A name by its share among all but the original; None if there is no other.

        The original's stretch of the scale is left out, so one number is drawn whatever the original.
        """
        if not self._names:
            return None
        index = self._at(original)
        end = self._ends[index] if index is not None else 0.0
        start = self._ends[index - 1] if index else 0.0
        width = end - start if index is not None else 0.0
        at = stream.uniform() * (self._ends[-1] - width)
        if index is not None and at >= start:
            at += width
        chosen = min(bisect_right(self._ends, at), len(self._names) - 1)
        if chosen == index:  # rounding at the border of the stretch left out
            chosen = chosen + 1 if chosen + 1 < len(self._names) else chosen - 1
        return self._names[chosen] if chosen >= 0 and self._names[chosen] != original else None


@cache
def pool(role: Role, initial: str = "", culture: str = "") -> Pool:
    """The names of a role that begin with an initial (all for an empty one), of one culture or (empty) of all."""
    shares = _shares(role)
    if culture:
        own = _cultures()[culture][role]
        shares = {name: shares.get(name, RAREST) for name in own if name.startswith(initial)}
        return Pool(sorted(shares), shares)
    names = _in_order(role)
    last = bisect_right(names, initial, key=lambda name: name[: len(initial)])
    return Pool(names[bisect_left(names, initial) : last], shares)


@cache
def _in_order(role: Role) -> list[str]:
    return sorted(_shares(role))


@cache
def _shares(role: Role) -> dict[str, float]:
    """Name -> percent of the population, of the census and of the world's lists."""
    if role == "family":
        census, world = surnames(), world_surnames()
    elif role == "given":
        census, world = all_given_names(), world_given()
    else:
        other = "male" if role == "female" else "female"
        census = {name: share for name, share in given_names(role).items() if gender_of(name) != other}
        world = frozenset(name for name in _world_gender()[role] if gender(name) == role)
    listed = {name: max(share, RAREST) for name, share in census.items()}
    return dict.fromkeys((name for name in sorted(world) if name not in listed), RAREST) | listed


def sizes() -> dict[str, int]:
    """How many names each role has."""
    return {role: len(_shares(role)) for role in ("family", "female", "male", "given")}


@lru_cache(maxsize=1 << 12)
def culture_of(form: str, role: Role) -> str:
    """The culture that a name is of, or "" where that cannot be told: it is of several, or a usual English one too."""
    table = surnames() if role == "family" else all_given_names()
    having = [
        name for name, own in _cultures().items() if form in own[role] or (role != "family" and form in own["given"])
    ]
    # Lists of Europe hold names of those who came to live there: what is of elsewhere too is of elsewhere.
    found = [name for name in having if not _said()[name].get("near", False)] or having
    found = [name for name in found if form in _typical(name)] or found
    if found == ["spanish", "portuguese"]:
        found = ["spanish"]
    if len(found) != 1 or (len(having) > _OPEN and form not in _typical(found[0])):
        return ""
    english = form in _english()["family" if role == "family" else "given"]
    near = _said()[found[0]].get("near", False) or found[0] not in _CERTAIN
    return "" if english and (near or table.get(form, 0.0) >= _USUAL) else found[0]


@cache
def _typical(culture: str) -> frozenset[str]:
    """The names that stand in our own list of a culture."""
    said = _said()[culture]
    return frozenset(_forms(" ".join(said.get(key, "") for key in ("surnames", "given_female", "given_male")).split()))


def gender(form: str) -> Role:
    """The gender of a first name's bearers: by the census, else by the world's lists; `given` where it is open."""
    told = gender_of(form)
    if told:
        return told
    if form in all_given_names():
        return "given"
    world = _world_gender()
    female, male = form in world["female"], form in world["male"]
    return "given" if female == male else "female" if female else "male"


@cache
def _said() -> dict[str, dict[str, Any]]:
    file = files("clinveil.phi.surrogates").joinpath("cultures.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def _cultures() -> dict[str, dict[str, frozenset[str]]]:
    """Culture -> role -> name forms."""
    return {name: _culture(said) for name, said in _said().items()}


def _culture(said: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    locales = said["locales"].split()
    found = {
        "family": frozenset(_listed(locales, "last_")).union(_forms(said.get("surnames", "").split())),
        "female": frozenset(_listed(locales, "first_", "female")).union(_forms(said.get("given_female", "").split())),
        "male": frozenset(_listed(locales, "first_", "_male")).union(_forms(said.get("given_male", "").split())),
    }
    both = found["female"] | found["male"] | frozenset(_listed(locales, "first_"))
    return found | {"given": both}


@cache
def _english() -> dict[str, frozenset[str]]:
    return {"family": frozenset(_listed(_ENGLISH, "last_")), "given": frozenset(_listed(_ENGLISH, "first_"))}


@cache
def _world_gender() -> dict[str, frozenset[str]]:
    own = _cultures().values()
    return {role: frozenset[str]().union(*(each[role] for each in own)) for role in ("female", "male")}


def _listed(locales: Iterator[str] | tuple[str, ...] | list[str], *words: str) -> Iterator[str]:
    """Name forms of the lists of some locales whose names hold some words."""
    for locale in locales:
        provider = import_module(f"faker.providers.person.{locale}").Provider
        wanted = (*words, _LATIN[locale]) if locale in _LATIN else words
        for attribute in dir(provider):
            names = getattr(provider, attribute)
            if all(word in attribute for word in wanted) and isinstance(names, list | tuple | dict | set | frozenset):
                yield from _forms(str(name) for name in names)


def _forms(names: Iterator[str] | list[str]) -> Iterator[str]:
    """Forms of names of one word in Latin letters, of two letters or more."""
    for name in names:
        form = name_form(name)
        if len(form) > 1 and form.isascii() and " " not in name:
            yield form
