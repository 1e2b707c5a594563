"""Memory: a patient whose note was repeated 100 times is noticed under an LSTM, and nobody is
without repetition.
"""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.attacks import remembered
from clinveil.lm import Conditions, ModelSettings, PlainNotes, encode, train_layout, train_model

pytest.importorskip("torch")
WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeio" for c in "nrst"]


def notes(n, seed, name):
    rng = np.random.default_rng(seed)
    texts = tuple("History: " + " ".join(rng.choice(WORDS, 30)) + "." for _ in range(n))
    ids = tuple(f"{name}{i}" for i in range(n))
    return PlainNotes(texts, ids, ids, (0,) * n)


@pytest.mark.parametrize("times", [0, 100])
def test_only_a_repeated_patient_is_remembered(times):
    training = notes(40, 1, "t")
    held_out = notes(8, 2, "h")
    first = training.rows([0] * times)
    training = PlainNotes(
        training.texts + first.texts,
        tuple(map(str, range(40 + times))),
        training.patients + first.patients,
        (0,) * (40 + times),
    )
    vocabulary = train_layout(training.texts, training.patients, 5)
    encoded = encode(training.texts, vocabulary, Conditions.of(training, 5))
    how = ModelSettings(model="lstm", size="tiny", width=32, epochs=3, lanes=4, window=20)
    model, _ = train_model(encoded, vocabulary, how, seed=1)
    found = remembered(model, encoded, training, held_out)
    assert (found.count, found.n) == (min(times, 1), 40)
    assert (found.numbers["most"] > 2 * found.numbers["limit"]) == (times > 0)
