"""MedText (paper C, section 3.1): notes with one sentence per line, tokens separated by spaces,
split by patient.
"""

from clinveil.corpus.medtext.form import DEIDENTIFIED, EON, EOS, UNK, medtext, splitter
from clinveil.corpus.medtext.prepare import (
    PARTS,
    Dictionary,
    SplitSizes,
    dictionary,
    split_notes,
    with_unknown,
)

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
