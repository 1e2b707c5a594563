"""One note in MedText's form: its lines merged into paragraphs, these split into tokens, and tokens into sentences.

De-identification tags become one token. Lines of notes are cut at a fixed width, not at sentences.
Source: paper C, section 3.1, and its released preprocessing; spaCy's tokens where it is installed and asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from clinveil.core.errors import MissingExtra
from clinveil.core.spans import LABELS

UNK, EOS, EON = "<unk>", "<eos>", "<eon>"  # a rare word; end of a line; end of a note
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
Splitter = Callable[[str], list[list[str]]]  # a paragraph -> sentences of tokens
_ABBREVIATIONS = (
    "Dr", "Drs", "Mr", "Mrs", "Ms", "St", "Jr", "Sr", "Prof", "vs", "approx", "etc", "Inc", "Co", "Dept", "Fig",
    "cf", "est", "pt", "temp", "wt", "ht", "resp", "hx", "dx", "tx", "rx",
)  # fmt: skip
# Combining marks, joiners and the soft hyphen are no \w, and belong to their word all the same.
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
            r"\bNo\.(?=\s*\d)",  # a number; else an answer
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


def tokens(paragraph: str) -> list[str]:
    """The tokens of a paragraph; without white space, nothing of it is lost."""
    return _TOKEN.findall(paragraph)


def sentences(paragraph: str) -> list[list[str]]:
    """Sentences of tokens: a break after . ? ! where what follows does not begin in lower case, and after each colon.

    Brackets and quotes that close stay with their sentence, and an abbreviation's period ends none.

    Source: paper C's code honours a sentence border only after . ? ! and breaks after every colon.
    """
    return list(_sentences(tokens(paragraph)))


def _sentences(row: list[str]) -> Iterator[list[str]]:
    current: list[str] = []
    over = quoted = False  # the last token that is no closing mark was . ? or !; an odd number of " so far
    for here, following in zip(row, [*row, ""][1:], strict=True):
        current.append(here)
        if here == '"':
            over, quoted = over and quoted, not quoted
        else:
            over = here in _ENDS or (over and here in _CLOSING)
        if here == ":" or (over and not _goes_on(following, quoted)):
            yield current
            current, over = [], False
    if current:
        yield current


def _goes_on(following: str, quoted: bool) -> bool:
    """Whether what follows the end of a sentence is still of it: lower case, or a mark that ends or closes."""
    return quoted if following == '"' else following in _AFTER or following[:1].islower()


def splitter(kind: Literal["rules", "spacy"] = "rules") -> Splitter:
    """The function that splits paragraphs. Raises MissingExtra where spaCy is asked for and not installed."""
    return sentences if kind == "rules" else _spacy()


@cache
def _spacy() -> Splitter:
    try:
        import spacy  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MissingExtra("spaCy", "spacy") from None
    language: Any = spacy.blank("en")
    language.tokenizer.add_special_case(DEIDENTIFIED, [{"ORTH": DEIDENTIFIED}])

    def split(paragraph: str) -> list[list[str]]:
        """spaCy's tokens, our sentence borders: its models are not needed."""
        return list(_sentences([t.text.strip() for t in language(paragraph) if t.text.strip()]))

    return split


def medtext(text: str, *, tags: Tags = "all", split: Splitter = sentences) -> str:
    """A note as one sentence a line, one space between tokens; case is kept, and there is no empty line.

    The number of a list entry stands at the start of its line, and an entry of one line stays one. "" where the note
    holds no token. Source: paper C, section 3.1 and its released code.
    """
    return "\n".join(line for paragraph in paragraphs(text, tags) for line in _rows_of(paragraph, split))


def _rows_of(paragraph: Paragraph, split: Splitter) -> list[str]:
    rows = [" ".join(row) for row in split(paragraph.text)]
    if paragraph.one_line:
        rows = [" ".join(rows)]
    if paragraph.number:
        first, *others = rows or [""]
        rows = [f"{paragraph.number} . {first}".rstrip(), *others]
    return [row for row in rows if row]
