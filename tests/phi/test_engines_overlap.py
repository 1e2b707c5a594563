"""Spans of three engines that overlap: one span covers them, with the label of the longest, in any
order.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from clinveil.core import InputError, Span
from clinveil.corpus import read_names
from clinveil.phi import Finder

TEXT = "Seen at Oak Hill Clinic, Springfield by J. Moss on Monday."


class Engine:
    """An engine that reports some words of the text under a label."""

    examples = ()

    def __init__(self, name, label, score, *words):
        self.name = name
        self.labels = frozenset({label})
        self._score = score
        self._words = words
        self._label = label

    def find(self, note):
        for words in self._words:
            start = note.text.index(words)
            yield Span(start, start + len(words), self._label, self.name, self._score)


ENGINES = (
    Engine("a", "HOSPITAL", 0.6, "Oak Hill Clinic"),
    Engine("b", "CITY", 0.9, "Clinic, Springfield"),
    Engine("c", "NAME", 0.9, "Oak Hill", "Moss", "Springfield by J"),
)


def found(engines, **options):
    return [(TEXT[s.start : s.end], s.label) for s in Finder(engines, **options).find(TEXT)]


@pytest.mark.parametrize("engines", list(permutations(ENGINES)))
def test_the_union_has_the_label_of_the_longest_span(engines):
    assert found(engines) == [("Oak Hill Clinic, Springfield by J", "CITY"), ("Moss", "NAME")]


def test_a_label_that_the_policy_keeps_loses():
    assert found(ENGINES, kept=("CITY",))[0][1] == "NAME"


def test_a_list_of_names_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "names.txt"
    path.write_bytes("José Muñoz\n".encode("latin-1"))
    with pytest.raises(InputError, match="cannot be read as UTF-8 text") as refused:
        read_names(path)
    assert refused.value.exit_code == 3
    assert "\n" not in str(refused.value) and "Mu" not in str(refused.value)
