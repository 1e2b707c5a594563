"""Labels of synthetic patients: how many notes a patient has, and the label of each, in order.

Nothing that fewer than `floor` patients have is drawn: a real patient's complete sequence of labels
is used if enough patients share it. Otherwise its length is drawn among shared lengths, and each
label from the shared transitions after the label before it, or from the shared labels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from clinveil.core import InputError, Key

T = TypeVar("T")
STEPS = 0.7548776662466927, 0.5698402909980532  # 1/g and 1/g^2, g^3 = g + 1
START = -1  # the label before a patient's first note
RARE = -1  # instead of a label that too few patients have


@dataclass(frozen=True)
class PlannedNote:
    """A note to be written: number of its patient, position among the patient's notes, and number
    of its label.
    """

    patient: int
    position: int
    label: int


@dataclass(frozen=True)
class LabelSequences:
    """Distributions that label sequences are drawn from.

    Attributes:
        complete: patients by shared sequence. others: number of patients with another sequence.
        lengths, labels: patients by shared length and by shared label. after: the same by label
            before (START: none).
    """

    complete: Mapping[tuple[int, ...], int] = field(repr=False)
    others: int
    lengths: Mapping[int, int] = field(repr=False)
    labels: Mapping[int, int] = field(repr=False)
    after: Mapping[int, Mapping[int, int]] = field(repr=False)

    @classmethod
    def of(cls, patients: Sequence[str], labels: Sequence[int], floor: int) -> LabelSequences:
        """Count the sequences of notes in source order. Raises InputError if no label has `floor`
        patients.
        """
        by_patient: dict[str, list[int]] = defaultdict(list)
        for patient, label in zip(patients, labels, strict=True):
            by_patient[patient].append(label)
        sequences = [tuple(row) for row in by_patient.values()]
        complete = _shared(Counter(row for row in sequences if RARE not in row), floor)
        lengths = _shared(Counter(map(len, sequences)), floor) or {1: len(sequences)}
        marginal = _shared(
            Counter(label for row in sequences for label in set(row) - {RARE}), floor
        )
        if not marginal:
            raise InputError(
                f"no label occurs with {floor} patients or more",
                hint="pass a smaller channel.min_patients",
            )
        steps = Counter(
            pair for row in sequences for pair in set(zip((START, *row), row, strict=False))
        )
        after: dict[int, dict[int, int]] = defaultdict(dict)
        for (before, label), n in _shared(steps, floor).items():
            if label != RARE:
                after[before][label] = n
        return cls(
            complete, len(sequences) - sum(complete.values()), lengths, marginal, dict(after)
        )

    def draw(self, rng: Generator, uniform: tuple[float, float]) -> tuple[int, ...]:
        """Draw the labels of one patient; `uniform`: numbers for the complete sequence and for the
        first label.
        """
        options = [*self.complete, None]
        chosen = _draw(
            dict(zip(options, [*self.complete.values(), self.others], strict=True)), uniform[0]
        )
        if chosen is not None:
            return chosen
        row = [_draw(self.after.get(START) or self.labels, uniform[1])]
        for _ in range(_draw(self.lengths, rng.random()) - 1):
            row.append(_draw(self.after.get(row[-1]) or self.labels, rng.random()))
        return tuple(row)

    def plan(self, key: Key) -> Iterator[PlannedNote]:
        """Yield the notes of patient after patient without end; a patient's labels depend on key
        and number only.

        First labels are drawn from a sequence of low discrepancy (Roberts 2018, R2), so that rare
        ones are not absent.
        """
        first = key.stream("synthetic labels")
        start = first.uniform(), first.uniform()
        for patient in count():
            seed = key.stream("synthetic patient", str(patient))
            rng = np.random.Generator(np.random.Philox(key=[seed.uint64(), seed.uint64()]))
            uniform = (start[0] + patient * STEPS[0]) % 1.0, (start[1] + patient * STEPS[1]) % 1.0
            for position, label in enumerate(self.draw(rng, uniform)):
                yield PlannedNote(patient, position, label)


def numbered(
    values: Iterable[Hashable],
    patients: Sequence[str],
    floor: int,
    *,
    apart: AbstractSet[str] = frozenset(),
) -> tuple[list[Hashable], list[int]]:
    """Number the values that `floor` patients or more have, by first occurrence; others get `RARE`.

    Patients in `apart` do not count. Returns these values, and the number of each row.
    """
    rows = list(values)
    holders: dict[Hashable, set[str]] = defaultdict(set)
    for value, patient in zip(rows, patients, strict=True):
        if patient not in apart:
            holders[value].add(patient)
    kept = [value for value, who in holders.items() if len(who) >= floor]
    row_of = {value: row for row, value in enumerate(kept)}
    return kept, [row_of.get(value, RARE) for value in rows]


def _shared(patients: Mapping[T, int], floor: int) -> dict[T, int]:
    return {value: n for value, n in patients.items() if n >= floor}


def _draw(weights: Mapping[T, int], uniform: float) -> T:
    options = list(weights)
    sums = np.cumsum([weights[option] for option in options])
    return options[int(np.searchsorted(sums, uniform * sums[-1], side="right"))]
