"""The kinds of release by name, and which settings apply to which of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from clinveil.core import Members, Settings, UsageError


class ReleaseKind(Protocol):
    """What settings read of a kind of release; the members are `producer.Producer`s."""

    @property
    def settings(self) -> frozenset[type[Settings]]:
        """Classes of settings of this kind that not all kinds have."""
        ...

    def floor(self, patients: int) -> int:
        """Return the patient floor of `--min-patients auto` for this many patients."""
        ...


PRODUCERS: Members[ReleaseKind] = Members(
    "release kind",
    {
        "obfuscated": "clinveil.releases.producers.obfuscated:OBFUSCATED",
        "deidentified": "clinveil.releases.producers.deidentified:DEIDENTIFIED",
        "synthetic": "clinveil.releases.producers.synthetic:SYNTHETIC",
    },
)
"""All kinds of release by name."""
DESCRIPTIONS: Mapping[str, str] = {
    "deidentified": "readable notes with invented names and dates, for partners under an agreement",
    "obfuscated": "each word replaced by a similar or a common word, to train classifiers",
    "synthetic": "new notes of a language model with wrong facts, for software tests",
}
"""Name of each kind -> what it is, for the choice."""


def no_kind() -> UsageError:
    """Return the error for a release without a kind."""
    kinds = "; ".join(f"{name}: {text}" for name, text in DESCRIPTIONS.items())
    return UsageError("no kind of release is chosen", hint=f"set kind, to one of {kinds}")


@cache
def kinds_with(owners: tuple[type[Settings], ...]) -> tuple[str, ...]:
    """Return the kinds that have a setting of these owners (`Setting.owners`).

    The innermost class that some kind names decides; a setting without one is of every kind.
    """
    for owner in reversed(owners):
        if kinds := tuple(name for name, producer in PRODUCERS if owner in producer.settings):
            return kinds
    return PRODUCERS.names()


def other_kind(written: str, kinds: Sequence[str], kind: str, where: str = "") -> UsageError:
    """Return the error for a setting that does not apply to a kind of release."""
    *most, last = kinds
    named = f"{', '.join(most)} or {last}" if most else last
    return UsageError(f"{written} applies to kind {named}, not to kind {kind}", where=where)
