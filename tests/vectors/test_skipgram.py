"""Skip-gram: the loop against one that is easy to read, the same bits for any workers, and nothing
left out.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from test_train import corpus_of

from clinveil import demo_corpus
from clinveil.core import InputError, words
from clinveil.corpus import rows
from clinveil.vectors import END, Plan, VectorSettings, token_lines, train, train_skipgram
from clinveil.vectors.algorithms import skipgram as room
from clinveil.vectors.algorithms.skipgram import chunks, rate, stretch
from clinveil.vectors.sentences import encoded_file, words_in

N_WORDS = 40
DIM = 7


@pytest.fixture
def notes():
    """Lines of words by falling frequency, some empty, and the counts of the words."""
    rng = np.random.default_rng(2)
    lines = [
        np.minimum(rng.geometric(0.1, n) - 1, N_WORDS - 1) for n in (0, 1, 2, 60, 5, 300, 17, 0, 41)
    ]
    ids = np.concatenate([part for line in lines for part in (line, [END])]).astype(np.int32)
    return ids, np.bincount(ids[ids != END], minlength=N_WORDS) + 1


def first_vectors():
    return ((np.random.default_rng(1).random((N_WORDS, DIM)) - 0.5) / DIM).astype(np.float32)


def trained(notes, *, workers=1, **changed):
    ids, counts = notes
    plan = {"window": 6, "negative": 4, "epochs": 2, "workers": workers, "seed": 9, **changed}
    matrix = first_vectors()
    train_skipgram(ids, counts, matrix, Plan(**plan), None)
    return matrix


def by_hand(notes, plan, chunk):
    """What `train_skipgram` does, one number after the other, in double precision."""
    ids, counts = notes
    inputs = first_vectors().astype(np.float64)
    outputs = np.zeros_like(inputs)
    share = counts / counts.sum() / room.SAMPLE
    keep = np.minimum(1, (np.sqrt(share) + 1) / share).astype(np.float32)
    chance = np.cumsum(counts.astype(float) ** 0.75) / (counts.astype(float) ** 0.75).sum()
    centres = stretch(counts, plan.window, plan.negative)
    words = int((ids != END).sum())
    before = 0
    for epoch in range(plan.epochs):
        for number, part in enumerate(chunks(ids, chunk)):
            rngs = [
                np.random.default_rng([plan.seed, epoch, number, lane])
                for lane in range(room.LANES + 1)
            ]
            kept = thinned_by_hand(part, keep, rngs[-1])
            size = int((part != END).sum())
            here = before + size
            lane_size = -(-len(kept) // room.LANES)
            for first in range(0, lane_size, centres):
                done = (before + size * first / lane_size) / words / plan.epochs
                changes = []
                for lane, rng in enumerate(rngs[:-1]):
                    one = inputs.copy()
                    two = outputs.copy()
                    last = min(lane * lane_size + min(first + centres, lane_size), len(kept))
                    for place in range(lane * lane_size + first, last):
                        centre_by_hand(kept, place, one, two, chance, plan, rate(done), rng)
                    changes.append((one - inputs, two - outputs))
                inputs += sum(change[0] for change in changes)
                outputs += sum(change[1] for change in changes)
            before = here
    return inputs


def thinned_by_hand(ids, keep, rng):
    lines = []
    line = []
    for word in ids.tolist():
        if word == END:
            lines.append(line)
            line = []
        else:
            line.append(word)
    kept = []
    for number in rng.permutation(len(lines)).tolist():
        kept += [word for word in lines[number] if keep[word] >= 1 or rng.random() < keep[word]]
        kept.append(END)
    return kept


def centre_by_hand(kept, place, inputs, outputs, chance, plan, alpha, rng):
    if kept[place] == END:
        return
    reach = 1 + int(rng.random() * plan.window)
    targets = [kept[place]]
    for _ in range(plan.negative):
        word = int(np.searchsorted(chance, rng.random()))
        if word not in targets:
            targets.append(word)
    before = []
    after = []
    for side, step in ((before, -1), (after, 1)):
        at = place + step
        while abs(at - place) <= reach and 0 <= at < len(kept) and kept[at] != END:
            side.append(kept[at])
            at += step
    around = [*reversed(before), *after]
    for pair in (around[n : n + 2] for n in range(0, len(around), 2)):
        old = inputs[pair].copy()
        held = outputs[targets].copy()
        wanted = np.array([1.0] + [0.0] * (len(targets) - 1))
        gains = alpha * (wanted - 1 / (1 + np.exp(-old @ held.T)))
        np.add.at(inputs, pair, gains @ held)
        outputs[targets] += gains.T @ old


@pytest.mark.parametrize("negative", [1, 4, 5, 8])
def test_it_learns_what_the_readable_loop_learns(negative, notes, monkeypatch):
    monkeypatch.setattr(room, "FIRST_RATE", 0.2)  # or vectors this young hardly move
    monkeypatch.setattr(room, "SAMPLE", 0.02)
    monkeypatch.setattr(room, "_CHUNK", 150)  # some chunks, and a line that is longer than one
    plan = Plan(window=6, negative=negative, epochs=2, workers=1, seed=9)
    wanted = by_hand(notes, plan, 150)
    assert np.abs(wanted - first_vectors()).max() > 0.1
    np.testing.assert_allclose(trained(notes, negative=negative), wanted, atol=2e-4)


def test_the_bits_are_those_of_any_number_of_workers(notes, monkeypatch):
    monkeypatch.setattr(room, "_CHUNK", 150)
    one = trained(notes)
    for workers in (2, 3, 4, 9):
        assert trained(notes, workers=workers).tobytes() == one.tobytes()
    assert trained(notes, seed=10).tobytes() != one.tobytes()


def test_words_in_a_file_are_those_of_the_array(tmp_path):
    texts = ["pain fever pain", "", "rash\nfever unknown"]
    known = {"pain": 0, "fever": 1, "rash": 2}
    with encoded_file(corpus_of(texts), known, token_lines, tmp_path) as ids:
        assert ids[0 : ids.size].tolist() == [0, 1, 0, END, 2, END, 1, END]
        assert [part.tolist() for part in chunks(ids, 6)] == [[0, 1, 0, END, 2, END], [1, END]]
        assert words_in(ids) == 5 == words_in(ids[0 : ids.size])
        assert ids[8:20].size == 0


def test_training_that_runs_away_begins_again_and_then_is_refused(notes, monkeypatch):
    monkeypatch.setattr(room, "UNSEEN", 10**9)
    monkeypatch.setattr(room, "_MOST_CENTRES", 64)
    begun = []
    real = room._Training

    class Watched(real):
        def __init__(self, *args):
            begun.append(args[-1])
            super().__init__(*args)

        def one_pass(self, *args):
            return self.centres < 10 and super().one_pass(*args)

    monkeypatch.setattr(room, "_Training", Watched)
    assert np.isfinite(trained(notes)).all()
    assert begun == [64, 8]
    monkeypatch.setattr(room, "FIRST_RATE", 1e30)
    with pytest.raises(InputError, match="diverged"), np.errstate(all="ignore"):
        trained(notes)


def test_no_window_crosses_a_line(tmp_path):
    """Lines of one token each give a window nothing to train on; the same tokens in one line do."""
    how = VectorSettings(algorithm="skipgram", dim=4, epochs=2)
    tables = [
        train(corpus_of([text] * 50), how, seed=1, workers=1, scratch=tmp_path, split=token_lines)
        for text in ("One\ntwo\nOne\ntwo", "One two One two")
    ]
    first = (2 * np.random.default_rng(1).random((2, 4), np.float32) - 1) / np.float32(4)
    assert [bool((table.matrix != first).any()) for table in tables] == [False, True]


@pytest.mark.slow
def test_unseen_notes_are_predicted_as_well_as_by_gensim():
    """The loss of pairs and samples in notes that were not trained on; the same settings and
    passes.
    """
    from gensim.models import Word2Vec

    texts = [words(note.text) for note in rows(demo_corpus(60, seed=3))]
    seen = texts[:-40]
    unseen = texts[-40:]
    counted = Counter(word for text in texts for word in text)
    names = sorted(counted, key=lambda word: (-counted[word], word))
    known = {word: row for row, word in enumerate(names)}
    counts = np.array([counted[word] for word in names])

    model = Word2Vec(
        vector_size=50, window=10, negative=5, sg=1, min_count=1, sorted_vocab=0, workers=1, seed=1
    )
    model.build_vocab_from_freq({word: counted[word] for word in names})
    model.train(seen, total_examples=len(seen), epochs=4)
    theirs = model.wv.vectors, model.syn1neg

    matrix = (2 * np.random.default_rng(1).random((len(names), 50), np.float32) - 1) / np.float32(
        50
    )
    ids = np.concatenate(
        [np.array([known[word] for word in text] + [END], np.int32) for text in seen]
    )
    ours = (
        matrix,
        train_skipgram(
            ids, counts, matrix, Plan(window=10, negative=5, epochs=4, workers=2, seed=1), None
        ),
    )

    told = [
        loss_of([[known[word] for word in text] for text in unseen], side, counts)
        for side in (theirs, ours)
    ]
    untrained = loss_of(
        [[known[word] for word in text] for text in unseen], (matrix, 0 * matrix), counts
    )
    assert told[1] < 1.01 * told[0] < 0.9 * untrained


def loss_of(lines, model, counts):
    """Mean over pairs at most five apart of their loss, with five samples each."""
    rng, (inputs, outputs) = np.random.default_rng(8), model
    chance = counts**0.75 / (counts**0.75).sum()
    total = pairs = 0
    for line in lines:
        row = np.array(line)
        for far in range(1, min(6, len(row))):
            for around, centre in ((row[:-far], row[far:]), (row[far:], row[:-far])):
                samples = rng.choice(len(counts), (len(row) - far, 5), p=chance)
                right = (inputs[around] * outputs[centre]).sum(1)
                wrong = np.einsum("nd,nkd->nk", inputs[around], outputs[samples])
                total += np.logaddexp(0, -right).sum() + np.logaddexp(0, wrong).sum()
                pairs += len(right)
    return total / pairs
