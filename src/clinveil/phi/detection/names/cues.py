"""Contextual cues for names: titles, field headers, relatives, credentials, ages, reporting verbs.

Each cue gives the index of the word at which a name may begin. `runs.py` decides whether it is one
and where it ends.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from clinveil.lexicons import LexicalClass
from clinveil.phi.detection.names import cue_words
from clinveil.phi.detection.note import NoteView, begins_small, look_up
from clinveil.phi.matching.matcher import FAR, Anchor, matcher
from clinveil.phi.matching.wordtable import mark


class Trust(IntEnum):
    """How strong a cue is as evidence for a name."""

    LIST = 7  # the name field itself: `Name: first, middle, last;`
    TITLE = 6  # any capitalised word is a name; a listed name also in lower case
    FIELD = 5  # a listed or unknown word; an ordinary word that is a usual name and fills the field
    CALLED = 4  # as FIELD, for ordinary words that are usual names: nurse, aunt
    KIN = 3  # as FIELD, but an unknown word must not be all upper case
    SPOKEN = 2  # a listed name, an unknown word, or two ordinary words that are usual names
    HINT = 1  # a listed name, or two ordinary words that are usual names
    MEETING = 0  # two words that can be a first name and a surname


class Cue(NamedTuple):
    """The index of a word at which a name may begin, with the strength and kind of the evidence."""

    word: int
    trust: Trust
    why: str


_TO_TITLED = re.compile(r"\.?[ \t]*\s?[ \t]*[\"'(]?")
_TO_FIELD = re.compile(
    r"(?:'s)?(?:[ \t]*\((?:s|[A-Za-z ,/]{1,20})\))?(?:[ \t]*[:#=]|[ \t]+-{1,2}(?=[ \t]))[ \t]*[,;]?"
    r"(?:\s?[ \t]*|(?:\r?\n){2})[\"'(\[]?"
)
# `Family name on file: `, `name at birth: `
_TO_RECORDED = re.compile(
    r"[ \t](?:(?:on|in)[ \t](?:the[ \t])?(?:file|records?|chart|card|label|form|id|badge|wristband"
    r"|full|system)"
    r"|at[ \t]birth|as[ \t](?:given|written|stated|recorded|listed|spell?ed|spelt)"
    r"|of[ \t](?:the[ \t])?(?:caller|informant|child|mother|father|spouse|guardian|witness|person"
    r"|nurse|doctor))"
    r"[ \t]*(?:[:=#]|[ \t]-{1,2}(?=[ \t]))\s?[ \t]*[\"'(\[]?",
    re.I,
)
_TO_NAME = re.compile(r"[ \t](?=[^\W\d_])")
_TO_THANKED = re.compile(r"(?:[ \t]again)?,[ \t]+")
_TO_NAMED = re.compile(r"(?:\s+is)?(?:[\s:,]{1,3}|[ \t]{1,4})[\"']?")
_TO_KIN = re.compile(
    r"(?:\s+(?:is|was)(?=\s+[A-Z]|\s+named|\s+called)|(?:'s\s+|\s+)name\s+is)?(?:\s+(?:named"
    r"|called))?(?:\s?[(:]\s?"
    r"|,?\s{1,4})[\"']?",
    re.I,
)
_TO_SPOUSE = re.compile(r"\s+(?:to|of)\s+")
_TO_PATIENT = re.compile(r"[,:]?\s{1,4}[(\"']?")
_ANY = re.compile(r"(?:an?|any|some|another|no|each|every)\Z")
_ELEMENTS = frozenset(("given", "family"))  # elements of names in FHIR and CDA
_TO_SPEAKER = re.compile(r"[ ](?=[^\W\d_])")
_QUOTED = re.compile(r"[,?!.]?[\"'][ ]?\Z|,[ ]\Z")  # `"no change," says Okafor`
_CALL_ME = re.compile(r"[ ](?:me|her|him)[ ]")
_NAME_IS = re.compile(r"\s+is\s+")
_TO_MET = re.compile(r"/?[ \t]+[\"'(]?|[ \t]?\r?\n")
_TO_BRACKET = re.compile(r"[ \t]?\((?=[A-Z][\w'-]+(?:[ ,/][^()\n]{0,30})?\))")
_TO_SIGNED = re.compile(r"(?:[ \t]+(?:yours|truly|you))?,[ \t]*[\r\n,][\s,]*")
_GLUED_PATIENT = re.compile(r"\.(?=[A-Z][a-z])")
_GLUED = matcher(re.compile(r"(?:Drs?|Mrs?|Ms)[A-Z][a-z]+"), Anchor("*Dr* *Mr* *Ms*"))
_AGE = matcher(
    re.compile(
        r"\d\d?\d?[\s-]*(?:y\.?/?o\b|year|yr|month|week|day)(?!s?\s+(?:ago|later|prior))", re.I
    ),
    Anchor(digits=1),
)
_BEFORE_AGE = re.compile(
    r",?\s+(?:(?:is|was)\s+(?:an?|the)\s+(?:[a-z]+[\s,]+){0,4}|(?:(?:is|was)\s+)?(?:(?:an?"
    r"|the)\s+)?)\Z",
    re.I,
)
_BEFORE_KIN = re.compile(
    r",\s+(?:(?:her|his|their|my|the|patient's)\s+){0,2}\Z|\s+and\s+(?:her|his|their)\s+\Z", re.I
)
_PRONOUN = re.compile(r",\s+(?:HER|HIS|THEIR|MY|THE|PATIENT'S)\s+\Z")
_IS_A = re.compile(r",?\s+(?:is|was)\s", re.I)
OWNS_KIN = "relative of"
_OWN_KIN = re.compile(r"'s?\s+\Z", re.I)
# Same pattern, another object: `_backwards` compares by identity.
_OWN_CHART = re.compile(r"'s?\s+\Z", re.I | re.M)
PERSONS = cue_words.PEOPLE | cue_words.PATIENTS | cue_words.CLINICIANS
# The surnames of two clinicians and their team: `Okafor/Lindqvist team`.
_TWO = matcher(
    re.compile(
        r"[A-Z][a-z'-]{2,}/[A-Z][a-z'-]{2,}[ ](?=(?:team|teams|service|group|practice|rounding"
        r"|covering|rounds|clinic|list"
        r"|following|agree)\b)"
    ),
    Anchor(signs="/", within=FAR, first="[A-Z]"),
)
_IN_BED = matcher(
    re.compile(r"[(\[](?:bed|rm|room|bay|cot|crib|isolette)[ \t]?#?[ \t]?\d", re.I),
    Anchor("bay* bed* cot* crib* isolette* rm* room*", within=1, first=r"[(\[]"),
)

_Link = tuple[re.Pattern[str], Trust, str]


def _links(
    *rows: tuple[Iterable[str], re.Pattern[str], Trust, str],
) -> dict[str, tuple[_Link, ...]]:
    """Return cue word -> (pattern between cue and name, strength, reason)."""
    table: dict[str, tuple[_Link, ...]] = {}
    for kinds, between, trust, why in rows:
        for word in kinds:
            table[word] = (*table.get(word, ()), (between, trust, why))
    return table


_AFTER = _links(
    (cue_words.NAMES, _TO_FIELD, Trust.LIST, "name field"),
    (cue_words.PATIENT_FIELDS, _TO_FIELD, Trust.LIST, "patient field"),
    (cue_words.TITLES, _TO_TITLED, Trust.TITLE, "title"),
    (cue_words.CALLED, _TO_MET, Trust.CALLED, "title"),
    (cue_words.WEAK_TITLES, _TO_PATIENT, Trust.KIN, "title"),
    (cue_words.CLINICIANS, _TO_FIELD, Trust.FIELD, "clinician field"),
    (("care",), _TO_FIELD, Trust.FIELD, "clinician field"),
    (cue_words.RELATIVES, _TO_FIELD, Trust.FIELD, "relative field"),
    (("name",), _TO_NAME, Trust.KIN, "named"),
    (("thanks", "regards", "sincerely"), _TO_THANKED, Trust.KIN, "signature"),
    (cue_words.NAMED, _TO_NAMED, Trust.KIN, "named"),
    (cue_words.NAMES, _NAME_IS, Trust.KIN, "named"),
    (cue_words.NAMES, _TO_RECORDED, Trust.LIST, "name field"),
    (cue_words.TEAMS, _TO_FIELD, Trust.FIELD, "team"),
    (("to", "from"), _TO_FIELD, Trust.FIELD, "mail field"),
    (cue_words.PEOPLE, _TO_KIN, Trust.KIN, "relative"),
    (cue_words.SPOUSES, _TO_SPOUSE, Trust.KIN, "relative"),
    (cue_words.CLOSINGS, _TO_SIGNED, Trust.FIELD, "signature"),
    (cue_words.PATIENTS, _TO_PATIENT, Trust.HINT, "patient"),
    (("pt", "patient"), _GLUED_PATIENT, Trust.KIN, "patient"),
    (cue_words.MET, _TO_MET, Trust.SPOKEN, "meeting"),
    (cue_words.SERVICES, _TO_BRACKET, Trust.KIN, "service"),
    (("says", "said", "asks", "replied", "replies"), _TO_SPEAKER, Trust.SPOKEN, "speaker"),
    (("as",), _TO_NAME, Trust.KIN, "named"),
    (("given", "family"), _TO_FIELD, Trust.LIST, "name element"),
    (("born",), _TO_NAME, Trust.KIN, "born"),
    (("call", "calls", "called"), _CALL_ME, Trust.KIN, "named"),
)
_BEFORE = cue_words.SAYS | cue_words.DOES | cue_words.LIVES | cue_words.PEOPLE | cue_words.CHARTED
_CUE_WORDS = frozenset(_AFTER) | _BEFORE | cue_words.MEETINGS
_CUE = mark(lambda word: look_up(word)[1] in _CUE_WORDS)
_TO_VERB = re.compile(r"[ \t]{1,2}|\r?\n|,?[ \t](?:also|now|then|still)[ \t]")
_LABELS_WITH = {
    "care": ("primary",),
    "to": ("copy", "copies", "sent", "cc"),
    "from": ("letter", "fax"),
    "as": ("known", "credited", "billed"),
}
_PERSONAL = frozenset(("per", "by", "with", "from", "to"))
_IS = frozenset(("is", "was", "has", "had", "been"))


def cues(note: NoteView) -> Iterator[Cue]:
    """Yield the cues of a note in no particular order. One word may have several."""
    lowers = note.words.lowers
    starts = note.words.starts
    texts = note.words.texts
    for index in note.words.marked(_CUE):
        lower = lowers[index]
        if lower in cue_words.MEETINGS:
            last = index + 1 == len(texts)
            spoken = index > 0 and lowers[index - 1] in cue_words.SPOKEN
            odd = (
                not last
                and index + 2 < len(texts)
                and not note.words.classes[index + 1] & LexicalClass.WORD
            )
            if not last and (
                spoken or (odd and lower in _PERSONAL) or texts[index + 1] != lowers[index + 1]
            ):
                yield from _meeting(note, index, spoken=spoken)
        if lower in _AFTER:
            yield from _after(note, index, lower)
        if lower in _BEFORE:
            yield from _before(note, index, lower)
    for match in _GLUED.matches(note):
        index = bisect_left(starts, match.start())
        if index < len(starts) and starts[index] == match.start():
            yield Cue(index, Trust.TITLE, "title")
    for match in _IN_BED.matches(note):
        index = bisect_left(starts, match.start()) - 1
        if index >= 0 and not note.plain[starts[index] + len(texts[index]) : match.start()].strip(
            " ,"
        ):
            first = (
                capitals(note, index) if not texts[index].isupper() or len(texts[index]) > 3 else ()
            )
            yield from (Cue(word, Trust.TITLE, "bed") for word in first)
    for match in _TWO.matches(note):
        pair = bisect_left(starts, match.start())
        names = [
            word for word in (pair, pair + 1) if not note.words.classes[word] & LexicalClass.WORD
        ]
        yield from (Cue(word, Trust.KIN, "team") for word in names)
    for match in _AGE.matches(note):
        yield from _backwards(
            note, bisect_left(starts, match.start()) - 1, match.start(), _BEFORE_AGE, "age"
        )


def _after(note: NoteView, index: int, lower: str) -> Iterator[Cue]:
    """Yield cues for the word after this one."""
    words = note.words
    text = note.plain
    end = words.starts[index] + len(words.texts[index])
    for between, trust, why in _AFTER[lower]:
        match = between.match(text, end)
        if match is None:
            continue
        following = bisect_left(words.starts, match.end(), index + 1)
        if following < len(words.starts) and words.starts[following] == match.end():
            if lower in _LABELS_WITH and not _labelled(note, index, lower):
                continue
            if why == "speaker" and not _QUOTED.search(
                text, max(0, words.starts[index] - 4), words.starts[index]
            ):
                continue
            if (
                why == "relative"
                and begins_small(words.texts[following])
                and index
                and _ANY.match(words.lowers[index - 1])
            ):
                continue  # `helped a friend move`
            if why in ("relative", "named") and _misspelt(note, index, following):
                continue
            if why == "born" and text[words.starts[index] - 1 : words.starts[index]] != "(":
                continue
            if (
                lower == "ms"
                and text[max(0, words.starts[index] - 2) : words.starts[index]]
                .rstrip()[-1:]
                .isdigit()
            ):
                continue  # milliseconds
            if lower in _ELEMENTS and note.aligned.markup is None:
                continue  # `Family: supportive` of a note without markup
            word = words.classes[following] & LexicalClass.WORD
            if word and (lower == "as" or why == "service"):
                continue
            yield Cue(following, Trust.CALLED if _is_baby(note, index) else trust, why)


def _is_baby(note: NoteView, index: int) -> bool:
    """Return whether a word ends `baby boy` or `baby girl`."""
    lowers = note.words.lowers
    return index > 0 and lowers[index] in ("boy", "girl") and lowers[index - 1] == "baby"


def _misspelt(note: NoteView, index: int, following: int) -> bool:
    """Return whether an unlisted word in lower case follows a capitalised cue: `Dear colleage`,
    `Dr. Foster performmed`.
    """
    cue = note.words.texts[index]
    small = begins_small(note.words.texts[following])
    capital = not cue.islower() and not cue.isupper()
    return capital and small and not note.words.classes[following] & LexicalClass.NAME


def _labelled(note: NoteView, index: int, lower: str) -> bool:
    """Return whether an ambiguous word labels a person's field: `Primary care:`, `To:`, `Copy
    to:`.
    """
    start = note.words.starts[index]
    if index and note.words.lowers[index - 1] in _LABELS_WITH[lower]:
        return True
    return lower in ("to", "from") and note.plain[max(0, start - 4) : start].rstrip(" \t>")[
        -1:
    ] in ("", "\n", "\r")


def _meeting(note: NoteView, index: int, *, spoken: bool) -> Iterator[Cue]:
    """Yield a cue after `with`, `by` and similar words. `spoken`: a verb of speaking or acting
    precedes.
    """
    texts = note.words.texts
    lowers = note.words.lowers
    starts = note.words.starts
    if lowers[index + 1] in cue_words.TITLES:
        return
    if lowers[index] in ("have", "let") and index + 2 < len(texts):
        spoken = lowers[index + 2] in cue_words.BASE_VERBS and not begins_small(texts[index + 1])
    match = _TO_MET.match(note.plain, starts[index] + len(texts[index]))
    if match and match.end() == starts[index + 1]:
        talked = (
            spoken and lowers[index] in ("to", "with") and lowers[index - 1] in cue_words.TALKED
        )
        small = talked and begins_small(texts[index + 1])
        yield Cue(
            index + 1, Trust.KIN if small else Trust.SPOKEN if spoken else Trust.MEETING, "meeting"
        )


def _before(note: NoteView, index: int, lower: str) -> Iterator[Cue]:
    """Yield cues for the words before this one."""
    start = note.words.starts[index]
    if lower in cue_words.PEOPLE:
        shouted = note.words.texts[index] != lower
        yield from _backwards(
            note, index - 1, start, _PRONOUN if shouted else _BEFORE_KIN, "relative"
        )
        yield from _backwards(note, index - 1, start, _OWN_KIN, OWNS_KIN, Trust.CALLED)
    elif lower in cue_words.CHARTED:
        yield from _backwards(note, index - 1, start, _OWN_CHART, "owner", Trust.SPOKEN)
    else:
        trust = Trust.SPOKEN if lower in cue_words.SAYS | cue_words.LIVES else Trust.HINT
        last = index - 1
        while last > 0 and note.words.lowers[last] in _IS:
            start = note.words.starts[last]
            last = last - 1
        if last < 0 or not _TO_VERB.fullmatch(
            note.plain, note.words.starts[last] + len(note.words.texts[last]), start
        ):
            return
        for first in capitals(note, last):
            yield Cue(first, trust, "says")


def _backwards(
    note: NoteView,
    last: int,
    end: int,
    between: re.Pattern[str],
    why: str,
    trust: Trust = Trust.KIN,
) -> Iterator[Cue]:
    """Yield cues for the words that end where `between` begins, before `end`, capitalised or in
    lower case.
    """
    texts = note.words.texts
    starts = note.words.starts
    closest = -1
    for index in range(last, max(-1, last - 8), -1):
        if end - starts[index] > 60:
            break
        if between.fullmatch(note.plain, starts[index] + len(texts[index]), end):
            closest = index
    if closest < 0:
        return
    if begins_small(texts[closest]):
        first = closest
        while first > max(0, closest - 3) and begins_small(texts[first - 1]):
            first -= 1
        yield from (Cue(start, Trust.SPOKEN, why) for start in range(first, closest + 1))
        if between is _OWN_KIN and texts[closest].lower() not in PERSONS:
            yield Cue(closest, Trust.KIN, why)
        return
    eponym = note.words.classes[closest] & LexicalClass.EPONYM
    if why == "age" and eponym and note.plain[starts[closest] + len(texts[closest]) : end] == " ":
        return  # `Ballard 38 weeks`
    if why == "age" and _IS_A.match(note.plain, starts[closest] + len(texts[closest])):
        trust = Trust.CALLED  # `White is a 45-year-old man`, but not `White 45-year-old man`
    for start in capitals(note, closest):
        yield Cue(start, trust, why)


def capitals(note: NoteView, last: int) -> Iterator[int]:
    """Yield the first word of each run of up to four capitalised words ending at word `last`,
    longest run first.
    """
    index = last
    texts = note.words.texts
    starts = note.words.starts
    while index >= 0 and last - index < 4 and not begins_small(texts[index]):
        if index < last:
            gap = note.plain[starts[index] + len(texts[index]) : starts[index + 1]]
            if gap not in (" ", ". ", "  ") or (gap == ". " and len(texts[index]) > 1):
                break
        index -= 1
    yield from range(index + 1, last + 1)


_DOTTED = re.compile(r"(?:M\.\s?D|D\.\s?O|R\.\s?N|N\.\s?P|P\.\s?A|Ph\.\s?D)\b")
_DOTTED_HEADS = frozenset(("M", "D", "R", "N", "P", "Ph"))
_SMALL = frozenset(
    (
        "md",
        "rn",
        "np",
        "lpn",
        "crna",
        "pa",
        "pa-c",
        "phd",
        "msw",
        "lcsw",
        "do",
        "dpm",
        "pharmd",
        "dpt",
    )
)
_CREDENTIAL_HEADS = cue_words.CREDENTIALS | _DOTTED_HEADS | _SMALL
_CREDENTIAL = mark(lambda word: look_up(word)[0] in _CREDENTIAL_HEADS)
_WITHOUT_COMMA = frozenset(("MD", "RN", "M", "NP", "CRNA", "PA-C", "FNP"))
_ZIP = re.compile(r"\.?,?\s{1,3}\d{5}")


def credentials(note: NoteView) -> Iterator[int]:
    """Yield the index of the last word of each name followed by a credential: `John Smith, MD`."""
    words = note.words
    for index in [i for i in words.marked(_CREDENTIAL) if i]:
        text = words.texts[index]
        start = words.starts[index]
        if text in _SMALL:
            if note.plain[words.starts[index - 1] + len(words.texts[index - 1]) : start] == ", ":
                yield index - 1
            continue
        if text not in cue_words.CREDENTIALS and not _DOTTED.match(note.plain, start):
            continue
        gap = note.plain[words.starts[index - 1] + len(words.texts[index - 1]) : start]
        behind = gap.strip(" .") == "," or (gap in (" ", ". ") and text in _WITHOUT_COMMA)
        if behind and _ZIP.match(note.plain, start + len(text)) is None:
            yield index - 1
