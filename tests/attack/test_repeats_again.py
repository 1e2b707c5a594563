"""Places that hide one word, in one release or in two: they add up, and a scattered release gives nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from outsider_scenes import blind, scattered
from scenes import language, random_channel, right, view, written

from clinveil.attacks.adversary import AdversaryView, AlignedNote, adversaries
from clinveil.channel.policy import Policy

repeats, again = adversaries.get("repeats"), adversaries.get("again")
rng = np.random.default_rng


def memo_scene(scope, seed=0, n_words=40, k=6):
    """Notes of which each word of a patient has one output; four notes a patient."""
    draw = rng(seed)
    channel, after = random_channel(n_words, k, draw, policy=Policy(scope=scope)), language(n_words, draw, fan=6)
    notes = []
    for patient in range(6):
        code = np.array([draw.choice(channel.row(x)[0]) for x in range(n_words)])
        for _ in range(4):
            note = written(after, 40, draw)
            notes.append(AlignedNote(code[note], note, np.arange(40), patient))
    return AdversaryView(channel, notes, [n.outputs for n in notes], [written(after, 40, draw) for _ in range(60)])


def test_a_memo_makes_places_tell_of_one_another():
    there = memo_scene("patient")
    together = right(repeats().read(there, rng(0)), there)
    alone = right(repeats().read(replace(there, channel=there.channel.under(scope="occurrence")), rng(0)), there)
    assert together > alone + 0.03 and alone > 2 * blind(there)


@pytest.mark.parametrize("scope", ["occurrence", "note", "patient", "corpus", "rare"])
def test_beliefs_are_probabilities_under_every_memo(scope):
    there = memo_scene(scope)
    for one in repeats().read(there, rng(0)):
        assert np.allclose(np.add.reduceat(one.chances, one.starts[:-1]), 1)


def test_two_draws_equal_enumeration():
    there = view(1, notes=3)
    reading, note, second = again().read(there, rng(0))[0], there.notes[0], there.again[0]
    matrix = there.channel.matrix().toarray()
    for t in range(len(note)):
        joint = there.prior * matrix[:-1, note.outputs[t]] * matrix[:-1, second.outputs[t]]
        rows = reading.rows[reading.starts[t] : reading.starts[t + 1]]
        told = reading.chances[reading.starts[t] : reading.starts[t + 1]]
        assert np.allclose(told, joint[rows] / joint.sum(), atol=0.01)


@pytest.mark.parametrize("window", [0, 5, 40])
def test_a_second_release_reads_more_and_less_so_where_it_is_shuffled(window):
    policy = Policy(shuffle="window", window=window) if window else Policy()
    there = view(2, notes=20, window=window, k=6, policy=policy)
    same = replace(there, again=scattered(replace(there, notes=there.again), rng(4)).notes)
    two, one = (right(again().read(s, rng(0)), s) for s in (there, same))
    assert two > one + {0: 0.2, 5: 0.08, 40: 0.0}[window]


@pytest.mark.parametrize("reader", [repeats, again])
def test_nothing_is_read_of_a_scattered_release(reader):
    there = view(0, notes=20)
    nothing = replace(scattered(there, rng(1)), again=scattered(replace(there, notes=there.again), rng(2)).notes)
    found = right(reader().read(nothing, rng(0)), nothing)
    assert found < blind(there) + 0.05


def test_other_lengths_are_laid_beside_each_other():
    there = view(3, notes=2, policy=Policy(length=0.2))
    short = [replace(n, outputs=n.outputs[2:], truth=n.truth[2:], places=n.places[2:]) for n in there.again]
    for one, note in zip(again().read(replace(there, again=short), rng(0)), there.notes, strict=True):
        assert one.starts.size == len(note) + 1
