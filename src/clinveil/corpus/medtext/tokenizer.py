"""Rules that split a paragraph into tokens, and tokens into sentences; spaCy's where it is installed and asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

from clinveil.core.errors import MissingExtra
from clinveil.corpus.medtext.paragraphs import DEIDENTIFIED

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
    language = spacy.blank("en")
    language.tokenizer.add_special_case(DEIDENTIFIED, [{"ORTH": DEIDENTIFIED}])

    def split(paragraph: str) -> list[list[str]]:
        """spaCy's tokens, our sentence borders: its models are not needed."""
        return list(_sentences([t.text.strip() for t in language(paragraph) if t.text.strip()]))

    return split
