"""Token inversion: by hand, identity and constant channels, and against a guesser that is played
out.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.attacks import inversion
from clinveil.attacks.channel.inversion import Inputs
from clinveil.channel import Channel
from clinveil.core import InputError


def channel_of(rows: list[dict[int, float]]) -> Channel:
    """A channel of `len(rows) - 1` words; the last row is for unknown words."""
    entries = [(y, p) for row in rows for y, p in sorted(row.items())]
    return Channel(
        words=[f"w{i}" for i in range(len(rows) - 1)],
        indptr=np.cumsum([0] + [len(row) for row in rows]).astype(np.int64),
        indices=np.array([y for y, _ in entries], dtype=np.int32),
        probabilities=np.array([p for _, p in entries], dtype=np.float64),
        eligible=np.ones(len(rows) - 1, dtype=bool),
    )


# Four words seen 4, 3, 2, 1 times. Output 0 can be 1 (1.5 tokens), 2 (1) or 3 (1); output 1 can be
# 0 (2) or 2 (1); output 2 can be 0 (2) or 1 (1.5). The best guesser wins 1.5 + 2 + 2 = 5.5 of 10
# tokens.
HALVES = channel_of([{1: 0.5, 2: 0.5}, {0: 0.5, 2: 0.5}, {0: 0.5, 1: 0.5}, {0: 1.0}, {}])
COUNTS = np.array([4, 3, 2, 1])


def identity(n: int) -> Channel:
    return channel_of([{i: 1.0} for i in range(n)] + [{}])


def figures(channel, counts, unknown=(), rare=20):
    found = inversion(channel, np.asarray(counts), np.array(unknown, dtype=np.int64), rare=rare)
    return {f.measure.removeprefix("attack."): f for f in found}


def test_by_hand():
    found = figures(HALVES, COUNTS, rare=3)
    overall = found["inversion"]
    assert (
        overall.value == pytest.approx(0.55)
        and overall.chance == pytest.approx(0.4)
        and overall.n == 10
    )
    # Outputs 0, 1, 2 come 3.5, 3, 3.5 times; named are words 1, 0, 0, which are 3, 4, 4 of 10
    # tokens.
    assert overall.control == pytest.approx(0.35 * 0.3 + 0.3 * 0.4 + 0.35 * 0.4)
    # Who knows that the word is rare (2 or 1 tokens): word 3 (1) or 2 (1) at output 0, word 2 (1)
    # at output 1.
    rare = found["inversion_rare"]
    assert (
        rare.value == pytest.approx(2 / 3) and rare.chance == pytest.approx(2 / 3) and rare.n == 3
    )
    # Of the rare tokens' outputs, 0 comes 2 times and 1 once; named are words 2 and 2 (ties go to
    # the first).
    assert rare.control == pytest.approx(2 / 3)
    assert (rare.unit, rare.method, rare.control_kind) == (
        "tokens",
        "exact, no sampling",
        "negative",
    )
    assert found["inversion_single"].value == 0.0
    assert all(f.source and f.better for f in found.values())


def test_an_output_with_one_input_is_single_only_among_words_that_occur():
    channel = channel_of([{1: 1.0}, {2: 0.5, 3: 0.5}, {3: 1.0}, {3: 1.0}, {}])
    assert figures(channel, [5, 4, 3, 2])["inversion_single"].value == pytest.approx((5 + 2) / 14)
    assert figures(channel, [5, 4, 0, 0])["inversion_single"].value == 1.0


def test_unknown_words_are_one_input_each_and_only_the_most_frequent_can_be_named():
    channel = channel_of([{0: 1.0}, {1: 1.0}, {1: 1.0}])
    found = figures(channel, [10, 2], unknown=[4, 3, 1], rare=5)
    # Output 1: word 1 has 2 tokens, unknown words 4, 3 and 1; the unknown word of 4 is named: 14 of
    # 20.
    assert found["inversion"].value == pytest.approx(14 / 20) and found["inversion"].n == 20
    # Rare are word 1 (2 tokens) and all unknown words: the unknown word of 4 is named.
    assert found["inversion_rare"].value == pytest.approx(4 / 10)
    # Below 4: word 1 (2), unknown 3 and 1. The unknown word of 3 is the likeliest of these.
    rarer = figures(channel, [10, 2], unknown=[4, 3, 1], rare=4)["inversion_rare"]
    assert rarer.value == pytest.approx(3 / 6) and rarer.chance == pytest.approx(3 / 6)
    assert found["inversion_single"].value == pytest.approx(0.5)


def test_dropped_tokens_are_left_out_and_counted():
    channel = channel_of([{1: 1.0}, {}, {}])
    found = figures(channel, [3, 5], unknown=[2])["inversion"]
    assert found.value == 1.0 and found.n == 3 and found.numbers["dropped"] == 7


def test_no_rare_word_is_a_null_with_why():
    found = figures(identity(2), [50, 60])["inversion_rare"]
    assert found.value is None and found.why


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ([1, 2, 3], ValueError, "4 words in the channel, but counts of shape"),
        ([-1, 2, 3, 4], ValueError, "negative"),
        ([0, 0, 0, 0], InputError, "no token comes out of this channel"),
    ],
)
def test_counts_that_do_not_fit_are_refused(counts, error, message):
    with pytest.raises(error, match=message):
        inversion(HALVES, np.array(counts))


@st.composite
def channels(draw):
    n = draw(st.integers(2, 8))
    rows = []
    for _ in range(n):
        outputs = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4, unique=True))
        weights = draw(st.lists(st.integers(1, 9), min_size=len(outputs), max_size=len(outputs)))
        rows.append({y: w / sum(weights) for y, w in zip(outputs, weights, strict=True)})
    counts = draw(st.lists(st.integers(0, 40), min_size=n, max_size=n).filter(any))
    return channel_of([*rows, {}]), np.array(counts)


@given(channels())
@settings(max_examples=60, deadline=None)
def test_the_figures_equal_ten_plain_lines(case):
    channel, counts = case
    joint = (channel.matrix().toarray()[:-1].T * counts / counts.sum()).T
    found = figures(channel, counts)
    output = joint.sum(axis=0)
    assert found["inversion"].value == pytest.approx(joint.max(axis=0).sum())
    assert found["inversion_single"].value == pytest.approx(
        output[(joint > 0).sum(axis=0) == 1].sum()
    )
    assert found["inversion"].value >= found["inversion"].chance - 1e-12
    assert found["inversion"].control <= found["inversion"].chance + 1e-12


def test_the_exact_share_is_what_the_guesser_wins_when_it_is_played_out():
    rng = np.random.default_rng(3)
    n = 30
    rows = [{int(y): 1 / 5 for y in rng.choice(n, 5, replace=False)} for _ in range(n)]
    channel = channel_of([*rows, {}])
    counts = rng.zipf(1.6, n).clip(1, 400)
    inputs = Inputs(channel, counts)
    hidden = rng.choice(n, size=40_000, p=counts / counts.sum())
    seen = np.array([rng.choice(channel.row(x)[0]) for x in hidden])
    rare = counts[hidden] < 20
    for part, some in ((inputs.all, counts[hidden] > 0), (inputs.below(20), rare)):
        right = part.posterior.best[0][seen] == hidden
        assert part.recovered == pytest.approx(right[some].mean(), abs=0.02)
        shuffled = part.posterior.best[0][rng.permutation(seen[some])] == hidden[some]
        assert part.shuffled == pytest.approx(shuffled.mean(), abs=0.02)


@given(channels(), st.lists(st.integers(1, 40), max_size=4), st.integers(2, 41))
@settings(max_examples=60, deadline=None)
def test_no_guesser_of_a_stratum_does_better(case, unknown, rare):
    """Every type on its own, known and unknown, by enumeration: the likeliest of the stratum at
    each output.
    """
    channel, counts = case
    channel = with_unknown_row(channel)
    found = figures(channel, counts, unknown, rare)
    types = [(row, n) for row, n in enumerate(counts.tolist())] + [
        (channel.unknown, n) for n in unknown
    ]
    for name, limit in (("inversion", 99), ("inversion_rare", rare)):
        part = [(row, n) for row, n in types if 0 < n < limit]
        if not part:
            assert found[name].value is None
            continue
        table = channel.matrix().toarray()
        best = sum(max(n * table[row, y] for row, n in part) for y in range(len(channel.words)))
        tokens = sum(n for _, n in part)
        assert found[name].value == pytest.approx(best / tokens)
        assert found[name].chance == pytest.approx(max(n for _, n in part) / tokens)
        assert (
            found[name].value >= found[name].chance - 1e-12
            and found[name].control <= found[name].chance + 1e-12
        )


def with_unknown_row(channel: Channel) -> Channel:
    """The same channel with the row of its first word for unknown words, too."""
    rows = [
        dict(zip(*(part.tolist() for part in channel.row(i)), strict=True))
        for i in range(len(channel.words))
    ]
    return channel_of([*rows, rows[0]])
