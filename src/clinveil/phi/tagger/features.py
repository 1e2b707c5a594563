"""What the tagger knows of a token, seen from its own place and from two places either side.

Each property is one of a single token at an offset, or a pair of the coarse kinds of two tokens: so the score of a
label at a place is a sum of rows that are computed once a word (`tag.Rows`), and never a dictionary of strings a token.
A model holds these names: whoever changes what they mean trains it again (`VERSION`).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from zlib import crc32

from clinveil.lexicons.ambiguity import LexicalClass, lexical_classes
from clinveil.phi.tagger.tokens import EDGE, kept_form

VERSION = 1
OFFSETS = (-2, -1, 0, 1, 2)
PAIRS = ((-1, 0), (0, 1), (-1, 1), (-2, 0))
"""Offsets of the two tokens whose kinds together are a property."""

# Words that announce a name, or stand beside one, by what they do; each group is one kind.
_CUES = {
    "title": "mr mrs ms miss mx sir madam mister missus",
    "doctor": "dr drs doctor prof professor doc",
    "degree": "md do rn np pa phd dds pharmd lpn cnm crna dpt msw lcsw facs facp mbbs cna",
    "patient": "patient pt client resident",
    "name": "name names called named",
    "given": "first given middle maiden surname forename last family",
    "kin": "husband wife son daughter mother father brother sister spouse partner niece nephew cousin aunt uncle "
    "grandson granddaughter grandmother grandfather stepson stepdaughter fiance fiancee guardian mom dad boyfriend "
    "girlfriend friend neighbor neighbour caregiver carer roommate contact",
    "staff": "nurse surgeon physician attending resident intern fellow anesthesiologist assistant cardiologist pcp "
    "consultant provider oncologist pathologist radiologist therapist midwife pharmacist hospitalist neurologist",
    "signs": "signed dictated electronically cosigned authenticated reviewed transcribed attested verified author",
    "says": "reports reported denies denied states stated says said presents presented complains complained feels "
    "notes endorses describes admits tells told asks asked",
    "is": "is was has had will would does did lives came arrived returns",
    "by": "by per with from to for via cc",
    "and": "and or",
    "the": "the a an this that these his her their our my your",
    "of": "of in on at as after before during under",
    "dear": "dear hi hello sincerely regards thanks",
    "disease": "disease syndrome sign test palsy procedure maneuver catheter drain tube score scale criteria stain "
    "lymphoma sarcoma tumor tumour phenomenon fracture contracture cyst node ligament forceps retractor suture needle "
    "clamp position incision classification stage grade reflex law triad thyroiditis chorea nodes bodies",
    "place": "hospital clinic center centre street st avenue ave road university county medical health",
}


@cache
def _cue_of() -> dict[str, str]:
    return {word: kind for kind, words in _CUES.items() for word in words.split()}


class Features:
    """What holds of tokens, given the vocabulary of a model.

    Args:
        vocabulary: the `word_hash` of words that texts write in small letters and that are no names.
    """

    def __init__(self, vocabulary: AbstractSet[int] = frozenset()) -> None:
        self.vocabulary = vocabulary
        self.kind = lru_cache(maxsize=1 << 15)(self._kind)
        self._own = lru_cache(maxsize=1 << 10)(self._of)

    def properties(self, token: str, offset: int) -> tuple[str, ...]:
        """The names of what holds of a token that stands at an offset from the place that is judged."""
        return tuple(f"{offset}{name}" for name in self._own(token) if offset == 0 or name[0] in _SEEN[abs(offset)])

    def _kind(self, token: str) -> str:
        """The coarse kind of a token: what a cue does, or how it is written and what the lists say of it."""
        if not token:
            return "edge"
        if not token[0].isalpha():
            return kept_form(token)
        word, _ = _bare(token)
        return _cue_of().get(word.lower()) or _shape(word) + self._listed(word.lower(), lexical_classes(word))

    def _of(self, token: str) -> tuple[str, ...]:
        if token == EDGE or not token[0].isalpha():
            return ("bias", f"={kept_form(token)}", f"k{self.kind(token)}")
        word, possessive = _bare(token)
        low, classes, shape = word.lower(), lexical_classes(word), _shape(word)
        listed = self._listed(low, classes)
        found = [
            "bias",
            f"k{self.kind(token)}",
            f"~{shape}",
            f"l{classes}",
            f"v{shape}{listed}",
            f"#{min(len(word), 9)}",
        ]
        # A name's own form would only be learnt by heart.
        if classes & LexicalClass.WORD or not classes & LexicalClass.NAME:
            found.append(f"={low}")
        found += [f"<{low[:size]}" for size in (1, 2, 3) if len(low) > size]
        found += [f">{low[-size:]}" for size in (1, 2, 3, 4) if len(low) > size]
        found += [f"+{name}{listed}" for name, holds in (("s", possessive), ("-", "-" in word)) if holds]
        return (*found, *(f"s{shape}{bit}" for bit in _bits(classes)))

    def _listed(self, low: str, classes: int) -> str:
        """One letter for what the lists say: an eponym, a word, a name, both, in the vocabulary, unknown."""
        known = word_hash(low) in self.vocabulary
        if classes & LexicalClass.EPONYM:
            return "e"
        if classes & LexicalClass.WORD:
            return "b" if classes & LexicalClass.NAME else "w"
        if classes & LexicalClass.USUAL_GIVEN:
            return "g"
        if classes & (LexicalClass.USUAL_FAMILY | LexicalClass.FOREIGN_ONLY):
            return "F" if known else "f"
        if classes & LexicalClass.NAME:
            return "N" if known else "n"
        return "k" if known else "u"


# Of a neighbour: its form, kind, shape and lists; of the one beyond: its form and kind.
_SEEN = {1: "=k~l+", 2: "=k"}


def word_hash(low: str) -> int:
    """What stands for a word in a vocabulary: 32 bits, from which it cannot be read off."""
    return crc32(low.encode("utf-8"))


def pair(number: int, first: str, second: str) -> str:
    """The name of two kinds at the offsets `PAIRS[number]`."""
    return f"p{number}{first}\t{second}"


def _bare(token: str) -> tuple[str, bool]:
    """A word without its possessive ending, and whether it had one."""
    possessive = token[-2:] in ("'s", "'S") and len(token) > 2
    return (token[:-2] if possessive else token), possessive


def _shape(word: str) -> str:
    if len(word) == 1:
        return "X" if word.isupper() else "x"
    if word.islower():
        return "xx"
    if word.isupper():
        return "XX" if len(word) > 3 else "Xs"
    return "Xx" if word[0].isupper() and word[1:].islower() else "mixed"


def _bits(classes: int) -> list[int]:
    return [bit for bit in (1, 2, 4, 8, 16, 32, 64) if classes & bit]
