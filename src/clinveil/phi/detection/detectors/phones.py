"""Telephone numbers (including pagers and extensions) and fax numbers."""

from __future__ import annotations

import re

from clinveil.phi.detection.detector import Rule, RuleDetector, after, before, detectors
from clinveil.phi.detection.note import NoteView

_EXTENSION = r"(?:[\s,]*(?:x|ext\.?|extension)\s*\d{1,6})?"
_AREA = r"(?:\+?1[\s.-]?)?(?:\(\d{3}\)[\s-]*|\d{3}(?:[./-]\s*|\s))"
_FULL = rf"(?<![\w.-])(?P<phi>{_AREA}\d{{3}}[\s.-]?\s?\d{{4}}{_EXTENSION})(?![\w-])"
_CUE = re.compile(
    r"phone|\bcall|\btel\b|telephone|\bcell|mobile|contact|\bhome\b|\bwork\b|office|number|\bfax|reach|dial|\bph\b"
    r"|\bat[:\s]|[#(]|pager?\b|beeper|text|\bext|voicemail"
)
_FAX = re.compile(r"\bfax[^\n]{0,20}$|facsimile[^\n]{0,20}$|\bf:\s?$")
_UNITS = re.compile(r"\s*(?:mg|ml|mcg|cc|units?|kg|cal|kcal|g\b|%|copies|iu\b|k/|x10)")
# Words for telephone calls before digits without a usual grouping.
_CALL = (
    r"\b(?:phone|tel|telephone|cell(?:phone)?|mobile|call(?:ed|\sback)?|callback|ph|contact|reach(?:ed)?|dial|text"
    r"|voicemail|hotline|whatsapp)\b"
)


def _is_fax(match: re.Match[str], note: NoteView) -> bool:
    return bool(_FAX.search(before(match, note, 30)))


def _is_phone(match: re.Match[str], note: NoteView) -> bool:
    """Return whether ten digits are a phone number: without separators, the area code needs brackets."""
    return not _is_fax(match, note) and bool(re.search(r"[\s.()/-]\d{3}[\s.-]|\(", match["phi"]))


def _local(match: re.Match[str], note: NoteView) -> bool:
    """Accept seven digits only after a word for a call, and not before a unit."""
    return bool(_CUE.search(before(match, note, 30))) and not _UNITS.match(after(match, note, 8))


def _no_unit(match: re.Match[str], note: NoteView) -> bool:
    return not _UNITS.match(after(match, note, 8))


def _abroad(match: re.Match[str], note: NoteView) -> bool:
    """Accept nine to eleven digits in groups that are not a date (01-02-2019)."""
    digits = sum(c.isdigit() for c in re.split(r"[a-z,]", match["phi"].lower())[0])
    return 9 <= digits <= 11 and "ndc" not in before(match, note, 12)


def _enough(match: re.Match[str], note: NoteView) -> bool:
    """Return whether there are at least seven digits."""
    return sum(c.isdigit() for c in match["phi"]) >= 7


RULES = (
    Rule.any_case("PHONE", _FULL, "Call {617-555-0199} or {(416) 555 0199}.", check=_is_phone),
    Rule.any_case("FAX", _FULL, "Results were faxed to {812 555 7917}.", check=_is_fax),
    Rule.any_case(
        "PHONE",
        r"(?<![\w.-])(?P<phi>(?:\+|\b00(?=[1-9]))\d{1,3}[\s.-]?(?:\(?\d{1,4}\)?[\s./-]?){2,5}\d{2,4})(?![\w-])",
        "From abroad {+44 (0)20 7946 0958} or {0049 30 901820}.",
        check=_enough,
    ),
    Rule.any_case(
        "PHONE",
        rf"(?<![\w./-])(?P<phi>\(?0\d{{1,4}}\)?(?:(?:[\s./-]{{1,2}}\d{{2,4}}){{2,4}}|[\s/-]\d{{6,7}}){_EXTENSION})"
        rf"(?![\w-])",
        "From abroad {020 7946 0958}, {07700 900123}, {01 42 68 53 00}, or {(02) 9374 4000}.",
        check=_abroad,
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
        rf"{_CALL}\s*(?:numbers?|no\.?|#)?\s*(?:is|at|on|via|her|him|us|me|them)?[:#\s\"'=]*(?P<phi>\+?\(?\d"
        r"(?:[\s()./-]{0,2}\d){6,14})\b",
        "Phone: {6175550199}",
        check=_no_unit,
    ),
    Rule.any_case(
        "FAX",
        r"\bfax\b\s*(?:number|no\.?|#)?\s*(?:is|at|to)?[:#\s\"'=]*(?P<phi>\d{3}[.-]?\d{4}"
        r"|\+?\d(?:[\s()./-]{0,2}\d){9,13})\b",
        "Fax {5550100}",
    ),
    Rule.any_case(
        "PHONE",
        r"\b(?:pager|pgr|beeper|page me at|paged? at|page|extension|ext\.?|bleep)\s*(?:number|no\.?|#|is|at)?[:#\s]*"
        r"(?P<phi>[px]?(?:\d-\d{4}|\d{3,7}))\b(?!\s?(?:of|/)\s?\d)",
        "Pager {33456}, ext. {5-1234}.",
    ),
    Rule.any_case(
        "PHONE",
        r"(?<![\w.-])(?P<phi>[px](?:\d-)?\d{4,5})(?![\w-])",
        "Page {p12345} or {x4567}.",
        score=0.6,
    ),
    Rule.any_case(
        "PHONE",
        r"\b(?:call|dial|paged?|reach(?:ed)?)\s(?:\w+\s){0,3}(?P<phi>\d-\d{4})(?![\w-])",
        "Please call me at {5-1234}.",
        score=0.6,
    ),
)

detectors.register("phones")(RuleDetector("phones", RULES))
