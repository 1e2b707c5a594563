"""Merging the lines of a note into paragraphs, and de-identification tags into one token.

Source: paper C, section 3.1, and its released preprocessing; lines of notes are cut at a fixed width, not at sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from clinveil.core.spans import LABELS

DEIDENTIFIED = "<deidentified>"
FULL_LINE = 42  # a line of so many characters goes on in the next one
Tags = Literal["all", "published"]

_PUBLISHED = r"\(?'?\[\*\*[\w\s\-()\\/]+\*\*\]\)?:?"
# MIMIC-III's, MIMIC-IV's (three underscores), ours, and the token itself.
_ANY = r"\[\*\*[^\[\]\n]*\*\*\]|(?<!_)___(?!_)|\[(?:" + "|".join(sorted(LABELS)) + r")\]|<deidentified>"
_TAGS: dict[Tags, re.Pattern[str]] = {"published": re.compile(_PUBLISHED), "all": re.compile(_ANY)}
_CUT_TAG = re.compile(r"\[\*\*[^\[\]]{0,100}\*\*\]")  # one that goes on in the next line
_TAG_WIDTH = 12  # of a tag in a line, blanks included, where paper C's code measures the line
_FILLER = re.compile(r">\.+<")
_BULLET = re.compile(r"([1-9][0-9]?)\.\s")


class Paragraph(NamedTuple):
    """Lines that belong together, joined by a space.

    Attributes:
        number: of a list entry, "" without one. text: the rest. one_line: an entry of one line, not cut into sentences.
    """

    number: str
    text: str
    one_line: bool


def paragraphs(text: str, tags: Tags = "all") -> Iterator[Paragraph]:
    """The paragraphs of a note; each list entry begins one, and each line that ends with a colon ends one.

    Args:
        text: the note. tags: `published` are the tags that paper C's code replaces, which leaves those with a comma or
            a period in them as text and swallows a colon after the tag; `all` are all of MIMIC's and of ours.
    """
    lines: list[str] = []
    short = 1  # 0: the last line was full; else 1 and the empty lines since
    for line, width in _lines(text, tags):
        if not line:
            short += 1
            continue
        goes_on = short == 0 or (short == 1 and line[0].islower())
        if lines and (not goes_on or _BULLET.match(line)):
            yield _joined(lines)
            lines = []
        lines.append(line)
        short = 0 if width >= FULL_LINE else 1
        if line.endswith(":"):
            yield _joined(lines)
            lines = []
    if lines:
        yield _joined(lines)


def _lines(text: str, tags: Tags) -> Iterator[tuple[str, int]]:
    """Each line with its tags replaced, and how wide it is."""
    text = text.replace("Discharge Date:", "\nDischarge Date:")
    if tags == "all":
        text = _CUT_TAG.sub(lambda tag: " ".join(tag[0].split()), text)
    mark = f" {DEIDENTIFIED} "
    for raw in text.splitlines():
        line, found = _TAGS[tags].subn(mark, raw.strip())
        yield line.strip(), len(line) - found * (len(mark) - _TAG_WIDTH)


def _joined(lines: list[str]) -> Paragraph:
    text = _FILLER.sub(" ", " ".join(lines))
    if found := _BULLET.match(text):
        return Paragraph(found[1], text[found.end() :], len(lines) == 1)
    return Paragraph("", text, one_line=False)
