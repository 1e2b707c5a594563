"""Readers who hold the channel: each reads what it can, and nothing where there is nothing to read."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from scenes import channel_of, right, view

from clinveil.attacks.adversaries._candidates import candidates
from clinveil.attacks.adversaries._ngrams import Counts, triples
from clinveil.attacks.adversaries.bigram import Bigram
from clinveil.attacks.adversaries.language_model import ByLanguageModel, scorer_of
from clinveil.attacks.adversary import AdversaryView, AlignedNote, adversaries
from clinveil.channel.identity import identity_channel
from clinveil.lm.vocabulary import WordVocabulary

WITH_CHANNEL = ("unigram", "bigram", "trigram")


def read(name, case, seed=0, **settings):
    return list(adversaries.get(name)(**settings).recover(case, np.random.default_rng(seed)))


def plain(case):
    """The same notes, unprotected."""
    notes = [replace(note, outputs=note.truth) for note in case.notes]
    return replace(case, channel=identity_channel(case.channel.words), notes=notes)


def mixed(case, seed=0):
    """The same notes with their outputs dealt out anew."""
    flat = np.random.default_rng(seed).permutation(np.concatenate([note.outputs for note in case.notes]))
    ends = np.cumsum([len(note) for note in case.notes])[:-1]
    return replace(case, notes=[replace(n, outputs=o) for n, o in zip(case.notes, np.split(flat, ends), strict=True)])


@pytest.mark.parametrize("name", WITH_CHANNEL)
def test_an_unprotected_release_is_read_whole(name):
    case = plain(view())
    assert right(read(name, case), case) == 1.0


@pytest.mark.parametrize("name", WITH_CHANNEL)
def test_outputs_of_other_places_tell_nothing(name):
    case = mixed(view(notes=40))
    usual = np.bincount(np.concatenate([note.truth for note in case.notes])).max() / (40 * 40)
    assert right(read(name, case), case) < usual + 0.05


@pytest.mark.parametrize("name", WITH_CHANNEL)
def test_a_reading_has_positive_chances_of_at_most_one(name):
    case = view(notes=4)
    for reading, note in zip(read(name, case), case.notes, strict=True):
        assert reading.starts.shape == (len(note) + 1,) and (reading.chances > 0).all()
        place = np.repeat(np.arange(len(note)), np.diff(reading.starts))
        assert np.bincount(place, reading.chances).max() <= 1 + 1e-9


def test_who_reads_context_reads_more_than_who_does_not():
    case = view(notes=30, others=200)
    blind, single, pairs = (right(read(name, case), case) for name in ("blind", "unigram", "bigram"))
    assert blind < single < pairs - 0.1


def test_blind_names_the_most_frequent_word():
    case = view()
    top = int(np.argmax(case.prior))
    assert all(reading.rows[reading.starts[:-1]].tolist() == [top] * 40 for reading in read("blind", case))


def test_unigram_is_bayes_rule():
    channel = channel_of([[2, 3], [2], [3], [2]], [[0.25, 0.75], [1.0], [1.0], [1.0]])
    note = AlignedNote(np.array([2, 3]), np.array([0, 0]), np.arange(2), 0)
    case = AdversaryView(channel, [note], others=[np.array([0, 0, 0, 1, 1, 2])])
    (single,) = read("unigram", case)
    assert single.rows.tolist() == [0, 1, 3, 0, 2]
    weights = np.array([3.1 * 0.25, 2.1, 0.1])
    assert np.allclose(single.chances[:3], weights / weights.sum())


def enumerated(case, note, pairs, third=None):
    """P(word at each place | outputs), by all readings of a note; a list of dictionaries."""
    held, dense = candidates(case), dense_pairs(pairs)
    three = dense_triples(pairs, third, dense) if third else None
    there = held.lattice(note.outputs)
    begin, rows, weights = there.begin, there.rows, there.weights
    choices = [range(a, b) for a, b in pairwise(begin)]
    found = [dict.fromkeys(rows[list(choice)].tolist(), 0.0) for choice in choices]
    for path in product(*choices):
        said = rows[list(path)]
        p = weights[list(path)].prod() * pairs.unigram[said[0]]
        for t in range(1, said.size):
            p *= dense[said[t - 1], said[t]] if three is None or t == 1 else three[tuple(said[t - 2 : t + 1])]
        for t, i in enumerate(path):
            found[t][int(rows[i])] += p
    return [{row: p / sum(place.values()) for row, p in place.items()} for place in found]


def dense_pairs(pairs):
    dense = pairs.backoff[:, None] * pairs.unigram
    for w in range(pairs.unigram.size):
        place = slice(pairs.indptr[w], pairs.indptr[w + 1])
        dense[w, pairs.indices[place]] += pairs.pairs[place]
    return dense


def dense_triples(pairs, third, dense):
    """P(x | v, w) as a table, (n_words, n_words, n_words)."""
    table = np.repeat(dense[None], len(dense), axis=0)
    for v in range(len(dense)):
        for p in range(pairs.indptr[v], pairs.indptr[v + 1]):
            w, place = pairs.indices[p], slice(third.indptr[p], third.indptr[p + 1])
            table[v, w] *= third.backoff[p]
            table[v, w, third.indices[place]] += third.triples[place]
    return table


def test_triple_probabilities_sum_to_one():
    case = view(n_words=20)
    notes = [*case.others, np.array([0, 20, 1, 2])]
    counts = Counts.of(notes, 20)
    dense = dense_triples(counts.tables, triples(notes, counts), dense_pairs(counts.tables))
    assert np.allclose(dense.sum(axis=2), 1)


def test_three_words_in_a_row_equal_enumeration_at_full_width():
    case = view(4, n_words=30, k=6, notes=3, others=60, length=5)
    counts = Counts.of(case.others, 30)
    third = triples(case.others, counts)
    for reading, note in zip(read("trigram", case, beam=100), case.notes, strict=True):
        for t, place in enumerate(enumerated(case, note, counts.tables, third)):
            got = slice(reading.starts[t], reading.starts[t + 1])
            assert np.allclose(reading.chances[got], [place[row] for row in reading.rows[got].tolist()], atol=1e-12)


def test_a_narrow_beam_keeps_the_mass_of_what_it_drops():
    case = view(n_words=60, k=12)
    for narrow, wide in zip(read("trigram", case, beam=4), read("bigram", case), strict=True):
        place = np.repeat(np.arange(40), np.diff(wide.starts))
        assert np.allclose(np.bincount(place, narrow.chances), 1)
    assert right(read("trigram", case, beam=4), case) > 0.3


def test_pair_probabilities_sum_to_one():
    case = view()
    pairs = Counts.of([*case.others, np.array([0, 40, 1])], 40).tables
    assert np.allclose(dense_pairs(pairs).sum(axis=1), 1) and np.isclose(pairs.unigram.sum(), 1)


def test_forward_backward_equals_enumeration():
    case = view(3, n_words=30, k=6, notes=4, others=40, length=5)
    pairs = Counts.of(case.others, 30).tables
    for reading, note in zip(read("bigram", case), case.notes, strict=True):
        for t, place in enumerate(enumerated(case, note, pairs)):
            got = slice(reading.starts[t], reading.starts[t + 1])
            assert np.allclose(reading.chances[got], [place[row] for row in reading.rows[got].tolist()], atol=1e-12)


@pytest.mark.parametrize("name", ("bigram", "trigram"))
def test_places_without_an_input_break_the_chain(name):
    channel = channel_of([[2], [2], [3], [3]])
    note = AlignedNote(np.array([2, 0, 3]), np.array([0, 4, 2]), np.arange(3), 0)
    (reading,) = read(name, AdversaryView(channel, [note], others=[np.array([0, 1, 2])]))
    assert np.diff(reading.starts).tolist() == [2, 0, 2]
    assert np.isclose(reading.chances[:2].sum(), 1)


def test_pruning_keeps_the_likeliest_inputs():
    case = view(n_words=60, k=20)
    pruned, whole = candidates(case, 5), candidates(case)
    for y in range(60):
        every = slice(whole.starts[y], whole.starts[y + 1])
        joint = whole.weights[every] * case.prior[whole.rows[every]]
        best = whole.rows[every][np.argsort(-joint, kind="stable")[:5]]
        assert sorted(best) == pruned.rows[every][pruned.weighed[every]].tolist()
    assert right(read("bigram", case, max_inputs=10), case) > right(read("bigram", case), case) - 0.03


def test_threads_change_nothing():
    case = view()
    one, two = (Bigram().recover(replace(case, threads=n), np.random.default_rng(0)) for n in (1, 2))
    assert all((a.chances == b.chances).all() for a, b in zip(one, two, strict=True))


def test_a_language_model_of_any_kind_chooses_among_what_pairs_leave():
    """A model that knows each note by heart reads nearly all; one that says nothing changes nothing."""
    case = view(notes=6)
    truth = {tuple(note.truth[:t]): note.truth[t] for note in case.notes for t in range(1, len(note))}
    reader = ByLanguageModel()
    known = reader.recover_with(case, lambda read, rows: np.where(rows == truth.get(tuple(read), -1), 0.0, -20.0))
    pairs = Counts.of(case.others, 40).tables
    mute = reader.recover_with(case, lambda read, rows: np.log(pairs.unigram[rows]))
    plain_ = read("bigram", case)
    assert all(np.allclose(a.chances, b.chances) for a, b in zip(mute, plain_, strict=True))
    assert right(known, case) > right(plain_, case)


def test_our_models_are_scorers_and_begin_each_note_anew():
    case = view(notes=2)
    words = [f"x{'abcdefghij'[i // 10]}{'abcdefghij'[i % 10]}" for i in range(40)]
    channel = replace(case.channel, words=words)
    pushed = []

    class Stream:
        def probabilities(self):
            return np.full((1, 43), 1 / 43)

        def push(self, ids):
            pushed.append(int(ids[0]))

        def reset(self, lanes):
            pushed.append("reset")

    class Model:
        vocabulary = WordVocabulary(words)

        def stream(self, lanes):
            return Stream()

    score = scorer_of(Model(), channel)
    assert np.allclose(score([], np.array([3, 4])), -np.log(43))
    score([3, 5], np.array([1]))
    score([7], np.array([1]))
    ids = [Model.vocabulary.encode(words[row])[0] for row in (3, 5, 7)]
    assert pushed == [ids[0], ids[1], "reset", ids[2]]
    assert not ByLanguageModel().is_applicable(case)
