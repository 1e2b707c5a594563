"""Models and states of trainings in files: there and back, damaged, of others, private, and a full
disk.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import stat

import numpy as np
import pytest
from lm_cases import (
    LSTM,
    PRETRAINED,
    VOCABULARY,
    changed,
    encoded_of,
    model_of,
    training_of,
)

from clinveil.core import InputError
from clinveil.lm import WordVocabulary, train_ngram, train_unigram
from clinveil.lm.vocabulary import digest

torch = pytest.importorskip("torch", reason="the extra [neural] is not installed")
pytest.importorskip("safetensors", reason="the extra [neural] is not installed")
from clinveil.core import seeded  # noqa: E402
from clinveil.lm import load_model, save_model  # noqa: E402
from clinveil.lm.network import (  # noqa: E402
    read_tensors,
    write_tensors,
)
from clinveil.lm.training import save_training  # noqa: E402

MODELS = {
    "lstm": model_of(LSTM),
    "lstm-untied": model_of(changed(tied=False)),
    "pretrained": model_of(PRETRAINED),
    "unigram": train_unigram(encoded_of(), VOCABULARY),
    "ngram": train_ngram(encoded_of(), VOCABULARY),
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture
def saved(tmp_path):
    """Save a model by name; the folder."""

    def save(name):
        folder = tmp_path / name
        save_model(MODELS[name], folder, {"seed": 3, "losses": [1.5]})
        return folder

    return save


def refused(folder, match):
    """Loading fails with one clear line, which holds no word of the vocabulary."""
    with pytest.raises(InputError, match=match) as caught:
        load_model(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 200
    assert "w1" not in message
    assert caught.value.__cause__ is None


@every_model
def test_a_missing_file_is_named(name, saved, tmp_path):
    refused(tmp_path / "nowhere", r"nowhere: has no readable model\.json")
    for path in sorted(saved(name).iterdir()):
        if path.name == "SECRET.txt":
            continue
        kept = path.read_bytes()
        path.unlink()
        refused(path.parent, "no readable|not a file of weights|damaged")
        path.write_bytes(kept)
    load_model(tmp_path / name)


DAMAGE = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "zeros": lambda data: b"\x00" * len(data),
    "ones": lambda data: b"\xff" * len(data),
    "list": lambda data: b"[1, 2]",
    "pickle": lambda data: pickle.dumps({"a": [1, 2]}),
    "zip": lambda data: b"PK\x03\x04" + data,
    "nested": lambda data: b"[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("name", ["unigram", "ngram", "lstm"])
def test_a_damaged_file_is_refused_in_one_line(name, damage, saved):
    for path in sorted(saved(name).iterdir()):
        if path.name == "SECRET.txt":
            continue
        kept = path.read_bytes()
        path.write_bytes(damage(kept))
        refused(
            path.parent,
            "no readable|not a file of weights|not a vocabulary|no language model|counts|damaged",
        )
        path.write_bytes(kept)


def test_a_pickle_in_place_of_counts_is_never_run(saved, tmp_path):
    class Bad:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    folder = saved("unigram")
    for write in (
        lambda: (folder / "counts.npy").write_bytes(pickle.dumps(Bad())),
        lambda: objects(folder, Bad()),
    ):
        write()
        refused(folder, "no readable counts")
        assert not (tmp_path / "ran").exists()


def objects(folder, value):
    np.save(folder / "counts.npy", np.array([value], dtype=object), allow_pickle=True)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.ones(23), "does not contain counts"),
        (np.full(23, -1), "does not contain counts"),
        (np.ones(5, dtype=np.int64), "its hash differs"),
        (np.ones((23, 1), dtype=np.int64), "its hash differs"),
    ],
)
def test_other_numbers_are_no_counts(counts, message, saved):
    folder = saved("unigram")
    np.save(folder / "counts.npy", counts)
    refused(folder, message)


def edited(folder, **values):
    said = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**said, **values}))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("lstm", {"recipe": None}),
        ("lstm", {"recipe": {"kind": "lstm"}}),
        ("lstm", {"recipe": {**LSTM.as_dict(), "width": "x"}}),
        ("lstm", {"recipe": {**LSTM.as_dict(), "width": -1}}),
        ("lstm", {"recipe": {**LSTM.as_dict(), "layers": 10**6}}),
        ("lstm", {"recipe": {**LSTM.as_dict(), "dropout": float("nan")}}),
        ("pretrained", {"recipe": {**PRETRAINED.as_dict(), "dropout": float("nan")}}),
        ("pretrained", {"recipe": {**PRETRAINED.as_dict(), "dropout": 1.0}}),
        ("lstm", {"recipe": {**LSTM.as_dict(), "width": 16}}),
        ("lstm", {"recipe": {**LSTM.as_dict(), "layers": 3}}),
        ("lstm", {"recipe": PRETRAINED.as_dict()}),
        ("lstm", {"about": [1]}),
        ("lstm", {"schema": "clinveil.model/99"}),
        ("lstm", {"kind": "unigram"}),
        ("lstm", {"kind": "pretrained"}),
        ("unigram", {"kind": "lstm"}),
    ],
)
def test_a_model_file_that_says_something_else_is_refused(name, values, saved):
    folder = saved(name)
    edited(folder, **values)
    refused(folder, "recipe|weights|counts|no language model")


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("lstm", "model.safetensors", "hash differs"),
        ("pretrained", "model.safetensors", "hash differs"),
        ("unigram", "counts.npy", r"counts\.npy is damaged"),
    ],
)
def test_one_flipped_bit_in_the_weights_is_found(name, file, message, saved):
    folder = saved(name)
    path = folder / file
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    refused(folder, message)


def test_weights_of_another_type_are_refused(saved):
    """Written by us with a true digest, and still no weights of this model."""
    from clinveil.lm.network import read_tensors

    folder = saved("lstm")
    tensors, about = read_tensors(folder / "model.safetensors")
    write_tensors(folder / "model.safetensors", {k: v.int() for k, v in tensors.items()}, about)
    refused(folder, "to another model")


@every_model
def test_another_vocabulary_is_refused(name, saved):
    folder = saved(name)
    other = WordVocabulary([*VOCABULARY.words[4:], "new"])
    (folder / "vocabulary.json").write_text(json.dumps(other.as_dict()))
    refused(folder, "vocabulary is not the one")


def test_weights_of_another_vocabulary_are_refused(saved):
    """All of the same size: only the hash tells them apart."""
    folder = saved("lstm")
    other = WordVocabulary(VOCABULARY.words[3:][::-1])
    (folder / "vocabulary.json").write_text(json.dumps(other.as_dict()))
    edited(folder, vocabulary_sha256=digest(other))
    refused(folder, "weights belong to another vocabulary")


def full_disk(monkeypatch):
    """No byte more can be written: every way of writing fails as on a full disk."""
    from pathlib import Path

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr("clinveil.core.files.write_array", full)


@pytest.mark.parametrize("name", ["lstm", "unigram"])
def test_a_full_disk_leaves_the_old_model_whole(name, saved, monkeypatch):
    folder = saved(name)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with monkeypatch.context() as patched:
        full_disk(patched)
        with pytest.raises(OSError, match="No space"):
            save_model(MODELS[name], folder, {"other": 1})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    load_model(folder)


def test_a_full_disk_leaves_the_old_state_whole(tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    with seeded(0):
        training = training_of(changed(optimizer="adamw", rate=1e-2))
        training.fit(2)
        save_training(training, path, "me")
        before = path.read_bytes()
        training.fit(4)
        with monkeypatch.context() as patched:
            full_disk(patched)
            with pytest.raises(OSError, match="No space"):
                save_training(training, path, "me")
        assert path.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir()] == ["state.safetensors"]
        save_training(training, path, "me")
    assert path.read_bytes() != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_safetensors_of_others_are_refused(tmp_path):
    from safetensors.torch import save

    (tmp_path / "a").write_bytes(save({"a": torch.ones(2)}))
    (tmp_path / "b").write_bytes(save({"a": torch.ones(2)}, {"format": "pt"}))
    for name in ("a", "b"):
        with pytest.raises(InputError, match="not a file of weights"):
            read_tensors(tmp_path / name)
