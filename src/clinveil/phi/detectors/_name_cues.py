"""What stands beside a name: titles, field headers, relatives, credentials, ages, verbs of saying.

Each cue says at which word a name may begin; `names.py` decides how far it goes and whether it is one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from clinveil.phi.detector import words
from clinveil.phi.note import NoteView, Word


class Trust(IntEnum):
    """How much a cue says about the word it points at."""

    LIST = 4  # the name field itself: `Name: first, middle, last;`
    TITLE = 3  # anything capitalised is a name, and a known name even in lower case
    FIELD = 2  # a known name or an unknown word, not an ordinary word alone
    KIN = 1  # the same, but an unknown word needs small letters after its capital
    HINT = 0  # a known name


class Cue(NamedTuple):
    """The word at which a possible name begins."""

    word: int
    trust: Trust


_TITLES = words(
    "dr drs mr mrs ms mx messrs professor prof rev reverend rabbi mister missus mme herr frau señor señora sra"
)
_WEAK_TITLES = words("doctor nurse sister miss pastor sgt capt judge lady sir father fr sr hon lt col maj aunt uncle")
_FIELDS = words(
    "re patient name pt client resident attending physician doctor provider surgeon surgeons assistant assistants"
    " anesthesiologist anesthetist pathologist radiologist cardiologist consultant intern pcp therapist nurse author"
    " scribe transcriptionist proctor witness by dictator cc attn attention contact kin guarantor informant"
    " interpreter caregiver manager worker md mother father spouse wife husband daughter son subscriber insured nok"
)
_NAMED = words("named dear nicknamed nee née hello hi aka")
PEOPLE = words(
    "wife husband son sons daughter daughters mother father mom dad brother brothers sister sisters aunt uncle"
    " cousin niece nephew friend friends partner girlfriend boyfriend fiance fiancé fiancee fiancée caregiver"
    " caretaker grandson granddaughter grandmother grandfather grandma grandpa spouse roommate neighbor neighbour"
    " stepson stepdaughter stepmother stepfather twin sibling guardian sponsor boss coworker colleague attorney"
    " lawyer worker therapist counselor psychologist psychiatrist manager practitioner assistant resident surgeon"
    " interpreter teacher pastor priest landlord"
)
_PATIENTS = words(
    "patient pt male female man woman boy girl child infant gentleman baby toddler teenager veteran client individual"
)
_SAYS = words(
    "states state stated reports reported denies denied complains complained presents presented endorses returns"
    " says said tells told feels admits called lives works who"
)
_CREDENTIALS = words(
    "MD DO RN NP FNP ARNP CRNP CNM PA PhD PsyD LPN CRNA DPM DDS DMD PharmD RPh MSW LCSW LICSW FACS FACC MBBS OTR DPT"
    " Esq"
)
_DOTTED = re.compile(r"(?:M\.\s?D|D\.\s?O|R\.\s?N|N\.\s?P|P\.\s?A|Ph\.\s?D)\b")
_DOTTED_HEADS = frozenset(("M", "D", "R", "N", "P", "Ph"))
_GLUED = re.compile(r"(?:Drs?|Mrs?|Ms)[A-Z][a-z]+")
_GLUED_PATIENT = re.compile(r"\.(?=[A-Z][a-z])")

_TO_TITLED = re.compile(r"\.?[ \t]*\s?[ \t]*")
_TO_FIELD = re.compile(r"(?:'s)?[ \t]*[:#][ \t]*,?\s?[ \t]*")
_TO_NAMED = re.compile(r"(?:\s+is)?[\s:,]{1,3}[\"']?")
_TO_KIN = re.compile(
    r"(?:\s+(?:is|was)(?=\s+[A-Z]|\s+named|\s+called)|'s\s+name\s+is)?(?:\s+(?:named|called))?(?:,?\s{1,2}"
    r"|\s?[(:]\s?)[\"']?",
    re.I,
)
_TO_SPOUSE = re.compile(r"\s+(?:to|of)\s+")
_TO_PATIENT = re.compile(r"[,:]?\s{1,2}\(?")
_NAME_IS = re.compile(r"\s+is\s+(?=[A-Z])")
_AGE = re.compile(r"\d\d?\d?[\s-]*(?:y\.?/?o\b|year|yr|month|week|day)(?!s?\s+(?:ago|later|prior))")
_BEFORE_AGE = re.compile(
    r",?\s+(?:(?:is|was)\s+(?:an?|the)\s+(?:[a-z]+[\s,]+){0,4}|(?:(?:is|was)\s+)?(?:(?:an?|the)\s+)?)\Z"
)
_BEFORE_KIN = re.compile(r",\s+(?:(?:her|his|their|my|the|patient's)\s+){0,2}\Z")


def cues(note: NoteView) -> Iterator[Cue]:
    """Where names may begin, by what stands before or after them; in no particular order, several at one word."""
    starts = note.words.starts
    for index, lower in enumerate(note.words.lowers):
        if lower in _CUE_WORDS:
            yield from _after(note, starts, index, note.words[index])
            yield from _before(note, index, note.words[index])
        elif lower[0] in "dm" and _GLUED.fullmatch(note.words.texts[index]):
            yield Cue(index, Trust.TITLE)
    for match in _AGE.finditer(note.plain):
        yield from _backwards(note, bisect_left(starts, match.start()) - 1, match.start(), _BEFORE_AGE)


_CUE_WORDS = (
    _TITLES
    | _WEAK_TITLES
    | _FIELDS
    | _NAMED
    | PEOPLE
    | _PATIENTS
    | _SAYS
    | frozenset(("name", "married", "widow", "widower", "engaged"))
    | frozenset(c.lower() for c in _CREDENTIALS)
    | {"m", "d"}
)


def _after(note: NoteView, starts: list[int], index: int, word: Word) -> Iterator[Cue]:
    """Cues for the word after this one."""
    for kinds, between, trust in _LINKS:
        if word.lower in kinds and (match := between.match(note.plain, word.end)):
            following = index + 1
            while following < len(starts) and starts[following] < match.end():
                following += 1
            if following < len(starts) and starts[following] == match.end() and not _is_title(note.words[following]):
                yield Cue(following, trust)


_LINKS = (
    (frozenset({"name"}), _TO_FIELD, Trust.LIST),
    (_TITLES, _TO_TITLED, Trust.TITLE),
    (_WEAK_TITLES, _TO_TITLED, Trust.KIN),
    (_FIELDS, _TO_FIELD, Trust.FIELD),
    (_NAMED, _TO_NAMED, Trust.FIELD),
    (frozenset({"name"}), _NAME_IS, Trust.FIELD),
    (PEOPLE, _TO_KIN, Trust.KIN),
    (frozenset(("married", "widow", "widower", "engaged")), _TO_SPOUSE, Trust.KIN),
    (_PATIENTS, _TO_PATIENT, Trust.HINT),
    (frozenset({"pt"}), _GLUED_PATIENT, Trust.HINT),
)


def _is_title(word: Word) -> bool:
    return word.lower in _TITLES


def _before(note: NoteView, index: int, word: Word) -> Iterator[Cue]:
    """Cues for the words before this one."""
    if word.lower in _SAYS:
        for start in _capitals(note, index - 1):
            yield Cue(start, Trust.HINT)
    elif word.lower in PEOPLE:
        yield from _backwards(note, index - 1, word.start, _BEFORE_KIN)


def _backwards(note: NoteView, index: int, end: int, between: re.Pattern[str]) -> Iterator[Cue]:
    """A cue for the run of capitalised words that ends where `between` begins, before `end`."""
    while index >= 0 and not note.words[index].capital and end - note.words[index].start < 30:
        index -= 1
    if index >= 0 and between.fullmatch(note.plain, note.words[index].end, end):
        for start in _capitals(note, index):
            yield Cue(start, Trust.KIN)


def _capitals(note: NoteView, last: int) -> Iterator[int]:
    """The first words of the runs of up to four capitalised words that end with word `last`, longest run first."""
    index = last
    while index >= 0 and last - index < 4 and note.words[index].capital:
        if index < last and note.plain[note.words[index].end : note.words[index + 1].start] not in (" ", ". ", "  "):
            break
        index -= 1
    yield from range(index + 1, last + 1)


def credentials(note: NoteView) -> Iterator[int]:
    """The indices of the last words of names that a credential follows: `John Smith, MD`."""
    for index, text in enumerate(note.words.texts):
        if index and (
            text in _CREDENTIALS or (text in _DOTTED_HEADS and _DOTTED.match(note.plain, note.words.starts[index]))
        ):
            gap = note.plain[note.words[index - 1].end : note.words.starts[index]]
            if gap.strip(" .") == "," or (gap in (" ", ". ") and text in ("MD", "RN", "M")):
                yield index - 1
