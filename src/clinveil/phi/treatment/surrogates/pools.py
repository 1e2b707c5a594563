"""The names that surrogates are drawn from: 88,799 census surnames by frequency, and international lists.

A surrogate is drawn from the names of its role (and of its origin, if known) by share of the population. Names outside
the census get the share of its rarest names. An attacker with these lists can exclude their names from released notes:
a name in no list is not a surrogate, so it was missed. The lists are large to keep this remainder small: nine in ten
people in the United States have a surname of the pool.
"""

from __future__ import annotations

import tomllib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

# The census prints 0.000 for its 70,000 rarest surnames, which share 10.9 percentage points of the 90.5 % it covers.
RAREST = 0.00015
Role = Literal["family", "female", "male", "given"]
_ENGLISH = ("en_GB", "en_IE")
_USUAL = 0.03  # percent of the population: an English name at least this common is treated as English
_MAX_CULTURES = 2  # a name in more cultures than this has no known origin
_CERTAIN = frozenset({"spanish", "arabic", "indian", "vietnamese", "chinese", "korean", "japanese"})
_LATIN = {"zh_CN": "romanized", "zh_TW": "romanized", "ja_JP": "romanized"}


class Pool:
    """Names with their population shares.

    Attributes:
        names: normalised, in alphabetical order.
    """

    def __init__(self, names: Sequence[str], shares: Mapping[str, float]) -> None:
        self.names = names
        self._ends = array("d", accumulate(shares.get(name, RAREST) for name in names))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return self._index(name) is not None

    def _index(self, name: str) -> int | None:
        index = bisect_left(self.names, name)
        return index if index < len(self.names) and self.names[index] == name else None

    def draw(self, stream: Stream, original: str) -> str | None:
        """Draw a name by its share among all except the original; return None if there is no other.

        The interval of the original is skipped, so exactly one number is drawn.
        """
        if not self.names:
            return None
        index = self._index(original)
        start = self._ends[index - 1] if index else 0.0
        width = self._ends[index] - start if index is not None else 0.0
        position = stream.uniform() * (self._ends[-1] - width)
        if index is not None and position >= start:
            position += width
        chosen = min(bisect_right(self._ends, position), len(self.names) - 1)
        if chosen == index:  # rounding at the edge of the skipped interval
            chosen = chosen + 1 if chosen + 1 < len(self.names) else chosen - 1
        return self.names[chosen] if chosen >= 0 and self.names[chosen] != original else None


@cache
def pool(role: Role, initial: str = "", culture: str = "") -> Pool:
    """Return the names of a role that begin with an initial (empty: all), of one culture (empty: all)."""
    shares = _shares(role)
    if not initial:
        names: Iterable[str] = shares
        if culture:  # without names that are also English or of immigrants, which the shares would favour
            names = (name for name in _cultures()[culture][role] if culture_of(name, role) == culture)
        return Pool(sorted(names), shares)
    every = pool(role, "", culture).names
    return Pool(every[bisect_left(every, initial) : bisect_left(every, initial + "\uffff")], shares)


@cache
def _shares(role: Role) -> dict[str, float]:
    """Return name -> percent of the population, from the census and the international lists."""
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
    """Return the number of names of each role."""
    return {role: len(_shares(role)) for role in ("family", "female", "male", "given")}


@lru_cache(maxsize=1 << 12)
def culture_of(form: str, role: Role) -> str:
    """Return the culture of a name, or "" if ambiguous: several cultures, or also a usual English name."""
    table = surnames() if role == "family" else all_given_names()
    containing = [
        name for name, own in _cultures().items() if form in own[role] or (role != "family" and form in own["given"])
    ]
    # European lists contain names of immigrants: a name that other lists also have is attributed to those.
    candidates = [name for name in containing if not _culture_file()[name].get("near", False)] or containing
    candidates = [name for name in candidates if form in _cultures()[name]["typical"]] or candidates
    if candidates == ["spanish", "portuguese"]:
        candidates = ["spanish"]
    if len(candidates) != 1 or (len(containing) > _MAX_CULTURES and form not in _cultures()[candidates[0]]["typical"]):
        return ""
    english = form in _english()["family" if role == "family" else "given"]
    near = _culture_file()[candidates[0]].get("near", False) or candidates[0] not in _CERTAIN
    return "" if english and (near or table.get(form, 0.0) >= _USUAL) else candidates[0]


def gender(form: str) -> Role:
    """Return the gender of a first name by the census, then by the international lists; `given` if undecided."""
    census = gender_of(form)
    if census:
        return census
    if form in all_given_names():
        return "given"
    world = _world_gender()
    female, male = form in world["female"], form in world["male"]
    return "given" if female == male else "female" if female else "male"


@cache
def _culture_file() -> dict[str, dict[str, Any]]:
    file = files("clinveil.phi.treatment.surrogates").joinpath("cultures.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def _cultures() -> dict[str, dict[str, frozenset[str]]]:
    """Return culture -> role -> normalised names; `typical` are those of the bundled file."""
    return {name: _culture(entry) for name, entry in _culture_file().items()}


def _culture(entry: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    locales, none = entry["locales"].split(), frozenset[str]()
    family, female, male = (
        frozenset(_forms(entry.get(key, "").split())) for key in ("surnames", "given_female", "given_male")
    )
    names = {
        "typical": none.union(family, female, male),
        "family": family.union(_listed(locales, "last_")),
        "female": female.union(_listed(locales, "first_", "female")),
        "male": male.union(_listed(locales, "first_", "_male")),
    }
    return names | {"given": none.union(names["female"], names["male"], _listed(locales, "first_"))}


@cache
def _english() -> dict[str, frozenset[str]]:
    return {"family": frozenset(_listed(_ENGLISH, "last_")), "given": frozenset(_listed(_ENGLISH, "first_"))}


@cache
def _world_gender() -> dict[str, frozenset[str]]:
    cultures = _cultures().values()
    return {role: frozenset[str]().union(*(each[role] for each in cultures)) for role in ("female", "male")}


def _listed(locales: Iterable[str], *words: str) -> Iterator[str]:
    """Return the normalised names of some locales' lists whose attribute names contain the given words."""
    for locale in locales:
        provider = import_module(f"faker.providers.person.{locale}").Provider
        wanted = (*words, _LATIN[locale]) if locale in _LATIN else words
        for attribute in dir(provider):
            names = getattr(provider, attribute)
            if all(word in attribute for word in wanted) and isinstance(names, list | tuple | dict | set | frozenset):
                yield from _forms(str(name) for name in names)


def _forms(names: Iterable[str]) -> Iterator[str]:
    """Yield the forms of one-word names in Latin letters with two letters or more."""
    for name in names:
        form = name_form(name)
        if len(form) > 1 and form.isascii() and " " not in name:
            yield form
