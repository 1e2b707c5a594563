"""MedText's dictionary: rare words as the paper counts."""

from __future__ import annotations

import pytest

from clinveil.corpus import dictionary, with_unknown

NOTES = ["fever and cough .\nfever .", "fever , cough .", "rash .\n<unk> <eos>"]


def test_rare_words_by_hand():
    found = dictionary(NOTES, ["a", "b", "c"], min_count=2)
    assert found.words == ("fever", "cough", ".")
    assert found.counts["fever"] == 3
    assert found.unknown_share == pytest.approx(5 / 14)  # and , rash <unk> <eos>
    kept = frozenset(found.words)
    made = [with_unknown(note, kept) for note in NOTES]
    assert made == ["fever <unk> cough .\nfever .", "fever <unk> cough .", "<unk> .\n<unk> <unk>"]


def test_words_of_few_patients_are_rare_too():
    assert dictionary(NOTES, ["a", "a", "b"], min_count=2, min_patients=2).words == (".",)
    assert dictionary(NOTES, ["a", "b", "c"], min_count=2, min_patients=2).words == (
        "fever",
        "cough",
        ".",
    )
    assert dictionary(NOTES, ["a", "b", "c"], min_count=1).words == (
        "fever",
        "and",
        "cough",
        ".",
        ",",
        "rash",
    )


def test_a_dictionary_of_nothing():
    assert dictionary([], []).unknown_share == 0.0
    assert dictionary([], []).words == ()


def test_a_dictionary_shows_no_word():
    assert "fever" not in repr(dictionary(NOTES, ["a", "b", "c"]))
