"""Write the word list `lexicons/data/icd.txt` from the titles of ICD-10-CM.

Usage: `python clinical_words.py XML OUT`.

XML is the tabular list in the PyPI package `simple-icd-10-cm` (MIT), which has the public files of
CDC/NCHS. Words of other lists and of the name lists are left out: the list must not make a word of
a name.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path

from clinveil.lexicons import LexicalClass, lexical_classes, word_list

SOURCE = (
    "# Words of the titles and notes of ICD-10-CM (April 2026) that are in no other list of words"
    " or names. Source: PyPI"
    " package simple-icd-10-cm 1.5.0 (MIT), public files of CDC/NCHS; written by"
    " `training/clinical_words.py`."
)
_TITLE = re.compile(r"<(?:desc|note)>([^<]*)</")
_WORD = re.compile(r"(?<![\w'-])[A-Za-z][a-z]{3,}(?![\w'-])")
_KNOWN = LexicalClass.NAME | LexicalClass.WORD | LexicalClass.EPONYM


def clinical_words(xml: str) -> list[str]:
    """Return the words of the titles that no list has, sorted."""
    found = {word.lower() for title in _TITLE.findall(xml) for word in _WORD.findall(title)}
    listed = word_list("shorthand") | word_list("brands")
    return sorted(word for word in found - listed if not lexical_classes(word) & _KNOWN)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("xml", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    rows = textwrap.wrap(" ".join(clinical_words(asked.xml.read_text(encoding="utf-8"))), 100)
    asked.out.write_text("\n".join([SOURCE, *rows]) + "\n", encoding="utf-8")
