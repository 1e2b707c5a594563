"""Own copies: each construction that must be seen is, each that must not be is not, and the rule is
the exact one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from clinveil.attacks import copies
from clinveil.attacks.text._own_copies import MIN_PHRASE
from clinveil.corpus import memory_corpus
from clinveil.stats import allowed, copies_refused_from, fisher_from
from clinveil.stats.refusals import CAP

WORDS = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrstx"]
STOCK = " ".join(f"stock{w}" for w in WORDS[:60])


def note(rng, n=150):
    return " ".join(rng.choice(WORDS, n))


def people(seed, n, stock=0.0, words=150):
    """One note a patient; a share of them ends in a stock paragraph of 60 words."""
    rng = np.random.default_rng(seed)
    return [note(rng, words) + (f" {STOCK}" if i < stock * n else "") for i in range(n)]


def corpus(texts, side):
    return memory_corpus([(f"{side}{i}", f"{side}{i}", text) for i, text in enumerate(texts)])


def scanned(synthetic, training, held_out, spans=(50,)):
    sides = [
        corpus(texts, side)
        for side, texts in zip("sth", (synthetic, training, held_out), strict=True)
    ]
    found = copies(*sides, np.random.default_rng(0), spans=spans)
    runs = next(f for f in found if f.measure == "attack.copies_own")
    return runs, next(f for f in found if f.measure == "attack.copies_whole")


def passed(*findings):
    return [finding.count <= finding.numbers["allowed"] for finding in findings]


@pytest.mark.parametrize("stock", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(
    ("copied", "training", "held_out"), [(27, 90, 10), (6, 60, 6), (20, 85, 10), (24, 60, 4)]
)
def test_verbatim_notes_are_counted_with_and_without_stock_phrases(
    copied, training, held_out, stock
):
    trained = people(1, training, stock)
    others = people(2, held_out, stock)
    runs, whole = scanned([*people(3, training - copied, 1.0), *trained[:copied]], trained, others)
    assert (runs.count, whole.count, runs.n) == (copied, copied, training)
    assert runs.control == whole.control == 0
    assert passed(runs, whole) == [False, False]


@pytest.mark.parametrize("stock", [0.0, 0.5, 1.0])
def test_notes_of_others_with_the_same_stock_are_no_copies(stock):
    runs, whole = scanned(people(3, 60, 1.0), people(1, 60, stock), people(2, 6, stock))
    assert (runs.count, whole.count) == (0, 0)
    assert passed(runs, whole) == [True, True]


@pytest.mark.parametrize("held_out", [2, 200])
def test_one_note_is_seen_in_a_large_release(held_out):
    trained = people(1, 40)
    runs, whole = scanned([*people(3, 1_000), trained[11]], trained, people(2, held_out))
    assert (runs.count, whole.count) == (1, 1)
    assert passed(runs, whole) == [False, False]


def test_a_short_note_is_seen_whole_and_a_part_of_it_is_not():
    trained = people(1, 20, words=30)
    runs, whole = scanned([*people(3, 50), trained[4]], trained, people(2, 4))
    assert (runs.count, whole.count) == (0, 1)
    part = " ".join(trained[4].split()[:-1])
    assert [f.count for f in scanned([*people(3, 50), part], trained, people(2, 4))] == [0, 0]
    shorter = people(1, 20, words=MIN_PHRASE - 1)
    assert [f.count for f in scanned([*people(3, 50), shorter[4]], shorter, people(2, 4))] == [0, 0]


def test_a_stock_phrase_and_a_word_after_it_are_no_copy():
    """The run is as a whole nobody else's; of its 62 words two are the patient's own."""
    trained = [
        f"{text} {STOCK} {note(np.random.default_rng(100 + i), 40)}"
        for i, text in enumerate(people(1, 20))
    ]
    two = " ".join(trained[3].split()[150:212])
    runs, whole = scanned(
        [*people(3, 20), two], trained, [f"{text} {STOCK}" for text in people(2, 4)]
    )
    assert (runs.count, whole.count) == (0, 0)
    assert 2 <= runs.numbers["most_own_words"] < 10


def test_what_two_patients_share_is_their_own_and_what_three_share_is_stock():
    shared = note(np.random.default_rng(7), 100)
    for holders, count in ((1, 1), (2, 2), (3, 0)):
        trained = [
            f"{text} {shared}" if i < holders else text for i, text in enumerate(people(1, 20))
        ]
        assert scanned([*people(3, 20), shared], trained, people(2, 4))[0].count == count
    held_out = people(2, 4)
    assert (
        scanned([*people(3, 20), shared], [*people(1, 20), shared], [*held_out, f"{shared} x"])[
            0
        ].count
        == 0
    )


def test_a_note_without_words_of_its_own_cannot_be_seen_and_the_power_says_so():
    trained = [STOCK] * 5 + people(1, 15)
    whole = scanned(people(3, 20), trained, people(2, 4))[1]
    assert whole.numbers["visible"] == 15
    assert (
        whole.numbers["refused_from"] == 3
    )  # one is seen with 75 %, two with 1 - 5/20 * 4/19 = 94.7 %
    runs = scanned(people(3, 20), people(1, 20, words=40), people(2, 4))[0]
    assert (runs.numbers["visible"], runs.numbers["refused_from"]) == (0, None)


def test_one_word_in_twenty_changed_is_not_seen():
    """What an exact scan cannot do; the documentation says it."""
    trained = people(1, 20)
    changed = [
        " ".join("other" if i % 20 == 0 else w for i, w in enumerate(t.split())) for t in trained
    ]
    assert [f.count for f in scanned(changed, trained, people(2, 4))] == [0, 0]


def test_copies_below_the_floor_are_copies():
    trained = people(1, 20)
    rare = set(WORDS[:5])
    blotted = " ".join("<unk>" if w in rare else w for w in trained[2].split())
    others = [" ".join(w for w in text.split() if w not in rare) for text in people(3, 20)]
    assert [f.count for f in scanned([*others, blotted], trained, people(2, 4))] == [1, 1]


@pytest.mark.parametrize("span", [10, 20, 50])
def test_own_words_against_plain_sets(span):
    """The same counts by sets of pieces and runs, on texts of few words in which stock abounds."""
    rng = np.random.default_rng(span)
    phrases = [note(rng, 25) for _ in range(6)]

    def made(n):
        return [" ".join(rng.choice([*phrases, note(rng, 30), note(rng, 12)], 4)) for _ in range(n)]

    trained = made(12)
    others = made(6)
    synthetic = [" ".join(rng.choice([*trained, *others, *phrases], 2)) for _ in range(5)]
    runs, _ = scanned(synthetic, trained, others, spans=(span,))
    piece = min(MIN_PHRASE, span)
    made_of = [text.split() for text in synthetic]
    held = [pieces_of(text.split(), piece) for text in trained]
    foreign = set().union(*(pieces_of(text.split(), piece) for text in others))
    for row, text in enumerate(trained):
        ids = text.split()
        stock = np.zeros(len(ids), dtype=bool)
        for at in range(len(ids) - piece + 1):
            one = tuple(ids[at : at + piece])
            if one in foreign or sum(one in other for other in held) > 2:
                stock[at : at + piece] = True
        held[row] = held[row] | {("own", most_own(ids, ~stock, made_of) >= span)}
    assert runs.count == sum(("own", True) in one for one in held)
    assert 0 < runs.count < 12


def pieces_of(ids, piece):
    return {tuple(ids[i : i + piece]) for i in range(len(ids) - piece + 1)}


def most_own(ids, own, synthetic):
    """The most own words in a run that stands in a synthetic note."""
    best = 0
    for note_ids in synthetic:
        length = np.zeros((len(ids) + 1, len(note_ids) + 1), dtype=int)
        for i, word in enumerate(ids):
            for j, other in enumerate(note_ids):
                if word == other:
                    length[i + 1, j + 1] = length[i, j] + 1
                    best = max(best, int(own[i + 1 - length[i + 1, j + 1] : i + 1].sum()))
    return best


@given(st.integers(1, 60), st.integers(1, 20), st.data())
def test_the_rule_is_fishers_exact_test_within_its_cap(training, held_out, data):
    hits = data.draw(st.integers(0, held_out))
    may = allowed(training, held_out, hits)

    def p(k):
        return fisher_exact([[k, training - k], [hits, held_out - hits]], alternative="greater")[1]

    if not hits:
        assert may == 0
    elif p(training) >= 0.01:
        assert may == 0  # no power: nobody may be copied
    else:
        cap = max(hits * training // held_out, training // CAP)
        assert may <= cap
        assert may == cap or p(may + 1) < 0.01
        assert may == 0 or p(may) >= 0.01


@pytest.mark.parametrize(("share", "low", "high"), [(0.03, 0.0, 0.02), (0.3, 0.3, 0.7)])
def test_how_often_the_rule_refuses_where_copies_come_by_chance(share, low, high):
    """Each patient has a long run by chance with one probability: seldom refused below the cap,
    every second above.
    """
    rng = np.random.default_rng(0)
    may = cache(lambda by_chance: allowed(90, 10, by_chance))
    refused = 0
    tested = 0
    for _ in range(4_000):
        one = rng.binomial(90, share)
        other = rng.binomial(10, share)
        if other:
            tested += 1
            refused += one > may(other)
    assert low <= refused / tested < high


@pytest.mark.parametrize("share", [0.03, 0.3, 0.8])
def test_the_level_of_the_test_of_short_runs(share):
    rng = np.random.default_rng(0)
    least = cache(lambda by_chance: fisher_from(90, 90, 10, by_chance, 0.01))
    refused = 0
    for _ in range(4_000):
        one = rng.binomial(90, share)
        first = least(rng.binomial(10, share))
        refused += first is not None and one >= first
    assert refused / 4_000 < 0.015


def test_a_phrase_shared_across_the_split_is_a_coincidence_of_the_held_out_patient():
    """It may not be own words of training patients alone, or the test would refuse honest notes too
    often.
    """
    shared = note(np.random.default_rng(7), 60)
    trained = [*people(1, 20), f"a {shared}"]
    others = [*people(2, 4), f"b {shared}"]
    runs, _ = scanned([*people(3, 20), shared], trained, others)
    assert (runs.count, runs.numbers["held_out_copied"]) == (0, 1)


def test_one_coincidence_excuses_few():
    """Of 7 held-out patients one is copied: by Fisher's test alone 40 of 60 would be excused."""
    assert fisher_from(60, 60, 7, 1, 0.01) == 41
    assert allowed(60, 7, 1) == 8
    assert allowed(60, 60, 1) == 6


def test_numbers_count_in_a_note_that_is_a_synthetic_one():
    rng = np.random.default_rng(5)
    trained, others = (
        [
            f"{text} {' '.join(map(str, rng.integers(10, 999, 60)))}"
            for text in people(seed, 20, words=9)
        ]
        for seed in (1, 2)
    )
    whole = scanned([*people(3, 20), trained[4].replace(" ", " , ")], trained, others)[1]
    assert (whole.count, whole.numbers["visible"], whole.numbers["same_copied"]) == (1, 20, 1)
    other = trained[4][:-1] + ("1" if trained[4][-1] != "1" else "2")
    assert scanned([*people(3, 20), other], trained, others)[1].count == 0


@pytest.mark.parametrize(
    ("training", "visible", "may", "least"),
    [
        (90, 90, 0, 1),
        (90, 60, 0, 3),
        (20, 15, 0, 3),
        (90, 90, 4, 5),
        (90, 3, 4, None),
        (5, 0, 0, None),
    ],
)
def test_power_by_hand(training, visible, may, least):
    assert copies_refused_from(training, visible, may) == least
