"""Names recovered from one draw by an attacker who knows that a word is a name: by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_inversion import channel_of

from clinveil.attacks.channel.inversion import inversion_names

WORDS = ("smith", "smyth", "jones", "pain", "paine")
# smith -> smyth 1/2, pain 1/2; smyth -> smith; jones -> jones 1/4, pain 3/4; pain -> paine; paine
# -> smith
CHANNEL = replace(
    channel_of([{1: 0.5, 3: 0.5}, {0: 1.0}, {2: 0.25, 3: 0.75}, {4: 1.0}, {0: 1.0}, {3: 1.0}]),
    words=WORDS,
)
COUNTS = np.array([30, 1, 4, 50, 15])


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
    assert (with_pain.numbers["left_out"], without.numbers["left_out"]) == (1, 0)


def test_no_name_in_the_notes_is_a_null_with_why():
    (found,) = inversion_names(CHANNEL, ["Nobody"], COUNTS)
    assert found.value is None and found.why
