"""Pages that several tests look at, rendered once."""

from __future__ import annotations

import pytest
from invented_release import record

from clinveil.report.edition import external_edition
from clinveil.report.record import ReleaseRecord
from clinveil.report.render import render


@pytest.fixture(scope="session")
def external() -> ReleaseRecord:
    return external_edition(record())


@pytest.fixture(scope="session")
def pages(external: ReleaseRecord) -> dict[str, str]:
    return {
        "internal": render(record()),
        "external": render(external),
        "refused": render(record(failed=True, test_seed=True)),
    }
