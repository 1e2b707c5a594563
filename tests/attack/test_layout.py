"""Layout skeletons: by hand, the fast way against the tokenizer, and how many notes are alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clinveil.attacks.text.layout import _shape, layout, skeleton
from clinveil.core.tokens import tokenize
from clinveil.corpus.corpus import memory_corpus


def shares(*texts):
    notes = memory_corpus([(str(i), "p", t) for i, t in enumerate(texts)])
    return {f.measure.removeprefix("attack."): f for f in layout(notes.batches())}


def test_skeleton_by_hand():
    assert skeleton("Dr. Who, aged 904:\n\n  fine; q4h") == "a. a, a 0:\n\na; a0a"
    assert skeleton("naïve\u00a0café — 12\n") == "a a — 0\n"
    assert skeleton("") == "" and skeleton("a\x00b") == "aa"


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_fast_way_equals_the_tokenizer(text):
    assert skeleton(text) == "".join(_shape(kind, text[start:end]) for start, end, kind in tokenize(text))


def test_equal_layouts_hide_each_other():
    found = shares("no fever today", "see you soon", "no fever.", "well, 12", "sick, 7", "a b")
    unique = found["layout_unique"]
    assert unique.value == 2 / 6 and unique.n == 6  # "no fever." and "a b"
    assert unique.detail["distinct"] == 4 and unique.detail["largest"] == 2 and unique.detail["below_5"] == 1.0
    # Tokens: 3, 3, 2, 2, 2, 2.
    assert found["length_unique"].value == 0.0


def test_all_alike_and_all_alone():
    assert shares(*["one two"] * 7)["layout_unique"].value == 0.0
    assert shares(*["x " * i for i in range(5)])["layout_unique"].value == 1.0


def test_nothing_is_a_null_with_why():
    for found in (shares(), shares(None)):
        assert all(f.value is None and f.detail["why"] for f in found.values())
