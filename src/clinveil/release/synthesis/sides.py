"""Which patients a model is trained on: a fixed function of patient and split seed, so that nothing need be kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from typing import Any

from clinveil.core.errors import InputError, UsageError
from clinveil.lm.notes import PlainNotes

FEWEST = 2  # patients of each side


@dataclass(frozen=True)
class Sides:
    """The notes that a model is trained on, and those of the patients kept from it."""

    training: PlainNotes = field(repr=False)
    held_out: PlainNotes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the training notes and whose they are, in any order: what a model remembers of them."""
        hashed = sha256()
        for row in sorted(zip(self.training.patients, self.training.texts, strict=True)):
            hashed.update(repr(row).encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()


def split_sides(notes: PlainNotes, share: float, seed: int) -> Sides:
    """Keep about `share` of the patients aside. Raises InputError where a side has fewer than two patients."""
    # Ranks and not single draws, so that few patients are split as asked too.
    order = sorted(set(notes.patients), key=lambda patient: _draw(patient, seed))
    aside = set(order[: kept_aside(len(order), share)])
    rows = range(len(notes))
    return Sides(
        notes.rows([row for row in rows if notes.patients[row] not in aside]),
        notes.rows([row for row in rows if notes.patients[row] in aside]),
    )


def kept_aside(patients: int, share: float) -> int:
    """How many of so many patients are kept from training. Raises InputError where a side would have under two."""
    n = max(FEWEST, round(share * patients))
    if patients < n + FEWEST:
        raise InputError(f"{patients} patients are too few to train on some and keep others aside")
    return n


def split_as_before(notes: PlainNotes, split: Any, name: str) -> Sides:
    """The split that a model was trained with; other notes would make the floor and all gates look at others."""
    unknown = UsageError("does not say whom it was trained on", where=name, remedy="a model of synthesize")
    if not isinstance(split, dict) or not {"seed", "share", "notes_sha256"} <= split.keys():
        raise unknown
    try:
        share, seed = float(split["share"]), int(split["seed"])
        if not 0 < share < 1 or not 0 <= seed < 2**63:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise unknown from None
    sides = split_sides(notes, share, seed)
    if sides.digest != split["notes_sha256"]:
        remedy = "the notes of that run, read the same way; or train anew, without --from"
        raise InputError("was trained on other notes than these", where=name, remedy=remedy)
    return sides


def _draw(patient: str, seed: int) -> bytes:
    return blake2b(patient.encode("utf-8", "surrogatepass"), key=b"split %d" % seed, digest_size=16).digest()
