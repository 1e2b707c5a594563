"""Features of a token at its own position and at up to two positions on either side.

A property belongs to one token at an offset, or to a pair of coarse token kinds. The score of a
label is therefore a sum of rows that are computed once per distinct word (`tag.Rows`) instead of a
dictionary of strings per token. Models
contain the property names: after any change of their meaning, increase `VERSION` and train again.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from clinveil.lexicons import LexicalClass, lexical_classes

VERSION = 2
EDGE = ""
"""The padding token before the first and after the last token."""
_LONGEST_NUMBER = 5
OFFSETS = (-2, -1, 0, 1, 2)
PAIRS = ((-1, 0), (0, 1), (-1, 1), (-2, 0))
"""Offsets of the two tokens of each pair property."""

# Words that precede or follow names, grouped by function; each group is one kind.
_CUES = {
    "title": "mr mrs ms miss mx sir madam mister missus",
    "doctor": "dr drs doctor prof professor doc",
    "degree": "md do rn np pa phd dds pharmd lpn cnm crna dpt msw lcsw facs facp mbbs cna",
    "patient": "patient pt client resident",
    "name": "name names called named",
    "given": "first given middle maiden surname forename last family",
    "kin": "husband wife son daughter mother father brother sister spouse partner niece nephew"
    " cousin aunt uncle "
    "grandson granddaughter grandmother grandfather stepson stepdaughter fiance fiancee guardian"
    " mom dad boyfriend "
    "girlfriend friend neighbor neighbour caregiver carer roommate contact",
    "staff": "nurse surgeon physician attending resident intern fellow anesthesiologist assistant"
    " cardiologist pcp "
    "consultant provider oncologist pathologist radiologist therapist midwife pharmacist"
    " hospitalist neurologist",
    "signs": "signed dictated electronically cosigned authenticated reviewed transcribed attested"
    " verified author",
    "says": "reports reported denies denied states stated says said presents presented complains"
    " complained feels "
    "notes endorses describes admits tells told asks asked feels felt agrees agreed recommends"
    " recommended suggests "
    "suggested advised advises verbalized concurs thinks believes wants prefers understands",
    "does": "appears appeared seems looks walks walked sleeps slept eats ate drinks takes took"
    " tolerated tolerates "
    "received receives continues continued remains remained underwent developed develops improved"
    " needs needed "
    "requires required refused refuses declined arrived arrives came comes went goes left returned"
    " returns moved "
    "works worked smokes smoked drinks weighs fell woke vomited voided ambulated ambulates started"
    " stopped quit gets "
    "got gained lost visited called phoned rang left follows followed saw sees sat stood lies rates"
    " uses died",
    "owned": "creatinine sodium potassium hemoglobin platelets glucose lactate weight temperature"
    " pressure pain "
    "nausea cough fever edema rash wound incision dressing labs cultures echo scan biopsy films"
    " chart gait speech "
    "mood appetite sleep family parents symptoms records medications exam recommendations office"
    " note condition "
    "course breathing blood heart urine",
    "service": "cardiology nephrology neurology oncology hematology urology surgery orthopedics"
    " ortho psychiatry "
    "medicine pediatrics dermatology endocrinology endocrine rheumatology gastroenterology gi"
    " hepatology pulmonology "
    "pulmonary pulm radiology renal cards neuro psych id heme onc vascular trauma plastics"
    " transplant palliative ent "
    "neurosurgery anesthesia team service consult",
    "medicine": "started takes taking took switched trial ordered prescribed hold stop start"
    " continue mg mcg daily bid "
    "tid prn tablets tablet capsule dose ocp allergies medications meds",
    "is": "is was has had will would does did lives came arrived returns",
    "by": "by per with from to for via cc",
    "and": "and or",
    "the": "the a an this that these his her their our my your",
    "of": "of in on at as after before during under",
    "dear": "dear hi hello sincerely regards thanks",
    "disease": "disease syndrome sign test palsy procedure maneuver catheter drain tube score scale"
    " criteria stain "
    "lymphoma sarcoma tumor tumour phenomenon fracture contracture cyst node ligament forceps"
    " retractor suture needle "
    "clamp position incision classification stage grade reflex law triad thyroiditis chorea nodes"
    " bodies",
    "place": "hospital clinic center centre street st avenue ave road university county medical"
    " health",
}


_CUE_OF = {word: kind for kind, words in _CUES.items() for word in words.split()}


class TokenProperties(NamedTuple):
    """The properties of a token.

    Attributes:
        kind: the group of a cue, or letter case and list membership. form: properties of its
            letters.
        before, after: properties that many words share, in the order of the model's sums around
            those of the form.
    """

    kind: str
    before: tuple[str, ...]
    form: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Features:
    """Compute the properties of tokens, given the vocabulary of a model.

    Args:
        vocabulary: the `word_hash` of words that texts write in lower case and that are not names.
    """

    def __init__(self, vocabulary: AbstractSet[int] = frozenset()) -> None:
        self.vocabulary = vocabulary
        self._known = lru_cache(maxsize=1 << 15)(self.parts)

    def properties(self, token: str, offset: int) -> tuple[str, ...]:
        """Return the property names of a token at an offset from the token to be labelled."""
        _, *names = self._known(token)
        return tuple(
            f"{offset}{name}"
            for name in chain(*names)
            if offset == 0 or name[0] in _USED_AT[abs(offset)]
        )

    def kind(self, token: str) -> str:
        """Return the coarse kind of a token: the group of a cue, or its letter case and list
        membership.
        """
        return self._known(token).kind

    def parts(self, token: str) -> TokenProperties:
        """Return the properties of a token, without offset."""
        if token == EDGE or not token[0].isalpha():
            kind = kept_form(token) or "edge"
            return TokenProperties(kind, ("bias", f"={kept_form(token)}", f"k{kind}"))
        possessive = token[-2:] in ("'s", "'S") and len(token) > 2
        word = token[:-2] if possessive else token
        low = word.lower()
        classes = lexical_classes(word)
        shape = _shape(word)
        listed = _listed(classes, word_hash(low) in self.vocabulary)
        kind = _CUE_OF.get(low) or shape + listed
        # The form of a name is left out, to prevent memorisation.
        written = classes & LexicalClass.WORD or not classes & LexicalClass.NAME
        form = [f"={low}"] if written else []
        form += [f"<{low[:size]}" for size in (1, 2, 3)[: len(low) - 1]]
        form += [f">{low[-size:]}" for size in (1, 2, 3, 4)[: len(low) - 1]]
        before, after = _shared(
            kind, shape, classes, listed, min(len(word), 9), possessive, "-" in word
        )
        return TokenProperties(kind, before, tuple(form), after)


@lru_cache(maxsize=1 << 12)
def _shared(
    kind: str,
    shape: str,
    classes: int,
    listed: str,
    length: int,
    possessive: bool,
    hyphenated: bool,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the properties `before` and `after` of `TokenProperties`."""
    before = ("bias", f"k{kind}", f"~{shape}", f"l{classes}", f"v{shape}{listed}", f"#{length}")
    signs = [
        f"+{name}{listed}" for name, present in (("s", possessive), ("-", hyphenated)) if present
    ]
    return before, (
        *signs,
        *(f"s{shape}{bit}" for bit in (1, 2, 4, 8, 16, 32, 64) if classes & bit),
    )


def _listed(classes: int, known: bool) -> str:
    """Return a one-letter code of list membership: eponym, word, name, both, in the vocabulary, or
    unknown.
    """
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


def kept_form(token: str) -> str:
    """Return the form of a token in the features: numbers by length, rare signs and masks as one
    class.
    """
    first = token[:1]
    if first.isalpha() or not first:
        return token
    if first.isdecimal():
        return "0" * min(len(token), _LONGEST_NUMBER)
    if token == "\n":
        return "line"
    return token if " " < token < "\x7f" else "sign"


# Properties used at distance 1 (form, kind, shape, lists) and distance 2 (form, kind).
_USED_AT = {1: "=k~l+", 2: "=k"}


def word_hash(low: str) -> int:
    """Return the 32-bit hash of a word in a vocabulary, which does not contain the word itself."""
    return crc32(low.encode("utf-8"))


def pair(number: int, first: str, second: str) -> str:
    """Return the property name of two kinds at the offsets `PAIRS[number]`."""
    return f"p{number}{first}\t{second}"


def _shape(word: str) -> str:
    if len(word) == 1:
        return "X" if word.isupper() else "x"
    if word.islower():
        return "xx"
    if word.isupper():
        return "XX" if len(word) > 3 else "Xs"
    return "Xx" if word[0].isupper() and word[1:].islower() else "mixed"
