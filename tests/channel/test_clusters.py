"""Clusters: disjoint, as large and as even as was asked, and nothing but the cluster is told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, common_pool
from clinveil.channel.mechanisms.clusters import ClusterMechanism
from clinveil.channel.settings import ChannelSettings
from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.vectors.table import Vectors

NAMED = [
    "okafor",
    "nguyen",
    "kowalski",
    "fernandez",
    "papadopoulos",
    "yamamoto",
    "schneider",
    "svensson",
    "rossi",
]


def topical(n: int, seed: int = 0, steep: float = 1.0) -> Vectors:
    """Words around a few topics, the first the most frequent; most of them are no words of any
    lexicon.
    """
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(max(2, n // 20), 12))
    matrix = topics[rng.integers(0, len(topics), n)] + 0.5 * rng.normal(size=(n, 12))
    counts = np.maximum(1, 20_000 / np.arange(1, n + 1) ** steep).astype(np.int64)
    words = ["q" + "".join(chr(97 + int(d)) for d in str(i)) + "zx" for i in range(n)]
    words[-len(NAMED) :] = NAMED
    return Vectors(words, matrix.astype(np.float32), counts)


def clustered(vectors: Vectors, eligible=None, names=(), **fields) -> Channel:
    some = np.ones(len(vectors), dtype=np.bool_) if eligible is None else eligible
    return ClusterMechanism(**fields).compile(Material(vectors, some, names=frozenset(names)))


def groups_of(channel: Channel) -> list[list[int]]:
    """Words of the same outputs."""
    rows: dict[tuple[int, ...], list[int]] = {}
    for word in range(len(channel.words)):
        rows.setdefault(tuple(channel.row(word)[0].tolist()), []).append(word)
    return list(rows.values())


@settings(max_examples=25)
@given(
    n=st.integers(30, 400),
    seed=st.integers(0, 99),
    size=st.integers(2, 12),
    share=st.sampled_from([0.2, 0.34, 0.5, 1.0]),
    outputs=st.sampled_from([0, 1, 3]),
    floor=st.sampled_from([0, 40, 200]),
)
def test_clusters_are_disjoint_large_and_even(n, seed, size, share, outputs, floor):
    vectors = topical(n, seed)
    assert vectors.counts is not None
    counts = vectors.counts
    eligible = vectors.counts >= min(floor, vectors.counts[size])
    fields = {
        "cluster_size": size,
        "cluster_share": share,
        "cluster_outputs": outputs,
        "function_words": n // 10,
    }
    fields |= {"cluster_words": "own"}
    channel = clustered(vectors, eligible, **fields)
    groups = groups_of(channel)
    told = channel.parameters
    assert sorted(word for group in groups for word in group) == list(range(n))
    seen: set[int] = set()
    for group in groups:
        out = channel.row(group[0])[0].tolist()
        mine = [word for word in group if eligible[word]]
        best = sorted(mine, key=lambda word: (-counts[word], word))
        assert out == best[: outputs or len(best)] and not seen & set(out)
        seen |= set(out)
    assert told["clusters"] == len(groups)
    assert told["fewest_words"] == min(int(eligible[g].sum()) for g in groups)
    assert told["greatest_share"] == pytest.approx(
        max(counts[g].max() / counts[g].sum() for g in groups)
    )
    assert told["as_wanted"] == (told["fewest_words"] >= size and told["greatest_share"] <= share)
    assert told["as_wanted"] or len(groups) == 1


@pytest.mark.parametrize("outputs", [0, 1, 3])
def test_an_output_tells_the_cluster_and_nothing_else(outputs):
    vectors = topical(300)
    channel = clustered(vectors, cluster_outputs=outputs)
    assert vectors.counts is not None
    prior = vectors.counts / vectors.counts.sum()
    joint = channel.matrix().toarray()[:-1] * prior[:, None]
    for group in groups_of(channel):
        for out in channel.row(group[0])[0]:
            posterior = joint[:, out] / joint[:, out].sum()
            expected = np.where(np.isin(np.arange(300), group), prior, 0) / prior[group].sum()
            assert posterior == pytest.approx(expected)
            again = (
                posterior * channel.matrix().toarray()[:-1, out]
            )  # a second draw of the same word
            assert again / again.sum() == pytest.approx(expected)
    closed = sum(prior[group].max() for group in groups_of(channel))
    assert joint.max(axis=0).sum() == pytest.approx(closed)


def test_a_cluster_is_written_as_another_by_one_cycle_that_the_key_decides():
    vectors = topical(300)
    some = np.ones(300, dtype=np.bool_)
    own = clustered(vectors, cluster_words="own")
    orders = []
    for key in (Key.from_seed(1), Key.from_seed(2)):
        other = ClusterMechanism().compile(Material(vectors, some, key=key))
        assert groups_of(other) == groups_of(own) and not other.maps_to_itself
        assert set(other.indices.tolist()) == set(own.indices.tolist())
        home = {own.row(group[0])[0][0]: i for i, group in enumerate(groups_of(own))}
        following = [home[other.row(group[0])[0][0]] for group in groups_of(own)]
        at = following[0]
        steps = 1
        while at != 0:
            at = following[at]
            steps = steps + 1
        assert steps == len(following)
        orders.append(following)
    assert orders[0] != orders[1]


@pytest.mark.parametrize("words", ["own", "other"])
def test_an_unknown_word_comes_out_as_known_words_do(words):
    vectors = topical(300)
    assert vectors.counts is not None
    eligible = np.ones(300, dtype=np.bool_)
    pool = common_pool(vectors.counts, eligible)
    channel = ClusterMechanism(cluster_words=words).compile(Material(vectors, eligible, pool))
    outputs, chances = channel.row(channel.unknown)
    assert (
        set(outputs.tolist()) == set(np.flatnonzero(channel.written).tolist()) and outputs.size < 40
    )
    usual = channel.outputs(vectors.counts / vectors.counts.sum())
    assert chances == pytest.approx(usual[outputs])
    assert ClusterMechanism().compile(Material(vectors, eligible)).row(channel.unknown)[0].size == 0


def test_names_are_one_cluster_whose_outputs_are_names():
    vectors = topical(400)
    channel = clustered(vectors, cluster_size=4, function_words=20, cluster_words="own")
    rows = [channel.ids[name] for name in NAMED]
    assert len({tuple(channel.row(row)[0]) for row in rows}) == 1
    assert set(channel.row(rows[0])[0]) <= set(rows)


def test_words_of_known_names_are_names_too():
    vectors = topical(400)
    known = vectors.words[60]
    channel, without = (
        clustered(vectors, names=n, cluster_size=8, cluster_outputs=0) for n in ([known], [])
    )
    name = channel.ids[NAMED[0]]
    assert channel.row(60)[0].tolist() == channel.row(name)[0].tolist()
    assert without.row(60)[0].tolist() != without.row(name)[0].tolist()


def test_a_frequent_word_shares_its_cluster_with_enough_tokens():
    vectors = topical(300, steep=1.3)
    told = clustered(vectors, cluster_size=2, cluster_share=0.5).parameters
    more = clustered(vectors, cluster_size=2, cluster_share=0.25).parameters
    assert told["as_wanted"] and told["greatest_share"] <= 0.5
    assert told["clusters"] > more["clusters"]


def test_what_cannot_be_held_is_said():
    vectors = topical(300, steep=4.0)  # one word is most of the tokens
    channel = clustered(vectors)
    told = channel.parameters
    assert channel.shortfalls and not clustered(topical(300)).shortfalls
    assert told["clusters"] == 1 and told["greatest_share"] > 0.5 and not told["as_wanted"]


def test_vectors_without_counts_are_clustered_by_size_alone():
    vectors = topical(300)
    bare = Vectors(vectors.words, vectors.matrix)
    assert clustered(bare).parameters["as_wanted"]


def test_the_clusters_follow_meaning():
    """Words of one topic mostly share a cluster: with topics far apart, no cluster mixes two but
    where it must.
    """
    rng = np.random.default_rng(0)
    topic = np.repeat(np.arange(10), 30)
    matrix = (np.eye(10)[topic] * 5 + 0.1 * rng.normal(size=(300, 10))).astype(np.float32)
    words = topical(300).words
    channel = clustered(Vectors(words, matrix, np.full(300, 50)), cluster_size=8, function_words=0)
    inside = [g for g in groups_of(channel) if not {channel.ids[name] for name in NAMED} & set(g)]
    assert all(len(set(topic[group])) == 1 for group in inside) and len(inside) >= 15


def test_the_same_bits_for_any_threads_and_twice():
    vectors = Vectors(
        *[getattr(topical(500), name) for name in ("words", "matrix", "counts")],
        np.full(500, 60),
        60,
    )
    how = ChannelSettings(mechanism="clusters")
    one, other = (build_channel(vectors, how, key=Key.from_seed(3), threads=n)[0] for n in (1, 2))
    assert (
        one.indices.tobytes() == other.indices.tobytes()
        and one.indptr.tobytes() == other.indptr.tobytes()
    )


def test_fewer_words_than_a_cluster_are_refused():
    vectors = Vectors(
        *[getattr(topical(60), name) for name in ("words", "matrix", "counts")], np.full(60, 60), 60
    )
    with pytest.raises(InputError, match="80 are required"):
        build_channel(
            vectors,
            ChannelSettings(mechanism="clusters", cluster_size=80),
            key=Key.from_seed(3),
            threads=1,
        )
