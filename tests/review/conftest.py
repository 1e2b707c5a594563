"""A run of `clinveil deidentify` with its spans kept, and a desk over it."""

from __future__ import annotations

import pytest
from review_cases import deidentify, write_notes

from clinveil.phi.review.desk import open_desk as desk_of
from clinveil.phi.review.past_runs import past_run, review_queue


@pytest.fixture()
def made(tmp_path, monkeypatch):
    """The folder with notes.parquet, and `out.parquet` made of it."""
    monkeypatch.chdir(tmp_path)
    assert deidentify(write_notes(tmp_path / "notes.parquet"), "-o", "out.parquet", "--spans") == 0
    return tmp_path


@pytest.fixture()
def open_desk(made):
    """Opens a desk of the run, as a context."""

    def opened(reviewer="first", most=100, order="given"):
        run = past_run(made / "out.parquet")
        return desk_of(run, review_queue(run.entries(), most, order), reviewer)

    return opened
