"""The known-patient feed: what a hospital knows of a patient is found in their notes, however it is written.

Names in any case, with accents or without, misspelled by one edit; numbers with other separators; dates of birth in
the usual formats. Codes are diagnoses and no identifiers. This is the strongest detector where the feed exists
(record-linked scrubbing; sensitivity 0.999 for known identifiers, BMC Med Inform Decis Mak 2017, 17:437).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import LexicalClass
from clinveil.lexicons.names import name_form
from clinveil.phi.detector import detectors
from clinveil.phi.detectors.dates import MONTHS
from clinveil.phi.note import NoteView, Word

if TYPE_CHECKING:
    from datetime import date

    from clinveil.corpus.people import Patient

_SHORTEST_MISSPELLED = 4


class _Known:
    """Finds NAME, MRN, PHONE, EMAIL, ADDRESS and DATE of the note's own patient."""

    name = "known"
    labels = frozenset({"NAME", "MRN", "PHONE", "EMAIL", "ADDRESS", "DATE"})
    # Of Mary Rose O'Brien, as the tests have her.
    examples = (
        "{NAME:O'BRIEN}, {NAME:mary}: {MRN:0012345}, {PHONE:617.555.0199}, {EMAIL:Mary@home.example}.",
        "{NAME:O'Brian} of {ADDRESS:12 Elm Street}, born {DATE:3/4/1950}. A rose is no name.",
    )

    def find(self, note: NoteView) -> Iterator[Span]:
        """Nothing where the note's patient is unknown."""
        if note.patient is None:
            return
        yield from self._names(note, note.patient)
        for label, pattern in _patterns(note.patient):
            for match in pattern.finditer(note.whole.text):
                yield note.span(*match.span(), label, self.name)

    def _names(self, note: NoteView, patient: Patient) -> Iterator[Span]:
        forms = name_forms(patient.name)
        hits = [index for index, word in enumerate(note.words) if _is_own(word, forms)]
        for index in hits:
            word = note.words[index]
            if _counts(word) or index - 1 in hits or index + 1 in hits:
                yield note.span(word.start, word.end, "NAME", self.name)


def name_forms(name: tuple[str, ...]) -> frozenset[str]:
    """The name forms of a patient's name tokens and of their hyphenated parts; initials are left out."""
    parts = (part for token in name for part in (token, *token.split("-")))
    return frozenset(form for part in parts if len(form := name_form(part)) > 1)


def own_form(word: str, forms: frozenset[str]) -> str | None:
    """The form in `forms` that a word is, or is by one misspelling; None where there is none."""
    form = name_form(word)
    if form in forms:
        return form
    if len(form) < _SHORTEST_MISSPELLED:
        return None
    return next((own for own in sorted(forms) if len(own) >= _SHORTEST_MISSPELLED and within_one_edit(form, own)), None)


def _is_own(word: Word, forms: frozenset[str]) -> bool:
    if any(name_form(part) in forms for part in (word.text, *word.text.split("-"))):
        return True
    # An ordinary word or another usual name that lies one edit away is itself, not a misspelling.
    other = LexicalClass.WORD | LexicalClass.USUAL_GIVEN | LexicalClass.EPONYM
    return not word.classes & other and own_form(word.text, forms) is not None


def _counts(word: Word) -> bool:
    """A patient called May does not lose every `may`: an ordinary word needs its capital, or a name beside it."""
    return not word.ordinary or word.capital


def within_one_edit(one: str, other: str) -> bool:
    """Whether one insertion, deletion, change or swap of neighbours at most separates two words."""
    if abs(len(one) - len(other)) > 1:
        return False
    short, long = sorted((one, other), key=len)
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return swapped or short[at + 1 :] == long[at + 1 :]


@lru_cache(maxsize=1 << 12)
def _patterns(patient: Patient) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """One pattern a label for what has digits or signs."""
    found = {
        "MRN": [_loose(number) for number in patient.record_numbers],
        "PHONE": [_loose(number) for number in patient.phones],
        "EMAIL": [re.escape(email) for email in patient.emails if email],
        "ADDRESS": [_lines(line) for address in patient.addresses for line in _parts(address)],
        "DATE": _birth_dates(patient.birth_date) if patient.birth_date else [],
    }
    return tuple(
        (label, re.compile(rf"(?<![^\W_])(?:{'|'.join(filter(None, pieces))})(?![^\W_])", re.IGNORECASE))
        for label, pieces in found.items()
        if any(pieces)
    )


def _loose(number: str) -> str:
    """The letters and digits of a number with any separators of up to three signs between them."""
    signs = [re.escape(sign) for sign in number if sign.isalnum()]
    return r"[\W_]{0,3}".join(signs) if len(signs) > 3 else ""


def _parts(address: str) -> list[str]:
    """The whole address, its street line, and other lines that hold a digit."""
    lines = [line.strip() for line in re.split(r"[,\n]", address)]
    return [address, *(line for line in lines if re.search(r"\d", line) and len(line) > 4)]


def _lines(line: str) -> str:
    return r"[\W_]+".join(re.escape(word) for word in re.findall(r"\w+", line))


def _birth_dates(day: date) -> list[str]:
    month = rf"(?:{MONTHS[day.month - 1]}|{MONTHS[day.month - 1][:3]}\.?)"
    m, d, y = rf"0?{day.month}", rf"0?{day.day}", rf"(?:{day.year}|'?{day.year % 100:02d})"
    return [
        rf"{m}[/.-]{d}[/.-]{y}",
        rf"{d}[/.-]{m}[/.-]{y}",
        rf"{day.year}[/.-]?{day.month:02d}[/.-]?{day.day:02d}",
        rf"{month}\s+{d}(?:st|nd|rd|th)?,?\s+{y}",
        rf"{d}(?:st|nd|rd|th)?(?:\s+of)?[\s-]+{month},?[\s-]+{y}",
    ]


detectors.register("known")(_Known())
