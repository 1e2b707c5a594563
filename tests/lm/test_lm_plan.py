"""Plans of batches: every token once, notes by themselves, and masks that change nothing but
weights.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import InputError
from clinveil.lm import END, EncodedNotes
from clinveil.lm.plan import NO_NOTE, columns_plan, packed_plan, rows_plan


def notes_of(lengths):
    """Notes whose tokens all differ, so that a batch tells which token stands where; each ends with
    the end.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = np.arange(1, offsets[-1] + 1, dtype=np.int32)
    ids[offsets[1:] - 1] = END
    return EncodedNotes(ids, offsets, np.asarray(lengths, dtype=np.int64))


lengths_of_notes = st.lists(st.integers(1, 23), min_size=1, max_size=12)


@given(
    lengths_of_notes, st.integers(1, 5), st.integers(2, 7), st.integers(1, 3), st.integers(0, 99)
)
def test_every_token_weighs_1_once_an_epoch(lengths, lanes, window, epochs, seed):
    notes = notes_of(lengths)
    plan = rows_plan(notes, lanes=lanes, window=window, epochs=epochs, seed=seed)
    pairs = Counter()
    for step in range(plan.steps):
        batch = plan.batch(step)
        assert batch.inputs.shape == batch.targets.shape == batch.weights.shape == (window, lanes)
        assert set(np.unique(batch.weights)) <= {0.0, 1.0}
        assert batch.normaliser == max(batch.weights.sum(), 1)
        assert not batch.targets[batch.weights == 0].any()
        there = batch.weights == 1
        pairs.update(zip(batch.inputs[there].tolist(), batch.targets[there].tolist(), strict=True))
    expected = Counter()
    for row in range(len(notes)):
        note = notes.note(row).tolist()
        expected.update(zip([END, *note[:-1]], note, strict=True))
    assert pairs == Counter({pair: often * epochs for pair, often in expected.items()})


@given(lengths_of_notes, st.integers(1, 5), st.integers(2, 7), st.integers(1, 3))
def test_windows_of_a_note_follow_one_another_in_one_lane_from_a_reset(
    lengths, lanes, window, epochs
):
    plan = rows_plan(notes_of(lengths), lanes=lanes, window=window, epochs=epochs, seed=3)
    begun = Counter()
    for lane in range(lanes):
        row = NO_NOTE
        start = 0
        for step in range(plan.steps):
            now = int(plan.notes[step, lane])
            at = int(plan.starts[step, lane])
            if now == NO_NOTE:
                assert row == NO_NOTE or start >= lengths[row]
            elif at == 0:
                assert row == NO_NOTE or start >= lengths[row]  # the note before was over
                assert plan.batch(step).reset[lane]
                begun[now] += 1
            else:
                assert (now, at) == (row, start)
                assert not plan.batch(step).reset[lane]
            row = now
            start = at + window
    assert begun == Counter({row: epochs for row in range(len(lengths))})


def test_a_plan_by_hand():
    notes = notes_of([5, 2])  # 1 2 3 4 0, 6 0
    plan = rows_plan(notes, lanes=1, window=3, epochs=1, seed=0)
    assert plan.steps == plan.steps_per_epoch == 3
    first = [plan.batch(step) for step in range(3)]
    if plan.notes[0, 0] == 1:
        first = first[1:] + first[:1]
    columns = [
        (b.inputs[:, 0].tolist(), b.targets[:, 0].tolist(), b.weights[:, 0].tolist()) for b in first
    ]
    assert columns[0] == ([0, 1, 2], [1, 2, 3], [1, 1, 1])
    assert columns[1] == ([3, 4, 0], [4, 0, 0], [1, 1, 0])
    assert columns[2] == ([0, 6, 0], [6, 0, 0], [1, 1, 0])
    assert [b.normaliser for b in first] == [3.0, 2.0, 2.0]
    assert [bool(b.reset[0]) for b in first] == [True, False, True]


def test_each_epoch_has_its_own_order_and_so_has_each_seed():
    notes = notes_of([2] * 40)
    plan = rows_plan(notes, lanes=1, window=4, epochs=2, seed=0)
    one = plan.notes[:40, 0].tolist()
    two = plan.notes[40:, 0].tolist()
    assert sorted(one) == sorted(two) == list(range(40))
    assert one != two
    assert (
        rows_plan(notes, lanes=1, window=4, epochs=2, seed=0).notes.tolist() == plan.notes.tolist()
    )
    assert (
        rows_plan(notes, lanes=1, window=4, epochs=2, seed=1).notes.tolist() != plan.notes.tolist()
    )


@given(lengths_of_notes, st.integers(1, 5), st.integers(2, 7), st.data())
def test_masking_changes_weights_only(lengths, lanes, window, data):
    plan = rows_plan(notes_of(lengths), lanes=lanes, window=window, epochs=2, seed=1)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, len(lengths) - 1), min_size=1))))
    masked = plan.without(rows)
    assert not plan.masked.any()
    first = None
    for step in range(plan.steps):
        full = plan.batch(step)
        less = masked.batch(step)
        assert (full.inputs == less.inputs).all()
        assert (full.targets == less.targets).all()
        assert (full.reset == less.reset).all()
        assert full.normaliser == less.normaliser
        gone = np.isin(plan.notes[step], rows)
        assert not less.weights[:, gone].any()
        assert (full.weights[:, ~gone] == less.weights[:, ~gone]).all()
        if first is None and (full.weights != less.weights).any():
            first = step
    assert first == int(np.isin(plan.notes, rows).any(axis=1).argmax())


def test_no_note_gives_no_plan():
    with pytest.raises(InputError, match="no note"):
        rows_plan(notes_of([]), lanes=1, window=2, epochs=1, seed=0)


def slow_columns(ids, lanes, window):
    """Paper C's code: cut the text into columns, and walk down them window by window."""
    length = len(ids) // lanes
    columns = [ids[lane * length : (lane + 1) * length] for lane in range(lanes)]
    batches = []
    for start in range(0, length - 1, window):
        steps = min(window, length - 1 - start)
        inputs = [[column[start + i] for column in columns] for i in range(steps)]
        targets = [[column[start + i + 1] for column in columns] for i in range(steps)]
        batches.append((inputs, targets))
    return batches


@given(st.integers(2, 90), st.integers(1, 6), st.integers(2, 9), st.integers(1, 3))
def test_columns_against_the_slow_reference(n, lanes, window, epochs):
    ids = np.arange(n, dtype=np.int32)
    if n // lanes < 2:
        with pytest.raises(InputError, match="too few for"):
            columns_plan(ids, lanes=lanes, window=window, epochs=epochs)
        return
    plan = columns_plan(ids, lanes=lanes, window=window, epochs=epochs)
    expected = slow_columns(ids.tolist(), lanes, window)
    assert plan.steps_per_epoch == len(expected)
    assert plan.steps == len(expected) * epochs
    for step in range(plan.steps):
        batch = plan.batch(step)
        assert (batch.inputs.tolist(), batch.targets.tolist()) == expected[step % len(expected)]
        assert (batch.weights == 1).all()
        assert batch.normaliser == batch.weights.size
        assert batch.reset.tolist() == [step % len(expected) == 0] * lanes


@given(
    lengths_of_notes, st.integers(1, 5), st.integers(2, 7), st.integers(1, 3), st.integers(0, 99)
)
def test_packed_rows_are_full_and_have_every_token_once_an_epoch(
    lengths, lanes, window, epochs, seed
):
    notes = notes_of(lengths)
    plan = packed_plan(notes, lanes=lanes, window=window, epochs=epochs, seed=seed)
    masked = plan.without(np.array([0]))
    pairs = Counter()
    for step in range(plan.steps):
        batch = plan.batch(step)
        less = masked.batch(step)
        assert batch.weights.all() or step == plan.steps - 1
        there = batch.weights == 1
        pairs.update(zip(batch.inputs[there].tolist(), batch.targets[there].tolist(), strict=True))
        assert (
            np.array_equal(batch.inputs, less.inputs)
            and batch.normaliser == less.normaliser == there.sum()
        )
        of_first = np.isin(batch.targets, notes.note(0)[:-1]) | np.isin(
            batch.inputs, notes.note(0)[:-1]
        )
        assert not less.weights[of_first & (batch.inputs != END) & there].any()
    expected = Counter()
    for row in range(len(notes)):
        note = notes.note(row).tolist()
        expected.update(zip([END, *note[:-1]], note, strict=True))
    assert pairs == Counter({pair: often * epochs for pair, often in expected.items()})
