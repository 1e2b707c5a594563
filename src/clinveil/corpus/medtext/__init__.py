"""MedText (paper C, section 3.1): notes with one sentence per line, tokens separated by spaces,
split by patient.
"""

from clinveil.corpus.medtext.form import DEIDENTIFIED, EON, EOS, UNK, medtext
from clinveil.corpus.medtext.frequent_words import Dictionary, dictionary, with_unknown
from clinveil.corpus.medtext.split import PARTS, SplitSizes, split_notes

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
    "with_unknown",
]
