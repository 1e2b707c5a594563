"""The folder of an audit: the same settings go on, others are refused, and what it says of itself
is true.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest
from leaveout_cases import notes_of, settings_of

sys.path.insert(0, str(Path(__file__).parents[1] / "release"))
from synthesis_cases import rows_of, write_csv

from clinveil.attacks import seed_of
from clinveil.attacks.models.leaveout.data import audit_folder, run_spec
from clinveil.cli import main
from clinveil.core import UsageError


def given(seed=1, notes=None, **how):
    return run_spec(notes or notes_of(), settings_of(**how), seed)


def finish(out, of, force=False):
    """A whole run, without its models."""
    with audit_folder(out, of, force=force):
        (out / "findings.json").write_text(json.dumps(of))
        (out / "units-model.csv").write_text("unit\n")


def refusal(out, of):
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(UsageError) as caught:
        finish(out, of)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    return str(caught.value)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"seed": 2}, ["seed"]),
        ({"units": 4}, ["units"]),
        ({"dropout": 0.25, "mode": "compat"}, ["mode", "dropout"]),
        ({"model": "unigram"}, ["model", "dropout"]),
        ({"min_count": 2}, ["min_count"]),
        ({"vocabulary": "bytes"}, ["vocabulary", "vocabulary_size"]),
        ({"notes": notes_of(seed=3)}, ["notes"]),
    ],
)
def test_other_settings_are_refused_and_named(other, named, tmp_path):
    out = tmp_path / "out"
    finish(out, given())
    said = refusal(out, given(**other))
    assert said.startswith("out: contains findings of other settings: ")
    listed = said.partition("settings: ")[2].partition(" (")[0].split(", ")
    assert set(named) <= set(listed)
    assert "use another folder; --force removes" in said


@pytest.mark.parametrize(
    "same", [{}, {"workers": 2, "max_hours": 3.0, "quiet": True}, {"tied": True}]
)
def test_the_same_settings_go_on(same, tmp_path):
    finish(tmp_path / "out", given())
    finish(tmp_path / "out", given(**same))


def test_other_numbers_of_models_go_on(tmp_path):
    out = tmp_path / "out"
    finish(out, given())
    finish(out, given(reseeds=3))
    finish(out, given(reseeds=3, seeds=2))
    finish(out, given(reseeds=3, from_text=True))
    finish(out, given(reseeds=1, seeds=1))


def test_force_begins_anew(tmp_path):
    out = tmp_path / "out"
    finish(out, given())
    (out / "units-text.csv").write_text("old\n")
    (out / "units-mine-model.csv").write_text("mine\n")
    with audit_folder(out, given(seed=2), force=True) as store:
        assert not (out / "findings.json").exists()
        assert [path.name for path in out.glob("units-*.csv")] == ["units-mine-model.csv"]
        assert list(store.root.iterdir()) == []
    finish(out, given(seed=2))


def test_a_killed_run_stands_in_nobodys_way(tmp_path):
    out = tmp_path / "out"
    for seed in (1, 2):
        with pytest.raises(KeyboardInterrupt), audit_folder(out, given(seed)):
            raise KeyboardInterrupt
    finish(out, given(2))
    with pytest.raises(KeyboardInterrupt), audit_folder(out, given(2, from_text=True)):
        raise KeyboardInterrupt  # the findings that lie there are still of the run before
    finish(out, given(2))
    assert stat.S_IMODE((out / "run.json").stat().st_mode) == 0o600


def test_findings_of_something_else_are_refused(tmp_path):
    out = tmp_path / "out"
    with audit_folder(out, given()):
        (out / "findings.json").write_text("{}")
    (out / "run.json").unlink()
    assert "without recorded settings" in refusal(out, given())
    (out / "run.json").write_text("[")
    assert "without recorded settings" in refusal(out, given())


def test_the_seed_of_an_earlier_run_is_known(tmp_path):
    assert seed_of(tmp_path) is None
    with pytest.raises(KeyboardInterrupt), audit_folder(tmp_path / "out", given(77)):
        raise KeyboardInterrupt
    assert seed_of(tmp_path / "out") == 77
    (tmp_path / "out" / "run.json").write_text('{"seed": "77"}')
    assert seed_of(tmp_path / "out") is None


def test_the_folder_says_what_is_in_it(tmp_path):
    with audit_folder(tmp_path / "audit", given()):
        own = (tmp_path / "audit" / "SECRET.txt").read_text()
    assert "must not leave" in own and "language models" in own and "log-probability" in own
    assert "vectors" not in own


# From the command line; n-grams, which need no PyTorch.


@pytest.fixture
def audit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "notes.csv", rows_of(12))

    def run(*flags, out="out", model="ngram"):
        return main(
            [
                "attack",
                "leaveout",
                "notes.csv",
                "-o",
                out,
                "--set",
                f"lm.model={model}",
                "--set",
                "units=4",
                *flags,
            ]
        )

    return run


@pytest.mark.slow
def test_a_second_audit_does_not_replace_the_first(audit, tmp_path, capfd):
    assert audit("--seed", "1") == 0
    files = ("findings.json", "units-model.csv", "run.json")
    before = [(tmp_path / "out" / name).read_bytes() for name in files]
    assert audit("--seed", "1") == 0
    assert [(tmp_path / "out" / name).read_bytes() for name in files] == before
    capfd.readouterr()
    assert audit("--seed", "2", "--set", "lm.min_count=1") == 2
    last = capfd.readouterr().err.splitlines()[-1]
    assert "out: contains findings of other settings: seed, min_count (use another folder" in last
    assert [(tmp_path / "out" / name).read_bytes() for name in files] == before
    assert audit("--seed", "2", "--set", "lm.min_count=1", out="other") == 0
    assert audit("--seed", "2", "--set", "lm.min_count=1", "--force") == 0
    assert (tmp_path / "out" / "findings.json").read_bytes() == (
        tmp_path / "other" / "findings.json"
    ).read_bytes()


def test_without_a_seed_the_same_command_goes_on(audit, tmp_path):
    assert audit() == 0
    found = (tmp_path / "out" / "findings.json").read_bytes()
    tasks = sorted((tmp_path / "out" / "tasks").iterdir())
    assert audit() == 0
    assert (tmp_path / "out" / "findings.json").read_bytes() == found
    assert sorted((tmp_path / "out" / "tasks").iterdir()) == tasks


@pytest.mark.slow
def test_adding_released_notes_on_top_goes_on(audit, tmp_path):
    assert audit("--seed", "1", model="unigram") == 0
    assert audit("--seed", "1", "--set", "from_text=true", model="unigram") == 0
    found = json.loads((tmp_path / "out" / "findings.json").read_text())["findings"]
    assert [f["labels"][2] for f in found if f["measure"] == "attack.pdtp"] == [
        "the model",
        "released notes",
    ]


def test_the_table_names_the_unit_of_each_row(audit, capfd):
    assert audit("--seed", "1", "--set", "lm.min_count=1") == 0
    rows = {
        line.split("  ")[0]: line
        for line in capfd.readouterr().out.splitlines()
        if line.startswith("pdtp")
    }
    assert all("random, nats " in rows[name] for name in ("pdtp", "pdtp effect"))
    assert "nats per token" in rows["pdtp gap"]
    assert "share of units" in rows["pdtp sign"]
