"""Writing notes: against a plain loop, the same for any number of lanes, cut, shaped, as likely as
the model says.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_cases import LSTM, PRETRAINED, VOCABULARY, encoded_of, model_of

from clinveil.core import Key
from clinveil.lm import END, SamplingConfig, WordVocabulary, generate, train_unigram
from clinveil.lm.models.ngram import add_shares
from clinveil.lm.models.unigram import Unigram
from clinveil.lm.sampling import drawn

KEY = Key.from_seed(5)
BLOCK = 256  # numbers of a stream


def slow_draw(row, number):
    """The first word whose cumulated probability exceeds the number."""
    wanted = number * np.cumsum(row)[-1]
    total = 0.0
    last = max(word for word, chance in enumerate(row) if chance > 0)
    for word, chance in enumerate(row):
        total += chance
        if total > wanted:
            return min(word, last)
    return last


chances = st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda row: sum(row) > 1e-6)


@given(st.lists(chances, min_size=1, max_size=5), st.floats(0, 1, exclude_max=True))
def test_drawn_against_a_plain_loop(rows, number):
    found = drawn(np.array(rows), np.full(len(rows), number))
    assert found.tolist() == [slow_draw(row, number) for row in rows]
    assert all(row[word] > 0 for row, word in zip(rows, found, strict=True))


def first(model, n, *, start=0, key=KEY, **how):
    return list(islice(generate(model, key, SamplingConfig(**how), first=start), n))


def plainly(notes):
    return [(note.number, note.ids.tolist(), note.truncated) for note in notes]


def unigram_of(counts):
    return Unigram(
        WordVocabulary([f"u{i}" for i in range(len(counts) - 3)]),
        np.array(counts, dtype=np.int64) * 10**12,
    )


def networks():
    pytest.importorskip("torch", reason="the extra [neural] is not installed")
    found = {"lstm": model_of(LSTM, sharpen=0.4), "pretrained": model_of(PRETRAINED, sharpen=0.3)}
    for model in found.values():
        model.network.double()
    return {**found, "unigram": train_unigram(encoded_of(), VOCABULARY)}


def test_a_network_writes_what_its_numbers_say():
    """Note by note with a stream of one lane: invert the cumulated probabilities at the note's own
    numbers.
    """
    model = networks()["pretrained"]
    for note in first(model, 4, batch_size=3, max_new_tokens=30):
        seed = KEY.stream("synthetic note", str(note.number))
        numbers = np.random.Generator(np.random.Philox(key=[seed.uint64(), seed.uint64()])).random(
            BLOCK
        )
        stream = model.stream(1)
        ids = []
        for number in numbers[:30]:
            word = slow_draw(stream.probabilities()[0], number)
            if word == END:
                break
            ids.append(word)
            stream.push(np.array([word]))
        assert note.ids.tolist() == ids
        assert note.truncated == (len(ids) == 30)


def test_notes_longer_than_a_block_of_numbers_go_on():
    model = unigram_of([1, 0, 0, 1000, 1000])
    one = first(model, 5, batch_size=1)
    other = first(model, 5, batch_size=4)
    assert plainly(one) == plainly(other)
    longest = max(one, key=lambda note: note.ids.size)
    assert longest.ids.size > 2 * BLOCK
    assert longest.ids[:BLOCK].tolist() != longest.ids[BLOCK : 2 * BLOCK].tolist()


def test_long_notes_are_cut_and_flagged():
    model = unigram_of([1, 0, 0, 5, 5])
    whole = first(model, 60, batch_size=4)
    cut = first(model, 60, batch_size=4, max_new_tokens=8)
    assert {note.truncated for note in cut} == {False, True}
    for one, other in zip(whole, cut, strict=True):
        assert other.truncated == (one.ids.size >= 8)
        assert other.ids.tolist() == one.ids[:8].tolist()
        assert END not in other.ids
    assert not any(note.truncated for note in whole)


def test_a_model_that_only_ends_writes_empty_notes_in_order():
    notes = first(unigram_of([1, 0, 0, 0, 0]), 7, start=3, batch_size=4)
    assert plainly(notes) == [(number, [], False) for number in range(3, 10)]


def frequencies(**how):
    notes = first(unigram_of([10, 20, 0, 30, 40]), 1500, batch_size=16, **how)
    seen = np.bincount(np.concatenate([note.ids for note in notes]), minlength=5).astype(float)
    seen[END] = len(notes)
    return seen / seen.sum()


def test_temperature_by_hand():
    for temperature in (0.5, 1.0, 2.0):
        powers = np.array([0.1, 0.2, 1e-300, 0.3, 0.4]) ** (1 / temperature)
        powers[2] = 0
        assert frequencies(temperature=temperature) == pytest.approx(
            powers / powers.sum(), abs=0.02
        )


@pytest.mark.parametrize(
    "how",
    [
        {"batch_size": 0},
        {"max_new_tokens": 0},
        {"temperature": 0},
        {"temperature": float("nan")},
    ],
)
def test_drawings_that_make_no_sense_are_refused(how):
    with pytest.raises(ValueError, match="must be positive"):
        SamplingConfig(**how)


def test_a_note_shows_none_of_itself():
    note = first(unigram_of([10, 20, 0, 30, 40]), 1)[0]
    assert "ids" not in repr(note)


def test_the_compiled_loop_adds_what_the_contexts_of_each_lane_explain():
    rng = np.random.default_rng(3)
    starts = np.array([0, 3, 4, 9], dtype=np.int64)
    tokens = np.array([1, 4, 6, 2, 0, 1, 2, 5, 6], dtype=np.int64)
    shares = rng.random(9)
    chances = rng.random((5, 7))
    lanes = np.array([0, 2, 4], dtype=np.int64)
    rows = np.array([2, 0, 2], dtype=np.int64)
    factors = rng.random(3)
    expected = chances.copy()
    for lane, row, factor in zip(lanes, rows, factors, strict=True):
        place = slice(starts[row], starts[row + 1])
        expected[lane, tokens[place]] += factor * shares[place]
    add_shares(lanes, rows, factors, starts, tokens, shares, chances)
    assert np.array_equal(chances, expected)
