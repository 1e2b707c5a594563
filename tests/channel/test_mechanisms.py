"""The contract of every token mechanism, and what each of them is by definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from channel_cases import (
    WORDS,
    all_others,
    batch_of,
    circle,
    compiled,
    n_from,
    texts_of,
    vectors_of,
)

from clinveil.channel.apply import Obfuscator
from clinveil.channel.channel import Channel, identity_channel
from clinveil.channel.mechanism import Mechanism, common_pool, mechanisms
from clinveil.channel.mechanisms.clusters import ClusterMechanism
from clinveil.channel.mechanisms.neighbours import rank_distribution
from clinveil.core.keys import Key
from clinveil.core.tokens import words
from clinveil.vectors.table import Neighbours

KEY = Key.from_seed(5)
NOTES = [
    (f"n{i}", f"p{i % 3}", f"Smith has PAIN in chest; José zebra {WORDS[i]} q4h 12")
    for i in range(len(WORDS))
]


class MechanismContract:
    """What holds for every mechanism; a test class of each inherits it."""

    keeps_words = False
    respects_floor = True

    def mechanism(self) -> Mechanism:
        raise NotImplementedError

    def table(self) -> Neighbours:
        return all_others(WORDS, self.mechanism().reach)

    def channel(self, *, pool: int = 8) -> Channel:
        vectors = vectors_of(WORDS)
        table = self.table()
        chosen = common_pool(vectors.counts, table.eligible, pool)
        given = {"pool": chosen} if pool else {}
        return compiled(self.mechanism(), vectors, table, key=KEY, seed=3, **given)

    def released(self, key: Key = KEY, rows: int = 100, order: int = 1) -> list[str]:
        obfuscator = Obfuscator(self.channel(), key)
        notes = NOTES[::order]
        return [
            t
            for i in range(0, len(notes), rows)
            for t in texts_of(obfuscator(batch_of(*notes[i : i + rows])).batch)
        ]

    def test_rows_sum_to_one(self):
        matrix = self.channel().matrix()
        assert matrix.shape == (len(WORDS) + 1, len(WORDS))
        assert np.asarray(matrix.sum(axis=1)).ravel() == pytest.approx(
            np.ones(len(WORDS) + 1), abs=1e-12
        )

    def test_the_unknown_row_is_the_pool_or_empty(self):
        outputs, chances = self.channel(pool=4).row(len(WORDS))
        assert outputs.tolist() == [0, 1, 2, 3]
        n = len(WORDS)
        assert chances == pytest.approx(np.array([n, n - 1, n - 2, n - 3]) / (4 * n - 6))
        assert self.channel(pool=0).row(len(WORDS))[0].size == 0

    def test_no_word_maps_to_itself_unless_it_says_so(self):
        channel = self.channel()
        selves = [i for i in range(len(WORDS)) if i in channel.row(i)[0]]
        assert channel.maps_to_itself == self.keeps_words == bool(selves)

    def test_only_eligible_words_come_out(self):
        table = self.table()
        eligible = np.arange(len(WORDS)) % 3 != 0
        ids = table.ids.copy()
        for row in range(len(WORDS)):
            others = [j for j in range(len(WORDS)) if eligible[j] and j != row]
            ids[row] = others[: table.k]
        floored = Neighbours(ids, table.similarities, eligible)
        pool = common_pool(np.ones(len(WORDS)), eligible, 3)
        channel = compiled(self.mechanism(), vectors_of(WORDS), floored, key=KEY, pool=pool)
        assert not self.respects_floor or eligible[channel.indices].all()
        assert channel.eligible[channel.indices].all()

    def test_same_key_same_output_for_any_batch_size_and_order(self):
        whole = self.released()
        assert (
            whole == self.released(rows=1) == self.released(rows=7) == self.released(order=-1)[::-1]
        )

    def test_another_key_another_output(self):
        assert self.released() != self.released(Key.from_seed(6))

    def test_unknown_words_never_pass(self):
        for released in self.released():
            assert "zebra" not in released and set(words(released)) <= set(WORDS)

    def test_the_vulnerability_is_that_of_brute_force(self):
        """What an attacker with the channel and the counts reads from one output: for each output
        the best input.
        """
        channel = self.channel()
        prior = np.arange(len(WORDS), 0, -1) / (len(WORDS) * (len(WORDS) + 1) / 2)
        best = [0.0] * len(WORDS)
        for x in range(len(WORDS)):
            for y, chance in zip(*channel.row(x), strict=True):
                best[y] = max(best[y], prior[x] * chance)
        assert channel.posterior(prior).vulnerability == pytest.approx(sum(best))

    def test_it_is_named_and_its_parameters_are_plain(self):
        channel = self.channel()
        mechanism = self.mechanism()
        assert channel.mechanism == mechanism.name
        assert mechanism.name == "identity" or mechanisms.get(mechanism.name) is type(mechanism)
        assert all(isinstance(v, int | float | str | bool) for v in channel.parameters.values())


class TestFixedN(MechanismContract):
    def mechanism(self) -> Mechanism:
        return n_from(5, 5)


class TestRangeOfN(MechanismContract):
    def mechanism(self) -> Mechanism:
        return n_from(3, 14)


class UnknownAsKnown:
    def test_the_unknown_row_is_the_pool_or_empty(self):
        """An unknown word comes out as the known ones do: whatever the pool's size, none of its
        words stands out.
        """
        channel = self.channel(pool=4)
        outputs, _ = channel.row(len(WORDS))
        assert outputs.tolist() == np.flatnonzero(channel.written).tolist()
        assert self.channel(pool=0).row(len(WORDS))[0].size == 0


class TestClusters(UnknownAsKnown, MechanismContract):
    def mechanism(self) -> Mechanism:
        return ClusterMechanism(cluster_size=3, cluster_outputs=2, cluster_share=1)


class TestClustersInTheirOwnWords(UnknownAsKnown, MechanismContract):
    keeps_words = True

    def mechanism(self) -> Mechanism:
        return ClusterMechanism(cluster_size=3, cluster_outputs=2, cluster_words="own")


def test_fixed_n_is_uniform_over_the_first_n():
    outputs, chances = circle(low=3, high=3).row(4)
    assert outputs.tolist() == [5, 6, 7]
    assert chances == pytest.approx([1 / 3] * 3)


def test_ranged_n_has_the_rank_distribution():
    channel = circle(low=3, high=14)
    for row in range(len(WORDS)):
        outputs, chances = channel.row(row)
        assert outputs.tolist() == [(row + r) % len(WORDS) for r in range(1, 15)]
        assert chances == pytest.approx(rank_distribution(3, 14))


@pytest.mark.parametrize("low, high", [(0, 3), (4, 3), (-1, 2)])
def test_no_range_is_refused(low, high):
    with pytest.raises(ValueError, match=r"range|greater"):
        n_from(low, high)


def test_too_small_a_table_is_refused():
    with pytest.raises(ValueError, match="cannot serve N = 9"):
        compiled(n_from(3, 9), vectors_of(WORDS), all_others(WORDS, 8))


def test_pool_takes_the_most_frequent_eligible_words():
    counts = np.array([5, 50, 40, 50, 1])
    eligible = np.array([True, True, False, True, True])
    ids, chances = common_pool(counts, eligible, 3)
    assert ids.tolist() == [1, 3, 0]
    assert chances == pytest.approx([50 / 105, 50 / 105, 5 / 105])


def test_pool_without_counts_is_uniform_over_the_first():
    ids, chances = common_pool(
        np.zeros(6, dtype=np.int64), np.array([False, True, True, True, True, True]), 4
    )
    assert ids.tolist() == [1, 2, 3, 4]
    assert chances == pytest.approx([0.25] * 4)


def test_identity_over_words():
    channel = identity_channel(["a", "b"])
    assert channel.matrix().toarray().tolist() == [[1, 0], [0, 1], [0, 0]]


def test_rows_are_end_to_end():
    channel = circle()
    assert all(a <= b for a, b in pairwise(channel.indptr))
    assert channel.indptr[-1] == channel.indices.size == channel.probabilities.size


def test_every_mechanism_has_its_suite():
    tested = {suite().mechanism().name for suite in MechanismContract.__subclasses__()}
    assert tested == {*mechanisms.names()}


def test_the_mechanisms_are_found_by_name():
    assert mechanisms.names()[:2] == ("neighbours", "clusters")
