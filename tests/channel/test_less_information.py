"""Exponential, rate-distortion and optimal channels: closed forms, brute force, and the yardstick of all others."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.mechanisms._graph import Graph, near_graph, prior_of, whole_distances
from clinveil.channel.mechanisms.exponential import ExponentialMechanism
from clinveil.channel.mechanisms.optimal import OptimalMechanism
from clinveil.channel.mechanisms.rate_distortion import RateDistortionMechanism, least_information
from clinveil.channel.settings import ChannelSettings
from clinveil.core.errors import InputError, UsageError
from clinveil.core.keys import Key
from clinveil.vectors.neighbours import neighbours
from clinveil.vectors.table import Vectors

KEY = Key.from_seed(4)


def some_vectors(n: int, seed: int = 0) -> Vectors:
    rng = np.random.default_rng(seed)
    counts = np.sort(rng.integers(1, 400, n))[::-1].astype(np.int64)
    words = ["q" + "".join(chr(97 + int(d)) for d in str(i)) for i in range(n)]
    return Vectors(words, rng.normal(size=(n, 5)).astype(np.float32), counts)


def material(n: int, k: int, *, eligible=None, seed: int = 0) -> Material:
    vectors = some_vectors(n, seed)
    some = np.ones(n, dtype=np.bool_) if eligible is None else eligible
    return Material(vectors, some, table=neighbours(vectors, k, eligible=some, threads=1, seed=1), key=KEY)


def dense(channel: Channel) -> np.ndarray:
    return channel.matrix().toarray()[:-1]


def information(prior: np.ndarray, chances: np.ndarray) -> float:
    """I(X; Y) in nats, term by term."""
    joint = prior[:, None] * chances
    ratio = np.where(joint > 0, chances / np.maximum(joint.sum(axis=0), 1e-300), 1.0)
    return float((joint * np.log(ratio)).sum())


def complete(distances: np.ndarray) -> Graph:
    n, m = distances.shape
    return Graph(np.arange(n + 1) * m, np.tile(np.arange(m, dtype=np.int32), n), distances.ravel())


# ---------------------------------------------------------------- exponential


def test_exponential_is_its_formula():
    given = material(30, 6)
    channel, units = dense(ExponentialMechanism(epsilon=3.0, nearest=6).compile(given)), given.vectors.matrix
    units = units / np.linalg.norm(units, axis=1, keepdims=True)
    for row in range(30):
        apart = np.linalg.norm(units[row] - units, axis=1)
        near = np.argsort(apart)[:7]  # itself and six
        expected = np.exp(-1.5 * apart[near])
        assert channel[row, near] == pytest.approx(expected / expected.sum(), rel=1e-4)
        assert np.count_nonzero(channel[row]) == 7


def test_with_a_bulk_the_epsilon_holds_for_every_pair_and_without_it_for_few():
    given = material(40, 5)
    whole, cut = (dense(ExponentialMechanism(epsilon=2.0, nearest=5, bulk=b).compile(given)) for b in (True, False))
    apart = whole_distances(given.vectors.matrix, given.eligible)
    worst = np.log(whole[:, None, :] / whole[None, :, :]).max(axis=2)
    assert (worst <= 2.0 * apart + 1e-9).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        without = np.log(cut[:, None, :] / cut[None, :, :])
    assert np.isinf(np.nanmax(without, axis=2)[~np.eye(40, dtype=bool)]).mean() > 0.9


def test_words_beyond_the_nearest_share_the_bulk_evenly():
    channel = dense(ExponentialMechanism(epsilon=2.0, nearest=5, bulk=True).compile(material(40, 5)))
    for row in channel:
        assert np.isclose(row, row.min()).sum() >= 15  # half of the words at least are as far as gamma in some row


def test_a_bulk_is_refused_for_many_words(monkeypatch):
    monkeypatch.setattr("clinveil.channel.mechanisms.exponential.MOST", 900)
    with pytest.raises(UsageError, match="more than 900 entries"):
        ExponentialMechanism(epsilon=2.0, nearest=5, bulk=True).compile(material(31, 5))


# ---------------------------------------------------------------- rate-distortion


@pytest.mark.parametrize("n", [2, 3, 7])
def test_on_symmetric_words_the_least_information_is_the_closed_form(n):
    """Equal words at Hamming distance: a word stays with chance 1 / (1 + (n - 1) exp(-beta)) (Cover and Thomas)."""
    found = least_information(complete(1.0 - np.eye(n)), np.full(n, 1 / n), 1.3, gap=1e-12)
    stays = 1 / (1 + (n - 1) * np.exp(-1.3))
    expected = np.where(np.eye(n, dtype=bool), stays, (1 - stays) / (n - 1))
    assert found.chances.reshape(n, n) == pytest.approx(expected)


def test_the_binary_source_has_the_known_rate():
    """R(D) = H(p) - H(D) for p = 0.3 and Hamming distance (Shannon 1959)."""
    prior = np.array([0.3, 0.7])
    found = least_information(complete(1.0 - np.eye(2)), prior, 2.5, gap=1e-12)
    chances = found.chances.reshape(2, 2)
    moved = float(prior @ chances[[0, 1], [1, 0]])
    entropy = [-(x * np.log(x) + (1 - x) * np.log(1 - x)) for x in (0.3, moved)]
    assert information(prior, chances) == pytest.approx(entropy[0] - entropy[1])


def test_no_other_channel_is_better_on_a_toy_vocabulary():
    rng = np.random.default_rng(3)
    prior, apart = rng.dirichlet(np.ones(4)), rng.uniform(0.1, 2, (4, 4)) * (1 - np.eye(4))

    def cost(free: np.ndarray) -> float:
        chances = np.exp(free.reshape(4, 4))
        chances /= chances.sum(axis=1, keepdims=True)
        return information(prior, chances) + 1.7 * float(prior @ (chances * apart).sum(axis=1))

    found = least_information(complete(apart), prior, 1.7, gap=1e-10).chances.reshape(4, 4)
    mine = information(prior, found) + 1.7 * float(prior @ (found * apart).sum(axis=1))
    starts = [minimize(cost, rng.normal(size=16), method="BFGS").fun for _ in range(5)]
    assert mine <= min(starts) + 1e-9 and mine == pytest.approx(min(starts), abs=1e-4)


def test_every_step_lowers_the_cost_and_the_bound_is_one():
    given = material(60, 10)
    graph, prior = near_graph(given, 10), prior_of(given)

    def cost(rounds: int) -> tuple[float, float]:
        found = least_information(graph, prior, 3.0, gap=0.0, rounds=rounds)
        rows = np.zeros((60, 60))
        np.add.at(rows, (np.repeat(np.arange(60), graph.lengths), graph.outputs), found.chances)
        return information(prior, rows) + 3.0 * graph.mean_distance(found.chances, prior), found.gap

    costs = [cost(rounds)[0] for rounds in (0, 1, 2, 3, 5, 10, 30, 100, 1000)]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(costs))
    assert costs[2] <= costs[-1] + cost(3)[1] and cost(1000)[1] < 1e-4


def test_a_mean_distance_is_met():
    given = material(80, 20)
    channel = RateDistortionMechanism(nearest=20, distortion=0.5).compile(given)
    assert channel.parameters["mean_distance"] == pytest.approx(0.5, abs=0.005)
    assert channel.parameters["bits_above_least"] < 2e-4


def test_a_smaller_slope_tells_less():
    given = material(80, 20)
    prior = prior_of(given)
    told = [information(prior, dense(RateDistortionMechanism(nearest=20, beta=b).compile(given))) for b in (1, 4, 16)]
    assert told[0] < told[1] < told[2]


def test_words_below_the_floor_find_an_output_at_any_slope():
    eligible = np.arange(60) % 4 == 0
    channel = RateDistortionMechanism(nearest=5, beta=1e4).compile(material(60, 5, eligible=eligible))
    assert np.isfinite(channel.probabilities).all() and channel.speaks[:-1].all()


@pytest.mark.slow
def test_twenty_thousand_words_take_less_than_a_minute():
    import time

    given = material(20_000, 50)
    began = time.process_time()
    told = RateDistortionMechanism(nearest=50, beta=8.0).compile(given).parameters
    assert time.process_time() - began < 60 and told["bits_above_least"] < 0.01


# ---------------------------------------------------------------- optimal


def strengths() -> list[Mechanism]:
    kinds = {name: mechanisms.get(name) for name in mechanisms.names()}
    return [
        kinds["neighbours"](n="3-8"),
        kinds["neighbours"](n="3", in_degree=3),
        kinds["laplace"](epsilon=5.0),
        kinds["gaussian"](sigma=0.5),
        kinds["clusters"](cluster_size=4, function_words=0),
        kinds["clusters"](cluster_size=4, cluster_outputs=0, function_words=0),
        kinds["matched"](n="4"),
        kinds["exponential"](epsilon=6.0, nearest=10),
        kinds["rate-distortion"](beta=3.0, nearest=10),
    ]


@pytest.mark.parametrize("mechanism", strengths(), ids=lambda m: m.name)
def test_no_mechanism_is_guessed_less_often_at_the_same_distance(mechanism):
    given = material(25, 12)
    prior, apart = prior_of(given), whole_distances(given.vectors.matrix, given.eligible)

    def figures(one: Mechanism) -> tuple[float, float]:
        chances = dense(one.compile(given))
        return float(prior @ (chances * apart).sum(axis=1)), float((prior[:, None] * chances).max(axis=0).sum())

    distance, guessed = figures(mechanism)
    reached, best = figures(OptimalMechanism(distortion=distance + 1e-9))
    assert reached <= distance + 1e-6 and best <= guessed + 1e-7


def test_the_ends_of_the_optimal_channel():
    given = material(12, 3)
    prior = prior_of(given)
    nothing = OptimalMechanism(distortion=2.0).compile(given)
    assert nothing.posterior(prior).vulnerability == pytest.approx(prior.max())
    assert dense(OptimalMechanism(distortion=0.0).compile(given)) == pytest.approx(np.eye(12), abs=1e-6)


def test_what_cannot_be_is_refused():
    eligible = np.arange(30) < 15
    with pytest.raises(InputError, match="no channel has a mean distance of 0"):
        OptimalMechanism(distortion=0.0).compile(material(30, 5, eligible=eligible))
    with pytest.raises(UsageError, match="more than 22,500 entries"):
        OptimalMechanism(distortion=1.0).compile(material(200, 5))
    with pytest.raises(ValueError, match="optimal needs --distortion"):
        ChannelSettings(mechanism="optimal")
    with pytest.raises(ValueError, match="exponential needs --epsilon"):
        ChannelSettings(mechanism="exponential")


def test_settings_reach_their_mechanism():
    vectors = some_vectors(200)
    given = Vectors(vectors.words, vectors.matrix, vectors.counts, np.full(200, 60), 60)
    how = ChannelSettings(mechanism="rate-distortion", nearest=9, distortion=0.4)
    channel, table = build_channel(given, how, key=KEY, threads=1)
    assert table.k == 9 and channel.parameters["mean_distance"] == pytest.approx(0.4, abs=0.01)
