"""MedText (paper C, section 3.1): notes with one sentence per line, tokens separated by spaces."""

from clinveil.corpus.medtext.form import DEIDENTIFIED, EON, EOS, UNK, medtext
from clinveil.corpus.medtext.frequent_words import Dictionary, dictionary, with_unknown

__all__ = [
    "DEIDENTIFIED",
    "EON",
    "EOS",
    "UNK",
    "Dictionary",
    "dictionary",
    "medtext",
    "with_unknown",
]
