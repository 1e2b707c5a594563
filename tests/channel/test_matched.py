"""Neighbours of like frequency, and the in-degree floor of neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from test_less_information import KEY, material, some_vectors

from clinveil.channel.mechanism import Material
from clinveil.channel.mechanisms.matched import MatchedMechanism
from clinveil.channel.mechanisms.neighbours import NeighbourMechanism, rank_distribution
from clinveil.core.errors import InputError


@pytest.mark.parametrize("weight", [0.0, 0.3, 5.0])
def test_rows_are_the_nearest_by_brute_force(weight):
    vectors, eligible = some_vectors(60), np.arange(60) % 5 > 0
    channel = MatchedMechanism(n="4", frequency_weight=weight).compile(Material(vectors, eligible))
    assert vectors.counts is not None
    units = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    points = np.concatenate([units, weight * np.log(vectors.counts)[:, None]], axis=1)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    apart[:, ~eligible] = np.inf
    for row in range(60):
        assert sorted(channel.row(row)[0]) == sorted(np.argsort(apart[row])[:4])


def test_a_large_weight_brings_counts_together():
    vectors = some_vectors(300)
    assert vectors.counts is not None
    apart = []
    for weight in (0.0, 0.3, 3.0):
        channel = MatchedMechanism(n="5", frequency_weight=weight).compile(Material(vectors, np.ones(300, dtype=bool)))
        logs = np.log(vectors.counts)
        apart.append(np.abs(logs[channel.rows] - logs[channel.indices]).mean())
    assert apart[0] > 1.5 * apart[1] > 3 * apart[2]


def test_n_depends_on_the_count():
    vectors = some_vectors(300)
    assert vectors.counts is not None
    mechanism = MatchedMechanism(n="3-6", n_rare=20, rare_below=100, n_by_root=0.5)
    channel = mechanism.compile(Material(vectors, np.ones(300, dtype=bool)))
    grown = 6 + np.floor(0.5 * np.sqrt(vectors.counts))
    assert np.diff(channel.indptr)[:-1].tolist() == np.where(vectors.counts < 100, 20, grown).tolist()
    assert channel.row(299)[1] == pytest.approx(rank_distribution(17, 20))


def test_too_few_words_are_said():
    with pytest.raises(InputError, match="too few for N 5"):
        MatchedMechanism(n="5").compile(Material(some_vectors(20), np.arange(20) < 5))


@pytest.mark.parametrize("n_per", ["occurrence", "type"])
@pytest.mark.parametrize("floor", [5, 8, 12])
def test_every_output_has_enough_inputs(n_per, floor):
    given = material(200, 8)
    made, before = (NeighbourMechanism(n="3-8", n_per=n_per, in_degree=least).compile(given) for least in (floor, 0))
    assert before.in_degree.min() < floor <= made.in_degree[made.in_degree > 0].min()
    assert (made.posterior(given.vectors.counts).candidates[made.in_degree > 0] >= floor).all()
    assert made.parameters["left"] == (made.in_degree > 0).sum()
    assert not made.maps_to_itself


def test_words_that_stay_possible_keep_their_place():
    """Only entries of words that come out no more are redirected: to the next nearest."""
    given = material(200, 8)
    made, before = (NeighbourMechanism(n="8", in_degree=least).compile(given) for least in (6, 0))
    out = set(np.flatnonzero(made.in_degree).tolist())
    for row in range(200):
        stay = [word for word in before.row(row)[0].tolist() if word in out]
        assert made.row(row)[0].tolist()[: len(stay)] == stay


def test_the_pool_loses_them_too():
    given = material(200, 8)
    ids = np.arange(200, dtype=np.int32)
    pooled = Material(given.vectors, given.eligible, (ids, np.full(200, 1 / 200)), given.table, KEY)
    made = NeighbourMechanism(n="3", in_degree=3).compile(pooled)
    assert set(made.row(200)[0].tolist()) == set(np.flatnonzero(made.in_degree > 1).tolist())


def test_a_floor_that_leaves_too_few_is_refused():
    with pytest.raises(InputError, match="eligible words"):
        NeighbourMechanism(n="3", in_degree=40).compile(material(50, 3))
