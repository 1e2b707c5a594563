"""Decipherment: forward-backward equals enumeration, a substitution cipher is learnt, a scattered release is not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from outsider_scenes import blind, class_scene, scattered
from scenes import channel_of, language, right, seen, written

from clinveil.attacks.reader import Scene, readers
from clinveil.attacks.readers._context import Pairs, beliefs
from clinveil.attacks.readers._tables import Table

decipher = readers.get("decipher")


def test_beliefs_equal_enumeration():
    rng = np.random.default_rng(0)
    n_words, outputs = 6, np.array([2, 0, 5, 2, 1])
    pairs = Pairs.of([rng.integers(0, n_words + 1, 30) for _ in range(5)], n_words)
    candidates = [np.sort(rng.choice(n_words, 3, replace=False)) for _ in range(n_words)]
    table = Table(np.arange(n_words + 1) * 3, np.concatenate(candidates), rng.random(3 * n_words))
    after = np.zeros((n_words, n_words))
    for before in range(n_words):
        place = slice(pairs.starts[before], pairs.starts[before + 1])
        after[before, pairs.words[place]] = pairs.chances[place]
        after[before] += pairs.left[before] * pairs.single
    assert np.allclose(after.sum(axis=1), 1)
    total, marginal = 0.0, np.zeros((outputs.size, n_words))
    for line in product(*(candidates[y] for y in outputs)):
        chance = pairs.single[line[0]]
        for t, (x, y) in enumerate(zip(line, outputs, strict=True)):
            chance *= table.chances[3 * y + np.searchsorted(candidates[y], x)] * (after[line[t - 1], x] if t else 1)
        total += chance
        marginal[np.arange(outputs.size), line] += chance
    begin, chances, fit = beliefs(pairs, table, table.chances, outputs)
    for t, y in enumerate(outputs):
        assert np.allclose(chances[begin[t] : begin[t + 1]], marginal[t, candidates[y]] / total)
    assert fit == pytest.approx(np.log(total))


def cipher(seed, n_words=40):
    rng = np.random.default_rng(seed)
    after, code = language(n_words, rng), rng.permutation(n_words)
    channel = channel_of([[y] for y in code])
    notes = [seen(channel, written(after, 100, rng), i, rng) for i in range(40)]
    return Scene(channel, notes, [n.outputs for n in notes], [written(after, 100, rng) for _ in range(100)])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_substitution_cipher_is_learnt_from_ranks_alone(seed):
    scene = cipher(seed)
    found = right(decipher(rounds=30, candidates=40, vectors=False).read(scene, np.random.default_rng(0)), scene)
    assert found > 0.9


def test_own_vectors_and_context_read_words_of_classes():
    scene = class_scene()
    assert right(decipher().read(scene, np.random.default_rng(0)), scene) > 3 * blind(scene)


def test_nothing_is_learnt_of_a_scattered_release():
    scene = scattered(class_scene(), np.random.default_rng(1))
    assert right(decipher().read(scene, np.random.default_rng(0)), scene) < blind(scene) + 0.03
