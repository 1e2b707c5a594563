"""E-mail, web and internet addresses; internal ones (.local, .corp) too."""

from __future__ import annotations

import re
from typing import Any

from clinveil.phi.detector import Detector, Rule, RuleDetector, before
from clinveil.phi.note import NoteView

_I = re.IGNORECASE
_HOST = r"[\w-]+(?:\.[\w-]+)*"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ENDING = r"(?:(?:com|org|net|edu|gov|mil|io|biz|info|local|corp)\b|(?:co|nhs|ac)\.uk\b)"


def _an_address(match: re.Match[str], note: NoteView) -> bool:
    """Four numbers are an address rather than a section's if one has two digits, or the word IP is near."""
    return bool(re.search(r"\d\d", match["phi"])) or "ip" in before(match, note, 12)


def _rule(label: str, pattern: str, **options: Any) -> Rule:
    return Rule(label, re.compile(pattern, _I), **options)


RULES = (
    _rule(
        "EMAIL",
        rf"(?P<phi>[\w.+'%-]*[\w+%-]\s?@(?:(?<!\s@){_HOST}|\s?[\w-]+(?:\.[\w-]+)+))",
        score=0.99,
    ),
    _rule(
        "EMAIL",
        r"\b(?P<phi>[\w.+-]+\s+(?:at|\(at\)|\[at\])\s+[\w-]+\s+(?:dot|\(dot\)|\[dot\])\s+\w{2,6})\b",
    ),
    _rule(
        "URL",
        r"(?P<phi>\b(?:https?|ftp|sftp|file)://[^\s<>\"')\]]*[^\s<>\"')\].,;:!?])",
        score=0.99,
    ),
    _rule("URL", r"(?P<phi>\bwww\.[^\s<>\"')\]]*[^\s<>\"')\].,;:!?])", score=0.99),
    _rule(
        "URL",
        rf"(?<![@\w.-])(?P<phi>(?:[a-z0-9-]+\.)*[a-z0-9-]+\.{_ENDING}(?:/[^\s<>\"')\]]*[^\s<>\"')\].,;:!?])?)(?!@)",
    ),
    _rule(
        "IP",
        rf"(?<![\w.])(?P<phi>{_OCTET}(?:\.{_OCTET}){{3}})(?![\w]|\.\d)",
        check=_an_address,
    ),
    _rule(
        "IP",
        r"(?<![\w:])(?P<phi>(?:[0-9a-f]{1,4}:){3,7}(?::?[0-9a-f]{1,4})+)(?![\w:])",
    ),
)


def detector() -> Detector:
    """Finds EMAIL, URL and IP."""
    return RuleDetector("emails_urls", RULES)
