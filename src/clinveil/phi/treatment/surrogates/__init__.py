"""Surrogates: generated replacements for identifiers, one kind per file.

A surrogate is a pseudo-random function of (key, kind, scope, normalised original). The scope is the patient: the
surrogate is the same in all notes of a patient and differs between patients, regardless of order, batch or worker. With
`fresh` above 0, some or all mentions have their own scope. Consistent surrogates keep a patient's story readable but
protect less: a missed name differs from names that agree (Osborne 2025, doi 10.3390/electronics14193945). Dates move by
the patient's offset in either mode.

A surrogate never equals its original, because it is drawn from the rest of the pool (no rejection and redraw). An
attacker who knows this rule learns only that the original is a different name. This changes the odds of the true value
by the factor 1/(1-p), where p is the surrogate's share of the pool (at most 1.01 for a surname without known origin;
larger for origins with few names). Nothing else is excluded: a surrogate may coincide with another patient's real name.
Such coincidences are not corrected, because a correction would disclose them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from clinveil.core.keys import Key
from clinveil.lexicons.names import name_form
from clinveil.phi.treatment.dates import shifted
from clinveil.phi.treatment.surrogates.generalised import old_age
from clinveil.phi.treatment.surrogates.names import NOTHING, NameSurrogates, NoteNames, email, number_or_account
from clinveil.phi.treatment.surrogates.numbers_and_places import (
    address,
    city,
    institution,
    internet_address,
    other_number,
    social_security_number,
    url,
)

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient


Maker = Callable[[Key, str, str], str | None]


_MAKERS: Mapping[str, Maker] = {
    "AGE": lambda key, scope, original: old_age(original),
    "URL": url,
    "IP": internet_address,
    "SSN": social_security_number,
    "ADDRESS": address,
    "CITY": city,
    "HOSPITAL": institution,
} | dict.fromkeys(
    ("PHONE", "FAX", "MRN", "HEALTH_PLAN", "ACCOUNT", "LICENSE", "VEHICLE", "DEVICE", "ZIP"), other_number
)
_WITH_NAMES = {"EMAIL": email, "ID": number_or_account}


class Surrogates:
    """Generate the surrogates of one note under one key.

    Args:
        fresh: probability that a mention gets a new surrogate. 0 is consistent and 1 is random. Values between them
            give a Markov chain that starts with the patient's surrogate and switches with this probability.
        salt: distinguishes this note from the patient's other notes if mentions are fresh.
        note: roles and spellings of the names in the note. day_first: whether the note writes dates day first.
    """

    def __init__(
        self, key: Key, fresh: float = 0.0, salt: str = "", note: NoteNames = NOTHING, *, day_first: bool = False
    ) -> None:
        self._key, self._fresh, self._salt, self._note, self._day_first = key, fresh, salt, note, day_first
        self._scopes: dict[tuple[str, str], str] = {}
        self._mentions = 0
        self._names: dict[str, NameSurrogates] = {}

    def make(self, label: str, original: str, patient_id: str, patient: Patient | None = None) -> str | None:
        """Return the surrogate for an original (in its plain form), or None if there is none.

        On None, the caller writes a typed tag; for example, an unreadable date is never guessed.
        """
        if label == "DATE":
            return shifted(self._key, patient_id, original, day_first=self._day_first)
        scope = self._scope(label, original, patient_id) if self._fresh else patient_id
        if label == "NAME":
            return self._named(scope, patient).of(original)
        if label in _WITH_NAMES:
            return _WITH_NAMES[label](self._key, scope, original, self._named(scope, patient))
        maker = _MAKERS.get(label)
        return maker(self._key, scope, original) if maker else None

    def _named(self, scope: str, patient: Patient | None) -> NameSurrogates:
        if scope not in self._names:
            self._names[scope] = NameSurrogates(self._key, scope, patient, self._note)
        return self._names[scope]

    def _scope(self, label: str, original: str, patient_id: str) -> str:
        """Return the scope of a mention: that of the previous mention, or with probability `fresh` a new one."""
        self._mentions += 1
        form = label, name_form(original) or original.casefold()
        stream = self._key.stream("surrogate-mention", patient_id, self._salt, str(self._mentions))
        if stream.uniform() < self._fresh:
            self._scopes[form] = f"{patient_id}\x1f{stream.uint64():016x}"
        return self._scopes.get(form, patient_id)
