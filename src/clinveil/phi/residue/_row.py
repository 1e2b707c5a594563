"""Words and numbers of the patient's row in the list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from clinveil.lexicons import is_word
from clinveil.phi.residue._addresses import SIGNS, Shape

if TYPE_CHECKING:
    from clinveil.corpus import Patient

_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_SHORTEST_NAME = 3
_SHORTEST_OTHER = 5
_SHORTEST_NUMBER = 4
_TITLE = re.compile(r"(?:\b(?:mr|mrs|ms|miss|mx|dr)\.?[ \t]+)\Z", re.IGNORECASE)


class _RowForms(NamedTuple):
    """Words and numbers of a patient's row: form -> label. Ordinary words need a neighbour of the
    row.
    """

    words: dict[str, str]
    numbers: dict[str, str]


@lru_cache(maxsize=1 << 9)
def _row(patient: Patient) -> _RowForms:
    words = dict[str, str]()
    numbers = dict[str, str]()
    fields = [
        ("MRN", patient.record_numbers),
        ("PHONE", patient.phones),
        ("EMAIL", patient.emails),
        ("ADDRESS", patient.addresses),
        ("NAME", patient.name),
    ]
    for label, values in fields:
        shortest = _SHORTEST_NAME if label == "NAME" else _SHORTEST_OTHER
        for value in values:
            for word in _WORD.findall(value.translate(SIGNS).casefold()):
                if len(word) >= shortest and (label == "NAME" or not is_word(word)):
                    words[word] = label
            for digits in _DIGITS.findall(value):
                if len(digits) >= _SHORTEST_NUMBER:
                    numbers[digits] = label
            if (
                label in ("MRN", "PHONE")
                and len(whole := "".join(_DIGITS.findall(value))) >= _SHORTEST_NUMBER
            ):
                numbers[whole] = label
    return _RowForms(words, numbers)


def row_words(text: str, patient: Patient) -> Iterator[Shape]:
    row = _row(patient)
    matches = list(_WORD.finditer(text)) if row.words else []
    hits = [
        (index, row.words[form])
        for index, m in enumerate(matches)
        if (form := m[0].casefold()) in row.words
    ]
    of_row = {index for index, _ in hits}
    for index, label in hits:
        match = matches[index]
        near = any(
            other in of_row
            and abs(matches[other].start() - match.start()) <= 40
            and _adjoin(text, matches, index, other)
            for other in (index - 1, index + 1)
        )
        if near or _counts_alone(text, match):
            yield (*match.span(), label)
    if row.numbers:
        for match in _DIGITS.finditer(text):
            if match[0] in row.numbers:
                yield (*match.span(), row.numbers[match[0]])


def _adjoin(text: str, matches: Sequence[re.Match[str]], index: int, other: int) -> bool:
    """Whether two words have nothing between them but a space, a comma, a hyphen or an initial's
    dot.
    """
    first = matches[min(index, other)]
    second = matches[max(index, other)]
    between = text[first.end() : second.start()]
    return (
        len(between) <= 3
        and between.strip(" \t,.-'") == ""
        and first[0].casefold() != second[0].casefold()
    )


def _counts_alone(text: str, match: re.Match[str]) -> bool:
    """Whether one word of the row is a residue by itself: no ordinary word, or a word after a
    title.
    """
    word = match[0]
    if is_word(word.casefold()):
        return (
            word[0].isupper()
            and _TITLE.search(text, max(0, match.start() - 8), match.start()) is not None
        )
    return word[0].isupper() or len(word) >= _SHORTEST_OTHER
