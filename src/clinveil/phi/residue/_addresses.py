"""Shapes of mail and web addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

Shape = tuple[int, int, str]
"""Start and end in the text, and the label that fits."""
# One character for one, so that offsets stay: dashes, slashes, spaces and characters without a
# width.
SIGNS = {ord(sign): "-" for sign in "‐‑‒–—―−﹣－"} | {ord(sign): "/" for sign in "∕⁄⧸／"}
SIGNS |= {ord(sign): "'" for sign in "’‘ʼ＇"} | {
    ord(sign): " " for sign in "\u00a0\u2007\u2009\u202f\u3000"
}
SIGNS |= {ord(sign): "_" for sign in "\u00ad\u200b\u200c\u200d\u2060\ufeff"} | {
    0xFF20: "@",
    0xFF0E: ".",
    0xFF1A: ":",
}


_MAIL_BEFORE = re.compile(r"[\w.+%'-]{1,64}\Z")
_MAIL_AFTER = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_WEB = re.compile(r"(?:https?|ftps?)://[^\s\0]{1,500}|www\.[^\s\0]{1,500}", re.IGNORECASE)
_HOST_END = re.compile(
    r"\.(?:com|org|net|edu|gov|mil|info|io|co\.uk|ac\.uk|nhs\.uk)(?![\w])(?:/[^\s\0]{0,300})?"
)
_HOST_BEFORE = re.compile(r"[\w-]{2,63}(?:\.[\w-]{1,63}){0,8}\Z")


# Namespaces of documents and systems of codes.
_PUBLIC = re.compile(
    r"(?:https?://)?(?:[\w-]{1,63}\.){0,3}"
    r"(?:(?:w3|hl7|loinc|unitsofmeasure|openxmlformats)\.org|snomed\.info"
    r"|schemas\.microsoft\.com)(?![\w.-])",
    re.IGNORECASE,
)


def addresses(text: str) -> Iterator[Shape]:
    if "@" in text:
        for sign in re.finditer("@", text):
            before = _MAIL_BEFORE.search(text[max(0, sign.start() - 64) : sign.start()])
            after = _MAIL_AFTER.match(text, sign.end())
            if before and after and re.search(r"[^\W\d_]", after[0]):
                yield (sign.start() - len(before[0]), after.end(), "EMAIL")
    if "://" in text or "www." in text.lower():
        for match in _WEB.finditer(text):
            if not _PUBLIC.match(match[0]):
                yield (*match.span(), "URL")
    for match in _HOST_END.finditer(text.lower() if len(text.lower()) == len(text) else text):
        if before := _HOST_BEFORE.search(text[max(0, match.start() - 200) : match.start()]):
            start = match.start() - len(before[0])
            if not _PUBLIC.match(text, start, match.end()):
                yield (start, match.end(), "URL")
