"""`train_on_notes`: a site's own tagger from its notes and gold spans."""

from __future__ import annotations

import json

import pytest

from clinveil.cli import main
from clinveil.core import InputError, UsageError
from clinveil.corpus import read_spans, write_demo
from clinveil.phi import load_tagger
from tagger_training.site import TrainSettings, train_on_notes


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train") / "demo"
    write_demo(folder, 10, 5)
    return folder


@pytest.fixture(scope="module")
def model(demo, tmp_path_factory):
    """A model trained on the demo."""
    path = tmp_path_factory.mktemp("model") / "m.npz"
    how = TrainSettings(invented=20, iterations=15)
    train_on_notes(
        demo / "notes.parquet", demo / "spans.jsonl", path, how, seed=3, say=lambda line: None
    )
    return path


def train(demo, out, gold=None, **how):
    how = TrainSettings(invented=5, iterations=2, **how)
    return train_on_notes(
        demo / "notes.parquet",
        gold or demo / "spans.jsonl",
        out,
        how,
        seed=1,
        say=lambda line: None,
    )


def test_a_site_makes_its_own_and_uses_it(demo, model, tmp_path):
    card = load_tagger(model).card
    assert card["tuned_found"] > 0.7 * card["tuned_places"] > 0
    assert model.stat().st_mode & 0o777 == 0o600
    arguments = [
        demo / "notes.parquet",
        "-o",
        tmp_path / "out.parquet",
        "--set",
        f"identifiers.tagger={model}",
        "--workers",
        1,
    ]
    assert main(["deidentify", *map(str, arguments), "-q"]) == 0
    record = json.loads((tmp_path / "out.parquet.vault" / "deidentify.json").read_text())
    assert "tagger" in record["spans_by_detector"]


def test_an_existing_model_is_not_replaced(demo, model):
    before = model.read_bytes()
    with pytest.raises(UsageError):
        train(demo, model)
    assert model.read_bytes() == before


def test_other_labels_can_be_learnt(demo, tmp_path):
    labels = train(demo, tmp_path / "m.npz", kind=("HOSPITAL", "NAME")).labels
    assert labels == ("O", "B-HOSPITAL", "I-HOSPITAL", "B-NAME", "I-NAME")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"note_id": "nobody", "start": 0, "end": 2, "label": "NAME"}, "not among the notes"),
        ({"note_id": "", "start": 0, "end": 999_999, "label": "NAME"}, "ends at 999999"),
        ({"note_id": "", "start": 5, "end": 5, "label": "NAME"}, "line 1"),
        ({"note_id": "", "start": 0, "end": 2, "label": "PERSONNE"}, "line 1"),
        ({"note_id": "", "start": "0", "end": 2, "label": "NAME"}, "line 1"),
        ([], "line 1"),
    ],
)
def test_gold_that_does_not_fit_gives_one_clear_line(demo, tmp_path, line, why):
    known = next(iter(read_spans(demo / "spans.jsonl").marks))
    line = {**line, "note_id": line["note_id"] or known} if line else line
    (tmp_path / "gold.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match=why) as caught:
        train(demo, tmp_path / "m.npz", tmp_path / "gold.jsonl")
    assert known not in str(caught.value)
    assert not (tmp_path / "m.npz").exists()


def test_too_few_patients_and_unknown_labels_are_refused(demo, tmp_path):
    write_demo(tmp_path / "few", 3, 5)
    with pytest.raises(InputError, match="too few"):
        train(tmp_path / "few", tmp_path / "m.npz")
    with pytest.raises(UsageError, match="unknown PHI label"):
        train(demo, tmp_path / "m.npz", kind=("PERSON",))
    with pytest.raises(UsageError):
        train(demo, demo / "spans.jsonl")
