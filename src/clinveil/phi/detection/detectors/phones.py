"""Telephone numbers (including pagers and extensions) and fax numbers."""

from __future__ import annotations

import re

from clinveil.phi.detection.detector import (
    ALONE_BEGIN,
    BEGIN,
    CODE_BEGIN,
    CODE_END,
    END,
    WHOLE_END,
    WORD_BEGIN,
    Rule,
    RuleDetector,
    after,
    before,
)
from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.matcher import FAR, Anchor

_EXTENSION = r"(?:[\s,]*(?:x|ext\.?|extension)\s*\d{1,6})?"
_AREA = r"(?:\+?1[\s.-]?)?(?:\(\d{3}\)[\s-]*|\d{3}(?:[./-]\s*|\s))"
_FULL = rf"{BEGIN}(?P<phi>{_AREA}\d{{3}}[\s.-]?\s?\d{{4}}{_EXTENSION}){WHOLE_END}"
# Between a word and its number.
_GAP = r"[\W_]{0,6}"
_CUE = re.compile(
    r"phone|\bcall|\btel\b|telephone|\bcell|mobile|contact|\bhome\b|\bwork\b|office|number|\bfax"
    r"|reach|dial|\bph\b"
    r"|\bat[:\s]|[#(]|pager?\b|beeper|text|\bext|voicemail"
)
_FAX = re.compile(r"\bfax.{0,20}$|facsimile.{0,20}$|\bf:\s?$", re.S)
_UNITS = re.compile(r"\s*(?:mg|ml|mcg|cc|units?|kg|cal|kcal|g\b|%|copies|iu\b|k/|x10)")
# Words for telephone calls before digits without a usual grouping.
_CALL = (
    r"(?<![a-z])(?:(?:tele|cell)?phone|tel|cell|mobile|call(?:ed|\sback)?|callback|ph|contact"
    r"|reach(?:ed)?|dial|text"
    r"|voicemail|hotline|whatsapp)(?![a-z])"
)


_DATE = re.compile(r"(?:0[1-9]|[12]\d|3[01])([/.-])(?:0?[1-9]|[12]\d|3[01])(?:\1\d|\s)")


def _is_fax(match: re.Match[str], note: NoteView) -> bool:
    return bool(_FAX.search(before(match, note, 30)))


def _is_phone(match: re.Match[str], note: NoteView) -> bool:
    """Return whether ten digits are a phone number: without separators, the area code needs
    brackets.
    """
    return not _is_fax(match, note) and bool(re.search(r"[\s.()/-]\d{3}[\s.-]|\(", match["phi"]))


def _local(match: re.Match[str], note: NoteView) -> bool:
    """Accept seven digits only after a word for a call, and not before a unit."""
    return bool(_CUE.search(before(match, note, 30))) and not _UNITS.match(after(match, note, 8))


def _no_unit(match: re.Match[str], note: NoteView) -> bool:
    return not _UNITS.match(after(match, note, 8))


def _abroad(match: re.Match[str], note: NoteView) -> bool:
    """Accept nine to eleven digits in groups, without a date at their start (01-02-2019, 03/04/19
    0815).
    """
    if _DATE.match(match["phi"]):
        return False
    digits = sum(c.isdigit() for c in re.split(r"[a-z,]", match["phi"].lower())[0])
    return 9 <= digits <= 11 and "ndc" not in before(match, note, 12)


def _enough(match: re.Match[str], note: NoteView) -> bool:
    """Return whether there are at least seven digits."""
    return sum(c.isdigit() for c in match["phi"]) >= 7


RULES = (
    Rule.any_case(
        "PHONE",
        _FULL,
        "Call {617-555-0199} or {(416) 555 0199}.",
        check=_is_phone,
        anchor=Anchor(digits=4, within=FAR, first=r"[\d(+]", after=r"\D"),
    ),
    Rule.any_case(
        "FAX",
        _FULL,
        "Results were faxed to {812 555 7917}.",
        check=_is_fax,
        anchor=Anchor(digits=4, within=FAR, first=r"[\d(+]", after=r"\D"),
    ),
    Rule.any_case(
        "PHONE",
        rf"{ALONE_BEGIN}(?P<phi>(?:\+"
        rf"|00(?=[1-9]))\d{{1,3}}[\s.-]?(?:\(?\d{{1,4}}\)?[\s./-]?){{2,5}}\d{{2,4}}){WHOLE_END}",
        "From abroad {+44 (0)20 7946 0958} or {0049 30 901820}.",
        check=_enough,
        anchor=Anchor(signs="+0"),
    ),
    Rule.any_case(
        "PHONE",
        rf"{ALONE_BEGIN}(?P<phi>\(?0\d{{1,4}}\)?(?:(?:[\s./-]{{1,2}}\d{{2,4}}){{2,4}}"
        rf"|[\s/-]\d{{6,7}}){_EXTENSION})"
        rf"{WHOLE_END}",
        "From abroad {020 7946 0958}, {07700 900123}, {01 42 68 53 00}, or {(02) 9374 4000}.",
        check=_abroad,
        anchor=Anchor(digits=2, within=1, first="[(0]", after=r"\D"),
    ),
    Rule.any_case(
        "PHONE",
        rf"{ALONE_BEGIN}(?P<phi>\d{{3}}[.-]\d{{4}}{_EXTENSION}){WHOLE_END}",
        "Reach her at {555-0199 ext 33}.",
        check=_local,
        score=0.7,
        anchor=Anchor(digits=3, after=r"\D"),
    ),
    Rule.any_case(
        "PHONE",
        rf"{_CALL}\s*(?:numbers?|no\.?|#)?\s*(?:is|at|on|via|her|him|us|me"
        rf"|them)?{_GAP}(?P<phi>\+?\(?\d"
        rf"(?:[\s()./-]{{0,2}}\d){{6,14}}){END}",
        "Phone: {6175550199}",
        check=_no_unit,
        anchor=Anchor(
            "call* cell* contact* dial* hotline* mobile* ph* reach* tel* text* voicemail* whatsapp*"
        ),
    ),
    Rule.any_case(
        "FAX",
        rf"{WORD_BEGIN}fax(?![a-z])\s*(?:number|no\.?|#)?\s*(?:is|at"
        rf"|to)?{_GAP}(?P<phi>(?:\d{{3}}[.-]?\d{{4}}"
        rf"|\+?\d(?:[\s()./-]{{0,2}}\d){{9,13}})){END}",
        "Fax {5550100}",
        anchor=Anchor("fax"),
    ),
    Rule.any_case(
        "PHONE",
        rf"{WORD_BEGIN}(?:pager|pgr|beeper|page me at|paged? at|page|extension|ext\.?"
        rf"|bleep)(?![a-z]|,\s*\d{{1,3}}(?!\d|-))"
        rf"\s*(?:number|no\.?|#|is|at)?{_GAP}(?P<phi>[px]?(?:\d-\d{{4}}"
        rf"|\d{{3,7}})){END}(?!\s?(?:of|/)\s?\d|°|\s?deg)",
        "Pager {33456}, ext. {5-1234}.",
        anchor=Anchor("beeper* bleep* ext* page* pgr*"),
    ),
    Rule.any_case(
        "PHONE",
        rf"{CODE_BEGIN}(?P<phi>[px](?:\d-)?\d{{4,5}}){CODE_END}",
        "Page {p12345} or {x4567}.",
        score=0.6,
        check=_no_unit,
        anchor=Anchor(digits=4, within=3, first="[PXpx]", after="[^A-Za-z]"),
    ),
    Rule.any_case(
        "PHONE",
        rf"{WORD_BEGIN}(?:call|dial|paged?"
        rf"|reach(?:ed)?)\s(?:\w+\s){{0,3}}{_GAP}(?P<phi>\d-\d{{4}}){WHOLE_END}",
        "Please call me at {5-1234}.",
        score=0.6,
        anchor=Anchor("call dial paged page reached reach"),
    ),
)

PHONES = RuleDetector("phones", RULES)
