"""Decipherment: a substitution cipher is learnt from scratch, a scattered release is not."""

from __future__ import annotations

import numpy as np
import pytest
from outsider_scenes import blind, class_scene, scattered
from scenes import channel_of, language, right, seen, written

from clinveil.attacks.adversaries import decipher as module
from clinveil.attacks.adversary import AdversaryView, adversaries

decipher = adversaries.get("decipher")


def cipher(seed, n_words=40):
    rng = np.random.default_rng(seed)
    after = language(n_words, rng)
    code = rng.permutation(n_words)
    channel = channel_of([[y] for y in code])
    notes = [seen(channel, written(after, 100, rng), i, rng) for i in range(40)]
    return AdversaryView(
        channel, notes, [n.outputs for n in notes], [written(after, 100, rng) for _ in range(100)]
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_substitution_cipher_is_learnt_from_ranks_alone(seed, monkeypatch):
    view = cipher(seed)
    monkeypatch.setattr(module, "ROUNDS", 30)
    monkeypatch.setattr(module, "MOST", 40)
    monkeypatch.setattr(module, "WORDS", 30_000)
    found = right(decipher(vectors=False).recover(view, np.random.default_rng(0)), view)
    assert found > 0.9


def test_own_vectors_and_context_read_words_of_classes():
    view = class_scene()
    assert right(decipher().recover(view, np.random.default_rng(0)), view) > 3 * blind(view)


def test_nothing_is_learnt_of_a_scattered_release():
    view = scattered(class_scene(), np.random.default_rng(1))
    assert right(decipher().recover(view, np.random.default_rng(0)), view) < blind(view) + 0.03
