"""`Channel`: what it refuses, and kept words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from channel_cases import WORDS, circle
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.channel import Channel, WritingPolicy


def small(**changes: object) -> Channel:
    """a -> b or c, b -> c, c -> a, unknown dropped."""
    parts = {
        "words": ["a", "b", "c"],
        "indptr": np.array([0, 2, 3, 4, 4]),
        "indices": np.array([1, 2, 2, 0], dtype=np.int32),
        "probabilities": np.array([0.25, 0.75, 1.0, 1.0]),
        "eligible": np.ones(3, dtype=np.bool_),
    }
    return Channel(**{**parts, **changes})


def test_the_matrix():
    assert small().matrix().toarray().tolist() == [[0, 0.25, 0.75], [0, 0, 1], [1, 0, 0], [0, 0, 0]]
    assert (small().unknown, small().ids) == (3, {"a": 0, "b": 1, "c": 2})


def test_figures_by_hand():
    """a -> b .25, c .75; b -> c; c -> a; by tokens 4, 2, 2 they come out as a 2, b 1, c 5."""
    channel = small()
    tokens = np.array([4, 2, 2, 9])  # unknown words are dropped
    assert channel.outputs(tokens).tolist() == channel.outputs(tokens[:3]).tolist() == [2, 1, 5]
    assert channel.has_output.tolist() == [True, True, True, False]
    assert channel.rows.tolist() == [0, 0, 1, 2]
    assert channel.unchanged.tolist() == [0, 0, 0]
    assert channel.keeping(["b"]).unchanged.tolist() == [0, 1, 0]
    posterior = channel.posterior(tokens)
    assert [column.tolist() for column in posterior.best] == [[2, 0, 0], [2, 1, 3]]
    assert (posterior.vulnerability, posterior.candidates.tolist()) == (6, [1, 1, 2])
    without_a = channel.posterior(np.array([0, 2, 2, 0]))
    assert [column.tolist() for column in without_a.best] == [[2, -1, 1], [2, 0, 2]]
    assert without_a.candidates.tolist() == [1, 0, 1]


def test_the_policy_stands_with_the_channel():
    channel = circle().under(layout="keep", numbers="mask")
    assert channel.policy == WritingPolicy(layout="keep", numbers="mask")
    assert channel.keeping(["pain"]).policy == channel.policy


@pytest.mark.parametrize("name", ["indptr", "indices", "probabilities", "eligible"])
def test_the_arrays_are_read_only(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(small(), name)[0] = 1


def test_a_caller_may_go_on_writing_to_their_own_array():
    indices = np.array([1, 2, 2, 0], dtype=np.int32)
    small(indices=indices)
    indices[0] = 2


def test_the_matrix_cannot_change_the_channel():
    """Outputs stand in the order of the mechanism (the draws go by it), those of the matrix in
    their own.
    """
    channel = small(indices=np.array([2, 1, 2, 0], dtype=np.int32))
    matrix = channel.matrix()
    matrix.sort_indices()
    for part in (matrix.data, matrix.indices, matrix.indptr):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 0
    matrix.data = np.zeros(4)
    assert channel.indices.tolist() == [2, 1, 2, 0]
    assert channel.matrix().indices.tolist() == [1, 2, 2, 0]
    assert channel.matrix().data.tolist() == [0.75, 0.25, 1.0, 1.0]


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"probabilities": np.array([0.25, 0.7, 1.0, 1.0])}, "sum to 1"),
        ({"probabilities": np.array([0.0, 1.0, 1.0, 1.0])}, "not positive"),
        ({"probabilities": np.array([np.nan, 1.0, 1.0, 1.0])}, "not positive"),
        ({"probabilities": np.array([1.25, -0.25, 1.0, 1.0])}, "not positive"),
        ({"indices": np.array([1, 3, 2, 0], dtype=np.int32)}, "not in its vocabulary"),
        ({"indices": np.array([1, -1, 2, 0], dtype=np.int32)}, "not in its vocabulary"),
        ({"indptr": np.array([0, 2, 3, 4])}, "needs 4 rows"),
        ({"indptr": np.array([0, 3, 2, 4, 4])}, "needs 4 rows"),
        ({"indptr": np.array([0, 2, 3, 4, 5])}, "one probability"),
        ({"eligible": np.array([True, True, False])}, "rare-word floor"),
    ],
)
def test_what_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        small(**changes)


def test_sums_are_exact_for_many_rows():
    """Over half a million rows a running sum would be off by more than the tolerance."""
    n = 500_000
    row = np.array([1 / 3, 1 / 3, 1 / 3])
    words = [str(i) for i in range(n)]
    indices = np.tile(np.array([0, 1, 2], dtype=np.int32), n)
    Channel(
        words,
        np.append(np.arange(0, 3 * n + 1, 3), 3 * n),
        indices,
        np.tile(row, n),
        np.ones(n, dtype=np.bool_),
    )


def test_kept_words_stay_and_the_others_do_not_change():
    channel = circle()
    kept = channel.keeping(["pain", "a", "not there"])
    assert kept.kept == {"pain", "a"}
    for row in range(len(WORDS) + 1):
        outputs, chances = kept.row(row)
        if row < len(WORDS) and WORDS[row] in kept.kept:
            assert (outputs.tolist(), chances.tolist()) == ([row], [1.0])
        else:
            assert outputs.tolist() == channel.row(row)[0].tolist()
            assert chances.tolist() == channel.row(row)[1].tolist()


@given(st.sets(st.sampled_from(WORDS)), st.sets(st.sampled_from(WORDS)))
@settings(deadline=None, max_examples=50)
def test_keeping_twice_is_keeping_both(one, other):
    twice = circle().keeping(one).keeping(other)
    both = circle().keeping(one | other)
    assert twice.kept == both.kept
    assert (twice.matrix() != both.matrix()).nnz == 0


def test_dropped_words_have_empty_rows():
    channel = circle()
    dropped = channel.keeping(["b"]).dropping(["pain", "b", "not there"])
    assert [WORDS[row] for row in np.flatnonzero(~dropped.has_output)] == ["pain", "b"]
    assert dropped.kept == frozenset()
    for row in np.flatnonzero(dropped.has_output):
        assert [part.tolist() for part in dropped.row(row)] == [
            part.tolist() for part in channel.row(row)
        ]
    back = dropped.keeping(["pain", "b"])
    assert (back.matrix() != channel.keeping(["pain", "b"]).matrix()).nnz == 0
    assert back.keeping(["a"]).dropping(WORDS).indices.size == channel.row(channel.unknown)[0].size


def test_a_kept_word_may_lie_below_the_floor():
    channel = circle()
    eligible = channel.eligible.copy()
    unused = WORDS.index("smith")
    reached = np.isin(channel.indices, [unused])
    with pytest.raises(ValueError):
        replace(channel, eligible=np.where(np.arange(len(WORDS)) == unused, False, eligible))
    assert reached.any()
    kept = channel.keeping(["smith"])
    replace(kept, eligible=np.where(np.arange(len(WORDS)) == unused, False, eligible))


def test_the_repr_holds_no_word():
    assert not any(word in repr(circle().keeping(["smith"])) for word in ("smith", "josé", "chest"))
