"""Surrogates: generated replacements for identifiers, one kind per file.

A surrogate is a pseudo-random function of (key, kind, patient, normalised original). It is the same
in all notes of a patient and differs between patients, regardless of order, batch or worker. This
keeps a patient's story readable, but a missed name differs from names that agree (Osborne 2025, doi
10.3390/electronics14193945).

A surrogate never equals its original, because it is drawn from the rest of the pool (no rejection
and redraw). An attacker who knows this rule learns only that the original is a different name. This
changes the odds of the true value by the factor 1/(1-p), where p is the surrogate's share of the
pool (at most 1.01 for a surname without known origin; larger for origins with few names). Nothing
else is excluded: a surrogate may coincide with another patient's real name. Such coincidences are
not corrected, because a correction would disclose them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from clinveil.core import Key
from clinveil.phi.treatment.dates import shifted
from clinveil.phi.treatment.surrogates.generalised import old_age
from clinveil.phi.treatment.surrogates.names import (
    NOTHING,
    NameSurrogates,
    NoteNames,
    email,
    number_or_account,
)
from clinveil.phi.treatment.surrogates.numbers_and_places import (
    address,
    city,
    institution,
    internet_address,
    other_number,
    social_security_number,
    url,
)
from clinveil.phi.treatment.surrogates.regions import postal_code, telephone

if TYPE_CHECKING:
    from clinveil.corpus import Patient


Maker = Callable[[Key, str, str], str | None]


_MAKERS: Mapping[str, Maker] = {
    "AGE": lambda key, patient_id, original: old_age(original),
    "URL": url,
    "IP": internet_address,
    "SSN": social_security_number,
    "ADDRESS": address,
    "CITY": city,
    "PHONE": telephone,
    "FAX": telephone,
    "ZIP": postal_code,
} | dict.fromkeys(("MRN", "HEALTH_PLAN", "ACCOUNT", "LICENSE", "VEHICLE", "DEVICE"), other_number)


class Surrogates:
    """Generate the surrogates of one note under one key.

    Args:
        note: roles and spellings of the names in the note.
        day_first: whether the note writes dates day first; None if unknown.
        institutions: those of the note.
    """

    def __init__(
        self,
        key: Key,
        note: NoteNames = NOTHING,
        *,
        day_first: bool | None = False,
        institutions: Sequence[str] = (),
    ) -> None:
        self._key = key
        self._note = note
        self._day_first = day_first
        self._institutions = institutions
        self._names: dict[str, NameSurrogates] = {}

    def make(
        self,
        label: str,
        original: str,
        patient_id: str,
        patient: Patient | None = None,
        before: str = "",
    ) -> str | None:
        """Return the surrogate for an original (in its plain form), or None if there is none.

        `before` is the text before it, which can show that an institution is an employer.

        On None, the caller writes a typed tag; for example, an unreadable date is never guessed.
        """
        if label == "DATE":
            return shifted(
                self._key, patient_id, original, day_first=self._day_first, patient=patient
            )
        if label == "HOSPITAL":
            return institution(self._key, patient_id, original, before, self._institutions)
        if maker := _MAKERS.get(label):
            return maker(self._key, patient_id, original)
        if patient_id not in self._names:
            self._names[patient_id] = NameSurrogates(self._key, patient_id, patient, self._note)
        names = self._names[patient_id]
        if label == "NAME":
            return names.of(original)
        if label == "EMAIL":
            return email(self._key, patient_id, original, names)
        return number_or_account(self._key, patient_id, original, names) if label == "ID" else None
