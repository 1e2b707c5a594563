"""Notes that are unique in their combination of kept column values.

With the kept values of a person, an attacker finds the one note that has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.threats import tagged
from clinveil.core import Finding, Ints, Numbers
from clinveil.corpus import NOTE_ID, PATIENT_ID, Corpus, Hashes, hashes, joined
from clinveil.scale import Map, each_batch, serial
from clinveil.stats import MeasureSpec

SOURCE = "k-anonymity: Sweeney 2002"


class Uniqueness(Attack):
    """Count released notes that are unique in their kept column values."""

    needs = frozenset({"released", "keep"})
    on_release = True
    sees_all = True
    order = 900

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack; deterministic."""
        assert context.released is not None
        findings = kept_columns(context.released, context.keep, context.executor)
        return [tagged(f, "recipient", "kept columns") for f in findings]


def kept_columns(released: Corpus, keep: Sequence[str], executor: Map = serial) -> list[Finding]:
    """Measure the share of notes with a combination of kept values that no other patient's note
    has.

    Empty if no column is kept. A note without a patient counts as a patient. Streams; 16 bytes per
    note are kept.
    Source: k-anonymity with k = 1, Sweeney 2002.
    """
    if not keep:
        return []
    batches = list(each_batch(executor, partial(kept_values_of, keep), released))
    keys = joined([batch[0] for batch in batches])
    people = joined([batch[1] for batch in batches])
    sizes, owners = _owners(keys, people)
    numbers = {"columns": len(keep)}
    if sizes.size:
        numbers |= {"combinations": int(sizes.size), "smallest": int(owners.min())}
    return [_unique(len(keys), int(sizes[owners == 1].sum()), numbers)]


def kept_values_of(keep: Sequence[str], batch: pa.RecordBatch) -> tuple[Hashes, Hashes]:
    """Return a hash of the kept values, and one of the patient, for each note of a batch."""
    values = zip(*(batch.column(name).to_pylist() for name in keep), strict=True)
    owners = zip(*(batch.column(name).to_pylist() for name in (PATIENT_ID, NOTE_ID)), strict=True)
    return hashes(map(repr, values)), hashes(repr(patient or (note,)) for patient, note in owners)


def _owners(keys: Hashes, people: Hashes) -> tuple[Ints, Ints]:
    """Return the number of notes and of patients for each key."""
    order = np.lexsort((people, keys))
    new_key = np.diff(keys[order], prepend=~keys[order][:1]) != 0
    new_one = np.diff(people[order], prepend=~people[order][:1]) != 0
    group = np.cumsum(new_key) - 1
    return np.bincount(group), np.bincount(group[new_key | new_one])


def _unique(n: int, n_unique: int, numbers: Numbers) -> Finding:
    measure = "attack.kept_columns_unique"
    if not n:
        spec = MeasureSpec(measure=measure, unit="notes")
        return spec.missing("no released notes", numbers=numbers)
    return Finding(
        measure,
        n_unique / n,
        n,
        "lower",
        count=n_unique,
        method="none: all notes of the release are counted",
        source=SOURCE,
        numbers=numbers,
        unit="notes",
    )
