"""MedText (paper C, section 3.1): notes with one sentence per line, tokens separated by spaces."""

from clinveil.corpus.paper_c_form.form import DEIDENTIFIED, EON, EOS, UNK, medtext
from clinveil.corpus.paper_c_form.frequent_words import Dictionary, dictionary, with_unknown

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
