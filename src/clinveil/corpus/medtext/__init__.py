"""MedText (paper C, section 3.1): notes as one sentence a line and one space between tokens, split by patient."""

from clinveil.corpus.medtext.form import DEIDENTIFIED, EON, EOS, UNK, medtext, splitter
from clinveil.corpus.medtext.parts import PARTS, Dictionary, SplitSizes, dictionary, split_notes, with_unknown

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
