"""What every language model promises: probabilities, scores of the past alone, and files."""

from __future__ import annotations

import os
import stat
from copy import deepcopy
from functools import cache
from itertools import islice

import numpy as np
import pytest
from lm_cases import LSTM, PRETRAINED, VOCABULARY, changed, encoded_of, model_of, same, texts_of

from clinveil.core import Key
from clinveil.lm import END, SamplingConfig, generate, train_ngram, train_unigram
from clinveil.lm.vocabulary import digest, train_byte_pairs

pytest.importorskip("torch", reason="the extra [neural] is not installed")
pytest.importorskip("safetensors", reason="the extra [neural] is not installed")
from clinveil.core import seeded
from clinveil.lm import NeuralModel, build, load_model, save_model
from clinveil.lm.network import LANES, PIECE

MODELS = {
    "unigram": lambda: train_unigram(encoded_of(), VOCABULARY),
    "ngram": lambda: train_ngram(encoded_of(), VOCABULARY),
    "lstm": lambda: model_of(LSTM, sharpen=0.5),
    "lstm-untied": lambda: model_of(changed(layers=1, tied=False, dropout=0.0), sharpen=0.5),
    "pretrained": lambda: model_of(PRETRAINED, sharpen=0.4),
}
FILES = {"unigram": "counts.npy", "ngram": "ngrams.npz"}
SIZE = VOCABULARY.size
every_model = pytest.mark.parametrize("name", MODELS)


@cache
def model_named(name):
    """A trained model; no test changes it."""
    return MODELS[name]()


def notes_of(lengths, seed=0):
    """Notes of these numbers of random tokens, an end the last."""
    rng = np.random.default_rng(seed)
    return [np.append(rng.integers(1, SIZE, n - 1), END).astype(np.int32) for n in lengths]


def by_stream(model, note):
    """Log-probabilities of a note, word by word, from a stream of one lane."""
    stream = model.stream(1)
    logs = []
    for token in note:
        logs.append(np.log(stream.probabilities()[0, token]))
        stream.push(np.array([token], dtype=np.int64))
    return np.array(logs)


@every_model
def test_probabilities_of_the_whole_vocabulary_add_up_to_1(name):
    for prefix in ([], [4], [22, 22, 1, 2], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]):
        notes = [np.array([*prefix, word], dtype=np.int32) for word in range(SIZE)]
        chances = np.exp([logs[-1] for logs in model_named(name).score(notes)])
        assert chances.sum() == pytest.approx(1, abs=1e-5)
        assert chances.min() > 0
        assert chances.max() > 1.5 / SIZE  # or the test would not tell a word from another


@every_model
def test_scores_are_those_of_the_stream(name):
    model = model_named(name)
    for note in notes_of([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 25, 40, PIECE + 7]):
        (logs,) = model.score([note])
        assert logs.dtype == np.float64
        assert logs == pytest.approx(by_stream(model, note), abs=1e-5)


@every_model
def test_the_other_notes_of_a_call_and_their_order_do_not_change_a_score(name):
    model = model_named(name)
    notes = notes_of(np.random.default_rng(1).integers(1, 50, 2 * LANES + 5))
    together = model.score(notes)
    backwards = model.score(notes[::-1])[::-1]
    for note, logs, again in zip(notes, together, backwards, strict=True):
        assert logs.size == note.size
        assert logs == pytest.approx(model.score([note])[0], abs=1e-5)
        assert logs == pytest.approx(again, abs=1e-5)
    assert model.score([]) == []


@every_model
def test_the_same_call_gives_the_same_bits(name):
    model = deepcopy(model_named(name))
    notes = notes_of([30, 3, 17])
    if isinstance(model, NeuralModel):
        model.network.train()  # scoring turns dropout off itself
    first = model.score(notes)
    assert all((one == other).all() for one, other in zip(first, model.score(notes), strict=True))


@every_model
def test_a_score_depends_on_all_of_the_past_and_on_nothing_of_the_future(name):
    note = notes_of([20])[0]
    other = note.copy()
    other[10] = note[10] % (SIZE - 1) + 1
    one, two = (model_named(name).score([text])[0] for text in (note, other))
    assert one[:10] == pytest.approx(two[:10], abs=1e-6)
    assert (abs(one[11] - two[11]) > 1e-4) == (name != "unigram")


@every_model
def test_a_written_note_is_the_same_for_any_batch_size(name):
    model = deepcopy(model_named(name))
    if isinstance(model, NeuralModel):
        model.network.double()

    def written(batch_size, key=5, first=0):
        config = SamplingConfig(batch_size, 40)
        notes = islice(generate(model, Key.from_seed(key), config, first=first), 20 - first)
        return [(note.number, note.ids.tolist(), note.truncated) for note in notes]

    expected = written(1)
    assert written(3) == written(16) == expected
    assert written(5, first=13) == expected[13:]
    assert [number for number, _, _ in expected] == list(range(20))
    assert len({tuple(ids) for _, ids, _ in expected}) > 10
    assert written(3, key=6) != expected


@every_model
def test_a_saved_model_is_private_and_reads_back(name, tmp_path):
    model = model_named(name)
    before = os.umask(0o022)
    try:
        save_model(model, tmp_path / "m", {"seed": 3, "losses": [1.5]})
    finally:
        os.umask(before)
    files = {path.name: path for path in (tmp_path / "m").iterdir()}
    weights = FILES.get(name, "model.safetensors")
    assert set(files) == {"SECRET.txt", "model.json", "vocabulary.json", weights}
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    assert not any(b"torch._utils" in path.read_bytes() for path in files.values())
    back, about = load_model(tmp_path / "m")
    assert about == {"seed": 3, "losses": [1.5]}
    assert back.kind == name.partition("-")[0]
    assert back.vocabulary.as_dict() == VOCABULARY.as_dict()
    notes = notes_of([9, 1, 30])
    for one, other in zip(back.score(notes), model.score(notes), strict=True):
        assert (one == other).all()
    if isinstance(model, NeuralModel):
        assert same(back.network.state_dict(), model.network.state_dict())
        assert back.network.recipe == model.network.recipe
        assert (back.network.input is back.network.output) == model.network.recipe.tied


def test_byte_pairs_are_saved_with_their_model(tmp_path):
    vocabulary = train_byte_pairs(texts_of(4), 300)
    with seeded(0):
        model = NeuralModel(vocabulary, build(vocabulary.size, LSTM))
    save_model(model, tmp_path / "m", {})
    back, _ = load_model(tmp_path / "m")
    assert digest(back.vocabulary) == digest(vocabulary)
    note = vocabulary.encode("naïve 🩺")
    assert (back.score([note])[0] == model.score([note])[0]).all()
