"""The known-patient feed: what a hospital knows of a patient is found in their notes, however it is written.

Names in any case and order, with accents or without, misspelled by one edit (of nine letters and more: two), as
nicknames, initials and user names, in parts where they are hyphened; numbers with other separators; dates of birth in
the usual formats. Codes are diagnoses and no identifiers. This is the strongest detector where the feed exists
(record-linked scrubbing; sensitivity 0.999 for known identifiers, BMC Med Inform Decis Mak 2017, 17:437).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from clinveil.core.spans import Span
from clinveil.lexicons.ambiguity import is_no_word
from clinveil.lexicons.names import name_form
from clinveil.phi.detector import detectors
from clinveil.phi.detectors.dates import MONTHS
from clinveil.phi.name_variants import (
    NICKNAME,
    OWN,
    SHORTEST_MISSPELLED,
    USER_NAME,
    NameVariants,
    is_met,
    within_one_edit,
)
from clinveil.phi.note import NoteView, Word

if TYPE_CHECKING:
    from datetime import date

    from clinveil.corpus.people import Patient

_SHORT = 4  # letters of nicknames that may be words of a list yet unwritten: drew, gene
_DIGITS = re.compile(r"\d{0,4}")
_BETWEEN = re.compile(r"\.?[ \t]{1,2}|\.")


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
            for match in pattern.finditer(note.aligned.text):
                yield note.span(*match.span(), label, self.name, why="on file")

    def _names(self, note: NoteView, patient: Patient) -> Iterator[Span]:
        forms = NameVariants.of(patient.name)
        why = forms.among(set(note.words.lowers))
        hits = {index: why[lower] for index, lower in enumerate(note.words.lowers) if lower in why}
        for index, said in hits.items():
            word = note.words[index]
            if _counts(word, said) or index - 1 in hits or index + 1 in hits or is_met(note.plain, word.start):
                yield note.span(*_with_neighbours(note, index, said, forms), "NAME", self.name, why=said)
        for start, end in forms.initialled(note.plain, bare=True):
            yield note.span(start, end, "NAME", self.name, why="initials")


def name_forms(name: tuple[str, ...]) -> frozenset[str]:
    """The name forms of a patient's name tokens and of their hyphenated parts; initials are left out."""
    parts = (part for token in name for part in (token, *token.split("-")))
    return frozenset(form for part in parts if len(form := name_form(part)) > 1)


def own_form(word: str, forms: frozenset[str]) -> str | None:
    """The form in `forms` that a word is, or is by one misspelling; None where there is none."""
    form = name_form(word)
    if form in forms:
        return form
    if len(form) < SHORTEST_MISSPELLED:
        return None
    return next((own for own in sorted(forms) if len(own) >= SHORTEST_MISSPELLED and within_one_edit(form, own)), None)


def _counts(word: Word, why: str) -> bool:
    """A patient called May does not lose every `may`: an ordinary word needs its capital, or a name beside it.

    A nickname that is an ordinary word (Will, Pat) needs a name beside it even so, and a short one its capital.
    """
    if why == NICKNAME:
        return not word.ordinary and (word.capital or len(word.text) > _SHORT)
    return not word.ordinary or (word.capital and why == OWN)


def _with_neighbours(note: NoteView, index: int, why: str, forms: NameVariants) -> tuple[int, int]:
    """The word, with an initial or a particle of the same name before it, and the digits of a user name."""
    start, end = note.words.starts[index], note.words[index].end
    if why == USER_NAME:
        end += len(_DIGITS.match(note.plain, end)[0])  # type: ignore[index]
    while index and _BETWEEN.fullmatch(note.plain, note.words[index - 1].end, start):
        last = note.words[index - 1]
        initial = len(last.text) == 1 and any(last.lower in letters for letters in forms.initials)
        if not (initial and last.capital) and last.lower not in forms.particles:
            break
        start, index = last.start, index - 1
    return start, end


@lru_cache(maxsize=1 << 9)
def _patterns(patient: Patient) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """One pattern a label for what has digits or signs."""
    found = {
        "MRN": [_loose(number) for number in patient.record_numbers],
        "PHONE": [_loose(number) for number in patient.phones],
        "EMAIL": [re.escape(part) for email in patient.emails for part in _addresses(email)],
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


def _addresses(email: str) -> list[str]:
    """The address, and what stands before its at sign where it is no word: a user name."""
    local = email.partition("@")[0]
    return [email, *([local] if len(local) > 4 and is_no_word(local) else [])]


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
