"""Merging the lines of a note into paragraphs, and de-identification tags into one token.

Source: paper C, section 3.1, and its released preprocessing; lines of notes are cut at a fixed width, not at sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from clinveil.spans import LABELS

DEIDENTIFIED = "<deidentified>"
FULL_LINE = 42  # a line of so many characters goes on in the next one
Tags = Literal["all", "published"]

_PUBLISHED = r"\(?'?\[\*\*[\w\s\-()\\/]+\*\*\]\)?:?"
_ANY = r"\[\*\*[^\[\]\n]*\*\*\]|\[(?:" + "|".join(sorted(LABELS)) + r")\]|<deidentified>"
_TAGS: dict[Tags, re.Pattern[str]] = {"published": re.compile(_PUBLISHED), "all": re.compile(_ANY)}
_MARKUP = re.compile(r">[^<>]*<")
_BULLET = re.compile(r"([1-9][0-9]?)\.\s")
_DISCHARGE = re.compile(r"(?<!\n)(?=Discharge Date:)")


def paragraphs(text: str, tags: Tags = "all") -> Iterator[str]:
    """The paragraphs of a note: lines that belong together, joined by a space; bullets and headings by themselves.

    Args:
        text: the note. tags: `published` are the tags that paper C's code replaces, which leaves those with a comma or
            a period in them as text and swallows a colon after the tag; `all` are all of MIMIC's and of ours.
    """
    lines: list[str] = []
    short = 1  # 0: the last line was full; else 1 and the empty lines since
    for raw in _DISCHARGE.sub("\n", text).splitlines():
        line = _TAGS[tags].sub(f" {DEIDENTIFIED} ", raw.strip()).strip()
        if not line:
            short += 1
            continue
        broken = short == 0 or (short == 1 and line[0].islower())
        if lines and (not broken or _BULLET.match(line)):
            yield _joined(lines)
            lines = []
        lines.append(line)
        short = 0 if len(line) >= FULL_LINE else 1
        if line.endswith(":"):
            yield _joined(lines)
            lines = []
    if lines:
        yield _joined(lines)


def _joined(lines: list[str]) -> str:
    bare = [line.replace(DEIDENTIFIED, "\0") for line in lines]  # its own brackets are no markup
    return _MARKUP.sub(" ", " ".join(bare)).replace("\0", DEIDENTIFIED)


def bullet(paragraph: str) -> tuple[str, str]:
    """The number of a list entry ("" without one), and the rest."""
    found = _BULLET.match(paragraph)
    return (found[1], paragraph[found.end() :]) if found else ("", paragraph)
