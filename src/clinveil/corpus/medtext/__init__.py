"""MedText (paper C, section 3.1): notes as one sentence a line and one space between tokens, split by patient."""

from clinveil.corpus.medtext.note import DEIDENTIFIED, EON, EOS, UNK, medtext
from clinveil.corpus.medtext.rare import Dictionary, dictionary, with_unknown
from clinveil.corpus.medtext.split import PARTS, SplitSizes, split_notes
from clinveil.corpus.medtext.tokenizer import splitter

__all__ = [
    "DEIDENTIFIED",
    "EON",
    "EOS",
    "PARTS",
    "UNK",
    "Dictionary",
    "SplitSizes",
    "dictionary",
    "medtext",
    "split_notes",
    "splitter",
    "with_unknown",
]
