"""Scoring under networks: probabilities, the same as word by word, whatever stands beside a
note.
"""

from __future__ import annotations

import numpy as np
import pytest
from lm_cases import LSTM, PRETRAINED, VOCABULARY, changed, model_of

from clinveil.lm import END

torch = pytest.importorskip("torch", reason="the extra [neural] is not installed")

SIZE = VOCABULARY.size
MODELS = {
    "lstm": model_of(LSTM, sharpen=0.5),
    "lstm-untied": model_of(changed(layers=1, tied=False, dropout=0.0), sharpen=0.5),
    "pretrained": model_of(PRETRAINED, sharpen=0.4),
}


def long_notes(lengths, seed=0):
    """Notes of so many random tokens, an end the last."""
    rng = np.random.default_rng(seed)
    return [np.append(rng.integers(1, SIZE, n - 1), END).astype(np.int32) for n in lengths]


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
