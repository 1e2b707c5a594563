"""A release takes every mechanism, and says what it was made with."""

from __future__ import annotations

import json

import pytest

from clinveil.channel.mechanism import mechanisms
from clinveil.cli.main import main
from clinveil.releases.settings import ReleaseSettings

FAST = ["--set", "epochs=1", "--set", "dim=16", "--workers", "1", "--quiet"]
NAMES = mechanisms.names()


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes") / "demo"
    assert (
        main(
            [
                "demo",
                "--notes-only",
                "-o",
                str(folder),
                "--patients",
                "60",
                "--seed",
                "3",
                "--quiet",
            ]
        )
        == 0
    )
    return folder


RISKS = ["--set", "max_names=1", "--set", "max_linkage=1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_makes_a_release(notes, tmp_path, name):
    out = tmp_path / "out"
    made = ["--patients", str(notes / "patients.parquet"), "--set", f"mechanism={name}"]
    made += ["--as", "coded", *RISKS]  # what adversaries find in so few notes is not asked here
    assert main(["release", str(notes / "notes.parquet"), "-o", str(out), *made, *FAST]) == 0
    shown = json.loads((out / "release" / "manifest.json").read_text())["settings"]
    own = {field for field in mechanisms.get(name).model_fields if field in ReleaseSettings.flags()}
    others = (
        {field for _, kind in mechanisms for field in kind.model_fields} - own - {"rare_below"}
    )  # of the scope too
    names = {key.partition(".")[0] for key in shown}  # a range has two keys: n.low and n.high
    assert shown["mechanism"] == name and own <= names and not others & shown.keys()


def test_the_plan_names_the_mechanism(notes, capsys):
    plan = ["release", str(notes / "notes.parquet")]
    assert main([*plan, "--as", "coded"]) == 0
    assert "every word, clusters of 16 or more words" in capsys.readouterr().out
    assert main([*plan, "--config", "paper"]) == 0
    assert "every word, N 3-14" in capsys.readouterr().out
