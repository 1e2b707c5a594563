"""Batches in pieces: what comes out is that of whole batches."""

from __future__ import annotations

import pickle
from collections import Counter

import pyarrow as pa
import pytest

from clinveil.core import Key
from clinveil.corpus import ROLE_FIELDS, MemoryCorpus
from clinveil.phi import NoteDeidentifier, PhiSettings, deidentify_corpus
from clinveil.phi.treatment.passes import ROWS, pieces
from clinveil.scale import serial


def batch(rows, first=0):
    ids = [f"n{first + row}" for row in range(rows)]
    texts = [
        None if row % 97 == 5 else f"Dr. Zwiyemi{row % 7} came on 3/4/2019." for row in range(rows)
    ]
    return pa.record_batch(
        [ids, [f"p{row % 50}" for row in range(rows)], texts], schema=pa.schema(ROLE_FIELDS)
    )


@pytest.mark.parametrize("rows", [0, 1, ROWS, ROWS + 1, 3 * ROWS])
def test_pieces_are_the_batch_and_no_more_than_themselves(rows):
    whole = batch(rows)
    split = list(pieces(MemoryCorpus([whole])))
    assert pa.Table.from_batches(split).combine_chunks() == pa.Table.from_batches([whole])
    assert all(
        piece.num_rows <= ROWS and len(pickle.dumps(piece)) < 80 * ROWS + 2000 for piece in split
    )


def joined(results):
    """Return all fields of the results as one."""
    names = "counts", "by_detector", "skipped"
    counts = [sum((getattr(each, name) for each in results), Counter()) for name in names]
    lists = [
        [item for each in results for item in getattr(each, name)]
        for name in ("spans", "audit", "crosswalk")
    ]
    return pa.Table.from_batches([each.batch for each in results]).combine_chunks(), counts, lists


@pytest.mark.parametrize("propagate", ["patient", "none"])
def test_results_are_those_of_whole_batches(propagate, monkeypatch):
    batches = [batch(ROWS + 20), batch(7, 10_000), batch(2 * ROWS, 20_000)]
    made = NoteDeidentifier.of(
        PhiSettings(propagate=propagate, no_tagger=True), Key.from_seed(1), keep_spans=True
    )
    made = made.recording(audit=True, crosswalk=True)
    found = list(deidentify_corpus(MemoryCorpus(batches), made, serial))
    assert len(found) == 5
    monkeypatch.setattr("clinveil.phi.treatment.passes.ROWS", 1 << 20)
    assert joined(found) == joined(list(deidentify_corpus(MemoryCorpus(batches), made, serial)))
