"""Shuffled releases: who restores the order reads more than who ignores it, and more than single words say."""

from dataclasses import replace

import numpy as np
import pytest
from scenes import channel_of, right, seen, view

from clinveil.attacks.adversaries._windows import (
    MIN_PROBABILITY,
    PRIOR_PAIRS,
    USED,
    _evidence,
    count_windows,
    reordered,
    width,
)
from clinveil.attacks.adversary import AdversaryView, adversaries
from clinveil.attacks.channel._scoring import spans
from clinveil.channel.channel import identity_channel
from clinveil.channel.policy import Policy

WINDOW = Policy(shuffle="window", window=6)


def read(name, case, seed=0, **settings):
    return list(adversaries.get(name)(**settings).recover(case, np.random.default_rng(seed)))


def phrases(*, seed=0, window=6, policy=WINDOW, notes=10, others=150):
    """A language of fixed phrases of three words, whose words share their outputs with words of other phrases."""
    rng = np.random.default_rng(seed)
    n_words = 60
    rows = [rng.choice(np.delete(np.arange(n_words), i), 4, replace=False) for i in range(n_words)]
    channel = channel_of(rows, policy=policy)

    def text():
        return np.concatenate([3 * p + np.arange(3) for p in rng.integers(20, size=10)])

    def order(note):
        return np.concatenate([s + rng.permutation(min(window, note.size - s)) for s in range(0, note.size, window)])

    there = [seen(channel, note, i, rng, order=order(note)) for i, note in enumerate(text() for _ in range(notes))]
    return AdversaryView(channel, there, [n.outputs for n in there], [text() for _ in range(others)])


@pytest.fixture(scope="module")
def case():
    return phrases()


def test_who_restores_the_order_reads_more_than_others(case):
    single, pairs, restored = (right(read(name, case), case) for name in ("unigram", "bigram", "assembly"))
    assert restored > single + 0.15 and restored > pairs + 0.15


def test_restored_order_makes_longer_spans(case):
    got = read("assembly", case)
    ignored = [replace(one, order=None) for one in got]
    assert spans(case.notes, got, 60).mean() > spans(case.notes, ignored, 60).mean() + 0.5


def test_an_unprotected_release_is_read_whole(case):
    plain = replace(identity_channel(case.channel.words), policy=WINDOW)
    open_ = replace(case, channel=plain, notes=[replace(note, outputs=note.truth) for note in case.notes])
    assert right(read("assembly", open_), open_) == 1.0


def test_outputs_of_other_places_tell_nothing(case):
    flat = np.random.default_rng(1).permutation(np.concatenate([note.outputs for note in case.notes]))
    parts = np.split(flat, len(case.notes))
    mixed = replace(case, notes=[replace(n, outputs=o) for n, o in zip(case.notes, parts, strict=True)])
    assert right(read("assembly", mixed), mixed) < 0.08


@pytest.mark.parametrize("shuffle", ["window", "note"])
def test_never_below_single_words_where_windows_tell_nothing(shuffle):
    """Independent words: nothing is to be had of an order, and the attacker notices on his own notes."""
    rng = np.random.default_rng(5)
    policy = Policy(shuffle=shuffle)
    channel = channel_of([rng.choice(40, 4, replace=False) for _ in range(40)], policy=policy)
    usual = 1 / np.arange(1, 41)
    texts = [rng.choice(40, 40, p=usual / usual.sum()) for _ in range(80)]
    there = [seen(channel, note, i, rng, order=rng.permutation(40)) for i, note in enumerate(texts[:20])]
    case = AdversaryView(channel, there, others=texts[20:])
    assert right(read("assembly", case), case) > right(read("unigram", case), case) - 0.02


def test_threads_change_nothing(case):
    one, two = (read("assembly", replace(case, threads=n), sweeps=5, cooling=5) for n in (1, 2))
    assert all((a.chances == b.chances).all() and (a.order == b.order).all() for a, b in zip(one, two, strict=True))


def test_only_shuffled_releases_are_tried():
    assert not adversaries.get("assembly")().is_applicable(view())
    assert adversaries.get("assembly")().is_applicable(view(policy=WINDOW))


def test_own_notes_are_shuffled_like_the_release():
    rng = np.random.default_rng(0)
    note = np.arange(20)
    order = reordered(note, WINDOW, rng)
    assert (order // 6 == note // 6).all() and (order != note).any()
    assert sorted(reordered(note, Policy(shuffle="note"), rng)) == note.tolist()
    assert width(WINDOW) == 6 and width(Policy(shuffle="note")) == 30


def test_counts_of_windows_by_hand():
    counts = count_windows([np.array([0, 1, 2, 3, 0, 1]), np.array([4, 4])], 4, 3)
    seen_pairs = {(w, int(x)) for w in range(4) for x in counts.indices[counts.indptr[w] : counts.indptr[w + 1]]}
    assert seen_pairs == {(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1), (0, 3), (3, 0), (1, 3), (3, 1)}
    assert counts.times == 12 and counts.shares.tolist() == [2 / 6, 2 / 6, 1 / 6, 1 / 6]
    assert counts.indices[counts.indptr[0]] == 1
    assert np.isclose(counts.ratios[counts.indptr[0]], np.log((2 + 0.5) / (12 * 4 / 36 + 0.5)))


def one_by_one(begin, rows, beliefs, counts, size):
    """What `_evidence` sums, asked place by place."""

    def ratio(x, w):
        row = slice(counts.indptr[w], counts.indptr[w + 1])
        found = dict(zip(counts.indices[row].tolist(), counts.ratios[row].tolist(), strict=True))
        return found.get(x, -np.log(1 + counts.times * counts.shares[x] * counts.shares[w] / PRIOR_PAIRS))

    places = [range(begin[t], begin[t + 1]) for t in range(begin.size - 1)]
    likely = [sorted(place, key=lambda j: -beliefs[j])[:USED] for place in places]
    told = np.zeros(rows.size)
    for t, place in enumerate(places):
        first = t // size * size
        others = [w for u in range(first, min(first + size, len(places))) if u != t for w in likely[u]]
        for j in place:
            told[j] = sum(beliefs[w] * ratio(rows[j], rows[w]) for w in others if beliefs[w] > MIN_PROBABILITY)
    return told


@pytest.mark.parametrize("size", [1, 4, 30])
def test_what_windows_tell_is_what_each_word_tells_one_by_one(size):
    rng = np.random.default_rng(size)
    counts = count_windows([rng.integers(40, size=60) for _ in range(5)], 40, 6)
    begin = np.cumsum([0, *rng.integers(0, 14, size=25)])
    rows = np.concatenate([rng.choice(40, n, replace=False) for n in np.diff(begin)])
    beliefs = rng.random(rows.size) ** 4
    asked = one_by_one(begin, rows, beliefs, counts, size)
    assert np.abs(_evidence(begin, rows, beliefs, counts, size) - asked).max() < 1e-9
