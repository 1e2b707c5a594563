"""Drawing from rows: the tables are exact, and frequencies follow the channel (chi-square)."""

from __future__ import annotations

import numpy as np
import pytest
from channel_cases import batch_of, circle, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from clinveil.channel import Channel, WordObfuscator
from clinveil.channel.neighbour_rows import rank_distribution
from clinveil.channel.tables import alias_tables
from clinveil.core import Key

DRAWS = 40_000
# Chi-square tests of true statements fail with this chance each; keys are fixed, so they do not
# flicker.
UNLIKELY = 1e-4


def channel_of(rows: list[list[float]]) -> Channel:
    """A channel over as many words as rows (the last row is of unknown words) with these
    probabilities.
    """
    words = [chr(ord("a") + i) for i in range(len(rows) - 1)]
    taken = [np.flatnonzero(row) for row in rows]
    return Channel(
        words,
        np.cumsum([0, *map(len, taken)]).astype(np.int64),
        np.concatenate(taken).astype(np.int32),
        np.concatenate([np.asarray(row)[t] for row, t in zip(rows, taken, strict=True)]),
        np.ones(len(words), dtype=np.bool_),
    )


def shares(channel: Channel, row: int) -> dict[str, float]:
    """The probability of each output that the drawing table gives, summed exactly over its
    parts.
    """
    limits, others = alias_tables(channel.indptr, channel.indices, channel.probabilities)
    outputs, _ = channel.row(row)
    found: dict[str, float] = {}
    for entry, output in enumerate(outputs):
        place = channel.indptr[row] + entry
        share = int(limits[place]) / 2**64
        for word, part in ((output, share), (others[place], 1 - share)):
            found[channel.words[word]] = found.get(channel.words[word], 0) + part / len(outputs)
    return found


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=20))
@settings(deadline=None)
def test_the_table_holds_the_row(weights):
    row = np.array(weights) / np.sum(weights)
    n = len(row)
    channel = channel_of([list(row)] + [[1.0] + [0.0] * (n - 1)] * n)
    for word, share in shares(channel, 0).items():
        assert share == pytest.approx(row[channel.ids[word]], abs=2**-45)


def drawn(channel: Channel, word: str, n: int = DRAWS, **how: str) -> dict[str, int]:
    """How often each output is drawn for a word that one note repeats."""
    obfuscator = WordObfuscator(channel.under(**how), Key.from_seed(7))
    released = texts_of(obfuscator(batch_of(("n", "p", " ".join([word] * n)))).batch)[0].split()
    assert len(released) == n
    names, counts = np.unique(released, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def agree(counts: dict[str, int], channel: Channel, row: int) -> bool:
    outputs, probabilities = channel.row(row)
    observed = [counts.pop(channel.words[i], 0) for i in outputs]
    return not counts and chisquare(observed, probabilities * DRAWS).pvalue > UNLIKELY


@pytest.mark.parametrize("low, high", [(3, 3), (5, 5), (7, 7), (9, 9), (3, 14)])
@pytest.mark.parametrize("word", ["pain", "josé", "pneumonoultramicroscopicsilicovolcanoconiosis"])
def test_frequencies_follow_the_channel(low, high, word):
    channel = circle(low=low, high=high)
    assert agree(drawn(channel, word), channel, channel.ids[word])


@pytest.mark.parametrize("word", ["zebra", "Ξένος"])
def test_unknown_words_follow_the_pool(word):
    channel = circle()
    assert agree(drawn(channel, word), channel, channel.unknown)


def test_a_wrong_channel_is_told_apart():
    """The test above has power: draws of N = 3-14 do not fit uniform draws of N = 14."""
    ranged = circle(low=3, high=14)
    uniform = circle(low=14, high=14)
    counts = drawn(ranged, "pain")
    assert agree(dict(counts), ranged, ranged.ids["pain"])
    assert not agree(dict(counts), uniform, uniform.ids["pain"])


def test_draws_of_one_note_do_not_depend_on_one_another():
    """Pairs of neighbouring draws are spread evenly over the 25 pairs of N = 5."""
    channel = circle(low=5, high=5)
    obfuscator = WordObfuscator(channel, Key.from_seed(3))
    released = texts_of(obfuscator(batch_of(("n", "p", "pain " * DRAWS))).batch)[0].split()
    pairs = np.unique(
        [f"{a} {b}" for a, b in zip(released[::2], released[1::2], strict=True)], return_counts=True
    )
    assert pairs[0].size == 25
    assert chisquare(pairs[1]).pvalue > UNLIKELY


def test_first_draws_of_many_notes_are_spread_evenly():
    channel = circle(low=5, high=5)
    notes = [(f"note {i}", "p", "pain") for i in range(DRAWS)]
    released = texts_of(WordObfuscator(channel, Key.from_seed(3))(batch_of(*notes)).batch)
    assert chisquare(np.unique(released, return_counts=True)[1]).pvalue > UNLIKELY


def test_rank_distribution_by_hand():
    assert rank_distribution(3, 3) == pytest.approx([1 / 3] * 3)
    # N is 1 or 2: rank 1 always when N = 1, half the time when N = 2.
    assert rank_distribution(1, 2) == pytest.approx([(1 + 1 / 2) / 2, (1 / 2) / 2])
    assert rank_distribution(2, 4)[3] == pytest.approx(1 / 3 * 1 / 4)


@given(st.integers(1, 40), st.integers(0, 40))
def test_rank_distribution_is_a_falling_distribution(low, more):
    ranks = rank_distribution(low, low + more)
    assert ranks.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(ranks) <= 1e-15).all()
    assert ranks[:low] == pytest.approx([ranks[0]] * low)
