"""The gate of own addresses: what was left in does not pass."""

from __future__ import annotations

import pytest
from release_cases import demo_notes_in, release

from clinveil.attacks.text.identifiers import Identifiers
from clinveil.cli import main
from clinveil.core import words
from clinveil.corpus import read_patients
from clinveil.releases import measured

MEASURES = True


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Notes of a few demo patients, and the words of all addresses."""
    folder = demo_notes_in(tmp_path_factory.mktemp("own-words"), patients=24)
    people = read_patients(folder / "demo/patients.parquet").values()
    kept = sorted(
        {word for person in people for address in person.addresses for word in words(address)}
    )
    (folder / "kept.txt").write_text("\n".join(kept))
    return folder


def test_addresses_that_nobody_took_out_are_refused(desk, monkeypatch, capsys):
    """PHI off, and the words of addresses kept."""
    monkeypatch.setattr(
        measured, "of_release", lambda: [Identifiers]
    )  # the others take most of the time
    left_in = [
        "--set",
        "phi=false",
        "--set",
        f"channel.keep_words={desk / 'kept.txt'}",
        "--min-patients",
        "1",
        "--set",
        "channel.allow_small=true",
    ]
    assert main(release(desk, "out", *left_in)) == 4
    assert "NOT HELD no own address: " in capsys.readouterr().out
