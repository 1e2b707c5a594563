"""The vault of `synthesize`: what a stop, a damaged file or a failed replacement may not cost."""

from __future__ import annotations

import json

import pytest
from synthesis_cases import FAST_FLAGS, bytes_of, notes_of, rows_of, synthesis, write_csv

from clinveil.cli.main import main
from clinveil.core import runfolder
from clinveil.core.errors import ClinveilError, InputError, UsageError

UNIGRAM = {"model": "unigram", "seed": None}


def finished(folder, **changed):
    run = synthesis(folder, **{**UNIGRAM, **changed})
    run.run()
    return run


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_only_looks_like_a_vault_is_left_alone(tmp_path, force):
    (tmp_path / "vault").mkdir(mode=0o700)
    (tmp_path / "vault" / "run.json").write_text("{}")
    (tmp_path / "vault" / "thesis.txt").write_text("mine")
    with pytest.raises(ClinveilError):
        synthesis(tmp_path, force=force, **UNIGRAM).run()
    assert bytes_of(tmp_path) == {"vault/run.json": b"{}", "vault/thesis.txt": b"mine"}


def test_a_replacement_that_fails_early_gives_the_old_vault_back(tmp_path):
    finished(tmp_path)
    before = bytes_of(tmp_path)
    one = notes_of(rows_of(patients=3))
    with pytest.raises(InputError, match="too few"):
        synthesis(tmp_path, notes=one, force=True, **UNIGRAM).run()
    assert bytes_of(tmp_path) == before


def stopped(*args, **kwargs):
    raise KeyboardInterrupt


def test_a_replacement_that_is_stopped_before_training_gives_the_old_vault_back(tmp_path, monkeypatch):
    finished(tmp_path)
    before = bytes_of(tmp_path)
    monkeypatch.setattr("clinveil.releases.synthesis.train_anew", stopped)
    with pytest.raises(KeyboardInterrupt):
        synthesis(tmp_path, force=True, **UNIGRAM).run()
    assert bytes_of(tmp_path) == before


def test_a_replacement_that_fails_late_keeps_the_old_vault_aside_until_one_succeeds(tmp_path, monkeypatch):
    finished(tmp_path)
    key = (tmp_path / "vault" / "key.bin").read_bytes()
    notes = (tmp_path / "out.csv").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("clinveil.releases.synthesis.examine", stopped)
        for _ in range(2):  # and a second try does not take the unfinished vault for the old one
            with pytest.raises(KeyboardInterrupt):
                synthesis(tmp_path, force=True, **UNIGRAM).run()
            assert (tmp_path / ".vault.replaced" / "key.bin").read_bytes() == key
            assert (tmp_path / "out.csv").read_bytes() == notes
    finished(tmp_path, force=True)
    assert not (tmp_path / ".vault.replaced").exists()
    assert (tmp_path / "vault" / "key.bin").read_bytes() != key
    assert (tmp_path / "out.csv").read_bytes() != notes


@pytest.mark.parametrize("name", ["vault.old", ".vault.replaced"])
def test_a_folder_of_somebody_else_beside_the_vault_is_left_alone(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "backup.txt").write_text("mine")
    finished(tmp_path)
    if name == ".vault.replaced":  # where the old vault would wait
        with pytest.raises(UsageError, match="move it away"):
            finished(tmp_path, force=True)
    else:
        finished(tmp_path, force=True)
    assert (tmp_path / "vault" / "key.bin").exists()
    assert (tmp_path / name / "backup.txt").read_text() == "mine"


def test_a_stop_before_the_key_was_written_costs_nothing(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(runfolder.Key, "save", stopped)
        patched.setattr(runfolder, "_undo", lambda *how, **more: None)  # killed: nobody tidies up
        with pytest.raises(KeyboardInterrupt):
            synthesis(tmp_path, **UNIGRAM).run()
    assert sorted(path.name for path in (tmp_path / "vault").iterdir()) == ["README.txt", "run.json"]
    finished(tmp_path)
    assert (tmp_path / "vault" / "key.bin").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[" * 100_000, '{"schema": "clinveil.run/1", "status": "running", "run": 3}']
)
def test_a_damaged_run_file_is_one_clear_line(tmp_path, text):
    finished(tmp_path)
    (tmp_path / "out.csv").unlink()
    (tmp_path / "vault" / "run.json").write_text(text)
    with pytest.raises(UsageError, match="is no vault of this command"):
        synthesis(tmp_path, **UNIGRAM).run()
    assert (tmp_path / "vault" / "key.bin").exists()


def test_leaving_the_patients_away_is_another_run(tmp_path):
    from clinveil.corpus.people import Patient, write_patients

    for name in ("one", "two"):
        write_patients([Patient("k1", ("Ada", name.title()))], tmp_path / f"{name}.parquet")
    asked = [
        synthesis(tmp_path, patients=feed, **UNIGRAM)._asked()
        for feed in (None, tmp_path / "one.parquet", tmp_path / "two.parquet")
    ]
    assert len(set(asked)) == 3


@pytest.mark.parametrize("out", [".", "/", "..", "\udcff"])
def test_an_out_without_a_usable_name_is_refused_before_any_work(tmp_path, monkeypatch, capsys, out):
    monkeypatch.chdir(tmp_path)
    notes = write_csv(tmp_path / "notes.csv", rows_of(patients=5))
    assert main(["synthesize", str(notes), "-o", out, *FAST_FLAGS]) == 2
    assert "OUT" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.csv"]


def test_a_seed_that_is_no_seed_is_refused(tmp_path, capsys):
    notes = write_csv(tmp_path / "notes.csv", rows_of(patients=5))
    assert main(["synthesize", str(notes), "-o", str(tmp_path / "o"), "--seed", str(10**70)]) == 2
    assert "--seed" in capsys.readouterr().err


def test_what_a_vault_says_of_itself(tmp_path):
    run = finished(tmp_path)
    said = json.loads((run.vault / "run.json").read_text())
    assert said["schema"] == runfolder.SCHEMA and set(said) == {"schema", "status", "run", "files"}
    assert said["status"] == "finished" and "model/model.json" in said["files"]


def test_the_vault_of_a_finished_run_is_not_taken_for_another(tmp_path):
    finished(tmp_path)
    with pytest.raises(UsageError, match="finished run"):
        synthesis(tmp_path, **UNIGRAM).run()
