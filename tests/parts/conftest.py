"""Demo notes as one file and dealt into parts, one patient's notes in several."""

from __future__ import annotations

import shlex

import pyarrow.parquet as pq
import pytest

from clinveil.cli import main


@pytest.fixture(scope="session")
def dealt(tmp_path_factory):
    """A folder with demo/notes.parquet (two notes a patient), demo/patients.parquet, and the notes
    in three parts.
    """
    folder = tmp_path_factory.mktemp("dealt")
    assert (
        main(shlex.split(f"demo --notes-only -o {folder / 'demo'} --patients 60 --seed 3 --quiet"))
        == 0
    )
    notes = pq.read_table(folder / "demo/notes.parquet")
    patients = notes["patient_id"].to_pylist()
    notes = notes.take(
        [i for i, patient in enumerate(patients) if patient not in patients[max(0, i - 2) : i - 1]]
    )
    pq.write_table(notes, folder / "demo/notes.parquet")
    (folder / "parts").mkdir()
    for part in range(3):
        pq.write_table(
            notes.take(list(range(part, len(notes), 3))), folder / f"parts/ward-{part}.parquet"
        )
    return folder
