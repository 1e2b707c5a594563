"""Two-sample test: real notes pass as real, words in independent order do not, and lost line breaks
are noticed.
"""

from __future__ import annotations

import numpy as np

from clinveil.utility import Texts, two_sample

PARTS = [
    "fever and cough",
    "no chest pain",
    "blood pressure 120/80",
    "takes aspirin daily",
    "was seen in clinic",
]


def notes(n, seed, between="\n"):
    rng = np.random.default_rng(seed)
    return [between.join(rng.choice(PARTS, 12)) for _ in range(n)]


def found(released):
    real = notes(160, 1)
    owner = np.full(len(released), -1)
    ids = [str(i) for i in range(len(real))]
    return {
        f.labels[0]: f
        for f in two_sample(Texts(ids, ids, real, released, owner, 0), np.random.default_rng(0))
    }


def test_real_notes_are_not_told_apart_and_flat_ones_are():
    same = found(notes(160, 2))
    flat = found(notes(160, 3, " "))
    for finding in same.values():
        assert finding.numbers["low_score"] < 0.6 and finding.low < finding.value < finding.high
    assert same["word trigrams"].scores.floor > 0.99 and same["word trigrams"].value > 0.7
    assert flat["layout"].scores.score > 0.99 > flat["words"].scores.score
