"""Hospitals, clinics, schools and other organisations that are called by name."""

from __future__ import annotations

import re
from functools import cache

from clinveil.lexicons.ambiguity import FAMILIAR_FAMILY, LexicalClass, lexical_classes
from clinveil.lexicons.names import surnames
from clinveil.lexicons.words import is_word, word_list
from clinveil.phi.detector import Rule, RuleDetector, detectors, words
from clinveil.phi.note import NoteView

_KIND = (
    r"(?:Hosp\.|"
    r"(?:Hospitals?|Med(?:ical|\.)\s+(?:Center|Centre|Group|Associates|College)|Clinics?|Health(?:care)?\s+(?:System"
    r"|Center|Centre|Network"
    r"|Services)|Healthcare|Infirmary|Hospice|Nursing\s+(?:Home|Facility|Center)|Rehab(?:ilitation)?\s+(?:Center"
    r"|Hospital|Facility)"
    r"|(?:Cancer|Heart|Surgery|Surgical|Care|Trauma|Urgent\s+Care|Community\s+Health|Family\s+Health|Dialysis)\s+"
    r"(?:Center|Centre)|Sanatorium"
    r"|University|Elementary\s+School|High\s+School|Middle\s+School|Academy|Manor|Pharmacy|Physicians|Family\s+"
    r"(?:Practice|Medicine)|Pediatrics"
    r"|(?:Primary|Urgent)\s+Care|Walk-in\s+Clinic|Hosp|Ctr)(?!\w))"
)
_PIECE = r"[A-Z][\w'&]*\.?(?:-[A-Z]\w*)?"
_NAMED = (
    rf"(?<![\w-])(?P<phi>{_PIECE}(?:\s(?:{_PIECE}|of|the|and|de|&)){{0,5}}\s{_KIND}(?:\s+(?:of|at)\s+"
    rf"(?:the\s+)?{_PIECE}(?:\s{_PIECE})?)?)"
)
_SHOUTED = re.compile(r"[A-Z .,'&-]+")
# Words that make no name of an institution when they stand before its kind.
_PLAIN = words(
    "the this that our a an his her their local outside another any same other nearby current prior previous"
    " outlying referring each my your transferring area day main teaching acute long-term skilled in at to from of"
    " and by for with into emergency department as patient outpatient inpatient internal admitted admission"
    " discharge transfer and primary no home"
)
_NAMES_ANYWAY = words(
    "central city county university children's childrens mercy memorial community regional general st veterans va"
)


def _called(match: re.Match[str], note: NoteView) -> bool:
    """At least one word before the kind must be able to name: `Pain Clinic` is a kind, `Elm Clinic` is a name."""
    found = match["phi"]
    if _SHOUTED.fullmatch(found) and len(found) > 60:
        return False
    head = re.split(rf"\s(?={_KIND})", found, maxsplit=1)[0]
    pieces = [piece.strip(".,").lower() for piece in head.split()]
    return any(_named(p) for p in pieces if p not in _PLAIN)


def _called_there(match: re.Match[str], note: NoteView) -> bool:
    pieces = [piece.strip(".,").lower() for piece in match["phi"].split()[:-1]]
    return any(_named(p) for p in pieces if p not in _PLAIN)


@cache
def _named(piece: str) -> bool:
    """Whether a word tells one institution from another; words of medicine only where they are familiar surnames."""
    if piece in word_list("clinical") and piece not in _NAMES_ANYWAY:
        return surnames().get(piece, 0.0) >= FAMILIAR_FAMILY
    return (
        piece in _NAMES_ANYWAY
        or not is_word(piece)
        or piece in word_list("common")
        or bool(lexical_classes(piece) & LexicalClass.NAME)
    )


def _no_eponym(match: re.Match[str], note: NoteView) -> bool:
    tail = re.match(r"\s+([a-z]+)", note.plain[match.end("phi") : match.end("phi") + 20])
    return not (tail and tail[1] in word_list("eponym_nouns"))


_NAMES = "|".join(re.escape(n).replace(r"\ ", r"\s+") for n in sorted(word_list("hospitals"), key=len, reverse=True))
_LISTED = re.compile(
    rf"\b(?:at|to|from|in|by|of|with|the|seen|visited|and)\s+(?:the\s+)?(?P<phi>(?:{_NAMES})(?:\s+(?:{_KIND}"
    rf"|University))?)\b"
)
_SAINT = r"\b(?:at|to|from|in|by)\s+(?P<phi>(?:St|Saint)\.?\s[A-Z][\w-]+(?:'s)?)"
# Lower-case kinds and short forms count only after a word of place.
_PLACED = (
    rf"\b(?:at|to|from|in|our|the|by)\s+(?:our\s+|the\s+)?(?P<phi>(?:{_PIECE}\s){{1,3}}(?:hospital|clinic"
    rf"|medical center|General|Health(?:\sCare)?"
    r"|Med(?:ical)?(?:\.?\sC(?:en)?te?r)?|Memorial|Presbyterian|Methodist|Baptist|Oncology|Pediatrics))\b"
)
# Employers, churches, clubs, homes: after a word of place or belonging.
_ORGANISATION = (
    rf"\b(?:at|for|with|attends|to|by|is|joined|from|of)\s+(?:the\s+)?(?P<phi>(?:{_PIECE}\s){{1,3}}(?:Foods?|Dairy"
    rf"|Trucking|(?:Steel\s)?Works"
    r"|Company|Co\.|Inc\b\.?|LLC|Corp(?:oration)?\b\.?|Industries|(?:\w+\s)?Church|(?:Public\s)?Library|"
    r"(?:\w+\s)?League|(?:\w+\s)?Club"
    r"|(?:Retirement\s)?Residence|Lodge|Garage|Bakery|Construction|Motors|Logistics|School|College)(?!\w)|Hotel\s[A-Z]\w+)"
)


RULES = (
    Rule(
        "HOSPITAL",
        re.compile(_NAMED),
        "{Saranac Sanatorium}, then {Mercy Hospital}; not the pain clinic.",
        score=0.8,
        check=_called,
    ),
    Rule("HOSPITAL", re.compile(_SAINT), "Treated at {St. Vincent's}.", score=0.7),
    Rule("HOSPITAL", re.compile(_PLACED), "Seen at {Elm clinic}.", score=0.7, check=_called_there),
    Rule("HOSPITAL", re.compile(_ORGANISATION), "She works for {Maier Foods}.", score=0.6),
    Rule("HOSPITAL", _LISTED, "Transferred from {BWH} to {MGH}.", score=0.7, check=_no_eponym),
)
detectors.register("hospitals")(RuleDetector("hospitals", RULES))
