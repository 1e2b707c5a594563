"""Test patients: held out of everything that a release learns, and the only test set of its utility
figures.

About `test_share` of the patients are drawn with the key, in the same proportion from each value of
the first label. Texts that are near-duplicates are on one side. The rules, in this order:

- A patient, or a group of patients with near-duplicate notes, with more than half as many notes as
  the share is for training.
- Labels of fewer than ten patients are drawn from together. Each label, and these together, keeps
  at least half of its patients for training; where a model writes notes of a label, at least as
  many as that needs.
- A label has at least five test patients where this is possible, as long as at most 30 % of all
  patients are held out.
- Patients of an earlier run stay, if its vault is reused, on their side; new patients are drawn by
  the same rules.

With differential privacy each patient is drawn independently, because a draw must not depend on
other patients.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clinveil.corpus import NOTE_ID, PATIENT_ID, TEXT, HeldOutPatients, KeyedShare
from clinveil.utility import MinHash, Signatures, joined_groups, similar_groups

MOST = 0.3  # of all patients, where labels with few patients are filled up
PER_LABEL = 5  # test patients wanted of each label
FEWEST = 2  # patients on each side
MINHASH_SEED = 20260101  # public: which texts are alike is not secret


@dataclass(frozen=True)
class SplitRows:
    """What a split needs of some notes: (n,) patient ids and first labels, (n, n_hashes) MinHash
    signatures.
    """

    patients: pa.Array = field(repr=False)
    labels: pa.Array = field(repr=False)
    signatures: Signatures = field(repr=False)

    @classmethod
    def of(cls, batch: pa.RecordBatch, label: str | None) -> SplitRows:
        """Return the rows of a batch; without a label column all notes have one label."""
        owners = pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID))
        texts = batch.column(TEXT).to_pylist()
        values = batch.column(label).to_pylist() if label else [None] * len(texts)
        labels = pa.array(
            ["" if value is None else str(value).strip() for value in values], pa.string()
        )
        minhash = _minhash()
        signatures = [minhash.signature(text or "") for text in texts]
        shape = (len(texts), minhash.factors.size)
        return cls(owners, labels, np.array(signatures, dtype=np.uint32).reshape(shape))


@cache
def _minhash() -> MinHash:
    return MinHash.of(np.random.default_rng(MINHASH_SEED))


@dataclass
class _PatientGroup:
    """Patients that are on one side.

    Attributes:
        notes: number of their notes. labels: patients by label. limits: patients by everything that
            limits a draw.
    """

    patients: list[str] = field(default_factory=list, repr=False)
    notes: int = 0
    labels: Counter[str] = field(default_factory=Counter, repr=False)
    limits: Counter[str] = field(default_factory=Counter, repr=False)


def draw_held_out(
    rows: Sequence[SplitRows],
    share: float,
    salt: bytes,
    *,
    floor: int = 0,
    before: HeldOutPatients | None = None,
) -> HeldOutPatients:
    """Draw the test patients.

    Args:
        rows: of all notes. share: of the patients. salt: secret of the draw.
        floor: patients that each label keeps for training where it has as many. before: sides of an
            earlier run.

    With fewer than four patients none is held out.
    """
    groups = _grouped(rows, salt)
    draw = _Draw(groups, share, floor)
    for group in groups:
        draw.settle(group, before)
    strata = sorted(draw.strata, key=lambda stratum: (-draw.strata[stratum], stratum))
    for stratum in strata:
        draw.fill(stratum, round(share * draw.strata[stratum]))
    for stratum in strata:
        draw.fill(stratum, PER_LABEL)
    draw.fill_to(min(FEWEST, draw.n_patients - FEWEST))
    everyone = {patient for group in groups for patient in group.patients}
    return HeldOutPatients(frozenset(draw.chosen), frozenset(everyone - draw.chosen))


def draw_independently(
    rows: Sequence[SplitRows], share: float, salt: bytes, before: HeldOutPatients | None = None
) -> HeldOutPatients:
    """Draw each patient with this probability, independently of all others (differential
    privacy).
    """
    drawn = KeyedShare(share, salt)
    everyone = set(_patients(rows).unique().to_pylist())
    known = before.patients | before.training if before else frozenset[str]()
    chosen = {patient for patient in everyone - known if patient in drawn}
    chosen |= everyone & before.patients if before else set()
    return HeldOutPatients(frozenset(chosen), frozenset(everyone - chosen))


def _patients(rows: Sequence[SplitRows]) -> pa.ChunkedArray:
    return pa.chunked_array([one.patients for one in rows], pa.string())


def _grouped(rows: Sequence[SplitRows], salt: bytes) -> list[_PatientGroup]:
    """Return the groups of patients in a keyed random order."""
    coded = _patients(rows).combine_chunks().dictionary_encode()
    patient: NDArray[np.int64] = coded.indices.to_numpy().astype(np.int64)
    alike = similar_groups(np.concatenate([one.signatures for one in rows]))
    group = joined_groups(patient, alike)
    names = coded.dictionary.to_pylist()
    labels = [label for one in rows for label in one.labels.to_pylist()]
    made: dict[int, _PatientGroup] = defaultdict(_PatientGroup)
    seen: set[tuple[int, str]] = set()
    first: set[int] = set()
    for of_group, of_patient, label in zip(group.tolist(), patient.tolist(), labels, strict=True):
        one = made[of_group]
        one.notes += 1
        if of_patient not in first:
            first.add(of_patient)
            one.patients.append(names[of_patient])
        if (of_patient, label) not in seen:
            seen.add((of_patient, label))
            one.labels[label] += 1
    return sorted(made.values(), key=lambda one: min(_rank(name, salt) for name in one.patients))


def _rank(patient: str, salt: bytes) -> bytes:
    return blake2b(patient.encode("utf-8", "surrogatepass"), key=salt, digest_size=8).digest()


class _Draw:
    """The state of one draw: the chosen patients, and how many of each stratum and label.

    Attributes:
        strata: number of patients by label; labels of few patients are one stratum.
        n_patients: of all notes. chosen: the test patients so far.
    """

    def __init__(self, groups: Sequence[_PatientGroup], share: float, floor: int) -> None:
        sizes = sum((group.labels for group in groups), Counter[str]())
        small = {label for label, n in sizes.items() if n < 2 * PER_LABEL}
        self.groups = groups
        self.n_patients = sum(len(group.patients) for group in groups)
        self.chosen: set[str] = set()
        self.strata: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()
        self._settled: set[int] = set()
        self._in_stratum: dict[str, list[_PatientGroup]] = defaultdict(list)
        self._spare: dict[str, int] = {}
        for label, n in sizes.items():
            self._spare[f"label {label}"] = n - min(floor, n)
        for group in groups:
            strata = Counter[str]()
            for label, n in group.labels.items():
                strata["" if label in small else f"stratum {label}"] += n
            self.strata.update(strata)
            for stratum in strata:
                self._in_stratum[stratum].append(group)
            group.limits = strata + Counter(
                {f"label {label}": n for label, n in group.labels.items()}
            )
        for stratum, n in self.strata.items():
            self._spare[stratum] = n - ceil(n / 2)
        # Groups of more notes than this are for training; three times the mean of a patient is
        # always allowed.
        n_notes = sum(group.notes for group in groups)
        self._largest = max(share * n_notes / 2, 3 * n_notes / max(1, self.n_patients))
        self._most = max(share, MOST) * self.n_patients

    def settle(self, group: _PatientGroup, before: HeldOutPatients | None) -> None:
        """Keep the patients of an earlier run on their side; a group with one of its training
        patients is too.
        """
        if before is None:
            return
        if not before.training.isdisjoint(group.patients):
            self._settled.add(id(group))
            self.chosen |= before.patients.intersection(group.patients)
        elif not before.patients.isdisjoint(group.patients):
            self._choose(group)

    def fill(self, stratum: str, wanted: int) -> None:
        """Choose groups of a stratum until it has this many test patients, or no group may be
        chosen.
        """
        for group in self._in_stratum[stratum]:
            if self._taken[stratum] >= wanted:
                return
            if self._may(group):
                self._choose(group)

    def fill_to(self, wanted: int) -> None:
        """Choose small groups until there are this many test patients."""
        for group in sorted(self.groups, key=lambda one: len(one.patients)):
            if len(self.chosen) >= wanted:
                return
            if id(group) not in self._settled and len(
                group.patients
            ) <= self.n_patients - FEWEST - len(self.chosen):
                self._choose(group)

    def _may(self, group: _PatientGroup) -> bool:
        if id(group) in self._settled or group.notes > self._largest:
            return False
        if len(self.chosen) + len(group.patients) > self._most:
            return False
        return all(self._taken[name] + n <= self._spare[name] for name, n in group.limits.items())

    def _choose(self, group: _PatientGroup) -> None:
        self._settled.add(id(group))
        self.chosen.update(group.patients)
        self._taken.update(group.limits)
