"""Membership inference on synthetic releases: in the report, and by `clinveil attack membership` on
the same notes.
"""

from __future__ import annotations

import json
import shlex

from kind_cases import released, write_notes

from clinveil.cli import main
from clinveil.corpus import HeldOutPatients


def audited(desk, notes, model, *flags):
    return main(
        [*shlex.split(f"attack membership {desk / notes} --from {desk / model} --seed 1"), *flags]
    )


def test_membership_reads_the_file_that_the_release_read(tmp_path, capsys):
    """The model was trained on placeholders: they are written again, under the key of the vault."""
    write_notes(tmp_path)
    assert released(tmp_path, "out", "synthetic") == 0
    capsys.readouterr()
    both = [
        "--synthetic",
        str(tmp_path / "out/release/notes.csv"),
        "--json",
        str(tmp_path / "found.json"),
    ]
    assert audited(tmp_path, "notes.csv", "out/vault/model", *both) == 0
    found = json.loads((tmp_path / "found.json").read_text())["findings"]
    areas = [f for f in found if f["measure"] == "attack.membership"]
    assert [(one["labels"][1], one["attack"]) for one in areas] == [
        (source, attacker)
        for source in ("the model", "released notes")
        for attacker in ("loss threshold", "calibrated")
    ]
    in_report = json.loads((tmp_path / "out/vault/findings.json").read_text())["findings"]
    sides = next(f["numbers"] for f in in_report if f["measure"] == "attack.membership")
    assert all(
        (one["numbers"]["members"], one["numbers"]["non_members"])
        == (sides["members"], sides["non_members"])
        for one in areas
    )
    assert "qamira" not in capsys.readouterr().out.lower()


def test_membership_refuses_other_notes_and_a_missing_list_of_patients(tmp_path, capsys):
    write_notes(tmp_path)
    assert released(tmp_path, "out", "synthetic") == 0
    text = (tmp_path / "notes.csv").read_text()
    one, other, *_ = sorted(HeldOutPatients.read(tmp_path / "out/vault").training)
    (tmp_path / "other.csv").write_text(text.replace(f"-0,{one},", f"-0,{other},"))
    assert audited(tmp_path, "other.csv", "out/vault/model") == 3
    assert "was trained on other notes" in capsys.readouterr().err
    (tmp_path / "patients.parquet").rename(tmp_path / "moved.parquet")
    assert audited(tmp_path, "notes.csv", "out/vault/model") == 3
    assert "known-patient list of the release is missing" in capsys.readouterr().err
    assert audited(tmp_path, "notes.csv", "out/vault/channel") == 3
    assert (
        main(
            [
                "attack",
                "membership",
                str(tmp_path / "notes.csv"),
                "--synthetic",
                str(tmp_path / "notes.csv"),
            ]
        )
        == 2
    )
    assert "pass HELD_OUT" in capsys.readouterr().err
