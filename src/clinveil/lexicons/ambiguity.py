"""What a word may be: a first name, a surname, an ordinary word, an eponym; and how surely.

Nearly every eponym and many common words are surnames too (May, Rose, Pain, Foley), so a bare look-up says little;
PhysioNet's deid (Neamatullah et al., BMC Med Inform Decis Mak 2008) split its lists in the same spirit.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final

from clinveil.lexicons.names import all_given_names, name_form, surnames, world_given, world_surnames
from clinveil.lexicons.words import is_word, word_list

USUAL_GIVEN = 0.01  # percent of the census population; about 780 first names
USUAL_FAMILY = 0.001  # about 19,000 surnames
CHIEFLY_GIVEN = 0.1  # about 190 first names
FAMILIAR_FAMILY = 0.005  # about 2,600 surnames
# Small words inside names of many tongues; they say nothing about the word that they are hyphened to.
_PARTICLES = (
    "de la van von der den di da del della degli dos das do du des le lo los las bin binti bint bte ibn"
    " abu ben al el st mac nic mc ter ten te op af av zu zum zur vom y e i ap ab ferch san santa ould abd"
    " ul ur t"
)
PARTICLES: Final = frozenset(_PARTICLES.split())


class LexicalClass:
    """What a word can be; several at once, as the bits of a plain integer (enum flags are too slow here)."""

    NOTHING: Final = 0
    GIVEN: Final = 1
    FAMILY: Final = 2
    NAME: Final = 3
    WORD: Final = 4
    EPONYM: Final = 8
    USUAL_GIVEN: Final = 16
    USUAL_FAMILY: Final = 32
    FOREIGN_ONLY: Final = 64
    FAMILIAR: Final = 128  # a surname of one in 20,000 or more, or a usual first name
    FUNCTION: Final = 256


@lru_cache(maxsize=1 << 15)
def lexical_classes(word: str) -> int:
    """All classes of one word (or hyphenated name) in any case.

    A hyphenated word is a name where one part is nothing but a name and the others may be names too (`Shea-Porter`,
    `Al-Khatib`); of parts that are all words and all surnames it is both (`White-Young`).
    """
    if "-" in word:
        return _hyphenated([part for part in word.split("-") if part])
    return _single(name_form(word))


def _hyphenated(parts: list[str]) -> int:
    if _syllables(parts):
        return LexicalClass.GIVEN | LexicalClass.FOREIGN_ONLY
    found = [lexical_classes(part) for part in parts if part.lower() not in PARTICLES]
    if not any(kind & LexicalClass.WORD for kind in found) and found:
        return _union(found)
    if not all(kind & LexicalClass.NAME or not kind & LexicalClass.WORD for kind in found) or not found:
        return LexicalClass.WORD
    if all(kind & LexicalClass.WORD for kind in found):
        familiar = all(kind & LexicalClass.FAMILIAR for kind in found)
        return LexicalClass.WORD | (_union(found) if familiar else LexicalClass.NOTHING)
    sure = any(kind & LexicalClass.NAME and not kind & LexicalClass.WORD for kind in found)
    return _union(found) & ~(LexicalClass.WORD | LexicalClass.FUNCTION) if sure else LexicalClass.WORD


def _syllables(parts: list[str]) -> bool:
    """Whether they are two different syllables of given names: Sung-min, Mei-ling; not so-so."""
    known = word_list("syllables")
    return len(parts) == 2 and parts[0].lower() != parts[1].lower() and all(part.lower() in known for part in parts)


def is_no_word(word: str) -> bool:
    """Whether it is no ordinary word: what stands in a list of names is then a name and nothing else, unlike May."""
    return not lexical_classes(word) & LexicalClass.WORD


def is_name(word: str, given: AbstractSet[str] = frozenset(), *, usual: bool = False) -> bool:
    """Whether a word is a name and no ordinary word; eponyms (Foley) are names too.

    Args:
        given: words of names beside those of the lists. usual: of the lists, the usual first names and surnames alone.
    """
    listed = LexicalClass.USUAL_GIVEN | LexicalClass.USUAL_FAMILY if usual else LexicalClass.NAME
    return is_no_word(word) and (word in given or bool(lexical_classes(word) & listed))


def _union(parts: list[int]) -> int:
    total: int = LexicalClass.NOTHING
    for part in parts:
        total |= part
    return total


def _single(form: str) -> int:
    found: int = LexicalClass.NOTHING
    given, family = all_given_names().get(form), surnames().get(form)
    if given is not None or form in world_given():
        found |= LexicalClass.GIVEN
    if family is not None or form in world_surnames():
        found |= LexicalClass.FAMILY
    if found and given is None and family is None:
        found |= LexicalClass.FOREIGN_ONLY
    if given is not None and given >= USUAL_GIVEN:
        found |= LexicalClass.USUAL_GIVEN
    if family is not None and family >= USUAL_FAMILY:
        found |= LexicalClass.USUAL_FAMILY
    if found & LexicalClass.USUAL_GIVEN or (family or 0.0) >= FAMILIAR_FAMILY:
        found |= LexicalClass.FAMILIAR
    if form in word_list("function"):
        found |= LexicalClass.FUNCTION
    return found | _other_classes(form, found)


def _other_classes(form: str, found: int) -> int:
    # David and Henry are eponyms, but first of all names.
    eponym = form in word_list("eponyms") and all_given_names().get(form, 0.0) < CHIEFLY_GIVEN
    other = LexicalClass.EPONYM if eponym else LexicalClass.NOTHING
    # An ending makes a word of a rare name only: Roberts is no plural of a verb to robert.
    exact = form in word_list("common") or form in word_list("clinical")
    usual = found & LexicalClass.USUAL_GIVEN or surnames().get(form, 0.0) >= FAMILIAR_FAMILY
    return other | (LexicalClass.WORD if exact or (is_word(form) and not usual) else LexicalClass.NOTHING)
