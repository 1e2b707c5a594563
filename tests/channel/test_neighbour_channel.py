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
from clinveil.core import Key

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


def test_the_unknown_row_is_the_pool_or_empty(bounds):
    outputs, chances = circle(WORDS, *bounds, pool=4).row(len(WORDS))
    assert outputs.tolist() == [0, 1, 2, 3]
    n = len(WORDS)
    assert chances == pytest.approx(np.array([n, n - 1, n - 2, n - 3]) / (4 * n - 6))
    assert circle(WORDS, *bounds, pool=0).row(len(WORDS))[0].size == 0


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
