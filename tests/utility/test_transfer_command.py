"""`clinveil evaluate transfer`: paired by id, unpaired, and what it refuses."""

from __future__ import annotations

import csv
import json

import pytest
from utility_cases import notes

from clinveil.cli import main


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("note_id", "patient_id", "text", "label"), *rows])
    return str(path)


@pytest.fixture
def files(tmp_path):
    other = [(f"x{n}", f"y{p}", text, label) for n, p, text, label in notes(seed=9)]
    return (
        write(tmp_path / "real.csv", notes()),
        write(tmp_path / "released.csv", notes()),
        write(tmp_path / "x.csv", other),
    )


def findings(command, out):
    assert (
        main(
            [
                "evaluate",
                "transfer",
                *command,
                "--classifier",
                "lr",
                "--json",
                str(out),
                "--set",
                "quiet=true",
            ]
        )
        == 0
    )
    return {f["measure"]: f for f in json.loads(out.read_text())["findings"]}


def test_paired_by_id_and_unpaired(files, tmp_path, capsys):
    real, released, other = files
    paired = findings([real, released, "--label", "label"], tmp_path / "a.json")
    assert paired["utility.transfer"]["value"] == 1.0
    unpaired = findings([real, other, "--label", "label", "--unpaired"], tmp_path / "b.json")
    assert unpaired["utility.transfer"]["scores"]["of_ceiling"] > 0.8
    assert (
        main(["evaluate", "transfer", real, released, "--classifier", "lr", "--set", "quiet=true"])
        == 0
    )
    shown = capsys.readouterr().out
    assert "100.0% of real" in shown and "floor" in shown and "transfer, label" not in shown


def test_other_ids_and_contradictions_are_refused(files, capsys):
    real, _, other = files
    assert main(["evaluate", "transfer", real, other]) == 3
    assert "--unpaired" in capsys.readouterr().err
    assert main(["evaluate", "transfer", real, other, "--unpaired", "--vault", "v"]) == 2
    assert main(["evaluate", "transfer", real, other, "--unpaired", "--label", "nothing"]) in (2, 3)
