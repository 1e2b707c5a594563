"""Rules that split a paragraph into tokens, and tokens into sentences; spaCy's where it is installed and asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

from clinveil.corpus.medtext.paragraphs import DEIDENTIFIED
from clinveil.errors import MissingExtra

Splitter = Callable[[str], list[list[str]]]  # a paragraph -> sentences of tokens
_ABBREVIATIONS = (
    "Dr", "Drs", "Mr", "Mrs", "Ms", "St", "Jr", "Sr", "Prof", "vs", "No", "approx", "etc", "Inc", "Co", "Dept", "Fig",
    "cf", "est", "pt", "temp", "wt", "ht", "resp", "hx", "dx", "tx", "rx",
)  # fmt: skip
_TOKEN = re.compile(
    "|".join(
        [
            re.escape(DEIDENTIFIED),
            r"\d+(?:[.,:/]\d+)+",  # 3.5, 1,200, 10:30, 120/80, 3/4/2011
            r"(?:[^\W\d_]\.){2,}",  # e.g., p.o., q.i.d.
            r"\b(?:" + "|".join(_ABBREVIATIONS) + r")\.(?=\s)",
            r"\b[A-Z]\.(?=\s+[A-Z])",  # an initial
            r"[^\W\d_]+(?=n['’]t\b)",
            r"n['’]t\b",
            r"['’](?:s|S|re|ve|ll|d|m)\b",
            r"[\w\u0300-\u036f]+",
            r"\.{2,}|-{2,}|={2,}|\*{2,}|#{2,}|~{2,}|\+{2,}|<{2,}|>{2,}",
            r"\S",
        ]
    )
)
_ENDS = frozenset(".?!")
_CLOSING = frozenset("\"')]}”’")


def tokens(paragraph: str) -> list[str]:
    """The tokens of a paragraph; without white space, nothing of it is lost."""
    return _TOKEN.findall(paragraph)


def sentences(paragraph: str) -> list[list[str]]:
    """Sentences of tokens: a break after . ? ! where what follows does not begin in lower case, and after each colon.

    Source: paper C's code honours a sentence border only after . ? ! and breaks after every colon.
    """
    return list(_sentences(tokens(paragraph)))


def _sentences(row: list[str]) -> Iterator[list[str]]:
    current: list[str] = []
    for here, following in zip(row, [*row[1:], ""], strict=True):
        current.append(here)
        over = _ends(current) and following not in _ENDS | _CLOSING and not following[:1].islower()
        if here == ":" or over:
            yield current
            current = []
    if current:
        yield current


def _ends(current: list[str]) -> bool:
    """Whether the last token that is no closing mark is . ? or !"""
    last = next((token for token in reversed(current) if token not in _CLOSING), "")
    return last in _ENDS


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
