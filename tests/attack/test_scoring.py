"""Scores of readings, by hand."""

import numpy as np
import pytest

from clinveil.attacks.adversary import NoteRows, Recovery
from clinveil.attacks.channel import adversary_suite
from clinveil.attacks.channel.adversary_suite import scored, scores_by_kind


def seen(truth, patient=0):
    truth = np.array(truth)
    return NoteRows(np.zeros_like(truth), truth, patient)


def reading(*places):
    """A reading of (row, chance) pairs, place by place."""
    starts = np.cumsum([0, *map(len, places)])
    flat = [pair for place in places for pair in place]
    rows = np.array([r for r, _ in flat], dtype=int)
    chances = np.array([c for _, c in flat], dtype=float)
    return Recovery(starts, rows, chances)


CASE = (
    [seen([4, 5, 6, 7])],
    [reading([(4, 0.95), (1, 0.05)], [(1, 0.6), (5, 0.4)], [], [(7, 0.3), (8, 0.3)])],
)


def test_first_guesses():
    got = scored(*CASE)
    assert got.named.tolist() == [4, 1, -1, 7] and got.is_right.tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_who_knows_the_kind_names_none_but_such_words():
    among = np.isin(np.arange(11), [5, 6])
    got = scored(*CASE, among)
    got = got.at(among[got.truth])
    assert got.truth.tolist() == [5, 6] and got.named.tolist() == [5, -1]
    told = scored(*CASE, among, 6)
    assert told.at(among[told.truth]).is_right.tolist() == [True, True]
    assert told.at(np.array([True, False, False, False])).truth.tolist() == [4]


@pytest.mark.parametrize("among", [None, np.arange(11) != 4])
def test_it_makes_no_difference_how_many_notes_are_scored_at_once(among, monkeypatch):
    """A cluster has thousands of candidates, and all of a release at once took gigabytes."""
    rng = np.random.default_rng(5)
    notes = [seen(rng.integers(10, size=n), patient=i // 2) for i, n in enumerate((4, 0, 7, 1, 9))]
    pairs = [
        [[(r, rng.integers(1, 4) / 4) for r in range(rng.integers(6))] for _ in note.truth]
        for note in notes
    ]
    readings = [reading(*places) for places in pairs]
    whole = scored(notes, readings, among, 6)
    monkeypatch.setattr(adversary_suite, "BATCH", 10)
    assert len(list(adversary_suite._blocks(notes, readings))) > 2
    some = scores_by_kind(notes, readings, {"kind": (among, 6)})["kind"]
    for name in ("truth", "patient", "named"):
        assert getattr(some, name).tolist() == getattr(whole, name).tolist()


def test_hits_are_counted_by_patient():
    notes = [seen([1, 2], 7), seen([3], 9), seen([4], 7)]
    got = scored(notes, [reading([(1, 1.0)], [(9, 1.0)]), reading([(3, 1.0)]), reading([(4, 1.0)])])
    assert got.by_patient.tolist() == [[2, 3], [1, 1]]
    assert got.most_frequent_share == 0.25


def test_a_reading_of_another_length_is_refused():
    with pytest.raises(ValueError, match="another number of words"):
        scored([seen([1, 2])], [reading([(1, 1.0)])])
