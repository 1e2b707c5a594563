"""Telephone, pager and fax numbers."""

from __future__ import annotations

import re
from typing import Any

from clinveil.phi.detector import Detector, Rule, RuleDetector, after, before
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
_I = re.IGNORECASE


def _is_fax(match: re.Match[str], note: NoteView) -> bool:
    return bool(_FAX.search(before(match, note, 30)))


def _is_phone(match: re.Match[str], note: NoteView) -> bool:
    return not _is_fax(match, note)


def _local(match: re.Match[str], note: NoteView) -> bool:
    """Seven digits alone: only after a word of telephoning, and not before a unit."""
    return bool(_CUE.search(before(match, note, 30))) and not _UNITS.match(after(match, note, 8))


def _rule(label: str, pattern: str, **options: Any) -> Rule:
    return Rule(label, re.compile(pattern, _I), **options)


RULES = (
    _rule("PHONE", _FULL, check=_is_phone),
    _rule("FAX", _FULL, check=_is_fax),
    _rule(
        "PHONE",
        r"(?<![\w.-])(?P<phi>\+\d{1,3}[\s.-]?(?:\(?\d{1,4}\)?[\s.-]?){2,5}\d{2,4})(?![\w-])",
    ),
    _rule(
        "PHONE",
        rf"(?<![\w.-])(?P<phi>\(?0\d{{2,4}}\)?[\s-]\d{{3,4}}[\s-]?\d{{3,4}}{_EXTENSION})(?![\w-])",
    ),
    _rule(
        "PHONE",
        rf"(?<![\w.-])(?P<phi>\d{{3}}[.-]\d{{4}}{_EXTENSION})(?![\w-])",
        check=_local,
        score=0.7,
    ),
    _rule(
        "PHONE",
        r"\b(?:phone|tel|telephone|cell|mobile|call|ph)\b\s*(?:number|no\.?|#)?\s*(?:is|at)?[:#\s]*(?P<phi>\+?\(?\d"
        r"(?:[\s().-]{0,2}\d){6,14})\b",
    ),
    _rule(
        "FAX",
        r"\bfax\b\s*(?:number|no\.?|#)?\s*(?:is|at)?[:#\s]*(?P<phi>\d{3}[.-]?\d{4}|\d{10,11})\b",
    ),
    _rule(
        "PHONE",
        r"\b(?:pager|beeper|page me at|paged? at|extension|ext\.?)\s*(?:number|no\.?|#|is|at)?[:#\s]*"
        r"(?P<phi>[px]?\d{3,7})\b",
    ),
    _rule("PHONE", r"(?<![\w.-])(?P<phi>[px]\d{4,5})(?![\w-])", score=0.6),
)


def detector() -> Detector:
    """Finds PHONE (pagers and extensions too) and FAX."""
    return RuleDetector("phones", RULES)
