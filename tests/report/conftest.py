"""Pages that several tests look at, rendered once."""

from __future__ import annotations

import pytest
from invented_release import note, record

from clinveil.report import ReleaseRecord, render, render_sample


@pytest.fixture(scope="session")
def passed() -> ReleaseRecord:
    return record()


@pytest.fixture(scope="session")
def pages(passed: ReleaseRecord) -> dict[str, str]:
    notes = (note(), note("Note 2 of 2, sampled from all notes"))
    return {
        "passed": render(passed),
        "refused": render(record(failed=True, test_seed=True)),
        "sample": render_sample(notes, passed.run),
    }
