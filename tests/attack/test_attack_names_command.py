"""`clinveil attack names`, run as a user runs it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clinveil.cli import main
from clinveil.core import read_findings
from clinveil.corpus import Patient, write_patients
from clinveil.vectors import Vectors, save_vectors

WORDS = ["pain", "cough", "fever", "tablet", "daily", "chest"]
PEOPLE = [
    ("Zxanna", "Zxdale"),
    ("Zxbob", "Zxelms"),
    ("Zxcid", "Zxford"),
    ("Zxguy", "Zxhill"),
    ("Zxmononym",),
]


@pytest.fixture
def files(tmp_path):
    draw = np.random.default_rng(0)
    places = {word: np.eye(6)[i] * 5 for i, word in enumerate(WORDS)}
    for name in PEOPLE[:4]:
        centre = draw.normal(size=6)
        places |= {token.lower(): centre + 0.05 * draw.normal(size=6) for token in name}
    vectors = Vectors(
        list(places), np.array(list(places.values()), dtype=np.float32), meta={"algorithm": "cbow"}
    )
    save_vectors(vectors, tmp_path / "v")
    save_vectors(vectors, tmp_path / "v.vec")
    (tmp_path / "names.txt").write_text(
        "".join(" ".join(name) + "\n" for name in PEOPLE), encoding="utf-8"
    )
    write_patients(
        [Patient(f"p{i}", name) for i, name in enumerate([*PEOPLE, PEOPLE[0]])],
        tmp_path / "p.parquet",
    )
    return tmp_path


def run(files, *arguments):
    return main(["attack", "names", *(str(a) for a in arguments), "--set", "attack.draws=99"])


def test_a_table_for_people(files, capsys):
    assert (
        run(files, files / "v", "--names", files / "names.txt", "--seed", 3, "--set", "attack.k=4")
        == 0
    )
    out, err = capsys.readouterr()
    assert "seed 3" in out
    assert "seed 3" in err
    assert "1.0000" in out
    assert "re-paired" in out
    assert "1 of 5 names have only one token" in err
    assert "1 of 9 name tokens have no vector" in err
    assert "zx" not in (out + err).lower()  # no name is ever printed


def test_findings_with_chance_interval_and_control_for_every_number(files):
    arguments = (
        files / "v",
        files / "v.vec",
        "--names",
        files / "p.parquet",
        "--seed",
        3,
        "--set",
        "attack.k=4",
    )
    metrics = ("--set", "attack.metric=cosine", "--set", "attack.metric=cityblock")
    assert (
        run(files, *arguments, *metrics, "--json", files / "out.json", "--set", "quiet=true") == 0
    )
    found = read_findings(files / "out.json")
    assert json.loads((files / "out.json").read_text())["seed"] == 3
    measured = [f for f in found if f.value is not None]
    assert all(
        f.chance is not None and f.control is not None and f.low <= f.value <= f.high
        for f in measured
    )
    assert all(f.better == "lower" and f.source for f in found)
    names = [f for f in found if f.measure == "attack.names"]
    assert [(f.labels[1], f.value) for f in names] == [("cosine", 1), ("cityblock", 1)] * 2
    (best,) = [f for f in found if f.measure == "attack.names_best"]
    assert best.numbers["models"] == 4
    patients = next(f for f in found if f.measure == "attack.names_patients")
    assert (patients.value, patients.n) == (
        pytest.approx(5 / 6),
        6,
    )  # two namesakes apart; one has one token
    assert "zx" not in (files / "out.json").read_text().lower()


def test_surrogates_are_ranked_among_the_real_names(files):
    half = [Patient(f"q{i}", name) for i, name in enumerate(PEOPLE[2:4])]
    write_patients(half, files / "s.parquet")
    (files / "real.txt").write_text("Zxanna Zxdale\nZxbob Zxelms\n")
    arguments = (
        files / "v",
        "--names",
        files / "real.txt",
        "--set",
        f"attack.surrogates={files / 's.parquet'}",
        "--set",
        "attack.k=4",
    )
    assert run(files, *arguments, "--json", files / "out.json") == 0
    found = {f.measure: f for f in read_findings(files / "out.json")}
    assert (found["attack.names_leaked"].value, found["attack.names_leaked"].chance) == (0.5, 0.5)
    assert found["attack.names"].value == 0.5  # two of four pairs are real


def test_a_csv_table_of_patients_gives_the_findings_of_the_parquet_file(files):
    rows = "".join(f"p{i},{' '.join(name)}\n" for i, name in enumerate([*PEOPLE, PEOPLE[0]]))
    (files / "p.csv").write_text(f"patient_id,name\n{rows}", encoding="utf-8")
    answers = []
    for name in ("p.parquet", "p.csv"):
        out = files / f"{name}.json"
        assert (
            run(
                files,
                files / "v",
                "--names",
                files / name,
                "--seed",
                3,
                "--set",
                "attack.k=4",
                "--json",
                out,
            )
            == 0
        )
        answers.append(read_findings(out))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("v", "--names", "no.txt"), 3, "no.txt"),
        (("no", "--names", "names.txt"), 3, "no: no vectors at this path"),
        (("v", "--names", "names.txt", "--set", "attack.metric=manhattan"), 2, "unknown metric"),
        (("v",), 2, "--names"),
        (("lie.vec", "--names", "names.txt"), 3, "lie.vec"),
        (("nan.vec", "--names", "names.txt"), 3, "nan.vec"),
        (("v", "--names", "lone.txt"), 3, "name"),
    ],
)
def test_mistakes_are_one_line(files, arguments, code, says, capsys, monkeypatch):
    monkeypatch.chdir(files)
    (files / "lie.vec").write_text("9 2\nzxanna 1 0\nzxdale 1 1\n")
    (files / "nan.vec").write_text("2 2\nzxanna 1 nan\nzxdale 1 1\n")
    (files / "lone.txt").write_text("Zxanna\nZxdale\n")
    assert run(files, *arguments) == code
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert says in last
    assert "zxanna" not in last.lower()
