"""The role of a name (surname, or first name of a gender) and the usual spelling of a misspelt one.

The lists decide first, because they give the same result in every note. An unlisted word is a first name if the note
indicates it (`daughter Kateline`, the word before a surname) or if it ends like a first name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from math import log

from clinveil.lexicons.names import all_given_names, given_names, surnames, world_given, world_surnames
from clinveil.phi.name_variants import within_one_edit
from clinveil.phi.treatment.surrogates.pools import RAREST, Role, gender

_FEMALE = "daughter wife mother mom mum sister aunt niece grandmother girlfriend granddaughter"
_MALE = "son husband father dad brother uncle nephew grandfather boyfriend grandson"
_OTHER = "partner cousin friend child baby fiance fiancee spouse sibling twin roommate"
_KIN: dict[str, Role] = {
    **dict.fromkeys(_FEMALE.split(), "female"),
    **dict.fromkeys(_MALE.split(), "male"),
    **dict.fromkeys(_OTHER.split(), "given"),
}
_CUE = re.compile(rf"\b(?P<kin>{'|'.join(_KIN)})(?:'s name is|\s+(?:is|named|called|also)|,|:)?\s+\(?$", re.I)
_CUE_ENDS = (*_KIN, "is", "named", "called", "also")  # a cheap test before the pattern
_REACH = 30
_SURE = 1.0  # log ratio: how much more frequent an ending is among first names than among surnames
_MIN_NAMES = 12  # minimum number of names with an ending
_RARE, _USUAL, _TIMES = 0.003, 0.01, 100  # the first two: percent of the population
_FOUR = 4


def listed(form: str) -> bool:
    """Return whether any list of names has the form."""
    return form in surnames() or form in all_given_names() or form in world_given() or form in world_surnames()


@lru_cache(maxsize=1 << 12)
def role_of(form: str) -> Role | None:
    """Return the role of a listed name, or None."""
    given, family = all_given_names().get(form, 0.0), surnames().get(form, 0.0)
    if given > 0.0 or family > 0.0 or form in surnames():
        return gender(form) if given > family else "family"
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
    near = {name for end in _ends(form) for name in _usual().get(end, ()) if within_one_edit(form, name)}
    best = max(sorted(near), key=_share, default=form)
    least = _TIMES * max(_share(form), RAREST) if listed(form) else _USUAL
    return best if _share(best) >= least else form


def _share(name: str) -> float:
    return max(surnames().get(name, 0.0), all_given_names().get(name, 0.0))


@cache
def _usual() -> dict[str, list[str]]:
    """Return usual names indexed by first two letters, and by first letter and last two; short ones by first letter.

    After one edit behind the first letter, a name of five letters or more still shares one of these keys.
    """
    index: dict[str, list[str]] = {}
    for name in (*surnames(), *all_given_names()):
        if _share(name) >= _USUAL:
            for end in _ends(name)[1:] if len(name) > _FOUR else _ends(name)[:1]:
                index.setdefault(end, []).append(name)
    return index


def _ends(name: str) -> tuple[str, str, str]:
    return name[:1], f"{name[:2]}<", f"{name[:1]}>{name[-2:]}"


def kin(text: str, start: int) -> Role | None:
    """Return the role of the first name at an offset if a relative precedes it (`her son `), or None."""
    before = text[max(0, start - _REACH) : start]
    if before.isascii() and not before.rstrip().rstrip("(").rstrip().rstrip(",:").lower().endswith(_CUE_ENDS):
        return None
    match = _CUE.search(text, max(0, start - _REACH), start)
    return _KIN[match["kin"].lower()] if match else None


@lru_cache(maxsize=1 << 12)
def by_ending(form: str) -> Role:
    """Return the role suggested by the ending of an unlisted name; a surname if the ending is not informative."""
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
    for role, names in (("family", surnames()), ("female", given_names("female")), ("male", given_names("male"))):
        counts[""][role] = len(names)
        for name in names:
            for size in (2, 3, 4):
                counts.setdefault(name[-size:], Counter())[role] += 1
    return counts
