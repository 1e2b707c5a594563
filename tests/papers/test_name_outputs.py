"""What becomes of names: by hand, and edit distances against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.jamia_2020.name_outputs import _Spelling, name_outputs

from clinveil import Channel

WORDS = ("smith", "smyth", "jones", "pain", "paine")
COUNTS = np.array([30, 1, 4, 50, 15])


def channel(words=WORDS):
    """smith -> smyth or pain; smyth -> smith; jones -> jones 1/4, pain 3/4; pain -> paine;
    paine -> smith; an unknown word -> pain.
    """
    indptr = np.array([0, 2, 3, 5, 6, 7, 8])
    indices = np.array([1, 3, 0, 2, 3, 4, 0, 3], dtype=np.int32)
    chances = np.array([0.5, 0.5, 1.0, 0.25, 0.75, 1.0, 1.0, 1.0])
    return Channel(words, indptr, indices, chances, np.ones(5, dtype=bool), "by hand", {})


def named(findings, measure):
    return next(finding for finding in findings if finding.measure == f"attack.{measure}")


def slow_distance(left, right):
    rows = {(i, 0): i for i in range(len(left) + 1)} | {(0, j): j for j in range(len(right) + 1)}
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            changed = rows[i - 1, j - 1] + (left[i - 1] != right[j - 1])
            rows[i, j] = min(changed, rows[i - 1, j] + 1, rows[i, j - 1] + 1)
    return rows[len(left), len(right)]


@given(st.lists(st.text("abcÄäžz'-", max_size=6), min_size=1, max_size=12, unique=True))
def test_distances_of_a_word_to_all_words_equal_the_definition(words):
    spelling = _Spelling(words)
    for row, word in enumerate(words):
        expected = [min(slow_distance(word, other), 3) for other in words]
        assert spelling.distances(row).tolist() == expected


def test_names_by_hand():
    findings = name_outputs(channel(), ["Ann SMITH", "Smyth", "Jones"], COUNTS)
    assert named(findings, "name_unchanged").value == pytest.approx(4 * 0.25 / 35)
    assert named(findings, "name_to_name").value == pytest.approx((30 * 0.5 + 1) / 35)
    assert named(findings, "name_near").value == pytest.approx((30 * 0.5 + 1) / 35)
    assert named(findings, "name_to_name").numbers["names"] == 3
    assert named(findings, "name_to_name").n == 35


def test_chance_is_an_output_by_its_frequency():
    findings = name_outputs(channel(), ["smith", "jones"], COUNTS)
    # Outputs of 100 words: smith 1 + 15, smyth 15, jones 1, pain 18, paine 50.
    assert named(findings, "name_to_name").chance == pytest.approx((30 * 0.01 + 4 * 0.16) / 34)
    assert named(findings, "name_near").chance == pytest.approx(30 * 0.15 / 34)


@pytest.mark.parametrize("names", [[], ["Nobody"], ["..."]])
def test_no_known_name_is_a_finding_without_value(names):
    (finding,) = name_outputs(channel(), names, COUNTS)
    assert finding.value is None and "no name" in finding.why
