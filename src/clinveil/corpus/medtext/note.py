"""One note in MedText's form."""

from __future__ import annotations

from clinveil.corpus.medtext.paragraphs import DEIDENTIFIED, Tags, bullet, paragraphs
from clinveil.corpus.medtext.tokenizer import Splitter, sentences

UNK, EOS, EON = "<unk>", "<eos>", "<eon>"  # a rare word; end of a line; end of a note

__all__ = ["DEIDENTIFIED", "EON", "EOS", "UNK", "medtext"]


def medtext(text: str, *, tags: Tags = "all", split: Splitter = sentences) -> str:
    """A note as one sentence a line, one space between tokens; case is kept, and there is no empty line.

    The number of a list entry stands at the start of its line. Source: paper C, section 3.1 and its released code.
    """
    lines = (line for paragraph in paragraphs(text, tags) for line in _lines(paragraph, split))
    return "\n".join(line for line in lines if line)


def _lines(paragraph: str, split: Splitter) -> list[str]:
    number, rest = bullet(paragraph)
    rows = split(rest)
    if number:
        rows = [[number, ".", *rows[0]], *rows[1:]] if rows else [[number, "."]]
    return [" ".join(row) for row in rows]
