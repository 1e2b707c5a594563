"""Surrogates: invented identifiers that stand in the place of real ones, one kind a file.

Every surrogate is a pseudo-random function of (key, kind, patient, form of the original): the same in all notes of a
patient, other for every patient, whatever the order, batch or worker. Consistent surrogates keep a patient's story
readable and are the weaker choice for privacy (Osborne 2025, doi 10.3390/electronics14193945); `--mode tag` is
the other.

A surrogate is never the original itself. That is by construction, a draw from everything else in its pool, not by a
redraw. It says to a reader who knows the rule only that the original is not what stands there, which shifts
the odds of the true value by a factor 1/(1-p), p being the pool's share of the surrogate (at most 1.01 for a surname).
Nothing else is excluded: a surrogate may by chance be another patient's real name, and that is never mended, since
mending it would tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from clinveil.core.keys import Key
from clinveil.phi.surrogates.dates import shifted
from clinveil.phi.surrogates.names import NameSurrogates
from clinveil.phi.surrogates.numbers import email, internet_address, other_number, social_security_number, url
from clinveil.phi.surrogates.places import address, city, institution

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient


Maker = Callable[[Key, str, str], str | None]
OLD_AGE = "90+"


def _old_age(key: Key, patient_id: str, original: str) -> str | None:
    """All ages over 89 are one class; a year or date of birth that gives one away has no surrogate."""
    return None if re.search(r"\d{4}|/", original) else OLD_AGE


_MAKERS: Mapping[str, Maker] = {
    "DATE": shifted,
    "AGE": _old_age,
    "EMAIL": email,
    "URL": url,
    "IP": internet_address,
    "SSN": social_security_number,
    "ADDRESS": address,
    "CITY": city,
    "HOSPITAL": institution,
} | dict.fromkeys(
    ("PHONE", "FAX", "MRN", "HEALTH_PLAN", "ACCOUNT", "LICENSE", "VEHICLE", "DEVICE", "ID", "ZIP"), other_number
)


class Surrogates:
    """Makes surrogates under one key."""

    def __init__(self, key: Key) -> None:
        self._key = key

    def make(self, label: str, original: str, patient_id: str, patient: Patient | None = None) -> str | None:
        """What stands in the place of an original (in its plain form), or None where none can be made.

        None means that the caller writes a typed tag: a date that cannot be read is never guessed.
        """
        if label == "NAME":
            return NameSurrogates(self._key, patient_id, patient).of(original)
        maker = _MAKERS.get(label)
        return maker(self._key, patient_id, original) if maker else None
