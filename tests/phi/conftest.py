"""The finder with the usual settings, made once."""

from __future__ import annotations

import pytest

from clinveil.phi import Finder, PhiSettings


@pytest.fixture(scope="session")
def finder() -> Finder:
    return Finder.of(PhiSettings())
