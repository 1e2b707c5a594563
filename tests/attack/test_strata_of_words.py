"""Strata of words: each mask by hand, and what counts as a name."""

import numpy as np

from clinveil.attacks.channel.inversion import FUNCTION, name_forms, word_strata
from clinveil.channel import identity_channel


def strata(words, counts, names=()):
    masks = word_strata(identity_channel(words), np.array(counts), names)
    assert all(mask.shape == (len(words) + 1,) for mask in masks.values())
    return {name: {[*words, "?"][i] for i in np.flatnonzero(mask)} for name, mask in masks.items()}


def test_by_hand():
    words = [f"w{i}" for i in range(FUNCTION)] + ["fever", "robinson", "vaccine", "oddity"]
    found = strata(words, [200] * FUNCTION + [50, 30, 20, 19])
    assert found["all"] == {*words, "?"}
    assert found["rare"] == {"oddity", "?"}
    assert found["function"] == set(words[:FUNCTION])
    assert found["content"] == {"fever", "robinson", "vaccine", "oddity", "?"}
    assert found["names"] == {"robinson"}  # an eponym too, but no word


def test_the_most_frequent_words_are_function_words_and_words_that_do_not_occur_are_not():
    found = strata([f"w{i}" for i in range(FUNCTION + 2)], [0, *range(1, FUNCTION + 2)])
    assert "w1" in found["content"] and {"w2", f"w{FUNCTION + 1}"} <= found["function"]
    assert strata(["a", "b"], [0, 3])["function"] == {"b"}


def test_given_names_are_names_where_they_are_no_other_word():
    assert strata(["zyxwin", "blood"], [3, 4], ["Zyxwin Blood"])["names"] == {"zyxwin"}
    assert name_forms(["Zyxwin Blood", "zyxwin"]) == ({"zyxwin"}, 1)
