"""The known-patient feed: find the identifiers that a hospital has on file for a patient in that
patient's notes.

Names match in any case and order, with or without accents, with one misspelling (two from nine
letters on), as nicknames, initials and user names, and by the parts of hyphenated names. Numbers
match with other separators, dates of birth in the usual formats. Diagnosis codes are not
identifiers. Where the feed exists, this is the strongest detector (record-linked scrubbing;
sensitivity 0.999 for known identifiers, BMC Med Inform Decis Mak 2017, 17:437).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from clinveil.core import Span
from clinveil.lexicons import is_not_word, name_form
from clinveil.phi.detection.detectors.ages import can_be_over_89
from clinveil.phi.detection.detectors.dates import MONTHS
from clinveil.phi.detection.note import NoteView, Word
from clinveil.phi.name_variants import (
    EXACT_NAME,
    NICKNAME,
    SHORTEST_MISSPELLED,
    USER_NAME,
    NameVariants,
    is_met,
    within_one_edit,
)

if TYPE_CHECKING:
    from datetime import date

    from clinveil.corpus import Patient

_SHORT = 4  # letters; longer nicknames also count in lower case (not drew, gene)
_DIGITS = re.compile(r"\d{0,4}")
_BETWEEN = re.compile(r"\.?[ \t]{1,2}|\.")


class _Known:
    """Detector of the note's own patient: NAME, MRN, PHONE, EMAIL, ADDRESS and DATE."""

    name = "known"
    labels = frozenset({"NAME", "MRN", "PHONE", "EMAIL", "ADDRESS", "DATE", "AGE"})
    # For Mary Rose O'Brien, the patient used in the tests.
    examples = (
        (
            "{NAME:O'BRIEN}, {NAME:mary}: {MRN:0012345}, {PHONE:617.555.0199},"
            " {EMAIL:Mary@home.example}."
        ),
        "{NAME:O'Brian} of {ADDRESS:12 Elm Street}, born {DATE:3/4/1950}. A rose is no name.",
    )

    def find(self, note: NoteView) -> Iterator[Span]:
        """Yield names of the staff list, and matches with the patient's record if the patient is
        known.
        """
        if note.staff is not None:
            yield from note.staff.spans(note, self.name)
        if note.patient is None:
            return
        yield from self._names(note, note.patient)
        born = note.patient.birth_date
        old = born is not None and can_be_over_89(born.year, note.plain)
        for label, pattern in _patterns(note.patient, old=old):
            for match in pattern.finditer(note.aligned.text):
                yield note.span(*match.span(), label, self.name, why="on file")

    def _names(self, note: NoteView, patient: Patient) -> Iterator[Span]:
        forms = NameVariants.of(patient.name)
        why = forms.among(set(note.words.lowers))
        hits = {index: why[lower] for index, lower in enumerate(note.words.lowers) if lower in why}
        for index, reason in hits.items():
            word = note.words[index]
            if (
                _counts(word, reason)
                or index - 1 in hits
                or index + 1 in hits
                or is_met(note.plain, word.start)
            ):
                yield note.span(
                    *_with_neighbours(note, index, reason, forms), "NAME", self.name, why=reason
                )
        for start, end in forms.initialled(note.plain, bare=True):
            yield note.span(start, end, "NAME", self.name, why="initials")


def name_forms(name: tuple[str, ...]) -> frozenset[str]:
    """Return the normalised forms of name tokens and of their hyphenated parts, without
    initials.
    """
    parts = (part for token in name for part in (token, *token.split("-")))
    return frozenset(form for part in parts if len(form := name_form(part)) > 1)


def own_form(word: str, forms: frozenset[str]) -> str | None:
    """Return the form in `forms` that equals the word or is one misspelling away, or None."""
    form = name_form(word)
    if form in forms:
        return form
    if len(form) < SHORTEST_MISSPELLED:
        return None
    return next(
        (f for f in sorted(forms) if len(f) >= SHORTEST_MISSPELLED and within_one_edit(form, f)),
        None,
    )


def _counts(word: Word, why: str) -> bool:
    """Return whether one match counts without further evidence.

    An ordinary word (a patient called May) must be capitalised, or another name must be next to it.
    A nickname that is an ordinary word (Will, Pat) always needs a name next to it. A short nickname
    must be capitalised.
    """
    if why == NICKNAME:
        return not word.ordinary and (word.capital or len(word.text) > _SHORT)
    return not word.ordinary or (word.capital and why == EXACT_NAME)


def _with_neighbours(note: NoteView, index: int, why: str, forms: NameVariants) -> tuple[int, int]:
    """Return the span of a word with an initial or particle of the name before it, and the digits
    of a user name.
    """
    start = note.words.starts[index]
    end = note.words[index].end
    if why == USER_NAME:
        end += len(_DIGITS.match(note.plain, end)[0])  # type: ignore[index]
    while index and _BETWEEN.fullmatch(note.plain, note.words[index - 1].end, start):
        last = note.words[index - 1]
        initial = len(last.text) == 1 and any(last.lower in letters for letters in forms.initials)
        if not (initial and last.capital) and last.lower not in forms.particles:
            break
        start = last.start
        index = index - 1
    return start, end


@lru_cache(maxsize=1 << 9)
def _patterns(patient: Patient, *, old: bool) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return one pattern per label for record numbers, contact data and dates.

    Args:
        old: whether the patient can be over 89; the date of birth is then an age.
    """
    # The local part if it is not a word: a user name.
    patterns = {
        "MRN": [_loose(number) for number in patient.record_numbers],
        "PHONE": [_loose(number) for number in patient.phones],
        "EMAIL": [
            re.escape(part)
            for email in patient.emails
            for part in (
                email,
                email.partition("@")[0],
            )
            if part == email or (len(part) > 4 and is_not_word(part))
        ],
        "ADDRESS": [
            r"[\W_]+".join(re.escape(word) for word in re.findall(r"\w+", line))
            for address in patient.addresses
            for line in _parts(address)
        ],
    }
    if born := patient.birth_date:
        patterns["AGE" if old else "DATE"] = _birth_dates(born)
    return tuple(
        (
            label,
            re.compile(
                rf"(?<![^\W_])(?:{'|'.join(filter(None, pieces))})(?![^\W_])", re.IGNORECASE
            ),
        )
        for label, pieces in patterns.items()
        if any(pieces)
    )


def _loose(number: str) -> str:
    """Return a pattern for a number that allows up to three separators between its letters and
    digits.
    """
    signs = [re.escape(sign) for sign in number if sign.isalnum()]
    return r"[\W_]{0,3}".join(signs) if len(signs) > 3 else ""


def _parts(address: str) -> list[str]:
    """Return the complete address, its street line, and other lines that contain a digit."""
    lines = [line.strip() for line in re.split(r"[,\n]", address)]
    return [address, *(line for line in lines if re.search(r"\d", line) and len(line) > 4)]


def _birth_dates(day: date) -> list[str]:
    month = rf"(?:{MONTHS[day.month - 1]}|{MONTHS[day.month - 1][:3]}\.?)"
    m = rf"0?{day.month}"
    d = rf"0?{day.day}"
    y = rf"(?:{day.year}|'?{day.year % 100:02d})"
    return [
        rf"{m}[/.-]{d}[/.-]{y}",
        rf"{d}[/.-]{m}[/.-]{y}",
        rf"{day.year}[/.-]?{day.month:02d}[/.-]?{day.day:02d}",
        rf"{month}\s+{d}(?:st|nd|rd|th)?,?\s+{y}",
        rf"{d}(?:st|nd|rd|th)?(?:\s+of)?[\s-]+{month},?[\s-]+{y}",
    ]


KNOWN = _Known()
