"""Convert a note to MedText format: merge lines into paragraphs, and split these into tokens and
sentences.

De-identification tags become one token. Lines of notes are wrapped at a fixed width, not at
sentences.
Source: paper C, section 3.1, and its released preprocessing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from clinveil.core import LABELS

# a rare word; end of a line; end of a note
UNK = "<unk>"
EOS = "<eos>"
EON = "<eon>"
DEIDENTIFIED = "<deidentified>"
FULL_LINE = 42  # a line of at least this many characters continues on the next line
Tags = Literal["all", "published"]

_PUBLISHED = r"\(?'?\[\*\*[\w\s\-()\\/]+\*\*\]\)?:?"
# Tags of MIMIC-III, MIMIC-IV (three underscores) and clinveil, and the token itself.
_ANY = (
    r"\[\*\*[^\[\]\n]*\*\*\]|(?<!_)___(?!_)|\[(?:"
    + "|".join(sorted(LABELS))
    + r")\]|<deidentified>"
)
_TAGS: dict[Tags, re.Pattern[str]] = {"published": re.compile(_PUBLISHED), "all": re.compile(_ANY)}
_CUT_TAG = re.compile(r"\[\*\*[^\[\]]{0,100}\*\*\]")  # a tag that continues on the next line
_TAG_WIDTH = 12  # width of a tag, blanks included, when paper C's code measures a line
_FILLER = re.compile(r">\.+<")
_BULLET = re.compile(r"([1-9][0-9]?)\.\s")
Splitter = Callable[[str], list[list[str]]]  # a paragraph -> sentences of tokens
_ABBREVIATIONS = (
    "Dr", "Drs", "Mr", "Mrs", "Ms", "St", "Jr", "Sr", "Prof", "vs", "approx", "etc", "Inc", "Co",
    "Dept", "Fig", "cf", "est", "pt", "temp", "wt", "ht", "resp", "hx", "dx", "tx", "rx",
)  # fmt: skip
# Combining marks, joiners and the soft hyphen are not in \w but belong to their word.
_MARKS = (
    "\u00ad\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff"
)
_TOKEN = re.compile(
    "|".join(
        [
            re.escape(DEIDENTIFIED),
            r"\d+(?:[.,:/]\d+)+",  # 3.5, 1,200, 10:30, 120/80, 3/4/2011
            r"(?:[^\W\d_]\.){2,}",  # e.g., p.o., q.i.d.
            r"\b(?i:" + "|".join(_ABBREVIATIONS) + r")\.(?=\s)",
            r"\bNo\.(?=\s*\d)",  # the abbreviation of "number", not the answer
            r"\b[A-Z]\.(?=\s+[A-Z])",  # an initial
            r"[^\W\d_]+(?=[nN]['’][tT]\b)",
            r"[nN]['’][tT]\b",
            r"['’](?:s|S|re|ve|ll|d|m)\b",
            r"[\w" + _MARKS + "]+",
            r"\.{2,}|-{2,}|={2,}|\*{2,}|#{2,}|~{2,}|\+{2,}|<{2,}|>{2,}",
            r"\S",
        ]
    )
)
_ENDS = frozenset(".?!")
_CLOSING = frozenset("\"')]}”’")
_AFTER = _ENDS | _CLOSING


class Paragraph(NamedTuple):
    """Lines that belong together, joined by spaces.

    Attributes:
        number: of a list entry, or "". text: the rest. one_line: a list entry of one line, not
            split into sentences.
    """

    number: str
    text: str
    one_line: bool


def paragraphs(text: str, tags: Tags = "all") -> Iterator[Paragraph]:
    """Yield the paragraphs of a note; a list entry starts one, and a line that ends with a colon
    ends one.

    Args:
        text: the note. tags: `published` replaces the same tags as paper C's code, which ignores
            tags with a comma or period and removes a colon after the tag; `all` replaces all tags
            of MIMIC and clinveil.
    """
    lines: list[str] = []
    short = 1  # 0: the last line was full; otherwise 1 plus the number of empty lines since
    for line, width in _lines(text, tags):
        if not line:
            short += 1
            continue
        continues = short == 0 or (short == 1 and line[0].islower())
        if lines and (not continues or _BULLET.match(line)):
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
    """Yield each line with its tags replaced, and its width."""
    text = text.replace("Discharge Date:", "\nDischarge Date:")
    if tags == "all":
        text = _CUT_TAG.sub(lambda tag: " ".join(tag[0].split()), text)
    mark = f" {DEIDENTIFIED} "
    for raw in text.splitlines():
        line, n_tags = _TAGS[tags].subn(mark, raw.strip())
        yield line.strip(), len(line) - n_tags * (len(mark) - _TAG_WIDTH)


def _joined(lines: list[str]) -> Paragraph:
    text = _FILLER.sub(" ", " ".join(lines))
    if bullet := _BULLET.match(text):
        return Paragraph(bullet[1], text[bullet.end() :], len(lines) == 1)
    return Paragraph("", text, one_line=False)


def tokens(paragraph: str) -> list[str]:
    """Return the tokens of a paragraph; only white space is lost."""
    return _TOKEN.findall(paragraph)


def sentences(paragraph: str) -> list[list[str]]:
    """Return sentences as lists of tokens: split after . ? ! unless lower case follows, and after
    each colon.

    Closing brackets and quotes stay with their sentence; the period of an abbreviation does not end
    a sentence.

    Source: paper C's code accepts sentence boundaries only after . ? ! and splits after every
    colon.
    """
    return list(sentences_of(tokens(paragraph)))


def sentences_of(row: list[str]) -> Iterator[list[str]]:
    """Yield the sentences of a row of tokens; see `sentences`."""
    current: list[str] = []
    ended = False  # the last token except closing marks was . ? or !
    quoted = False  # an odd number of " so far
    for token, following in zip(row, [*row, ""][1:], strict=True):
        current.append(token)
        if token == '"':
            ended = ended and quoted
            quoted = not quoted
        else:
            ended = token in _ENDS or (ended and token in _CLOSING)
        if token == ":" or (ended and not _continues(following, quoted)):
            yield current
            current = []
            ended = False
    if current:
        yield current


def _continues(following: str, quoted: bool) -> bool:
    """Return whether a token still belongs to the sentence: lower case, or a final or closing
    mark.
    """
    return quoted if following == '"' else following in _AFTER or following[:1].islower()


def medtext(text: str, *, tags: Tags = "all", split: Splitter = sentences) -> str:
    """Return a note with one sentence per line and one space between tokens; case is kept, empty
    lines are removed.

    The number of a list entry is at the start of its line, and an entry of one line stays one line.
    The result is "" for a note without tokens. Source: paper C, section 3.1 and its released code.
    """
    return "\n".join(
        line for paragraph in paragraphs(text, tags) for line in _rows_of(paragraph, split)
    )


def _rows_of(paragraph: Paragraph, split: Splitter) -> list[str]:
    rows = [" ".join(row) for row in split(paragraph.text)]
    if paragraph.one_line:
        rows = [" ".join(rows)]
    if paragraph.number:
        first, *others = rows or [""]
        rows = [f"{paragraph.number} . {first}".rstrip(), *others]
    return [row for row in rows if row]
