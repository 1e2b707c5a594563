"""Readers who make vectors of their own: they read where neighbours are stable, and nothing in a
scattered release.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from outsider_scenes import blind, class_scene, scattered
from scenes import right

from clinveil.attacks.adversaries.own_vectors import shadow_matrix
from clinveil.attacks.adversary import AdversaryView, adversaries
from clinveil.attacks.channel.adversary_suite import _unprotected

OUTSIDERS = ("own-vectors",)


@pytest.fixture(scope="module")
def view():
    return class_scene()


def told(readings, view):
    """Every reading has a place for each output, and chances that are probabilities."""
    for reading, note in zip(readings, view.notes, strict=True):
        sums = [
            reading.chances[a:b].sum()
            for a, b in zip(reading.starts, reading.starts[1:], strict=False)
        ]
        assert reading.starts.size == len(note) + 1 and max(sums) <= 1 + 1e-9
        assert (reading.chances > 0).all() and reading.rows.max() < len(view.channel.words)
    return readings


@pytest.mark.parametrize("name", OUTSIDERS)
def test_where_neighbours_are_stable_the_channel_need_not_be_held(name, view):
    reader = adversaries.get(name)()
    assert reader.is_applicable(view) and "channel" not in reader.knowledge
    found = right(told(reader.recover(view, np.random.default_rng(0)), view), view)
    assert found > 3 * blind(view)


@pytest.mark.parametrize("name", OUTSIDERS)
def test_nothing_is_read_of_a_scattered_release(name, view):
    nothing = scattered(view, np.random.default_rng(1))
    found = right(adversaries.get(name)().recover(nothing, np.random.default_rng(0)), nothing)
    assert found < blind(view) + 0.03


def test_no_reader_of_ours_looks_at_what_is_secret(view):
    """The same readings where truth and places of the attacked notes, and the channel, are other
    ones.
    """
    other = replace(
        view.channel, indices=np.roll(view.channel.indices, 7), parameters={"low": 3, "high": 3}
    )
    notes = [replace(n, truth=np.zeros_like(n.truth)) for n in view.notes]
    hidden = replace(view, notes=notes, channel=other, pairs=(), counts=None)
    for name in OUTSIDERS:
        one, two = (
            adversaries.get(name)().recover(s, np.random.default_rng(0)) for s in (view, hidden)
        )
        assert all(
            (a.rows == b.rows).all() and np.allclose(a.chances, b.chances)
            for a, b in zip(one, two, strict=True)
        )


def test_without_a_shadow_the_tool_itself_is_run(tmp_path):
    """Vectors are trained and a channel is built of the other notes; words have no digits, so that
    it reads them.
    """
    here = class_scene(3, others=120)
    words = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(48)]
    channel = replace(
        here.channel, words=words, parameters={"low": 3, "high": 3, "n_per": "occurrence"}
    )
    made = shadow_matrix(
        replace(here, channel=channel, cache={}, scratch=tmp_path), np.random.default_rng(0)
    )
    assert (
        made.shape == (48, 48)
        and np.allclose(made.sum(axis=1), 1)
        and (np.diff(made.indptr) == 3).all()
    )
    assert not any(tmp_path.iterdir())
    few = AdversaryView(channel, (), others=[here.others[0][:2]])
    assert shadow_matrix(few, np.random.default_rng(0)).nnz == 0


@pytest.mark.parametrize("name", [*OUTSIDERS, "known-pairs"])
def test_where_words_come_out_as_they_went_in_nearly_all_is_read(name):
    plain = _unprotected(class_scene(pairs=40))
    assert right(adversaries.get(name)().recover(plain, np.random.default_rng(0)), plain) > 0.9
