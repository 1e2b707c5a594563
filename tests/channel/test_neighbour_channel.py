"""The channel of near neighbours: its rows, its floor, its pool, and what comes out of it."""

from __future__ import annotations

import numpy as np
import pytest
from channel_cases import (
    WORDS,
    all_others,
    batch_of,
    circle,
    texts_of,
)

from clinveil.channel import Channel, NeighbourRange, WordObfuscator, common_pool, neighbour_channel
from clinveil.channel.neighbour_rows import rank_distribution
from clinveil.core import Key, words
from clinveil.vectors import Neighbours

KEY = Key.from_seed(5)
NOTES = [
    (f"n{i}", f"p{i % 3}", f"Smith has PAIN in chest; José zebra {WORDS[i]} q4h 12")
    for i in range(len(WORDS))
]


@pytest.fixture(params=[(5, 5), (3, 14)], ids=["fixed", "range"])
def bounds(request):
    return request.param


def released(channel: Channel, key: Key = KEY, rows: int = 100, order: int = 1) -> list[str]:
    obfuscator = WordObfuscator(channel, key)
    notes = NOTES[::order]
    return [
        text
        for i in range(0, len(notes), rows)
        for text in texts_of(obfuscator(batch_of(*notes[i : i + rows])).batch)
    ]


def test_rows_sum_to_one(bounds):
    matrix = circle(WORDS, *bounds).matrix()
    assert matrix.shape == (len(WORDS) + 1, len(WORDS))
    assert np.asarray(matrix.sum(axis=1)).ravel() == pytest.approx(
        np.ones(len(WORDS) + 1), abs=1e-12
    )


def test_the_unknown_row_is_the_pool_or_empty(bounds):
    outputs, chances = circle(WORDS, *bounds, pool=4).row(len(WORDS))
    assert outputs.tolist() == [0, 1, 2, 3]
    n = len(WORDS)
    assert chances == pytest.approx(np.array([n, n - 1, n - 2, n - 3]) / (4 * n - 6))
    assert circle(WORDS, *bounds, pool=0).row(len(WORDS))[0].size == 0


def test_no_word_maps_to_itself(bounds):
    channel = circle(WORDS, *bounds)
    assert not any(row in channel.row(row)[0] for row in range(len(WORDS)))


def test_only_eligible_words_come_out(bounds):
    table = all_others(WORDS, bounds[1])
    eligible = np.arange(len(WORDS)) % 3 != 0
    ids = table.ids.copy()
    for row in range(len(WORDS)):
        others = [j for j in range(len(WORDS)) if eligible[j] and j != row]
        ids[row] = others[: table.k]
    floored = Neighbours(ids, table.similarities, eligible)
    pool = common_pool(np.ones(len(WORDS)), eligible, 3)
    n = NeighbourRange(low=bounds[0], high=bounds[1])
    channel = neighbour_channel(WORDS, n, floored, pool)
    assert eligible[channel.indices].all() and (channel.eligible == eligible).all()


def test_same_key_same_output_for_any_batch_size_and_order(bounds):
    channel = circle(WORDS, *bounds)
    whole = released(channel)
    assert whole == released(channel, rows=1) == released(channel, rows=7)
    assert whole == released(channel, order=-1)[::-1]
    assert whole != released(channel, Key.from_seed(6))


def test_unknown_words_never_pass(bounds):
    for text in released(circle(WORDS, *bounds)):
        assert "zebra" not in text and set(words(text)) <= set(WORDS)


def test_the_vulnerability_is_that_of_brute_force(bounds):
    """What an attacker with the channel and the counts reads from one output: for each output the
    best input.
    """
    channel = circle(WORDS, *bounds)
    prior = np.arange(len(WORDS), 0, -1) / (len(WORDS) * (len(WORDS) + 1) / 2)
    best = [0.0] * len(WORDS)
    for x in range(len(WORDS)):
        for y, chance in zip(*channel.row(x), strict=True):
            best[y] = max(best[y], prior[x] * chance)
    assert channel.posterior(prior).vulnerability == pytest.approx(sum(best))


def test_it_is_named_and_its_parameters_are_plain():
    channel = circle(low=3, high=14)
    assert channel.mechanism == "neighbours"
    assert channel.parameters == {"low": 3, "high": 14, "n_per": "occurrence"}


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
        NeighbourRange(low=low, high=high)


def test_too_small_a_table_is_refused():
    with pytest.raises(ValueError, match="cannot serve N = 9"):
        neighbour_channel(WORDS, NeighbourRange(low=3, high=9), all_others(WORDS, 8))


def test_pool_takes_the_most_frequent_eligible_words():
    counts = np.array([5, 50, 40, 50, 1])
    eligible = np.array([True, True, False, True, True])
    ids, chances = common_pool(counts, eligible, 3)
    assert ids.tolist() == [1, 3, 0]
    assert chances == pytest.approx([50 / 105, 50 / 105, 5 / 105])
