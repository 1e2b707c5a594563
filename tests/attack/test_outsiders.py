"""Readers who make vectors of their own: they read where neighbours are stable, and nothing in a
scattered release.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from outsider_scenes import class_scene

from clinveil.attacks.adversaries.own_vectors import shadow_matrix
from clinveil.attacks.adversary import ADVERSARIES, AdversaryView

OUTSIDERS = ("own-vectors",)


@pytest.fixture(scope="module")
def view():
    return class_scene()


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
            ADVERSARIES.get(name)().recover(s, np.random.default_rng(0)) for s in (view, hidden)
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
