"""Scores of readings, by hand."""

import numpy as np
import pytest

from clinveil.attacks.adversary import AlignedNote, Recovery
from clinveil.attacks.channel import _scoring
from clinveil.attacks.channel._scoring import scored, spans


def seen(truth, patient=0, places=None):
    truth = np.array(truth)
    return AlignedNote(
        np.zeros_like(truth), truth, np.arange(truth.size) if places is None else np.array(places), patient
    )


def reading(*places):
    """A reading of (row, chance) pairs, place by place."""
    starts = np.cumsum([0, *map(len, places)])
    flat = [pair for place in places for pair in place]
    rows, chances = np.array([r for r, _ in flat], dtype=int), np.array([c for _, c in flat], dtype=float)
    return Recovery(starts, rows, chances)


CASE = [seen([4, 5, 6, 7])], [reading([(4, 0.95), (1, 0.05)], [(1, 0.6), (5, 0.4)], [], [(7, 0.3), (8, 0.3)])]


def test_first_guess_ranks_and_beliefs():
    got = scored(*CASE, 10)
    assert got.named.tolist() == [4, 1, -1, 7] and got.is_right.tolist() == [True, False, False, True]
    assert got.rank.tolist() == [1, 2, 5.5, 1]
    assert got.first(1) == 0.5 and got.first(5) == 0.75
    assert got.confident == (0.25, 1.0)


def test_who_knows_the_kind_names_none_but_such_words():
    among = np.isin(np.arange(11), [5, 6])
    got = scored(*CASE, 10, among).where(among)
    assert got.truth.tolist() == [5, 6] and got.named.tolist() == [5, -1]
    assert got.confidence.tolist() == [1.0, 0.0] and got.rank.tolist() == [1, 1.5]
    told = scored(*CASE, 10, among, 6)
    assert told.where(among).is_right.tolist() == [True, True] and told.rank[1:3].tolist() == [1, 1]
    assert told.at(np.array([True, False, False, False])).truth.tolist() == [4]


@pytest.mark.parametrize("among", [None, np.arange(11) != 4])
def test_it_makes_no_difference_how_many_notes_are_scored_at_once(among, monkeypatch):
    """A cluster has thousands of candidates, and all of a release at once took gigabytes."""
    rng = np.random.default_rng(5)
    notes = [seen(rng.integers(10, size=n), patient=i // 2) for i, n in enumerate((4, 0, 7, 1, 9))]
    pairs = [[[(r, rng.integers(1, 4) / 4) for r in range(rng.integers(6))] for _ in note.truth] for note in notes]
    readings = [reading(*places) for places in pairs]
    whole = scored(notes, readings, 10, among, 6)
    monkeypatch.setattr(_scoring, "BATCH", 10)
    assert len(list(_scoring._blocks(notes, readings))) > 2
    some = scored(notes, readings, 10, among, 6)
    for name in ("truth", "patient", "named", "rank", "confidence"):
        assert getattr(some, name).tolist() == getattr(whole, name).tolist()


def test_hits_are_counted_by_patient():
    notes = [seen([1, 2], 7), seen([3], 9), seen([4], 7)]
    got = scored(notes, [reading([(1, 1.0)], [(9, 1.0)]), reading([(3, 1.0)]), reading([(4, 1.0)])], 10)
    assert got.by_patient.tolist() == [[2, 3], [1, 1]]
    assert got.most_frequent_share == 0.25


def test_the_longest_span_follows_the_source():
    right = [[(i, 1.0)] for i in range(6)]
    assert spans([seen(range(6))], [reading(*right)], 10).tolist() == [6]
    wrong = [*right[:2], [(9, 1.0)], *right[3:]]
    assert spans([seen(range(6))], [reading(*wrong)], 10).tolist() == [3]
    shuffled = seen([2, 0, 1, 3], places=[2, 0, 1, 3])
    read = [[(i, 1.0)] for i in (2, 0, 1, 3)]
    assert spans([shuffled], [reading(*read)], 10).tolist() == [2]
    gap = seen(range(4), places=[0, 1, 5, 6])
    assert spans([gap], [reading(*right[:4])], 10).tolist() == [2]


def test_a_reading_of_another_length_is_refused():
    with pytest.raises(ValueError, match="another number of words"):
        scored([seen([1, 2])], [reading([(1, 1.0)])], 10)
