"""`clinveil embed`: files, modes, seed, and one line for each mistake."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clinveil.cli import main
from clinveil.vectors import load_vectors


@pytest.fixture
def notes(tmp_path):
    rows = "\n".join(
        f'n{i},p{i % 7},"chest pain and fever, secretword{"abc"[i % 3]} today"' for i in range(60)
    )
    path = tmp_path / "notes.csv"
    path.write_text(f"note_id,patient_id,text\n{rows}\n")
    return path


def run(*arguments):
    return main(["embed", *map(str, arguments)])


def test_vectors_are_made_and_marked_secret(notes, tmp_path, capfd):
    assert run(notes, "-o", tmp_path / "v", "--dim", 8, "--set", "vectors.epochs=2") == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "SECRET" in err
    assert "seed " in err
    assert "secretword" not in err
    vectors = load_vectors(tmp_path / "v")
    assert (vectors.dim, vectors.n_patients) == (8, 7)
    assert vectors.counts[vectors.ids["pain"]] == 60
    assert (tmp_path / "v").stat().st_mode & 0o777 == 0o700
    assert sorted(item.name for item in tmp_path.iterdir()) == ["notes.csv", "v"]


def test_without_a_seed_one_is_drawn_and_kept(notes, tmp_path, capfd):
    assert run(notes, "-o", tmp_path / "v", "--dim", 4) == 0
    assert f"seed {load_vectors(tmp_path / 'v').meta['seed']} " in capfd.readouterr().err


def test_a_vec_file_says_what_it_loses(notes, tmp_path, capfd):
    assert run(notes, "-o", tmp_path / "v.vec", "--dim", 4) == 0
    assert "no counts" in capfd.readouterr().err
    assert (tmp_path / "v.vec").stat().st_mode & 0o777 == 0o600
    assert len(load_vectors(tmp_path / "v.vec")) == 8


def test_quiet_still_says_secret(notes, tmp_path, capfd):
    assert run(notes, "-o", tmp_path / "v", "--dim", 4, "-q") == 0
    assert capfd.readouterr().err.count("\n") == 1


def test_a_taken_place_is_refused_before_training(notes, tmp_path, capfd):
    (tmp_path / "v").mkdir()
    assert run(notes, "-o", tmp_path / "v") == 2
    assert "v: already exists" in capfd.readouterr().err


@pytest.mark.parametrize(
    "content", ["note_id,patient_id,text\n", 'note_id,patient_id,text\n1,p,"7 8"\n']
)
def test_notes_without_words_leave_nothing_behind(content, tmp_path, capfd):
    path = tmp_path / "few.csv"
    path.write_text(content)
    assert run(path, "-o", tmp_path / "v") == 3
    assert capfd.readouterr().err.splitlines()[-1].startswith("clinveil: ")
    assert [item.name for item in tmp_path.iterdir()] == ["few.csv"]


@pytest.mark.parametrize(
    ("out", "said"), [("txt", "are the same path"), ("txt/v", "OUT is inside NOTES")]
)
def test_notes_are_not_overwritten(out, said, tmp_path, capfd):
    (tmp_path / "txt").mkdir()
    (tmp_path / "txt" / "a.txt").write_text("chest pain")
    assert run(tmp_path / "txt", "-o", tmp_path / out, "--force") == 2
    assert said in capfd.readouterr().err
    assert [p.name for p in tmp_path.rglob("*.txt")] == ["a.txt"]


def test_what_lies_beside_stays_and_all_is_private(notes, tmp_path):
    (tmp_path / "v.scratch.part").write_text("mine")
    before = os.umask(0)
    try:
        assert run(notes, "-o", tmp_path / "v", "--dim", 4, "--algorithm", "glove") == 0
        assert os.umask(0) == 0o077
    finally:
        os.umask(before)
    assert (tmp_path / "v.scratch.part").read_text() == "mine"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["notes.csv", "v", "v.scratch.part"]


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from clinveil.cli.groups import COMMANDS
try:
    COMMANDS.get("embed").parser().main(sys.argv[1:], standalone_mode=False)
except OSError as error:
    print(error.errno)
"""


@pytest.mark.parametrize("name", ["v", "v.vec", "v.bin"])
def test_a_disk_that_takes_no_more_is_named_as_the_cause(name, notes, tmp_path):
    line = [
        sys.executable,
        "-c",
        LIMITED,
        notes,
        "-o",
        tmp_path / name,
        "--dim",
        "1000",
        "--workers",
        "1",
    ]
    done = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "27", done.stderr  # EFBIG
    assert [item.name for item in tmp_path.iterdir()] == ["notes.csv"]
