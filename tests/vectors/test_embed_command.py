"""`clinveil embed`: files, modes, seed, and one line for each mistake."""

from __future__ import annotations

import pytest

from clinveil.cli.main import main
from clinveil.vectors.files import load_vectors


@pytest.fixture
def notes(tmp_path):
    rows = "\n".join(f'n{i},p{i % 7},"chest pain and fever, secretword{"abc"[i % 3]} today"' for i in range(60))
    path = tmp_path / "notes.csv"
    path.write_text(f"note_id,patient_id,text\n{rows}\n")
    return path


def run(*arguments):
    return main(["embed", *map(str, arguments)])


def test_vectors_are_made_and_marked_secret(notes, tmp_path, capfd):
    assert run(notes, "-o", tmp_path / "v", "--dim", 8, "--epochs", 2) == 0
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


def test_the_seed_makes_them_again(notes, tmp_path):
    for name in ("one", "two"):
        assert run(notes, "-o", tmp_path / name, "--seed", 4, "--dim", 8, "--workers", 1, "--quiet") == 0
    one, two = load_vectors(tmp_path / "one"), load_vectors(tmp_path / "two")
    assert one.matrix.tobytes() == two.matrix.tobytes()
    assert one.meta["seed"] == 4


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
    assert "v: is there already" in capfd.readouterr().err


@pytest.mark.parametrize("content", ["note_id,patient_id,text\n", 'note_id,patient_id,text\n1,p,"7 8"\n'])
def test_notes_without_words_leave_nothing_behind(content, tmp_path, capfd):
    path = tmp_path / "few.csv"
    path.write_text(content)
    assert run(path, "-o", tmp_path / "v") == 3
    assert capfd.readouterr().err.splitlines()[-1].startswith("clinveil: ")
    assert [item.name for item in tmp_path.iterdir()] == ["few.csv"]
