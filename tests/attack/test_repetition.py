"""Repeats: by hand, exact against simulated, what the memo changes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from test_inversion import COUNTS, HALVES, channel_of, constant, identity

from clinveil.attacks.channel import repetition
from clinveil.attacks.channel.inversion import inversion
from clinveil.attacks.channel.repetition import repeated


def by_repeats(channel, counts, scope="occurrence", stratum="all", **named):
    found = repeated(
        channel.under(scope=scope), np.asarray(counts), rng=np.random.default_rng(1), **named
    )
    return {f.detail["repeats"]: f for f in found if f.detail["stratum"] == stratum}


def neighbours(n, k, seed):
    rng = np.random.default_rng(seed)
    others = [np.delete(np.arange(n), i) for i in range(n)]
    return channel_of(
        [{int(y): 1 / k for y in rng.choice(o, k, replace=False)} for o in others] + [{}]
    )


def test_two_draws_by_hand():
    # 00 is word 3 (1 token); 01, 10 word 2 (.5 each); 02, 20 word 1 (.75 each); 11, 12, 21, 22 word
    # 0 (1 each).
    found = by_repeats(HALVES, COUNTS, repeats=(1, 2))
    assert found[1].value == pytest.approx(0.55)
    assert found[2].value == pytest.approx((1 + 1 + 1.5 + 4) / 10)
    assert found[2].method == "exact, no sampling" and found[2].chance == 0.4


def test_one_draw_is_the_exact_figure_of_inversion():
    channel = neighbours(40, 5, 1)
    counts = np.arange(1, 41)
    exact = {f.measure: f.value for f in inversion(channel, counts)}
    assert by_repeats(channel, counts)[1].value == pytest.approx(exact["attack.inversion"])
    rare = by_repeats(channel, counts, stratum="below 20")[1].value
    assert rare == pytest.approx(exact["attack.inversion_rare"])


def test_simulated_agrees_with_enumerated(monkeypatch):
    channel = neighbours(25, 4, 2)
    counts = np.arange(3, 28)
    exact = by_repeats(channel, counts, repeats=(1, 2, 3))
    monkeypatch.setattr(repetition, "EXACT_CASES", 0)
    drawn = by_repeats(channel, counts, repeats=(1, 2, 3))
    for m in (1, 2, 3):
        assert drawn[m].value == pytest.approx(exact[m].value, abs=0.015)
        assert drawn[m].low < drawn[m].value < drawn[m].high and "20000" in drawn[m].method
        assert drawn[m].control == pytest.approx(exact[m].control, abs=0.01)


def test_every_line_of_outputs_names_the_likeliest_word_whatever_their_order():
    channel = neighbours(12, 3, 4)
    counts = np.arange(1, 13)
    guesser = repetition.Guesser(repetition.Inputs(channel, counts).all)
    seen = np.random.default_rng(1).permuted(
        repetition._draw(guesser.band, 3, 200, np.random.default_rng(2)).observed, axis=1
    )
    joint = channel.matrix().toarray()[:12] * 1.0
    likely = counts[:, None] * joint[:, seen].prod(axis=2)
    assert (
        np.take_along_axis(likely, guesser.guess(seen)[None], axis=0)[0] == likely.max(axis=0)
    ).all()
    assert guesser.guess(seen).tolist() == guesser.guess(seen[:, ::-1]).tolist()


def test_more_draws_give_more():
    found = by_repeats(neighbours(200, 7, 3), np.arange(200, 0, -1))
    shares = [found[m].value for m in (1, 2, 3, 5, 8)]
    assert shares == sorted(shares) and shares[-1] > 0.99 > 0.5 > shares[0]


@pytest.mark.parametrize(
    "scope, places",
    [
        ("occurrence", "places"),
        ("note", "notes"),
        ("patient", "patients"),
        ("corpus", "releases"),
        ("rare", "places"),
    ],
)
def test_the_memo_says_where_several_draws_stand(scope, places):
    """A name that stands in several patients' notes gives several draws also under memo patient."""
    channel = neighbours(60, 5, 4)
    counts = np.arange(60, 0, -1)
    found = by_repeats(channel, counts, scope)
    assert found[5].detail["draws"] == 5 and found[5].detail["draws_stand_in"] == places
    assert found[1].value < found[2].value < found[8].value
    assert (found[2].unit, found[2].control_kind) == ("tokens", "negative")


def test_controls_identity_gives_all_and_constant_what_guessing_gives():
    for m, found in by_repeats(identity(6), [9, 5, 4, 3, 2, 1]).items():
        assert found.value == 1.0, m
    for m, found in by_repeats(constant(6), [9, 5, 4, 3, 2, 1]).items():
        assert found.value == pytest.approx(9 / 24) == found.chance, m


def test_unknown_words_share_a_row_and_repeats_do_not_tell_them_apart():
    channel = channel_of([{0: 1.0}, {1: 0.5, 0: 0.5}, {0: 0.5, 1: 0.5}])
    found = by_repeats(channel, [1, 1], "note", unknown=np.array([5, 3]), repeats=(8,))[8]
    # All eight outputs 0: word 0 (1 token) is named, else the unknown word of 5 tokens; the one of
    # 3 never is.
    assert found.value == pytest.approx((1 + 5 * 255 / 256) / 10)


def test_no_rare_word_is_a_null_with_why():
    found = repeated(
        identity(2).under(scope="note"), np.array([50, 60]), rng=np.random.default_rng(1)
    )
    assert found[-1].value is None and found[-1].detail["why"]


def test_the_same_seed_gives_the_same_figures():
    channel = neighbours(300, 9, 5)
    counts = np.arange(300, 0, -1)
    assert by_repeats(channel, counts, draws=500) == by_repeats(channel, counts, draws=500)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("rare", [4, 7])
def test_no_guesser_does_better_with_several_draws_of_a_stratum(m, rare):
    """Every type on its own, known and unknown, and every line of m outputs, in plain Python."""
    rows = [
        {1: 0.5, 2: 0.3, 3: 0.2},
        {0: 0.6, 2: 0.4},
        {3: 0.5, 0: 0.5},
        {2: 0.7, 1: 0.3},
        {0: 0.1, 1: 0.6, 2: 0.3},
    ]
    counts = [9, 5, 3, 2]
    unknown = [6, 3, 1]
    types = [*enumerate(counts), *((4, n) for n in unknown)]
    channel = channel_of(rows).under(scope="note")
    rng = np.random.default_rng(1)
    found = repeated(channel, np.array(counts), np.array(unknown), rng=rng, repeats=(m,), rare=rare)
    for finding, limit in zip(found, (99, rare), strict=True):
        part = [(row, n) for row, n in types if n < limit]
        best = sum(
            max(n * np.prod([rows[row].get(y, 0.0) for y in line]) for row, n in part)
            for line in product(range(4), repeat=m)
        )
        assert finding.value == pytest.approx(best / sum(n for _, n in part))
        assert finding.chance == pytest.approx(max(n for _, n in part) / sum(n for _, n in part))


def test_rare_words_are_read_back_by_who_looks_for_them():
    """A frequent word hides two rare ones from a guesser of all words, not from one who wants the
    rare ones.
    """
    channel = channel_of([{1: 0.5, 2: 0.5}, {2: 1.0}, {1: 1.0}, {}])
    counts = np.array([1000, 3, 3])
    for m in (1, 2):
        assert by_repeats(channel, counts, "note", "below 20", repeats=(m,))[m].value == 1.0
