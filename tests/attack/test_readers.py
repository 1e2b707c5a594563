"""Readers who hold the channel: each reads what it can, and nothing where there is nothing to
read.
"""

from itertools import pairwise, product

import numpy as np
from scenes import channel_of, right, view

from clinveil.attacks.adversaries import bigram
from clinveil.attacks.adversaries._sequence import BigramCounts, candidates
from clinveil.attacks.adversary import ADVERSARIES, AdversaryView, NoteRows, entries


def read(name, case, seed=0, **settings):
    return list(ADVERSARIES.get(name)(**settings).recover(case, np.random.default_rng(seed)))


def test_context_reads_more_than_the_best_guess_of_each_word():
    case = view(notes=30, others=200)
    truth = np.concatenate([note.truth for note in case.notes])
    outputs = np.concatenate([note.outputs for note in case.notes])
    single = (truth == case.channel.posterior(case.prior).best[0][outputs]).mean()
    assert (
        (truth == np.argmax(case.prior)).mean() < single < right(read("bigram", case), case) - 0.1
    )


def enumerated(case, note, pairs):
    """P(word at each place | outputs), by all readings of a note; a list of dictionaries."""
    held = candidates(case)
    dense = dense_pairs(pairs)
    begin, indices = entries(held.starts, note.outputs)
    rows = held.rows[indices]
    weights = held.weights[indices]
    choices = [range(a, b) for a, b in pairwise(begin)]
    found = [dict.fromkeys(rows[list(choice)].tolist(), 0.0) for choice in choices]
    for path in product(*choices):
        said = rows[list(path)]
        p = weights[list(path)].prod() * pairs.unigram[said[0]]
        for t in range(1, said.size):
            p *= dense[said[t - 1], said[t]]
        for t, i in enumerate(path):
            found[t][int(rows[i])] += p
    return [{row: p / sum(place.values()) for row, p in place.items()} for place in found]


def dense_pairs(pairs):
    dense = pairs.backoff[:, None] * pairs.unigram
    for w in range(pairs.unigram.size):
        place = slice(pairs.indptr[w], pairs.indptr[w + 1])
        dense[w, pairs.indices[place]] += pairs.pairs[place]
    return dense


def test_pair_probabilities_sum_to_one():
    case = view()
    pairs = BigramCounts.of([*case.others, np.array([0, 40, 1])], 40).tables
    assert np.allclose(dense_pairs(pairs).sum(axis=1), 1) and np.isclose(pairs.unigram.sum(), 1)


def test_forward_backward_equals_enumeration():
    case = view(3, n_words=30, k=6, notes=4, others=40, length=5)
    pairs = BigramCounts.of(case.others, 30).tables
    for reading, note in zip(read("bigram", case), case.notes, strict=True):
        for t, place in enumerate(enumerated(case, note, pairs)):
            got = slice(reading.starts[t], reading.starts[t + 1])
            assert np.allclose(
                reading.chances[got], [place[row] for row in reading.rows[got].tolist()], atol=1e-12
            )


def test_places_without_an_input_break_the_chain():
    channel = channel_of([[2], [2], [3], [3]])
    note = NoteRows(np.array([2, 0, 3]), np.array([0, 4, 2]), 0)
    (reading,) = read("bigram", AdversaryView(channel, [note], others=[np.array([0, 1, 2])]))
    assert np.diff(reading.starts).tolist() == [2, 0, 2]
    assert np.isclose(reading.chances[:2].sum(), 1)


def test_pruning_keeps_the_likeliest_inputs(monkeypatch):
    case = view(n_words=60, k=20)
    pruned = candidates(case, 5)
    whole = candidates(case)
    for y in range(60):
        every = slice(whole.starts[y], whole.starts[y + 1])
        joint = whole.weights[every] * case.prior[whole.rows[every]]
        best = whole.rows[every][np.argsort(-joint, kind="stable")[:5]]
        assert sorted(best) == pruned.rows[every][pruned.weighed[every]].tolist()
    every = right(read("bigram", case), case)
    monkeypatch.setattr(bigram, "candidates", lambda view: candidates(view, 10))
    assert right(read("bigram", case), case) > every - 0.03
