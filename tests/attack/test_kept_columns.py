"""Kept columns single out whoever has a combination of his own."""

from __future__ import annotations

import pyarrow as pa
import pytest

from clinveil.attacks.text.kept_columns import kept_columns


def batches(*rows, size=2):
    table = pa.table({"a": [r[0] for r in rows], "b": [r[1] for r in rows]})
    return table.to_batches(max_chunksize=size)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_hand_solved(size):
    """Four notes: (x,1) twice, (x,2) once, (null,1) once: half of them stand alone."""
    rows = [("x", 1), ("x", 2), ("x", 1), (None, 1)]
    (finding,) = kept_columns(batches(*rows, size=size), ["a", "b"])
    assert (finding.value, finding.n, finding.count, finding.detail["combinations"]) == (0.5, 4, 2, 3)
    (one,) = kept_columns(batches(*rows, size=size), ["a"])
    assert (one.value, one.detail["smallest"]) == (0.25, 1)


def test_nobody_and_everybody():
    assert kept_columns(batches(("x", 1), ("x", 1)), ["a", "b"])[0].value == 0.0
    assert kept_columns(batches(("x", 1), ("x", 2)), ["a", "b"])[0].value == 1.0


def test_values_do_not_run_together():
    assert kept_columns(batches(("ab", "c"), ("a", "bc")), ["a", "b"])[0].value == 1.0


def test_nothing_kept_and_nothing_released():
    assert kept_columns(batches(("x", 1)), []) == []
    (finding,) = kept_columns([], ["a"])
    assert finding.value is None
    assert finding.detail["why"]
