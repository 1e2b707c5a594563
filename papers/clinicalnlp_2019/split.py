"""Split notes in MedText format into training, validation and test parts by patient (paper C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from clinveil.core import InputError

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class SplitSizes:
    """The sizes of the parts; training gets all remaining notes unless `train` or `words` limits
    it.

    Attributes:
        valid, test: minimum number of notes (patients are not split). train: minimum number of
            notes, or None.
        words: minimum number of words, or None.
    """

    valid: int = 128
    test: int = 128
    train: int | None = None
    words: int | None = None


def split_notes(
    patients: Sequence[str],
    lengths: Sequence[int],
    sizes: SplitSizes,
    rng: Generator,
    *,
    by_note: bool = False,
) -> dict[str, list[int]]:
    """Return the rows of each part, in random order; a patient's notes are in one part unless
    `by_note`.

    For the same generator, validation and test parts do not depend on the size of the training
    part, and a smaller training part is a subset of a larger one.

    Args:
        patients: the patient of each note. lengths: words of each note.
        by_note: paper C's split, in which a patient may be in several parts.

    Raises:
        InputError: too few notes or words for the parts.
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
    words = 0
    while (
        shuffled
        and (sizes.train is None or len(parts["train"]) < sizes.train)
        and (sizes.words is None or words < sizes.words)
    ):
        group = shuffled.pop()
        words += sum(lengths[row] for row in group)
        parts["train"] += group
    _refuse_short(parts, words, sizes, len(patients))
    # Training last, so that its size does not change the order of the other parts.
    for name in reversed(PARTS):
        parts[name] = [parts[name][i] for i in rng.permutation(len(parts[name]))]
    return parts


def _refuse_short(parts: dict[str, list[int]], words: int, sizes: SplitSizes, n: int) -> None:
    enough_words = sizes.words is not None and words >= sizes.words
    train = 1 if enough_words or sizes.train is None else sizes.train
    wanted = {"train": train, "valid": sizes.valid, "test": sizes.test}
    hint = "reduce --train, --words, --valid or --test"
    if any(len(parts[name]) < wanted[name] for name in PARTS):
        raise InputError(f"{n} notes are too few; the parts need {sum(wanted.values())}", hint=hint)
    if sizes.train is None and sizes.words is not None and not enough_words:
        raise InputError(f"only {words} of {sizes.words} words are left for training", hint=hint)
