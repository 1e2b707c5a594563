"""Common runs: against a plain double loop, by hand, and on long repetitive texts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.attacks.suffix_automaton import ABSENT, BREAK, SuffixAutomaton, Vocabulary


def plain(text, others):
    """The longest suffix of text[:i+1] that stands in some other text."""

    def stands(run):
        return any(other[j : j + len(run)] == run for other in others for j in range(len(other)))

    def longest(end):
        candidates = [text[start:end] for start in range(end)]
        return max((len(run) for run in candidates if BREAK not in run and stands(run)), default=0)

    return [longest(i + 1) for i in range(len(text))]


def runs(text, others):
    automaton = SuffixAutomaton(np.array(text, dtype=np.int32))
    for other in others:
        automaton.stream(np.array(other, dtype=np.int32))
    return automaton.runs().tolist()


def test_a_text_holds_itself_and_nothing_of_strangers():
    text = list(range(50)) + list(range(20))
    assert runs(text, [text]) == list(range(1, 71))
    assert runs(text, [[ABSENT] * 9, []]) == [0] * 70
    assert runs(text, []) == [0] * 70


TEXTS = st.lists(st.integers(0, 2), max_size=14)


@given(st.lists(st.integers(0, 2) | st.just(BREAK), max_size=18), st.lists(TEXTS, max_size=4))
@settings(max_examples=300, deadline=None)
def test_equals_the_double_loop(text, others):
    assert runs(text, others) == plain(text, others)


@given(
    st.lists(st.integers(0, 30), max_size=60),
    st.lists(st.lists(st.integers(-1, 30), max_size=60), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_double_loop_with_many_words(text, others):
    assert runs(text, others) == plain(text, [[w if w >= 0 else ABSENT for w in o] for o in others])


def test_long_repetitive_texts_are_linear_and_right():
    rng = np.random.default_rng(1)
    text = np.tile(rng.integers(0, 5, 40), 2500).astype(
        np.int32
    )  # 100,000 words of one repeated phrase
    automaton = SuffixAutomaton(text)
    automaton.stream(text[:500])
    assert automaton.runs().max() == 500
    automaton.stream(text)
    assert automaton.runs().tolist() == list(range(1, text.size + 1))


def test_vocabulary():
    vocabulary = Vocabulary()
    assert vocabulary.add(["a", "b", "a"]).tolist() == [0, 1, 0]
    assert vocabulary.ids(["b", "zzz", "a"]).tolist() == [1, ABSENT, 0]
    assert vocabulary.add(["c"]).tolist() == [2]
