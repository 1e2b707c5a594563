"""Recognise notes that are not in English, by their words; the detectors know English only.

The share of English words counts function words, common and clinical words and shorthand as
English. Function words of other languages count against it. Abbreviations in capitals are left out,
because many languages share them, and so are unknown words with a capital, because they may be
names. A note with few English words is in another language only if some words show one: function
words, or letters outside ASCII. Calibrated on MTSamples, ACI-Bench, MTS-Dialog, OHSUMED, ASQ-PHI
and terse notes of general practice (lowest share of a note: .70), and on notes in 18 other
languages (highest share of one with sentences: .40; lists of drugs reach 1.0).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from clinveil.lexicons.words import is_word, word_list

FEWEST_WORDS = 20
LOWEST_SHARE = 0.55
FOREIGN_SHARE = 0.05
_MOST_WORDS = 160  # of a note, evenly spaced
_PASSAGES = 8
_PASSAGE = 500  # characters
_LONGEST_ABBREVIATION = 5
# A character of a script without spaces between words counts as a word.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+(?:['’][^\W\d_]+)?")


def is_english(text: str) -> bool:
    """Return whether a note is in English, too short to tell, or in no language (codes,
    measurements).
    """
    shares = word_shares(text)
    return shares is None or shares.english >= LOWEST_SHARE or shares.foreign < FOREIGN_SHARE


class WordShares(NamedTuple):
    """Shares of the words of a note.

    Attributes:
        english: share of English words, less that of other languages' function words.
        foreign: share of other languages' function words and of words with letters outside ASCII; 0
            if it is a single word.
    """

    english: float
    foreign: float


def word_shares(text: str) -> WordShares | None:
    """Return the shares that determine the language of a note; None below 20 words."""
    words = _WORD.findall(_sampled(text))
    if len(words) < FEWEST_WORDS:
        return None
    words = words[:: -(-len(words) // _MOST_WORDS)]
    in_capitals = 2 * sum(map(str.isupper, words)) > len(words)
    total = counted = 0
    foreign = list[str]()
    for word in words:
        value = _value(word.lower())
        if _is_foreign(word):
            foreign.append(word.lower())
        if not in_capitals and _is_abbreviation(word):
            continue
        if value == 0 and not in_capitals and word[0].isupper():  # may be a name
            continue
        total += value
        counted += 1
    share = len(foreign) / len(words) if len(set(foreign)) > 1 else 0.0
    return WordShares(total / max(1, counted), share)


@lru_cache(maxsize=1 << 16)
def _is_foreign(word: str) -> bool:
    """Return whether a word shows another language, even if English has it too (`sin`, `con`)."""
    stem = word.lower().replace("’", "'").partition("'")[0]
    return stem in word_list("foreign") or not word.replace("’", "'").isascii()


def _sampled(text: str) -> str:
    """Return a long text as passages at equal distances, so that a note of any length takes the
    same time.
    """
    if len(text) <= _PASSAGES * _PASSAGE:
        return text
    step = len(text) // _PASSAGES
    return " ".join(text[start : start + _PASSAGE] for start in range(0, step * _PASSAGES, step))


def _is_abbreviation(word: str) -> bool:
    return (len(word) == 1 and word.isascii()) or (
        len(word) <= _LONGEST_ABBREVIATION and word.isupper()
    )


@lru_cache(maxsize=1 << 16)
def _value(word: str) -> int:
    """Return 1 for an English word, -1 for a function word of another language, 0 for any other."""
    word = word.replace("’", "'")
    stem = word.partition("'")[0]
    for form in (word, stem):
        if form in word_list("function") or form in word_list("shorthand") or is_word(form):
            return 1
    return -1 if stem in word_list("foreign") else 0
