"""Classifiers: several labels, the side that they learn from, the command, and a new entry."""

from __future__ import annotations

import csv
import json
import shlex

import numpy as np
import pytest

from clinveil.cli import main
from clinveil.core import UsageError
from clinveil.releases import ReleaseSettings
from clinveil.utility import (
    CLASSIFIERS,
    ClassifiedNotes,
    Classifier,
    Predictions,
    TrainTestTexts,
    parts_of,
    predict,
)
from clinveil.utility.scores import score

OWN = {"heart": ["cardiac", "murmur"], "lung": ["wheeze", "lobe"], "skin": ["rash", "itch"]}
SHARED = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]


def labelled(n=180, several=False, seed=0):
    rng = np.random.default_rng(seed)
    classes = tuple(sorted(OWN))
    targets = rng.integers(3, size=n)
    table = np.zeros((n, 3), dtype=bool)
    table[np.arange(n), targets] = True
    if several:
        table |= rng.random((n, 3)) < 0.2
    texts = []
    for row in table:
        own = [
            rng.choice(OWN[name])
            for name, has in zip(classes, row, strict=True)
            if has
            for _ in range(2)
        ]
        texts.append(" ".join(rng.permutation([*own, *rng.choice(SHARED, 10)])))
    ids = [f"n{i}" for i in range(n)]
    return ClassifiedNotes(ids, ids, texts, classes, table if several else targets, "organ", {})


@pytest.mark.parametrize("model", ["lr", "svm"])
def test_several_labels(model):
    notes = labelled(several=True, n=240)
    parts = parts_of(notes, np.random.default_rng(1))
    found = predict(model, notes, parts, 7)
    assert found.test.shape == (len(parts.test), 3)
    assert score("micro_f1", notes.targets[parts.test], found.test) > 0.8
    assert 0 < found.chosen["threshold"] < 1


def test_transfers_use_the_side_that_they_are_told():
    """Trained on plain text, tested on text in which every class has the words of the next one."""
    notes = labelled()
    parts = parts_of(notes, np.random.default_rng(1))
    names = sorted(OWN)
    swap = {
        w: OWN[names[(i + 1) % 3]][k]
        for i, name in enumerate(names)
        for k, w in enumerate(OWN[name])
    }
    swapped = [" ".join(swap.get(word, word) for word in text.split()) for text in notes.texts]
    found = predict("lr", notes, parts, 1, TrainTestTexts(notes.texts, swapped))
    assert score("accuracy", (notes.targets[parts.test] + 1) % 3, found.test) > 0.9


def test_the_test_notes_text_is_never_learnt_from():
    notes = labelled()
    parts = parts_of(notes, np.random.default_rng(1))
    other = [
        text if i not in set(parts.test.tolist()) else "nothing of this"
        for i, text in enumerate(notes.texts)
    ]
    one = predict("lr", notes, parts, 1, TrainTestTexts(other, notes.texts))
    assert np.array_equal(one.test, predict("lr", notes, parts, 1).test)


def test_unknown_models():
    notes = labelled(60)
    parts = parts_of(notes, np.random.default_rng(1))
    with pytest.raises(UsageError, match="unknown classifier 'bert'"):
        predict("bert", notes, parts, 1)


def test_a_new_classifier_is_one_entry(files, capsys, monkeypatch):
    """Seen in the help, in what a release may be told, and in the findings."""

    class First(Classifier):
        def __call__(self, job):
            return Predictions(np.zeros(len(job.parts.test), dtype=np.int64))

    monkeypatch.setitem(CLASSIFIERS.paths, "first", "")
    monkeypatch.setitem(CLASSIFIERS._loaded, "first", First())
    assert CLASSIFIERS.names() == ("lr", "svm", "tfidf-lr", "first")
    arguments = shlex.split(
        f"evaluate classification {files / 'original.csv'} --label organ"
        " --set training.min_class=10"
    )
    assert main([*arguments, "--classifier", "first", "--json", "-"]) == 0
    assert {f["labels"][-2] for f in json.loads(capsys.readouterr().out)["findings"]} == {"first"}
    assert ReleaseSettings(model=("first",)).model == ("first",)


@pytest.fixture
def files(tmp_path):
    notes = labelled()
    names = [notes.classes[i] for i in notes.targets]
    for name, texts in (("original", notes.texts), ("released", [t[::-1] for t in notes.texts])):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["note_id", "text", "organ"])
            writer.writerows(zip(notes.note_ids, texts, names, strict=True))
    return tmp_path


def test_command(files, capsys):
    arguments = [
        "evaluate",
        "classification",
        str(files / "original.csv"),
        str(files / "released.csv"),
    ]
    arguments += shlex.split(
        "--label organ --set training.min_class=10 --seed 1 --classifier lr --classifier svm"
    )
    assert main([*arguments, "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)["findings"]
    assert len(said) == 12
    assert said[0]["labels"][-2] == "lr"
    assert said[2]["measure"] == "utility.classification_loss"
    assert abs(said[2]["value"]) < 0.1
    assert main(arguments) == 0
    assert "classification loss" in capsys.readouterr().out


def test_command_on_the_original_alone(files, capsys):
    arguments = shlex.split(
        f"evaluate classification {files / 'original.csv'} --label organ"
        " --set training.min_class=10"
    )
    assert main([*arguments, "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)["findings"]
    assert {f["series"] for f in said} == {"original notes"}


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--label", "organ", "--classifier", "bert"], 2, "model: one of lr, svm"),
        ([], 2, "--label"),
        (["--label", "kind"], 3, "kind"),
        (["--label", "organ", "--set", "training.min_class=100"], 3, "two are required"),
        (["--label", "organ", "--vault", "nowhere"], 3, "crosswalk"),
    ],
)
def test_bad_input_is_one_line(files, capsys, more, code, message):
    assert (
        main(
            [
                "evaluate",
                "classification",
                str(files / "original.csv"),
                str(files / "released.csv"),
                *more,
            ]
        )
        == code
    )
    said = capsys.readouterr().err.strip().split("\n")
    assert len(said) == 1
    assert message in said[0]
