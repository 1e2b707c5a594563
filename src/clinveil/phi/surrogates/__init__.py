"""Surrogates: invented identifiers that stand in the place of real ones, one kind a file.

Every surrogate is a pseudo-random function of (key, kind, scope, form of the original). The scope is the patient, so
that it is the same in all notes of a patient and other for every patient, whatever the order, batch or worker; with
`fresh` over 0 some mentions or all are a scope of their own. Consistent surrogates keep a patient's story readable and
are the weaker choice for privacy: a name that was missed stands out among names that agree (Osborne 2025, doi
10.3390/electronics14193945). Dates move by the patient's offset either way.

A surrogate is never the original itself. That is by construction, a draw from everything else in its pool, not by a
redraw. It says to a reader who knows the rule only that the original is not what stands there, which shifts
the odds of the true value by a factor 1/(1-p), p being the pool's share of the surrogate (at most 1.01 for a surname
of no special origin; more where few names of an origin are known).
Nothing else is excluded: a surrogate may by chance be another patient's real name, and that is never mended, since
mending it would tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from clinveil.core.keys import Key
from clinveil.lexicons.names import name_form
from clinveil.phi.surrogates.accounts import email, number_or_account
from clinveil.phi.surrogates.dates import shifted
from clinveil.phi.surrogates.generalised import old_age
from clinveil.phi.surrogates.names import NOTHING, NameSurrogates, NoteNames
from clinveil.phi.surrogates.numbers import internet_address, other_number, social_security_number, url
from clinveil.phi.surrogates.places import address, city, institution

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient


Maker = Callable[[Key, str, str], str | None]


_MAKERS: Mapping[str, Maker] = {
    "DATE": shifted,
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
    """Makes the surrogates of one note under one key.

    Args:
        fresh: the chance that a mention gets a surrogate of its own: 0 consistent, 1 random, between them a chain that
            begins with the patient's surrogate and now and then goes on to a new one (Markov).
        salt: what tells this note from the patient's others, where mentions are fresh.
        note: what the note says of its names.
    """

    def __init__(self, key: Key, fresh: float = 0.0, salt: str = "", note: NoteNames = NOTHING) -> None:
        self._key, self._fresh, self._salt, self._note = key, fresh, salt, note
        self._scopes: dict[tuple[str, str], str] = {}
        self._mentions = 0
        self._names: dict[str, NameSurrogates] = {}

    def make(self, label: str, original: str, patient_id: str, patient: Patient | None = None) -> str | None:
        """What stands in the place of an original (in its plain form), or None where none can be made.

        None means that the caller writes a typed tag: a date that cannot be read is never guessed.
        """
        scope = patient_id if label == "DATE" or not self._fresh else self._scope(label, original, patient_id)
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
        """The scope of a mention: that of the one before, or with the chance `fresh` a new one."""
        self._mentions += 1
        form = label, name_form(original) or original.casefold()
        stream = self._key.stream("surrogate-mention", patient_id, self._salt, str(self._mentions))
        if stream.uniform() < self._fresh:
            self._scopes[form] = f"{patient_id}\x1f{stream.uint64():016x}"
        return self._scopes.get(form, patient_id)
