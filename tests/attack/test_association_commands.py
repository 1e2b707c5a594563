"""`clinveil attack association`: findings, tables, and one line for each mistake."""

from __future__ import annotations

import json

import numpy as np
import pytest

from association_cases import world
from clinveil.cli import main
from clinveil.core import read_findings
from clinveil.corpus import write_codes, write_patients
from clinveil.vectors import Vectors, save_vectors


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("association")
    made = world(np.random.default_rng(1), n=60, m=20, link=1.0)
    save_vectors(made.vectors, folder / "v")
    save_vectors(made.vectors, folder / "v.vec")
    write_patients(made.patients, folder / "patients.parquet")
    write_codes(made.codes, folder / "codes.csv")
    (folder / "targets.txt").write_text("\n".join(list(made.codes.values())[:9]))
    notes = "\n".join(
        f'{i},p{i},"{" ".join(p.name)} has {made.codes[p.codes[0]]}"'
        for i, p in enumerate(made.patients)
    )
    (folder / "notes.csv").write_text(f"note_id,patient_id,text\n{notes}\n")
    return folder


def run(files, *arguments, vectors=("v",)):
    common = ["--patients", files / "patients.parquet", "--codes", files / "codes.csv"]
    paths = [files / name for name in vectors]
    return main(["attack", "association", *map(str, [*paths, *common, *arguments])])


QUICK = ("--set", "attack.metric=cosine", "--set", "attack.permutations=99")


def test_findings_are_a_document_that_the_seed_makes_again(files, tmp_path):
    for out in ("a.json", "b.json"):
        flags = ("--seed", 5, "--set", "quiet=true", "--json", tmp_path / out)
        assert run(files, *QUICK, *flags) == 0
    data = json.loads((tmp_path / "a.json").read_text())
    assert data["command"] == "attack association" and data["seed"] == 5
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    found = read_findings(tmp_path / "a.json")
    assert all(f.measure.startswith("attack.association") for f in found)
    for f in found:
        missing = [
            k for k in ("value", "low", "high", "chance", "control") if getattr(f, k) is None
        ]
        assert not missing or f.why, (f.measure, missing)


def test_several_models_are_corrected_together_and_told_apart(files, tmp_path):
    flags = (
        "--set",
        "attack.metric=cosine",
        "--set",
        "attack.metric=euclidean",
        "--set",
        "attack.permutations=99",
        "--json",
        tmp_path / "f.json",
        "--set",
        "quiet=true",
    )
    assert run(files, *flags, "--notes", files / "notes.csv", vectors=("v", "v.vec")) == 0
    found = read_findings(tmp_path / "f.json")
    models = {f.labels[0] for f in found}
    assert len(models) == 2 and all("v.vec" not in model for model in models)
    differences = [f for f in found if f.measure == "attack.association_difference"]
    assert len(differences) == 4 and {f.numbers["models"] for f in differences} == {4}
    assert all(f.numbers["p_over_models"] >= f.p for f in differences)


@pytest.mark.parametrize(
    ("flag", "said"),
    [("metric=cosin", "unknown metric 'cosin'"), ("permutations=1", "permutations")],
)
def test_mistakes_are_one_line(files, capfd, flag, said):
    assert run(files, "--set", flag, "--set", "quiet=true") == 2
    err = capfd.readouterr().err
    assert said in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("lies.vec", b"9 2\nann 1 2\n", "has 1 words, but its header says 9"),
        ("short.vec", b"1 3\nann 1 2\n", "2 numbers where 3 are expected"),
        ("nan.vec", b"1 2\nann nan 2\n", "NaN"),
        ("lies.bin", b"900000000 300\nann " + b"\0" * 20, "too short"),
        ("strange.vec", b"2 2\nxaver 1 2\nyolanda 3 4\n", "no name has a vector"),
    ],
)
def test_bad_vectors_are_one_line(files, tmp_path, capfd, name, data, said):
    (tmp_path / name).write_bytes(data)
    common = [
        "--patients",
        files / "patients.parquet",
        "--codes",
        files / "codes.csv",
        "--notes",
        files / "notes.csv",
    ]
    assert (
        main(
            [
                "attack",
                "association",
                str(tmp_path / name),
                *map(str, common),
                "--set",
                "quiet=true",
            ]
        )
        == 3
    )
    err = capfd.readouterr().err
    assert said in err and len(err.strip().splitlines()) == 1
    assert "xaver" not in err


def test_names_and_diagnoses_are_not_in_what_is_printed(files, tmp_path, capfd):
    assert run(files, *QUICK) == 0
    out, err = capfd.readouterr()
    assert not any(word in out + err for word in ("firsta", "lasta", "illnessa"))


def test_imported_vectors_may_hold_any_words(files, tmp_path):
    made = world(np.random.default_rng(1), n=60, m=20)
    words = ["New_York", "don't", *made.vectors.words[2:]]
    save_vectors(Vectors(words, made.vectors.matrix), tmp_path / "v.txt")
    flags = [
        "--patients",
        files / "patients.parquet",
        "--codes",
        files / "codes.csv",
        *QUICK,
        "--set",
        "quiet=true",
    ]
    out = tmp_path / "f.json"
    assert (
        main(
            ["attack", "association", str(tmp_path / "v.txt"), *map(str, flags), "--json", str(out)]
        )
        == 0
    )
    coverage = next(f for f in read_findings(out) if f.measure == "attack.association_coverage")
    assert coverage.numbers["names_without_vector"] == 1 and coverage.value == 59 / 60
