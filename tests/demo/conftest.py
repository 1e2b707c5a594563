"""What several tests of the demo corpus share: 300 patients, made once."""

from __future__ import annotations

import pytest

from clinveil.corpus import Patient, many_notes
from clinveil.corpus.demo.notes import DemoNote


@pytest.fixture(scope="session")
def demo_people() -> list[tuple[Patient, list[DemoNote]]]:
    return list(many_notes(11, 0, 300))


@pytest.fixture(scope="session")
def demo_written(demo_people: list[tuple[Patient, list[DemoNote]]]) -> list[DemoNote]:
    return [note for _, notes in demo_people for note in notes]
