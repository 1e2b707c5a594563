"""Telephone (pagers and extensions too) and fax numbers."""

from __future__ import annotations

import re

from clinveil.phi.detector import Rule, RuleDetector, after, before, detectors
from clinveil.phi.note import NoteView

_EXTENSION = r"(?:[\s,]*(?:x|ext\.?|extension)\s*\d{1,6})?"
_AREA = r"(?:\+?1[\s.-]?)?(?:\(\d{3}\)\s*|\d{3}(?:[.-]\s*|\s))"
_FULL = rf"(?<![\w.-])(?P<phi>{_AREA}\d{{3}}[\s.-]\s?\d{{4}}{_EXTENSION})(?![\w-])"
_CUE = re.compile(
    r"phone|\bcall|\btel\b|telephone|\bcell|mobile|contact|\bhome\b|\bwork\b|office|number|\bfax|reach|dial|\bph\b"
    r"|\bat[:\s]|[#(]"
)
_FAX = re.compile(r"\bfax[^\n]{0,20}$|facsimile[^\n]{0,20}$")
_UNITS = re.compile(r"\s*(?:mg|ml|mcg|cc|units?|kg|cal|kcal|g\b|%)")


def _is_fax(match: re.Match[str], note: NoteView) -> bool:
    return bool(_FAX.search(before(match, note, 30)))


def _is_phone(match: re.Match[str], note: NoteView) -> bool:
    return not _is_fax(match, note)


def _local(match: re.Match[str], note: NoteView) -> bool:
    """Seven digits alone: only after a word of telephoning, and not before a unit."""
    return bool(_CUE.search(before(match, note, 30))) and not _UNITS.match(after(match, note, 8))


RULES = (
    Rule.any_case("PHONE", _FULL, "Call {617-555-0199} or {(416) 555 0199}.", check=_is_phone),
    Rule.any_case("FAX", _FULL, "Results were faxed to {812 555 7917}.", check=_is_fax),
    Rule.any_case(
        "PHONE",
        r"(?<![\w.-])(?P<phi>\+\d{1,3}[\s.-]?(?:\(?\d{1,4}\)?[\s.-]?){2,5}\d{2,4})(?![\w-])",
        "From abroad {+44 20 7946 0958}.",
    ),
    Rule.any_case(
        "PHONE",
        rf"(?<![\w.-])(?P<phi>\(?0\d{{2,4}}\)?[\s-]\d{{3,4}}[\s-]?\d{{3,4}}{_EXTENSION})(?![\w-])",
        "From abroad {020 7946 0958}.",
    ),
    Rule.any_case(
        "PHONE",
        rf"(?<![\w.-])(?P<phi>\d{{3}}[.-]\d{{4}}{_EXTENSION})(?![\w-])",
        "Reach her at {555-0199 ext 33}.",
        check=_local,
        score=0.7,
    ),
    Rule.any_case(
        "PHONE",
        r"\b(?:phone|tel|telephone|cell|mobile|call|ph)\b\s*(?:number|no\.?|#)?\s*(?:is|at)?[:#\s]*(?P<phi>\+?\(?\d"
        r"(?:[\s().-]{0,2}\d){6,14})\b",
        "Phone: {6175550199}",
    ),
    Rule.any_case(
        "FAX",
        r"\bfax\b\s*(?:number|no\.?|#)?\s*(?:is|at)?[:#\s]*(?P<phi>\d{3}[.-]?\d{4}|\d{10,11})\b",
        "Fax {5550100}",
    ),
    Rule.any_case(
        "PHONE",
        r"\b(?:pager|beeper|page me at|paged? at|extension|ext\.?)\s*(?:number|no\.?|#|is|at)?[:#\s]*"
        r"(?P<phi>[px]?\d{3,7})\b",
        "Pager {33456}",
    ),
    Rule.any_case("PHONE", r"(?<![\w.-])(?P<phi>[px]\d{4,5})(?![\w-])", "Page {p12345} or {x4567}.", score=0.6),
)

detectors.register("phones")(RuleDetector("phones", RULES))
