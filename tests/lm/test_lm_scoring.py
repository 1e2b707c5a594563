"""Scoring under networks: probabilities, the same as word by word, whatever stands beside a
note.
"""

from __future__ import annotations

import numpy as np
import pytest
from lm_cases import LSTM, PRETRAINED, VOCABULARY, changed, model_of

from clinveil.lm import END

torch = pytest.importorskip("torch", reason="the extra [neural] is not installed")
from clinveil.lm.network import LANES, PIECE  # noqa: E402

SIZE = VOCABULARY.size
MODELS = {
    "lstm": model_of(LSTM, sharpen=0.5),
    "lstm-untied": model_of(changed(layers=1, tied=False, dropout=0.0), sharpen=0.5),
    "pretrained": model_of(PRETRAINED, sharpen=0.4),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def long_notes(lengths, seed=0):
    """Notes of so many random tokens, an end the last."""
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
def test_probabilities_of_the_whole_vocabulary_add_up_to_1(model):
    for prefix in ([], [4], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]):
        notes = [np.array([*prefix, word], dtype=np.int32) for word in range(SIZE)]
        chances = np.exp([logs[-1] for logs in model.score(notes)])
        assert chances.sum() == pytest.approx(1, abs=1e-5)
        assert chances.min() > 0
        assert chances.max() > 1.5 / SIZE  # or the test would not tell a word from another


@every_model
def test_scores_are_those_of_the_stream(model):
    for note in long_notes([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 25, 40, PIECE + 7]):
        (logs,) = model.score([note])
        assert logs == pytest.approx(by_stream(model, note), abs=1e-5)


@every_model
def test_what_stands_beside_a_note_does_not_change_it(model):
    notes = long_notes(np.random.default_rng(1).integers(1, 50, 2 * LANES + 5))
    together = model.score(notes)
    assert [logs.size for logs in together] == [note.size for note in notes]
    for note, logs in zip(notes, together, strict=True):
        assert logs == pytest.approx(model.score([note])[0], abs=1e-5)
    backwards = model.score(notes[::-1])[::-1]
    for one, other in zip(together, backwards, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


@every_model
def test_the_same_call_gives_the_same_bits(model):
    notes = long_notes([30, 3, 17])
    model.network.train()  # scoring turns dropout off itself
    first = model.score(notes)
    assert all((one == other).all() for one, other in zip(first, model.score(notes), strict=True))
    assert first[0].dtype == np.float64


@every_model
def test_a_score_sees_all_of_the_past_and_nothing_of_the_future(model):
    note = long_notes([20])[0]
    other = note.copy()
    other[10] = note[10] % (SIZE - 1) + 1
    one = model.score([note])[0]
    two = model.score([other])[0]
    assert one[:10] == pytest.approx(two[:10], abs=1e-6)
    assert abs(one[11] - two[11]) > 1e-4


def test_a_lane_begun_anew_is_a_new_lane():
    for model in MODELS.values():
        stream = model.stream(3)
        fresh = stream.probabilities()
        assert fresh.sum(axis=1) == pytest.approx(1, abs=1e-12)
        for token in (3, 7, 2, 9, 11, 4, 5):
            stream.push(np.array([token, token, token + 1], dtype=np.int64))
        before = stream.probabilities()
        stream.reset(np.array([1]))
        after = stream.probabilities()
        assert after[1] == pytest.approx(fresh[1], abs=1e-7)
        assert after[[0, 2]] == pytest.approx(before[[0, 2]], abs=1e-7)
        stream.reset(np.array([], dtype=np.int64))
        assert (stream.probabilities() == after).all()
        stream.push(np.array([5, 5, 5], dtype=np.int64))
        own = model.stream(1)
        own.push(np.array([5], dtype=np.int64))
        assert stream.probabilities()[1] == pytest.approx(own.probabilities()[0], abs=1e-6)


def test_a_note_longer_than_a_window_is_scored_in_windows_that_overlap_by_half(monkeypatch):
    """Every token after the first half has at least half a window of context, and no more than
    one.
    """
    model = MODELS["pretrained"]
    monkeypatch.setattr(type(model.network), "shortest", 8)
    note = long_notes([30])[0]
    pieces = model.score([note])[0]
    for start in range(0, 27, 4):
        alone = model.network.log_probabilities(
            torch.tensor([END, *note[:-1]])[start : start + 8, None],
            torch.tensor(note.astype(np.int64))[start : start + 8, None],
        )
        skip = 4 if start else 0
        window = alone[skip:, 0].detach().numpy()
        assert pieces[start + skip : start + 8] == pytest.approx(window, abs=1e-5)


def test_notes_in_one_row_do_not_see_each_other():
    """The second note of a packed row has the hidden values that it has alone, up to rounding."""
    network = model_of(changed(PRETRAINED, window=12), sharpen=0.5).network.eval()
    first = [0, 5, 6, 7]
    second = [0, 8, 9, 10, 11]
    with torch.inference_mode():
        both = network(torch.tensor([*first, *second])[:, None], ())[0]
        alone = network(torch.tensor(second)[:, None], ())[0]
    assert torch.allclose(both[len(first) :], alone, atol=1e-5)
