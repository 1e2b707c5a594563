"""The independent look at the release counts every breach that is planted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from clinveil.channel import Channel
from clinveil.corpus import memory_corpus
from clinveil.releases.check import check_output, source_words
from clinveil.releases.crosswalk import CROSSWALK
from clinveil.scale import processes, serial

WORDS = ("pain", "ache", "fever", "okafor")


def channel():
    """pain -> ache, ache -> pain, fever -> ache, okafor -> pain; okafor is below the floor."""
    return Channel(
        WORDS,
        np.array([0, 1, 2, 3, 4, 5]),
        np.array([1, 0, 1, 0, 0], dtype=np.int32),
        np.ones(5),
        np.array([True, True, True, False]),
    )


def check(source, released, *, kept=(), dropped=()):
    crosswalk = pa.record_batch(
        [
            [f"s{i}" for i in range(len(source))],
            ["p"] * len(source),
            [f"r{i}" for i in range(len(source))],
            ["q"] * len(source),
        ],
        schema=CROSSWALK,
    )
    return check_output(
        memory_corpus([(f"s{i}", "p", t) for i, t in enumerate(source)]).batches(),
        [crosswalk],
        memory_corpus([(f"r{i}", "q", t) for i, t in enumerate(released)]).batches(),
        channel().keeping(kept).dropping(dropped),
    )


def test_a_clean_release():
    result = check(["Pain, fever 38", ""], ["ache ache", ""])
    assert (result.notes, result.words, result.compared) == (2, 2, 2)
    assert not any(
        [
            result.self_replaced,
            result.out_of_vocabulary,
            result.below_floor,
            result.stray,
            result.unmatched,
        ]
    )


@pytest.mark.parametrize(
    ("source", "released", "field"),
    [
        ("pain fever", "pain ache", "self_replaced"),
        ("pain zyzzyva", "ache zyzzyva", "out_of_vocabulary"),
        ("pain okafor", "ache okafor", "below_floor"),
        ("pain 38", "ache 38", "stray"),
        ("pain", "ache \u2014", "stray"),
        ("pain ache", "ache", "unaligned"),
    ],
)
def test_each_breach_is_counted(source, released, field):
    assert getattr(check([source], [released]), field) > 0


def test_dropped_words_are_left_out_of_the_comparison():
    result = check(["pain fever"], ["ache"], dropped=["pain"])
    assert (result.compared, result.self_replaced, result.unaligned) == (1, 0, 0)
    assert check(["ache pain"], ["pain"], dropped=["ache"]).self_replaced == 1
    assert check(["pain fever"], ["ache ache"], dropped=["pain"]).unaligned == 1


def test_unknown_words_without_an_output_are_left_out():
    channel_ = channel()
    without = Channel(
        WORDS,
        np.array([0, 1, 2, 3, 4, 4]),
        channel_.indices[:4],
        channel_.probabilities[:4],
        channel_.eligible,
    )
    notes = memory_corpus([("s0", "p", "pain zyzzyva")]).batches()
    crosswalk = pa.record_batch([["s0"], ["p"], ["r0"], ["q"]], schema=CROSSWALK)
    released = memory_corpus([("r0", "q", "ache")]).batches()
    result = check_output(notes, [crosswalk], released, without)
    assert (result.compared, result.unaligned) == (1, 0)


def test_kept_words_are_counted_apart():
    result = check(["pain fever"], ["pain ache"], kept=["pain"])
    assert (result.kept, result.self_replaced) == (1, 0)


def test_lost_extra_and_swapped_notes_are_unmatched():
    assert check(["pain", "pain"], ["ache"]).unmatched == 1
    assert check(["pain"], ["ache", "ache"]).unmatched == 1


def test_a_source_note_that_was_not_written_is_stepped_over():
    source = memory_corpus([("s9", "p", "fever"), ("s0", "p", "pain")]).batches()
    crosswalk = pa.record_batch([["s0"], ["p"], ["r0"], ["q"]], schema=CROSSWALK)
    released = memory_corpus([("r0", "q", "ache")]).batches()
    result = check_output(source, [crosswalk], released, channel())
    assert (result.notes, result.unmatched) == (1, 0)


def test_source_words_keep_a_place_for_a_word_of_nothing():
    assert source_words("Jos\u0065\u0301 \u0301 x") == ["josé", "\u0301", "x"]


def test_pieces_read_by_processes_add_up(monkeypatch):
    monkeypatch.setattr("clinveil.releases.check.PIECE", 2)
    source = ["pain fever"] * 5
    released = ["ache ache", "pain ache", "ache zyzzyva", "ache 38", "ache okafor ache"]
    crosswalk = pa.record_batch(
        [[f"s{i}" for i in range(5)], ["p"] * 5, [f"r{i}" for i in range(5)], ["q"] * 5],
        schema=CROSSWALK,
    )
    sides = [
        memory_corpus([(f"{x}{i}", "p", t) for i, t in enumerate(texts)])
        for x, texts in (("s", source), ("r", released))
    ]
    found = [
        check_output(sides[0].batches(), [crosswalk], sides[1].batches(), channel(), executor=over)
        for over in (serial, processes(2))
    ]
    assert found[0] == found[1]
    counted = (
        found[0].notes,
        found[0].words,
        found[0].self_replaced,
        found[0].out_of_vocabulary,
        found[0].unaligned,
    )
    assert counted == (5, 10, 1, 1, 2)
    assert (found[0].below_floor, found[0].stray, found[0].unmatched) == (1, 2, 0)


def test_notes_without_a_text_and_notes_that_nobody_asked_for():
    source = memory_corpus([("s9", "p", None), ("s0", "p", "pain"), ("s1", "p", None)]).batches()
    crosswalk = pa.record_batch(
        [["s0", "s1"], ["p"] * 2, ["r0", "r1"], ["q"] * 2], schema=CROSSWALK
    )
    released = memory_corpus(
        [("r0", "q", "ache"), ("r7", "q", "ache"), ("r8", "q", None)]
    ).batches()
    result = check_output(source, [crosswalk], released, channel())
    assert (result.notes, result.unmatched) == (1, 2)
