"""Which patients a model is trained on: a fixed function of patient and split seed, so that nothing need be kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b, sha256

from clinveil.errors import InputError
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
    n = max(FEWEST, round(share * len(order)))
    if len(order) < n + FEWEST:
        raise InputError(f"{len(order)} patients are too few to train on some and keep others aside")
    aside = set(order[:n])
    rows = range(len(notes))
    return Sides(
        notes.rows([row for row in rows if notes.patients[row] not in aside]),
        notes.rows([row for row in rows if notes.patients[row] in aside]),
    )


def _draw(patient: str, seed: int) -> bytes:
    return blake2b(patient.encode("utf-8", "surrogatepass"), key=b"split %d" % seed, digest_size=16).digest()
