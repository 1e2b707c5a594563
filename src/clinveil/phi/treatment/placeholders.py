"""Placeholders of identifiers in the training notes of a language model, and the surrogates that
fill written notes.

A placeholder has a label or the role of a name, a number and a form, and nothing else of the
identifier: `Family 2` is the second surname of the note, `HOSPITAL 1 Medical Center` its first
institution. Patients share placeholders, so a model learns where identifiers are, and which are the
same. Dates have the class of their distance to the last date of the note instead of a number.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING

from clinveil.core import CLOSE, OPEN, PLACEHOLDER, Key, words
from clinveil.lexicons import name_form
from clinveil.phi.treatment.dates import Printer, parse, shifted
from clinveil.phi.treatment.surrogates import Surrogates
from clinveil.phi.treatment.surrogates.names import (
    POSSESSIVE,
    NameSurrogates,
    NoteNames,
    in_case_of,
)
from clinveil.phi.treatment.surrogates.numbers_and_places import kind_of_institution, kind_of_street
from clinveil.phi.treatment.surrogates.pools import Role, pool

if TYPE_CHECKING:
    from clinveil.corpus import Patient

MOST = 9  # numbers; later identifiers of a note share the last one
# Upper ends of the classes of distances.
DAYS = (
    0,
    1,
    7,
    30,
    91,
    365,
    1_095,
    3_650,
    14_600,
    36_000,
)
OF_PATIENT = 7  # from this class on, a distance is the same in all notes of a patient (birth)
SAMPLE = date(2001, 1, 1)  # printed in the form of a date
# last dates of first notes, and days that they vary
FIRST = date(2008, 1, 1)
RANGE = 5_800
BETWEEN = 90  # days between the notes of a patient
_ROLES: dict[str, Role] = {role: role for role in ("family", "female", "male", "given")}
_FEW = 20  # names of an initial
_WITHIN = re.compile(r"[\s,.'’-]{0,2}")  # between the parts of one name
_FORMS = {
    "CITY": "City",
    "EMAIL": "j.smith@example.com",
    "URL": "www.example.com",
    "IP": "192.0.2.1",
}


def placeholder(kind: str, number: int, form: str = "") -> str:
    """Return a placeholder."""
    return f"{OPEN}{f'{kind} {number} {form}'.strip()}{CLOSE}"


class Placeholders:
    """Placeholders of one note, with the interface of `Surrogates`.

    Args:
        dates: of the note. day_first: whether the note writes dates day first; None if unknown.
    """

    def __init__(
        self, key: Key, note: NoteNames, dates: Iterable[str], *, day_first: bool | None
    ) -> None:
        self._key = key
        self._note = note
        self._day_first = day_first
        known = [read[0] for text in dates if (read := _read(text, day_first=day_first))]
        self._last = max((day for day in known if day is not None), default=SAMPLE)
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, kind: str, form: str) -> int:
        """Return the number of an identifier among those of its kind in the note; an initial has
        its last name's.
        """
        pairs_of_kind = [pair for pair in self._numbers if pair[0] == kind]
        same = (
            pair
            for pair in reversed(pairs_of_kind)
            if pair[1] == form or (len(form) == 1 and pair[1].startswith(form))
        )
        return self._numbers.setdefault(next(same, (kind, form)), min(MOST, 1 + len(pairs_of_kind)))

    def make(
        self,
        label: str,
        original: str,
        patient_id: str,
        patient: Patient | None = None,
        before: str = "",
    ) -> str | None:
        """Return the placeholder of an original; a surrogate for an unusual date, or None."""
        if label == "NAME":
            return _NamePlaceholders(self, self._key, patient_id, patient, self._note).of(original)
        if label in ("DATE", "AGE"):
            read = _read(original, day_first=self._day_first)
            if read is None:
                if label == "AGE":
                    return None
                return shifted(
                    self._key, patient_id, original, day_first=self._day_first, patient=patient
                )
            days = max(0, (self._last - read[0]).days) if read[0] else DAYS[3]
            return placeholder("DATE", min(bisect_left(DAYS, days), len(DAYS) - 1), read[1](SAMPLE))
        return placeholder(
            label, self.number(label, name_form(original) or original), _form(label, original)
        )


class _NamePlaceholders(NameSurrogates):
    """Names with a placeholder for each word."""

    def __init__(
        self,
        placeholders: Placeholders,
        key: Key,
        patient_id: str,
        patient: Patient | None,
        note: NoteNames,
    ) -> None:
        super().__init__(key, patient_id, patient, note)
        self._placeholders = placeholders

    def _between(self, marks: str) -> str:
        return re.sub(r"\d", "0", marks)

    def _word(self, word: str, *, family: bool = False) -> str:
        stem = POSSESSIVE.sub("", word)
        rest = word[len(stem) :]
        form = self.form(stem)
        if len(name_form(stem)) == 1:
            return self.initial(stem, family=family) + rest
        role = "family" if family else self.role(form)
        return placeholder(in_case_of(stem, role), self._number(role, form)) + rest

    def initial(self, letter: str, *, family: bool = False) -> str:
        role = "family" if family else "given"
        return placeholder(f"{role}-letter", self._number(role, name_form(letter)))

    def _number(self, role: str, form: str) -> int:
        """Return 0 for the known patient's own names."""
        is_known = form in self._known_forms or (
            len(form) == 1 and any(name[:1] == form for name in self._known_forms)
        )
        return (
            0
            if is_known
            else self._placeholders.number("family" if role == "family" else "given", form)
        )


def _form(label: str, original: str) -> str:
    """Return what a placeholder keeps of an identifier: the kind of a place, or the format of a
    number.
    """
    signs = (
        "0" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c for c in original
    )
    form = _FORMS.get(label, "".join(signs))
    if label == "HOSPITAL":
        form = kind_of_institution(original)
    elif label == "ADDRESS":
        house = re.match(r"\s*(\d+) ", original)
        form = (
            f"{'0' * len(house[1])} {kind_of_street(original)}"
            if house
            else kind_of_street(original)
        )
    return form.upper() if original.isupper() else form


def _read(text: str, *, day_first: bool | None = False) -> tuple[date | None, Printer] | None:
    """Return the date of a text, None without a year, and a printer; None for other texts."""
    if read := parse(text, day_first):
        return read
    if re.fullmatch(r"(?:19|20)\d\d", text):
        return date(int(text), 7, 1), lambda day: str(day.year)
    dated = parse(f"{text}, 2004", day_first) if re.match("[A-Za-z]", text) else None
    return (
        (None, lambda day: dated[1](day.replace(year=2004)).removesuffix(", 2004"))
        if dated
        else None
    )


class Invented:
    """Surrogates of one synthetic patient, drawn from public lists under the key."""

    def __init__(self, key: Key, patient: int) -> None:
        self._key = key
        self._scope = str(patient)
        self._surrogates = Surrogates(key)
        self._first = FIRST + timedelta(
            key.stream("synthetic first date", self._scope).below(RANGE)
        )

    def filled(
        self, text: str, position: int, *, marked: bool = False
    ) -> tuple[str, frozenset[str]]:
        """Return a note with surrogates in the places, and the words of these.

        Args:
            position: of the note among those of the patient. marked: write `<NAME>...</NAME>`
                around each.
        """
        out = list[str]()
        end = 0
        written_words = set[str]()
        label = ""
        for match in PLACEHOLDER.finditer(text):
            between = text[end : match.start("inner") - 1]
            kind, number, *form = match["inner"].split(" ", 2)
            name = self._name(kind, number)
            written = name or self._other(kind, number, "".join(form), position)
            wanted_label = "NAME" if name else kind
            if (
                marked
                and label
                and not (label == wanted_label == "NAME" and _WITHIN.fullmatch(between))
            ):
                out.append(f"</{label}>")
                label = ""
            out.append(between)
            if marked and not label:
                out.append(f"<{wanted_label}>")
                label = wanted_label
            out.append(written)
            written_words.update(words(f"{wanted_label} {written}" if marked else written))
            end = match.end()
        return "".join([*out, f"</{label}>" if label else "", text[end:]]), frozenset(written_words)

    def _name(self, kind: str, number: str) -> str:
        """Return a part of a name; nothing for other kinds."""
        role, _, letter = kind.lower().partition("-")
        if role not in _ROLES:
            return ""
        group: Role = "family" if role == "family" else "given"
        first = (
            pool(group).draw(self._key.stream("synthetic initial", self._scope, group, number), "")
            or "x"
        )[0]
        if letter:
            return first.upper()
        names = pool(_ROLES[role], first)
        names = names if len(names) >= _FEW else pool(_ROLES[role])
        drawn = (
            names.draw(self._key.stream("synthetic name", self._scope, role, number), "") or first
        )
        return in_case_of(kind, drawn)

    def _other(self, label: str, number: str, form: str, position: int) -> str:
        """Return a date, a number or a place."""
        if label == "DATE" and (read := _read(form)):
            return read[1](self._date(int(number), position, known_day=not form.isdigit()))
        return self._surrogates.make(label, form, f"{self._scope} {label} {number}") or f"[{label}]"

    def _date(self, distance: int, position: int, *, known_day: bool) -> date:
        """Return a date; a year alone may differ from a day at the same distance, and is late
        rather than early.
        """
        note = "" if distance >= OF_PATIENT else str(position)
        stream = self._key.stream("synthetic date", self._scope, note, f"{distance} {known_day}")
        first = DAYS[distance - 1] + 1 if distance else 0
        days = first + stream.below((DAYS[distance] - first) // (1 if known_day else 3) + 1)
        return self._first + timedelta((0 if distance >= OF_PATIENT else BETWEEN * position) - days)
