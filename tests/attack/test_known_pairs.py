"""Notes held in both forms: a code is read, a scattered release tells nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from outsider_scenes import blind, class_scene
from scenes import channel_of, language, right, seen, view, written

from clinveil.attacks.adversaries.known_pairs import count_draws
from clinveil.attacks.adversary import ADVERSARIES, AdversaryView, NoteRows

known_pairs = ADVERSARIES.get("known-pairs")
rng = np.random.default_rng


def test_draws_of_known_words_are_counted():
    notes = [
        NoteRows(np.array([7, 7, 8]), np.array([1, 1, 2]), 0),
        NoteRows(np.array([7, 9]), np.array([1, 10]), 0),
        NoteRows(np.array([7]), np.array([1]), 1),
    ]
    found = count_draws(notes, 10)  # 10 is no word of the channel
    assert (found.inputs.tolist(), found.outputs.tolist()) == ([1, 2], [7, 8])
    assert found.counts.tolist() == [4, 1]


def test_more_pairs_read_more():
    there = view(1, pairs=200, notes=20)
    few, many = (right(known_pairs(notes=n).recover(there, rng(0)), there) for n in (2, 200))
    assert few < many - 0.05 and many > 2 * blind(there)


def code_scene():
    """Each word has one output in all notes, which several words share."""
    draw = rng(5)
    after = language(60, draw)
    n_words = 60
    channel = channel_of([[y] for y in draw.integers(0, 30, n_words)])
    notes = [seen(channel, written(after, 40, draw), i, draw) for i in range(10)]
    held = [seen(channel, written(after, 40, draw), 100 + i, draw) for i in range(15)]
    others = [written(after, 40, draw) for _ in range(60)]
    return AdversaryView(channel, notes, [n.outputs for n in (*notes, *held)], others, held)


def test_of_a_code_what_is_coded_elsewhere_is_ruled_out():
    there = code_scene()
    reading = known_pairs().recover(there, rng(0))
    known = {
        x: y
        for note in there.pairs
        for x, y in zip(note.truth.tolist(), note.outputs.tolist(), strict=True)
    }
    for one, note in zip(reading, there.notes, strict=True):
        for t, y in enumerate(note.outputs.tolist()):
            place = slice(one.starts[t], one.starts[t + 1])
            rows = one.rows[place]
            chances = one.chances[place]
            elsewhere = np.array([known.get(x, y) != y for x in rows.tolist()])
            assert chances[elsewhere].sum() < 0.05
    assert right(known_pairs().recover(there, rng(0)), there) > 0.7


def test_shadow_vectors_add_to_a_few_pairs():
    """With few pairs most words were never seen in both forms: what neighbours they have is told by
    other notes.
    """
    there = class_scene(2, pairs=3)
    ((name, shadow),) = there.cache.items()
    bare = replace(there, cache={name: 0 * shadow})
    bare.cache[name].eliminate_zeros()
    without, both = (right(known_pairs().recover(v, rng(0)), v) for v in (bare, there))
    assert both > without + 0.05
