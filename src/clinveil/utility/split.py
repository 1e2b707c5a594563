"""A split in which no patient and no near-duplicate text stands on both sides, stratified as far as that allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.utility.duplicates import groups, near_duplicates

PARTS = 4


@dataclass(frozen=True)
class Split:
    """Rows for training and for testing, both ascending, and what is kept together.

    Attributes:
        group: (n,) what must stay on one side: patients and near-duplicates, linked.
        duplicates: texts that are near-duplicates of an earlier one.
    """

    train: NDArray[np.int64] = field(repr=False)
    test: NDArray[np.int64] = field(repr=False)
    group: NDArray[np.int64] = field(repr=False)
    duplicates: int


def split(
    patients: Sequence[str], texts: Sequence[str], labels: Sequence[str], rng: Generator, *, parts: int = PARTS
) -> Split:
    """One part of `parts` for testing, the rest for training: the first of `splits`."""
    return splits(patients, texts, labels, rng, parts=parts)[0]


def splits(
    patients: Sequence[str], texts: Sequence[str], labels: Sequence[str], rng: Generator, *, parts: int = PARTS
) -> list[Split]:
    """As many splits as parts, each part once for testing; the same for the same rng state.

    Args:
        patients, texts, labels: one of each a note.
    Raises:
        InputError: fewer groups than parts, or no label with as many notes as parts.
    Source: stratified group folds as in scikit-learn's StratifiedGroupKFold.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1].astype(np.int64)
    alike = near_duplicates(texts, rng)
    if not patient.size:
        raise InputError("there is no note to split")
    group = groups(len(patient), np.concatenate([_links(patient), _links(alike)]))
    label = np.unique(np.array(labels, dtype=object), return_inverse=True)[1]
    if group.max() + 1 < parts or np.bincount(label).max() < parts:
        raise InputError(f"too few independent notes to split in {parts} parts")
    folds = StratifiedGroupKFold(n_splits=parts, shuffle=True, random_state=int(rng.integers(2**31)))
    duplicates = len(alike) - len(np.unique(alike))
    return [
        Split(np.sort(train).astype(np.int64), np.sort(test).astype(np.int64), group, duplicates)
        for train, test in folds.split(np.zeros(len(label)), label, group)
    ]


def _links(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, 2) each row with the first row of the same key."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.stack([first[inverse], np.arange(keys.size)], axis=1).astype(np.int64)
