"""One note in MedText's form."""

from __future__ import annotations

from clinveil.corpus.medtext.paragraphs import DEIDENTIFIED, Paragraph, Tags, paragraphs
from clinveil.corpus.medtext.tokenizer import Splitter, sentences

UNK, EOS, EON = "<unk>", "<eos>", "<eon>"  # a rare word; end of a line; end of a note

__all__ = ["DEIDENTIFIED", "EON", "EOS", "UNK", "medtext"]


def medtext(text: str, *, tags: Tags = "all", split: Splitter = sentences) -> str:
    """A note as one sentence a line, one space between tokens; case is kept, and there is no empty line.

    The number of a list entry stands at the start of its line, and an entry of one line stays one. "" where the note
    holds no token. Source: paper C, section 3.1 and its released code.
    """
    return "\n".join(line for paragraph in paragraphs(text, tags) for line in _lines(paragraph, split))


def _lines(paragraph: Paragraph, split: Splitter) -> list[str]:
    rows = [" ".join(row) for row in split(paragraph.text)]
    if paragraph.one_line:
        rows = [" ".join(rows)]
    if paragraph.number:
        first, *others = rows or [""]
        rows = [f"{paragraph.number} . {first}".rstrip(), *others]
    return [row for row in rows if row]
