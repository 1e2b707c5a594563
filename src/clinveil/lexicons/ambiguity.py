"""Classify a word as first name, surname, ordinary word or eponym, with a measure of how common it
is as a name.

Nearly every eponym and many common words are also surnames (May, Rose, Pain, Foley), so list
membership alone is weak evidence. PhysioNet's deid (Neamatullah et al., BMC Med Inform Decis Mak
2008) splits its lists for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache, reduce
from operator import or_
from typing import Final, NamedTuple

from clinveil.lexicons.names import (
    all_given_names,
    name_form,
    surnames,
    world_given,
    world_surnames,
)
from clinveil.lexicons.words import is_word, word_list

USUAL_GIVEN = 0.01  # percent of the census population; about 780 first names
USUAL_FAMILY = 0.001  # about 19,000 surnames
CHIEFLY_GIVEN = 0.1  # about 190 first names
FAMILIAR_FAMILY = 0.005  # about 2,600 surnames
# Particles inside names in many languages. In a hyphenated name they are ignored.
_PARTICLES = (
    "de la van von der den di da del della degli dos das do du des le lo los las bin binti bint bte"
    " ibn abu ben al el st mac nic mc ter ten te op af av zu zum zur vom y e i ap ab ferch san"
    " santa ould abd ul ur t"
)
PARTICLES: Final = frozenset(_PARTICLES.split())


class LexicalClass:
    """The classes of a word, combined as bits of a plain integer (enum flags are too slow here)."""

    NOTHING: Final = 0
    GIVEN: Final = 1
    FAMILY: Final = 2
    NAME: Final = 3
    WORD: Final = 4
    EPONYM: Final = 8
    USUAL_GIVEN: Final = 16
    USUAL_FAMILY: Final = 32
    FOREIGN_ONLY: Final = 64
    FAMILIAR: Final = 128  # a surname of at least one person in 20,000, or a usual first name
    FUNCTION: Final = 256


@lru_cache(maxsize=1 << 15)
def lexical_classes(word: str) -> int:
    """Return all classes of one word (or hyphenated name), ignoring case.

    A hyphenated word is a name if one component is only a name and the others may be names
    (`Shea-Porter`, `Al-Khatib`).
    If all components are both words and familiar surnames, the result is both word and name
    (`White-Young`).
    """
    if "-" in word:
        return _hyphenated([part for part in word.split("-") if part])
    return _single(name_form(word))


def _hyphenated(parts: list[str]) -> int:
    known = word_list("syllables")  # of given names: Sung-min, Mei-ling; not so-so
    if (
        len(parts) == 2
        and parts[0].lower() != parts[1].lower()
        and all(part.lower() in known for part in parts)
    ):
        return LexicalClass.GIVEN | LexicalClass.FOREIGN_ONLY
    kinds = [lexical_classes(part) for part in parts if part.lower() not in PARTICLES]
    if not any(kind & LexicalClass.WORD for kind in kinds) and kinds:
        return reduce(or_, kinds)
    if (
        not all(kind & LexicalClass.NAME or not kind & LexicalClass.WORD for kind in kinds)
        or not kinds
    ):
        return LexicalClass.WORD
    if all(kind & LexicalClass.WORD for kind in kinds):
        familiar = all(kind & LexicalClass.FAMILIAR for kind in kinds)
        return LexicalClass.WORD | (reduce(or_, kinds) if familiar else LexicalClass.NOTHING)
    sure = any(kind & LexicalClass.NAME and not kind & LexicalClass.WORD for kind in kinds)
    return (
        reduce(or_, kinds) & ~(LexicalClass.WORD | LexicalClass.FUNCTION)
        if sure
        else LexicalClass.WORD
    )


def is_not_word(word: str) -> bool:
    """Return whether a word is not an ordinary word. A listed name of this kind is unambiguous,
    unlike May.
    """
    return not lexical_classes(word) & LexicalClass.WORD


def is_name(word: str, known_names: AbstractSet[str] = frozenset(), *, usual: bool = False) -> bool:
    """Return whether a word is a name and not an ordinary word. Eponyms (Foley) count as names.

    Args:
        known_names: names in addition to those of the lists.
        usual: of the lists, use only the usual first names and surnames.
    """
    listed = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY if usual else LexicalClass.NAME
    return is_not_word(word) and (word in known_names or bool(lexical_classes(word) & listed))


class _WordTables(NamedTuple):
    given: Mapping[str, float]
    family: Mapping[str, float]
    world_given: AbstractSet[str]
    more_given: AbstractSet[str]
    world_family: AbstractSet[str]
    function: AbstractSet[str]
    words: AbstractSet[str]


@cache
def _tables() -> _WordTables:
    words = frozenset[str]().union(*map(word_list, ("common", "clinical", "shorthand")))
    names = (all_given_names(), surnames(), world_given(), word_list("given"), world_surnames())
    return _WordTables(*names, word_list("function"), words)


def _single(form: str) -> int:
    tables = _tables()
    classes = LexicalClass.NOTHING
    share = tables.given.get(form)
    family = tables.family.get(form)
    if share is not None or form in tables.world_given or form in tables.more_given:
        classes |= LexicalClass.GIVEN
    if family is not None or form in tables.world_family:
        classes |= LexicalClass.FAMILY
    if classes and share is None and family is None:
        classes |= LexicalClass.FOREIGN_ONLY
    share = share or 0.0
    family = family or 0.0
    if share >= USUAL_GIVEN:
        classes |= LexicalClass.USUAL_GIVEN
    if family >= USUAL_FAMILY:
        classes |= LexicalClass.USUAL_FAMILY
    if share >= USUAL_GIVEN or family >= FAMILIAR_FAMILY:
        classes |= LexicalClass.FAMILIAR
    if form in tables.function:
        classes |= LexicalClass.FUNCTION
    return classes | _other_classes(form, classes)


def _other_classes(form: str, classes: int) -> int:
    # David and Henry are eponyms, but chiefly first names.
    plural = form.endswith("s") and not classes & LexicalClass.FAMILIAR  # Gilberts, but not Roberts
    listed = form in word_list("eponyms") or (plural and form[:-1] in word_list("eponyms"))
    eponym = listed and all_given_names().get(form, 0.0) < CHIEFLY_GIVEN
    other = LexicalClass.EPONYM if eponym else LexicalClass.NOTHING
    # Inflection rules apply only to rare names: Roberts is not an inflected form of a verb
    # "robert".
    exact = form in _tables().words
    usual = classes & LexicalClass.USUAL_GIVEN or surnames().get(form, 0.0) >= FAMILIAR_FAMILY
    return other | (
        LexicalClass.WORD if exact or (is_word(form) and not usual) else LexicalClass.NOTHING
    )
