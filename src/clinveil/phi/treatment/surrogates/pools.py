"""The names that surrogates are drawn from: 88,799 census surnames by frequency, and international
lists.

A surrogate is drawn from the names of its role (and of its origin, if known) by share of the
population. Names outside the census get the share of its rarest names. An attacker with these lists
can exclude their names from released notes:
a name in no list is not a surrogate, so it was missed. The lists are large to keep this remainder
small: nine in ten people in the United States have a surname of the pool.

The lists also decide the role of a name (surname, or first name of a gender) and the usual spelling
of a misspelt one, because they give the same result in every note. An unlisted word is a first name
if the note indicates it (`daughter Kateline`, the word before a surname) or if it ends like a first
name.
"""

from __future__ import annotations

import re
import tomllib
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from itertools import accumulate
from math import log
from typing import Any, Literal

from clinveil.core import Stream
from clinveil.lexicons import (
    all_given_names,
    gender_of,
    given_names,
    name_form,
    surnames,
    world_given,
    world_surnames,
)
from clinveil.phi.name_variants import within_one_edit

# The census prints 0.000 for its 70,000 rarest surnames, which share 10.9 percentage points of the
# 90.5 % it covers.
RAREST = 0.00015
Role = Literal["family", "female", "male", "given"]
_ENGLISH = ("en_GB", "en_IE")
_USUAL = (
    0.03  # percent of the population: an English name at least this common is treated as English
)
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

    def draw(self, stream: Stream, original: str) -> str | None:
        """Draw a name by its share among all except the original; return None if there is no other.

        The interval of the original is skipped, so exactly one number is drawn.
        """
        if not self.names:
            return None
        rank = bisect_left(self.names, original)
        index = rank if rank < len(self.names) and self.names[rank] == original else None
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
    """Return the names of a role that begin with an initial (empty: all), of one culture (empty:
    all).
    """
    shares = _shares(role)
    if not initial:
        names: Iterable[str] = shares
        # Without names that are also English or of immigrants, which the shares would favour.
        if culture:
            names = (
                name for name in _cultures()[culture][role] if culture_of(name, role) == culture
            )
        return Pool(sorted(names), shares)
    every = pool(role, "", culture).names
    return Pool(every[bisect_left(every, initial) : bisect_left(every, initial + "\uffff")], shares)


@cache
def _shares(role: Role) -> dict[str, float]:
    """Return name -> percent of the population, from the census and the international lists."""
    if role == "family":
        census = surnames()
        world = world_surnames()
    elif role == "given":
        census = all_given_names()
        world = world_given()
    else:
        other = "male" if role == "female" else "female"
        census = {
            name: share for name, share in given_names(role).items() if gender_of(name) != other
        }
        world = frozenset(name for name in _world_gender()[role] if gender(name) == role)
    listed = {name: max(share, RAREST) for name, share in census.items()}
    return dict.fromkeys((name for name in sorted(world) if name not in listed), RAREST) | listed


def sizes() -> dict[str, int]:
    """Return the number of names of each role."""
    return {role: len(_shares(role)) for role in ("family", "female", "male", "given")}


@lru_cache(maxsize=1 << 12)
def culture_of(form: str, role: Role) -> str:
    """Return the culture of a name, or "" if ambiguous: several cultures, or also a usual English
    name.
    """
    table = surnames() if role == "family" else all_given_names()
    containing = [
        name
        for name, culture in _cultures().items()
        if form in culture[role] or (role != "family" and form in culture["given"])
    ]
    # European lists contain names of immigrants: a name that other lists also have is attributed to
    # those.
    candidates = [
        name for name in containing if not _culture_file()[name].get("near", False)
    ] or containing
    candidates = [name for name in candidates if form in _cultures()[name]["typical"]] or candidates
    if candidates == ["spanish", "portuguese"]:
        candidates = ["spanish"]
    if len(candidates) != 1 or (
        len(containing) > _MAX_CULTURES and form not in _cultures()[candidates[0]]["typical"]
    ):
        return ""
    english = form in _english("last_" if role == "family" else "first_")
    near = _culture_file()[candidates[0]].get("near", False) or candidates[0] not in _CERTAIN
    return "" if english and (near or table.get(form, 0.0) >= _USUAL) else candidates[0]


def gender(form: str) -> Role:
    """Return the gender of a first name by the census, then by the international lists; `given` if
    undecided.
    """
    census = gender_of(form)
    if census:
        return census
    if form in all_given_names():
        return "given"
    world = _world_gender()
    female = form in world["female"]
    male = form in world["male"]
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
    locales = entry["locales"].split()
    none = frozenset[str]()
    family, female, male = (
        frozenset(_forms(entry.get(key, "").split()))
        for key in ("surnames", "given_female", "given_male")
    )
    names = {
        "typical": none.union(family, female, male),
        "family": family.union(_listed(locales, "last_")),
        "female": female.union(_listed(locales, "first_", "female")),
        "male": male.union(_listed(locales, "first_", "_male")),
    }
    return names | {"given": none.union(names["female"], names["male"], _listed(locales, "first_"))}


@cache
def _english(part: str) -> frozenset[str]:
    return frozenset(_listed(_ENGLISH, part))


@cache
def _world_gender() -> dict[str, frozenset[str]]:
    cultures = _cultures().values()
    return {
        role: frozenset[str]().union(*(each[role] for each in cultures))
        for role in ("female", "male")
    }


def _listed(locales: Iterable[str], *words: str) -> Iterator[str]:
    """Return the normalised names of some locales' lists whose attribute names contain the given
    words.
    """
    for locale in locales:
        provider = import_module(f"faker.providers.person.{locale}").Provider
        wanted = (*words, _LATIN[locale]) if locale in _LATIN else words
        for attribute in dir(provider):
            names = getattr(provider, attribute)
            if all(word in attribute for word in wanted) and isinstance(
                names, list | tuple | dict | set | frozenset
            ):
                yield from _forms(str(name) for name in names)


def _forms(names: Iterable[str]) -> Iterator[str]:
    """Yield the forms of one-word names in Latin letters with two letters or more."""
    for name in names:
        form = name_form(name)
        if len(form) > 1 and form.isascii() and " " not in name:
            yield form


_FEMALE = "daughter wife mother mom mum sister aunt niece grandmother girlfriend granddaughter"
_MALE = "son husband father dad brother uncle nephew grandfather boyfriend grandson"
_OTHER = "partner cousin friend child baby fiance fiancee spouse sibling twin roommate"
_KIN: dict[str, Role] = {
    **dict.fromkeys(_FEMALE.split(), "female"),
    **dict.fromkeys(_MALE.split(), "male"),
    **dict.fromkeys(_OTHER.split(), "given"),
}
_CUE = re.compile(
    rf"\b(?P<kin>{'|'.join(_KIN)})(?:'s name is|\s+(?:is|named|called|also)|,|:)?\s+\(?$", re.I
)
_CUE_ENDS = (*_KIN, "is", "named", "called", "also")  # a cheap test before the pattern
_REACH = 30
_SURE = 1.0  # log ratio: how much more frequent an ending is among first names than among surnames
_MIN_NAMES = 12  # minimum number of names with an ending
# the first two: percent of the population
_RARE = 0.003
_FREQUENT = 0.01
_TIMES = 100
_FOUR = 4


def listed(form: str) -> bool:
    """Return whether any list of names has the form."""
    return (
        form in surnames()
        or form in all_given_names()
        or form in world_given()
        or form in world_surnames()
    )


@lru_cache(maxsize=1 << 12)
def role_of(form: str) -> Role | None:
    """Return the role of a listed name, or None."""
    share = all_given_names().get(form, 0.0)
    family = surnames().get(form, 0.0)
    if share > 0.0 or family > 0.0 or form in surnames():
        return gender(form) if share > family else "family"
    if form in all_given_names() or (form in world_given() and form not in world_surnames()):
        return gender(form)
    return "family" if form in world_surnames() else None


@lru_cache(maxsize=1 << 13)
def usual_spelling(form: str) -> str:
    """Return the usual name one edit away from an unlisted or very rare one, or the form itself.

    Candidates are usual names; for a listed form, they are a hundred times as frequent.
    """
    if len(form) < 4 or not form.isascii() or _share(form) > _RARE:
        return form
    near = {
        name
        for end in _ends(form)
        for name in _by_end().get(end, ())
        if within_one_edit(form, name)
    }
    best = max(sorted(near), key=_share, default=form)
    least = _TIMES * max(_share(form), RAREST) if listed(form) else _FREQUENT
    return best if _share(best) >= least else form


def _share(name: str) -> float:
    return max(surnames().get(name, 0.0), all_given_names().get(name, 0.0))


@cache
def _by_end() -> dict[str, list[str]]:
    """Return usual names indexed by first two letters, and by first letter and last two; short ones
    by first letter.

    After one edit behind the first letter, a name of five letters or more still shares one of these
    keys.
    """
    index: dict[str, list[str]] = {}
    for name in (*surnames(), *all_given_names()):
        if _share(name) >= _FREQUENT:
            for end in _ends(name)[1:] if len(name) > _FOUR else _ends(name)[:1]:
                index.setdefault(end, []).append(name)
    return index


def _ends(name: str) -> tuple[str, str, str]:
    return name[:1], f"{name[:2]}<", f"{name[:1]}>{name[-2:]}"


def kin(text: str, start: int) -> Role | None:
    """Return the role of the first name at an offset if a relative precedes it (`her son `), or
    None.
    """
    before = text[max(0, start - _REACH) : start]
    if before.isascii() and not before.rstrip().rstrip("(").rstrip().rstrip(",:").lower().endswith(
        _CUE_ENDS
    ):
        return None
    match = _CUE.search(text, max(0, start - _REACH), start)
    return _KIN[match["kin"].lower()] if match else None


@lru_cache(maxsize=1 << 12)
def by_ending(form: str) -> Role:
    """Return the role suggested by the ending of an unlisted name; a surname if the ending is not
    informative.
    """
    for size in (4, 3, 2):
        counts = _endings().get(form[-size:])
        if counts and sum(counts.values()) >= _MIN_NAMES:
            total = _endings()[""]
            female, male = (counts[role] / total[role] for role in ("female", "male"))
            odds = log((female + male + 1e-9) / 2 / (counts["family"] / total["family"] + 1e-9))
            if odds < _SURE:
                return "family"
            return "female" if female > 4 * male else "male" if male > 4 * female else "given"
    return "family"


@cache
def _endings() -> Mapping[str, Counter[str]]:
    """Return ending of two to four letters -> number of names of each role; "" counts all names."""
    counts: dict[str, Counter[str]] = {"": Counter()}
    for role, names in (
        ("family", surnames()),
        ("female", given_names("female")),
        ("male", given_names("male")),
    ):
        counts[""][role] = len(names)
        for name in names:
            for size in (2, 3, 4):
                counts.setdefault(name[-size:], Counter())[role] += 1
    return counts
