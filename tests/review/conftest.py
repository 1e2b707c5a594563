"""A run of `clinveil deidentify` with its spans kept, and a desk over it."""

from __future__ import annotations

import shutil

import pytest
from review_cases import deidentify, write_notes

from clinveil.phi import open_desk as desk_of
from clinveil.phi import review_queue
from clinveil.phi.review.past_runs import past_run


@pytest.fixture(scope="session")
def run_over_notes(tmp_path_factory):
    """The folder with notes.parquet, and `out.parquet` made of it, which no test changes."""
    folder = tmp_path_factory.mktemp("reviewed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert (
            deidentify(write_notes(folder / "notes.parquet"), "-o", "out.parquet", "--spans") == 0
        )
    return folder


@pytest.fixture()
def made(run_over_notes, tmp_path, monkeypatch):
    """A copy of that folder, for a test that works in it."""
    shutil.copytree(run_over_notes, tmp_path, dirs_exist_ok=True)
    record = tmp_path / "out.parquet.vault" / "deidentify.json"
    record.write_text(record.read_text().replace(str(run_over_notes), str(tmp_path)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture()
def open_desk(made):
    """Opens a desk of the run, as a context."""

    def opened(reviewer="first", most=100, order="given"):
        run = past_run(made / "out.parquet")
        return desk_of(run, review_queue(run.entries(), most, order), reviewer)

    return opened
