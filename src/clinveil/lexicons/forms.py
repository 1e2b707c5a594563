"""The form under which a name is looked up: lookup form, accents and apostrophes gone."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

# Letters that Unicode does not take apart into a base and an accent.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})


@lru_cache(maxsize=1 << 16)
def name_form(word: str) -> str:
    """`José` -> jose, `O'Brien` -> obrien, `NUÑEZ` -> nunez; letters only.

    The same for every way to write a name, so that what is keyed by it stays coherent.
    """
    if word.isascii():
        return word.lower() if word.isalpha() else "".join(filter(str.isalpha, word.lower()))
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", word).casefold()).translate(_LETTERS)
    return "".join(c for c in folded if c.isalpha())
