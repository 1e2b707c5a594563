"""`clinveil evaluate perplexity`: what it finds out about the notes it is given, and what it prints
beside figures.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from clinveil.cli import main

WORDS = ["fever", "cough", "pain", "rest", "heart", "left", "right"]
SECRET = "zyqquavex"


def rows_of(patients, seed, *, prepared=True, rare=f"{SECRET} "):
    """Notes of random words, in MedText's form or as people write."""
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(patients):
        for note in range(3):
            line = " , ".join(rng.choice(WORDS, 6)) + f" {rare}."
            text = (
                f"{line}\n{line}"
                if prepared
                else line.replace(" ,", ",").replace(" .", ".").capitalize()
            )
            rows.append((f"{seed}-{patient}-{note}", f"{seed}-{patient}", text))
    return rows


def write(path, rows):
    cells = (",".join(f'"{cell}"' for cell in row) for row in rows)
    path.write_text("\n".join(["note_id,patient_id,text", *cells]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Training and test notes, in all forms."""
    folder = tmp_path_factory.mktemp("perplexity")
    return {
        "train": write(folder / "train.csv", rows_of(12, 1)),
        "test": write(folder / "test.csv", rows_of(8, 2)),
        "both": write(folder / "both.csv", rows_of(12, 1)[:9] + rows_of(8, 2)),
        "blotted": write(folder / "blotted.csv", rows_of(12, 1, rare="<unk> ")),
        "blotted-test": write(folder / "blotted-test.csv", rows_of(8, 2, rare="<unk> ")),
        "raw": write(folder / "raw.csv", rows_of(12, 1, prepared=False)),
        "raw-test": write(folder / "raw-test.csv", rows_of(8, 2, prepared=False)),
    }


@pytest.fixture(scope="module")
def model(files):
    """The unigram of a synthetic release of the prepared notes: too short for the copy gates, so
    none leaves.
    """
    out = files["train"].parent / "out"
    keys = ("lm.model=unigram", "synthetic.count=5", "synthetic.longest=50")
    sets = [part for key in keys for part in ("--set", key)]
    how = [
        "--as",
        "synthetic",
        *sets,
        "--set",
        "phi=false",
        "--min-patients",
        "1",
        "--set",
        "quiet=true",
        "--seed",
        "1",
    ]
    assert main(["release", str(files["train"]), "-o", str(out), *how]) == 4
    return out / "vault" / "model"


@pytest.fixture
def evaluate(tmp_path, capfd):
    """Run it twice: the findings of the one, and what the other prints."""

    def run(test, *more):
        command = [
            "evaluate",
            "perplexity",
            str(test),
            *map(str, more),
            "--seed",
            "1",
            "--set",
            "quiet=true",
        ]
        if "--train" in command:
            command += ["--set", "lm.model=unigram"]
        assert main([*command, "--json", str(tmp_path / "f.json")]) == 0
        capfd.readouterr()
        assert main(command) == 0
        said = capfd.readouterr()
        assert SECRET not in said.out + said.err
        assert SECRET not in (tmp_path / "f.json").read_text()
        return json.loads((tmp_path / "f.json").read_text())["findings"], " ".join(said.out.split())

    return run


def test_the_table_says_how_large_the_vocabulary_is_and_what_it_does_not_know(files, evaluate):
    found, said = evaluate(
        files["test"],
        "--train",
        files["train"],
        "--set",
        "prepared=true",
        "--set",
        "lm.min_count=80",
    )
    known = found[0]["numbers"]["size"]
    assert said.count(f"test notes, {known} words, ") == 2
    assert said.count(f"{found[0]['numbers']['unknown_share']:.1%} unknown") == 2
    assert found[0]["numbers"]["unknown_share"] > 0
    assert "bits per character note: unknown words are charged for their spelling" in said
    assert "jackknife over patients" in said
    assert {one["n"] for one in found} == {8}


def test_with_a_unigram_beside_it_there_is_a_control_and_without_there_is_a_reason(
    files, model, evaluate
):
    found, said = evaluate(files["test"], "--train", files["train"], "--set", "prepared=true")
    assert all(one["control"] is not None for one in found)
    assert "control: a unigram of the same notes" in said
    found, said = evaluate(files["test"], "--from", model, "--set", "prepared=true")
    assert all(one["control"] is None for one in found)
    assert "control: none with --from: a unigram model needs the training notes" in said


@pytest.mark.parametrize(
    ("name", "beware"),
    [("test", None), ("train", "of 36 notes are verbatim"), ("both", "of 33 notes are verbatim")],
)
def test_notes_that_the_model_was_trained_on_are_found_out(files, model, evaluate, name, beware):
    for how in (["--from", model], ["--train", files["train"]]):
        found, said = evaluate(files[name], *how, "--set", "prepared=true")
        warnings = {one["warning"] for one in found}
        assert len(warnings) == 1
        if beware is None:
            assert warnings == {""}
            assert "beware" not in said
        else:
            assert beware in warnings.pop()
            assert "perplexity; bits per character beware: " in said
        assert "not checked" not in said


def test_the_warning_counts_what_was_trained_on_and_not_what_was_n_held_out(files, model, evaluate):
    kept = 36 - len(
        json.loads((model / "model.json").read_text())["about"]["notes"]["fingerprints"]
    )
    assert kept == 9  # two test patients, and one to validate the network
    found, _ = evaluate(files["train"], "--from", model, "--set", "prepared=true")
    assert found[0]["warning"].startswith("27 of 36 notes")
    found, _ = evaluate(files["train"], "--train", files["train"], "--set", "prepared=true")
    assert found[0]["warning"].startswith("36 of 36 notes")


def without_fingerprints(model, folder):
    """The same model without the record of its notes."""
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    said = json.loads((folder / "model.json").read_text())
    del said["about"]["notes"]
    (folder / "model.json").write_text(json.dumps(said))
    return folder


def test_a_model_without_a_record_of_its_notes_is_reported(files, model, evaluate, tmp_path):
    old = without_fingerprints(model, tmp_path / "old")
    for name in ("both", "test"):
        found, said = evaluate(files[name], "--from", old, "--set", "prepared=true")
        assert not found[0]["warning"]
        assert "not checked: whether the model was trained on some of these notes" in said


def test_synthetic_notes_with_unk_train_a_model_for_raw_notes(files, evaluate):
    found, _ = evaluate(files["raw-test"], "--train", files["blotted"])
    assert found[0]["numbers"]["standing_unknown"] == 0
