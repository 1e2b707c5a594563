"""E-mail, web and internet addresses; internal ones (.local, .corp) too."""

from __future__ import annotations

import re

from clinveil.phi.detector import Rule, RuleDetector, before, detectors
from clinveil.phi.note import NoteView

_HOST = r"[\w-]+(?:\.[\w-]+)*"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ENDING = r"(?:(?:com|org|net|edu|gov|mil|io|biz|info|local|corp)\b|(?:co|nhs|ac)\.uk\b)"


def _an_address(match: re.Match[str], note: NoteView) -> bool:
    """Four numbers are an address rather than a section's if one has two digits, or the word IP is near."""
    return bool(re.search(r"\d\d", match["phi"])) or "ip" in before(match, note, 12)


RULES = (
    Rule.any_case(
        "EMAIL",
        rf"(?P<phi>[\w.+'%-]*[\w+%-]\s?@(?:(?<!\s@){_HOST}|\s?[\w-]+(?:\.[\w-]+)+))",
        "Write to {mary.o-brien_72@hosp.org} or {jsmith@stmarys.local}.",
        score=0.99,
    ),
    Rule.any_case(
        "EMAIL",
        r"\b(?P<phi>[\w.+-]+\s+(?:at|\(at\)|\[at\])\s+[\w-]+\s+(?:dot|\(dot\)|\[dot\])\s+\w{2,6})\b",
        "It is {rsmith at gmail dot com}.",
    ),
    Rule.any_case(
        "URL",
        r"(?P<phi>\b(?:https?|ftp|sftp|file)://[^\s<>\"')\]]*[^\s<>\"')\].,;:!?])",
        "See {https://portal.example.org/u/42?x=1}, please.",
        score=0.99,
    ),
    Rule.any_case("URL", r"(?P<phi>\bwww\.[^\s<>\"')\]]*[^\s<>\"')\].,;:!?])", "See {www.example.com}.", score=0.99),
    Rule.any_case(
        "URL",
        rf"(?<![@\w.-])(?P<phi>(?:[a-z0-9-]+\.)*[a-z0-9-]+\.{_ENDING}(?:/[^\s<>\"')\]]*[^\s<>\"')\].,;:!?])?)(?!@)",
        "See {portal.example.org/u/42}, or {example.co.uk}.",
    ),
    Rule.any_case(
        "IP",
        rf"(?<![\w.])(?P<phi>{_OCTET}(?:\.{_OCTET}){{3}})(?![\w]|\.\d)",
        "Host {192.168.10.4} logged in.",
        check=_an_address,
    ),
    Rule.any_case(
        "IP",
        r"(?<![\w:])(?P<phi>(?:[0-9a-f]{1,4}:){3,7}(?::?[0-9a-f]{1,4})+)(?![\w:])",
        "Host {2001:db8:0:0:1:2:3:4} logged in.",
    ),
)

detectors.register("emails-urls")(RuleDetector("emails_urls", RULES))
