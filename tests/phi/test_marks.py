"""Marks of words: asked once a word, all together."""

import pytest

from clinveil.phi import Tokens
from clinveil.phi.matching.wordtable import Marks


def test_each_question_has_its_bit_and_late_ones_are_asked_of_known_words():
    marks = Marks()
    found = Tokens("one three three five")
    asked = []
    short = marks.add(lambda word: asked.append(word) or len(word) < 4)
    first = marks.column(found.table, found.ids)
    assert [bool(each & short) for each in first] == [True, False, False, False]
    assert sorted(asked) == ["five", "one", "three"]
    of_e = marks.add(lambda word: word.endswith("e"))
    both = marks.column(found.table, found.ids)
    assert [(bool(each & short), bool(each & of_e)) for each in both] == [
        (True, True),
        (False, True),
        (False, True),
        (False, True),
    ]


def test_there_are_as_many_as_bits():
    marks = Marks()
    for _ in range(31):
        marks.add(bool)
    with pytest.raises(ValueError, match="at most 31 marks"):
        marks.add(bool)
    found = Tokens("word")
    assert marks.column(found.table, found.ids).tolist() == [2**31 - 1]
