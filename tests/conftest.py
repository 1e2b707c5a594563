"""Fixtures that all rooms share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(os.environ.get("CLINVEIL_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """The path of a public data file beside the project; skips the test where it is missing."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"public data {name} is not beside the project")
        return path

    return find
