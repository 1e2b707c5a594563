"""Notes of one patient through the memo: found under memo patient, not with fresh draws; by hand too."""

from __future__ import annotations

import string
import time
from dataclasses import replace

import numpy as np
import pytest
from scenes import random_channel

from clinveil.attacks.attack import Context
from clinveil.attacks.text.memo_links import MemoLinks, Notes, Scores, memo_links
from clinveil.channel.apply import Obfuscator
from clinveil.core.keys import Key
from clinveil.corpus.corpus import memory_corpus

rng = np.random.default_rng


def word(i):
    return "".join(string.ascii_lowercase[i // 26**k % 26] for k in range(3))


def notes_of(patients, each, n_words, draw, length=60):
    """Every note of every patient about the same things: words by Zipf."""
    share = 1 / np.arange(1, n_words + 1)
    ids = [(f"n{p}-{i}", f"p{p}") for p in range(patients) for i in range(each)]
    return [(n, p, " ".join(map(word, draw.choice(n_words, length, p=share / share.sum())))) for n, p in ids]


def context_of(memo, patients=30, each=3):
    draw = rng(0)
    channel = random_channel(400, 8, draw).under(scope=memo)
    channel = replace(channel, words=[word(i) for i in range(400)])
    source = memory_corpus(notes_of(patients, each, 400, draw))
    out = [Obfuscator(channel, Key.from_seed(1))(batch).batch for batch in source.batches()]
    rows = [(note, p, text) for b in out for note, p, text in zip(*(c.to_pylist() for c in b.columns[:3]), strict=True)]
    notes = {note: note for note, _, _ in rows}
    return Context(channel=channel, entered=source, released=memory_corpus(rows), notes=notes)


def found(context, **settings):
    top, area = MemoLinks(**settings)(context, rng(2))
    return top, area


def test_the_memo_joins_a_patients_notes_and_fresh_draws_do_not():
    top, area = found(context_of("patient"))
    assert top.value > 0.6 and area.value > 0.85 and top.n == 90 and top.low > top.control + 0.2
    assert top.chance == pytest.approx(2 / 89) and area.chance == 0.5
    assert top.control < 0.15 and abs(area.control - 0.5) < 0.1 and top.control_kind == "negative"
    fresh, fresh_area = found(context_of("occurrence"))
    assert fresh.value < 0.15 and abs(fresh_area.value - 0.5) < 0.1
    assert top.detail["scope"] == "patient" and top.low < top.value < top.high


def test_scores_by_hand():
    """Notes 0 and 1 are of one patient and share the rare word 9; note 3 has nothing in common with any."""
    words = [np.array(w) for w in ([1, 2, 9], [1, 3, 9], [1, 2, 3], [7, 8])]
    notes = Notes(list("abcd"), np.array([0, 0, 1, 2]), words)
    asked = Scores.of(notes)
    assert asked.patients.tolist() == [0, 0] and asked.blind.tolist() == [1 / 3] * 2
    weight = {1: np.log(4 / 3), 2: np.log(2), 3: np.log(2), 9: np.log(2)}
    length = np.sqrt(sum(weight[i] ** 2 for i in (1, 2, 9)))
    joint, other = weight[1] ** 2 + weight[9] ** 2, weight[1] ** 2 + weight[2] ** 2
    assert joint / length**2 == pytest.approx(other / length**2)  # by idf alone both are as near: the first is taken
    assert asked.first.tolist() == [1, 1] and asked.area.tolist() == [0.75, 0.75]


def test_nothing_to_ask_is_a_null_with_why():
    alone = Context(released=memory_corpus([("a", "p", "one two"), ("b", "q", "three")]))
    assert all(f.value is None and f.detail["why"] for f in found(alone))
    assert all(f.value is None for f in found(Context(released=memory_corpus([]))))


def test_without_the_channel_there_is_no_control():
    top, area = found(Context(released=context_of("patient").released))
    assert top.control is None and area.control is None and top.value > 0.6


def test_a_sample_takes_whole_patients():
    top, _ = found(context_of("patient"), sample=30)
    assert top.n <= 30 and top.n % 3 == 0 and top.detail["among"] == top.n


def test_two_thousand_notes_take_seconds():
    draw = rng(0)
    words = [np.unique(draw.integers(0, 3000, 120)) for _ in range(2000)]
    notes, begun = Notes([str(i) for i in range(2000)], np.arange(2000) // 4, words), time.process_time()
    memo_links(notes, None, draw)
    assert time.process_time() - begun < 4


def test_no_word_of_a_note_is_in_a_finding():
    for finding in found(context_of("patient")):
        assert not any(word(i) in str(finding.as_dict()).split() for i in range(400))
