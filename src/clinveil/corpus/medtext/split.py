"""Splitting notes into training, validation and test, by patient or by note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from clinveil.errors import InputError

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class SplitSizes:
    """How many notes each part gets; training takes all that is left unless `train` or `words` says where to stop.

    Attributes:
        valid, test: notes at least (whole patients). train: notes at least, or None. words: words at least, or None.
    """

    valid: int = 128
    test: int = 128
    train: int | None = None
    words: int | None = None


# Paper C, Table 1.
SMALL, LARGE = SplitSizes(train=1280), SplitSizes()


def split_notes(
    patients: Sequence[str], lengths: Sequence[int], sizes: SplitSizes, rng: Generator, *, by_note: bool = False
) -> dict[str, list[int]]:
    """The rows of each part, in a random order; a patient's notes are all in one part unless `by_note`.

    Args:
        patients: whose each note is. lengths: words of each note.
        by_note: paper C's split, in which a patient can be on both sides.

    Raises:
        InputError: fewer notes than the parts need.
    """
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(patients):
        groups.setdefault(str(row) if by_note else patient, []).append(row)
    order = sorted(groups)
    shuffled = [groups[order[i]] for i in rng.permutation(len(order))]
    parts: dict[str, list[int]] = {name: [] for name in PARTS}
    for name, wanted in (("test", sizes.test), ("valid", sizes.valid)):
        while shuffled and len(parts[name]) < wanted:
            parts[name] += shuffled.pop()
    while shuffled and not _enough(parts["train"], lengths, sizes):
        parts["train"] += shuffled.pop()
    _refuse_short(parts, sizes, len(patients))
    return parts


def _enough(rows: Sequence[int], lengths: Sequence[int], sizes: SplitSizes) -> bool:
    if sizes.words is not None and sum(lengths[row] for row in rows) >= sizes.words:
        return True
    return sizes.train is not None and len(rows) >= sizes.train


def _refuse_short(parts: dict[str, list[int]], sizes: SplitSizes, n: int) -> None:
    wanted = {"train": sizes.train or 1, "valid": sizes.valid, "test": sizes.test}
    if short := [name for name in PARTS if len(parts[name]) < wanted[name]]:
        need = sum(wanted.values())
        remedy = "smaller --train, --valid and --test"
        raise InputError(
            f"{n} notes are too few: {need} are needed, none is left for {', '.join(short)}", remedy=remedy
        )
