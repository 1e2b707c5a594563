"""Rare words told by presence of outputs: certain where every word has one of its own, chance where all share them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from outsider_scenes import scattered
from scenes import channel_of, random_channel, seen
from test_memo_links import context_of

from clinveil.attacks.adversary import AdversaryView
from clinveil.attacks.channel.vocabulary import Vocabulary, vocabulary
from clinveil.vectors.count import count_words

rng = np.random.default_rng


def scene_of(channel, n_words=300, notes=80, length=60):
    draw = rng(0)
    share = 1 / np.arange(1, n_words + 1)
    plain = [draw.choice(n_words, length, p=share / share.sum()) for _ in range(notes)]
    there = [seen(channel, note, i // 2, draw) for i, note in enumerate(plain)]
    return AdversaryView(
        channel, there, [n.outputs for n in there], counts=np.bincount(np.concatenate(plain), minlength=n_words)
    )


def test_outputs_of_ones_own_tell_all():
    found = vocabulary(scene_of(channel_of([[i] for i in range(300)])), rng(1))
    assert found.value == 1.0 and abs(found.control - 0.5) < 0.05 and found.n > 100


def test_neighbours_tell_much_and_one_common_output_nothing():
    many = vocabulary(scene_of(random_channel(300, 6, rng(2))), rng(1))
    assert many.low > 0.6 and many.low < many.value < many.high
    alike = vocabulary(scene_of(channel_of([[0, 1]] * 300)), rng(1))
    assert abs(alike.value - 0.5) < 0.07


def test_the_order_of_a_note_is_of_no_use():
    there = scene_of(random_channel(300, 6, rng(2)))
    turned = replace(there, notes=[replace(n, outputs=n.outputs[::-1]) for n in there.notes])
    assert vocabulary(turned, rng(1)).value == vocabulary(there, rng(1)).value


def test_a_scattered_release_tells_nothing():
    found = vocabulary(scattered(scene_of(random_channel(300, 6, rng(2))), rng(3)), rng(1))
    assert abs(found.value - 0.5) < 0.05


def test_no_rare_word_is_a_null_with_why():
    there = scene_of(channel_of([[i] for i in range(300)]))
    found = vocabulary(replace(there, counts=np.full(300, 100)), rng(1))
    assert found.value is None and found.detail["why"]


@pytest.mark.parametrize("scope", ["patient", "rare"])
def test_what_a_memo_repeats_counts_once(scope):
    there = scene_of(random_channel(300, 6, rng(2)).under(scope=scope))
    twice = replace(there, notes=[replace(n, outputs=np.concatenate([n.outputs, n.outputs])) for n in there.notes])
    assert 0.6 < vocabulary(twice, rng(1)).value < 1


def test_the_attack_lays_notes_side_by_side(tmp_path):
    context = context_of("occurrence")
    context = replace(context, counts=count_words(context.entered, tmp_path))
    (found,) = Vocabulary()(context, rng(0))
    assert found.value > 0.6 and found.measure == "attack.vocabulary" and found.detail["rare"] == 20
