"""Synthetic releases by a public model that was trained further: columns, floor, names known
before, and refusals.
"""

from __future__ import annotations

import json
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import words
from clinveil.corpus import open_corpus
from public_model import saved_public_model

pytest.importorskip("torch")
pytest.importorskip("transformers")

WORDS = {"chest": ["cough", "wheeze", "sputum"], "skin": ["rash", "itching", "dry"]}
NAMES = ["Anna Berg", "Carl Dorn", "Emma Falk", "Georg Hahn", "Ida Jung", "Karl Lang"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with notes of 60 patients, a public model that knows the names, and a list of
    patients.
    """
    folder = tmp_path_factory.mktemp("desk")
    rng = np.random.default_rng(1)
    lines = ["note_id,patient_id,type,text"]
    for i in range(60):
        kind = list(WORDS)[i % 2]
        own = " ".join(
            rng.choice(["the", "patient", "has", "fever", "since", "Monday", *WORDS[kind]], 30)
        )
        lines.append(
            f'n{i},p{i},{kind},"HISTORY:\n{own} own{chr(97 + i % 26)}{chr(97 + i // 26)}. Dose'
            f' {i % 3}."'
        )
    (folder / "notes.csv").write_text("\n".join(lines) + "\n")
    (folder / "public").mkdir()
    saved_public_model(folder / "public", [*lines, *(f"Name: {name}" for name in NAMES)])
    columns = {"patient_id": [f"p{i}" for i in range(6)], "name": NAMES}
    pq.write_table(pa.table(columns), folder / "patients.parquet")
    return folder


SMALL = [
    "lm.window=16",
    "lm.lanes=8",
    "lm.epochs=1",
    "synthetic.count=8",
    "synthetic.longest=30",
    "phi=false",
]


def released(desk, out, *sets, init="public"):
    given = [*SMALL, *sets, *([f"synthetic.init={desk / init}"] if init else [])]
    line = shlex.split(f"release {desk / 'notes.csv'} -o {desk / out} --as synthetic --label type")
    line += ["--patients", str(desk / "patients.parquet"), "--seed", "1", "--workers", "1"]
    return main([*line, *(word for item in given for word in ("--set", item))])


def test_a_release_has_labels_shared_words_and_a_figure_on_known_names(desk):
    assert released(desk, "out") == 4  # a test seed never leaves
    vault = desk / "out/vault"
    corpus = open_corpus(vault / "refused/notes.csv", label=("type",))
    rows = [row for batch in corpus.batches() for row in batch.to_pylist()]
    assert len(rows) == 8 and {row["type"] for row in rows} <= set(WORDS)
    shared = {
        "history",
        "dose",
        "type",
        "chest",
        "skin",
        "the",
        "patient",
        "has",
        "fever",
        "since",
        "monday",
        *WORDS["chest"],
        *WORDS["skin"],
    }
    assert {word for row in rows for word in words(row["text"])} <= shared
    manifest = json.loads((vault / "manifest.json").read_text())
    found = [one for one in manifest["findings"] if one["measure"] == "release.public_names"]
    assert (
        len(found) == 1
        and found[0]["n"] == 6
        and found[0]["chance"] == 0.5
        and found[0]["numbers"]["bits"] > 0
    )
    recipe = json.loads((vault / "model/model.json").read_text())["recipe"]
    assert recipe["kind"] == "pretrained" and recipe["rank"] == 16 and len(recipe["origin"]) == 64


@pytest.mark.parametrize(("init", "sets", "code", "message"), [
    ("public", ["lm.model=lstm"], 2, "require each other"),
    ("", ["lm.model=pretrained"], 2, "require each other"),
    ("absent", [], 3, "is not a folder"),
    ("", ["synthetic.init=smollm2"], 6, "smollm2"),
])  # fmt: skip
def test_refusals_are_one_line_and_write_nothing(
    desk, capsys, monkeypatch, init, sets, code, message
):
    monkeypatch.setattr(
        "clinveil.lm.pretrained.find_spec", lambda name: None if name == "gguf" else object()
    )
    assert released(desk, "never", *sets, init=init) == code
    assert message in capsys.readouterr().err and not (desk / "never").exists()
