"""Notes that stand alone by their combination of kept values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from clinveil.attacks import kept_columns
from clinveil.corpus import MemoryCorpus


def kept(*rows, keep=("a", "b"), size=2):
    ids = [str(i) for i in range(len(rows))]
    people = [r[2] if len(r) > 2 else None for r in rows]
    roles = {"note_id": pa.array(ids, pa.string()), "patient_id": pa.array(people, pa.string())}
    table = pa.table({**roles, "a": [r[0] for r in rows], "b": [r[1] for r in rows]})
    return kept_columns(MemoryCorpus(table.to_batches(max_chunksize=size)), keep)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_kept_values_by_hand(size):
    """Four notes: (x,1) twice, (x,2) once, (null,1) once: half of them stand alone."""
    rows = [("x", 1), ("x", 2), ("x", 1), (None, 1)]
    (finding,) = kept(*rows, size=size)
    assert (finding.value, finding.n, finding.count, finding.numbers["combinations"]) == (
        0.5,
        4,
        2,
        3,
    )
    (one,) = kept(*rows, size=size, keep=["a"])
    assert (one.value, one.numbers["smallest"]) == (0.25, 1)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_values_of_one_patient_alone_single_out_all_of_the_patients_notes(size):
    """(x,1) is of two patients; (y,1) three times of one, (y,2) of a note without a patient."""
    rows = [("x", 1, "p"), ("y", 1, "q"), ("y", 1, "q"), ("x", 1, "q"), ("y", 1, "q"), ("y", 2)]
    (finding,) = kept(*rows, size=size)
    assert (finding.count, finding.n, finding.numbers["smallest"]) == (4, 6, 1)


def test_values_do_not_run_together():
    assert kept(("ab", "c"), ("a", "bc"))[0].value == 1.0


def test_nothing_kept_and_nothing_released():
    assert kept(("x", 1), keep=()) == []
    (finding,) = kept(keep=["a"])
    assert finding.value is None
    assert finding.why
