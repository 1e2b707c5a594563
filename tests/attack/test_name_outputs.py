"""What becomes of names: by hand, edit distance against its definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_inversion import channel_of

from clinveil.attacks.channel.inversion import inversion_names
from clinveil.study.jamia_2020.name_outputs import _Spelling, name_outputs, within

WORDS = ("smith", "smyth", "jones", "pain", "paine")
# smith -> smyth 1/2, pain 1/2; smyth -> smith; jones -> jones 1/4, pain 3/4; pain -> paine; paine
# -> smith
CHANNEL = replace(
    channel_of([{1: 0.5, 3: 0.5}, {0: 1.0}, {2: 0.25, 3: 0.75}, {4: 1.0}, {0: 1.0}, {3: 1.0}]),
    words=WORDS,
)
COUNTS = np.array([30, 1, 4, 50, 15])


def of(findings, measure, label="all names"):
    return next(
        f for f in findings if f.measure == f"attack.{measure}" and f.detail["label"] == label
    )


def slow_distance(one, other):
    rows = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            same = rows[i - 1, j - 1] + (one[i - 1] != other[j - 1])
            rows[i, j] = min(same, rows[i - 1, j] + 1, rows[i, j - 1] + 1)
    return rows[len(one), len(other)]


def codes(word):
    return np.array([ord(c) for c in word], dtype=np.int32)


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_edit_distance_equals_the_definition_up_to_two(one, other):
    assert within(codes(one), codes(other)) == min(slow_distance(one, other), 3)


@given(st.lists(st.text("abcÄäжz'-", max_size=6), min_size=1, max_size=12, unique=True))
def test_the_distances_of_a_word_to_all_equal_the_definition(words):
    spelling = _Spelling(words)
    for row, word in enumerate(words):
        assert spelling.distances(row).tolist() == [
            min(slow_distance(word, other), 3) for other in words
        ]


def test_letters_that_share_a_bit_are_still_told_apart():
    """Code points 64 apart fall into one group; the letters themselves decide."""
    words = ["aaaa", "".join(chr(ord("a") + 64) for _ in range(4)), "aaaq"]
    assert _Spelling(words).distances(0).tolist() == [0, 3, 1]


def test_one_letter_and_two_are_told_apart():
    channel = replace(CHANNEL, words=("smith", "smyth", "jones", "smythe", "paine"))
    near = of(name_outputs(channel, ["smith"], COUNTS), "name_near")
    assert (near.value, near.detail["one_letter"]) == pytest.approx((1.0, 0.5))


def test_names_by_hand():
    found = name_outputs(CHANNEL, ["Ann SMITH", "Smyth", "Jones"], COUNTS)
    assert of(found, "name_unchanged").value == pytest.approx(4 * 0.25 / 35)
    assert of(found, "name_to_name").value == pytest.approx((30 * 0.5 + 1) / 35)
    assert of(found, "name_near").value == pytest.approx((30 * 0.5 + 1) / 35)
    assert of(found, "name_to_name").detail["names"] == 3
    assert of(found, "name_to_name").n == 35


def test_chance_is_a_usual_output():
    found = of(name_outputs(CHANNEL, ["smith", "jones"], COUNTS), "name_to_name")
    # Outputs: smith 1 + 15, smyth 15, jones 1, pain 18, paine 50, of 100; smith has 30 tokens,
    # jones 4.
    assert found.chance == pytest.approx((30 * 0.01 + 4 * 0.16) / 34)
    near = of(name_outputs(CHANNEL, ["smith", "jones"], COUNTS), "name_near")
    assert near.chance == pytest.approx(30 * 0.15 / 34)


@pytest.mark.parametrize("names", [[], ["Nobody"], ["..."]])
def test_no_known_name_says_so(names):
    (found,) = name_outputs(CHANNEL, names, COUNTS)
    assert found.value is None
    assert "no name" in found.detail["why"]


def test_names_that_do_not_occur_are_left_out():
    found = of(
        name_outputs(CHANNEL, ["smith", "jones"], np.array([30, 1, 0, 50, 15])), "name_to_name"
    )
    assert found.detail["names"] == 1


def test_names_are_read_back_by_who_knows_that_a_word_is_a_name():
    (found,) = inversion_names(CHANNEL, ["Ann SMITH", "Smyth", "Jones"], COUNTS)
    # Of 30 smith, 1 smyth, 4 jones: smith at smyth (15) and at pain (15, jones has 3), smyth at
    # smith, jones at jones.
    assert found.value == pytest.approx((15 + 15 + 1 + 1) / 35) and found.n == 35
    assert found.chance == pytest.approx(30 / 35) and found.measure == "attack.inversion_names"
    assert found.control_kind == "negative" and found.control <= found.chance


def test_names_that_the_channel_does_not_know_count_too():
    """The row of unknown words always gives pain; the most frequent unknown name is the best guess
    there.
    """
    (found,) = inversion_names(
        CHANNEL, ["Jones", "Zola Zweig"], COUNTS, {"zola": 5, "zweig": 2, "zebra": 90}
    )
    assert found.n == 4 + 7 and found.value == pytest.approx((1 + 5) / 11)


def test_names_that_are_words_as_well_are_left_out():
    """Mrs. Pain: most tokens of the word are no name."""
    with_pain, without = (
        inversion_names(CHANNEL, names, COUNTS)[0] for names in (["Jones", "Pain"], ["Jones"])
    )
    assert with_pain.value == without.value and with_pain.n == without.n == 4
    assert (with_pain.detail["left_out"], without.detail["left_out"]) == (1, 0)


def test_no_name_in_the_notes_is_a_null_with_why():
    (found,) = inversion_names(CHANNEL, ["Nobody"], COUNTS)
    assert found.value is None and found.detail["why"]
