"""Letter case without a model: lines and their split, alphabet, score by hand, floors."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core.errors import InputError
from clinveil.utility.evaluations._case_lines import (
    NEWLINE,
    UNKNOWN,
    Lines,
    alphabet_of,
    by_owner,
    candidates,
    count_words,
    encoded,
    permuted,
    read_lines,
    restore_usual,
    score,
    split_lines,
    stream,
    upper_of,
    usual_casings,
)

any_text = st.text(max_size=30)


def test_score_by_hand():
    reference = ["The cat of Anna Smith", "no capitals here", "MRI of iPhone"]
    restored = ["The cat Of anna Smith", "no capitals here", "Mri of iPhone"]
    counts = count_words(reference, restored)
    # right with a capital: The, Smith, iPhone; proposed are also Of and Mri; true ones also Anna
    # and MRI
    assert counts.tolist() == [[2, 3, 3, 5], [0, 0, 0, 3], [1, 2, 2, 3]]
    found = score(counts)
    assert found == pytest.approx((3 / 5, 3 / 5, 3 / 5))
    assert by_owner(counts, ["q", "p", "q"]).tolist() == [[0, 0, 0, 3], [3, 5, 5, 8]]
    assert by_owner(counts, None) is counts


def test_precision_and_recall_differ():
    found = score(count_words(["A b c D"], ["A B c d"]))
    assert (found.precision, found.recall, found.f1) == (0.5, 0.5, 0.5)
    found = score(count_words(["A B C d"], ["A b c d"]))
    assert (found.precision, found.recall, found.f1) == (1, pytest.approx(1 / 3), 0.5)


def test_nothing_to_divide_by_is_nought():
    assert score(count_words(["a b"], ["a b"])) == (0, 0, 0)
    assert score(count_words([], [])) == (0, 0, 0)


def test_a_lost_word_is_refused():
    with pytest.raises(ValueError, match="another number of words"):
        count_words(["a b"], ["ab"])


@given(st.lists(any_text, max_size=5))
def test_the_truth_scores_one_and_lower_case_scores_none(lines):
    lines = [" ".join(line.split()) for line in lines]
    truth = score(count_words(lines, lines))
    lower = score(count_words(lines, [line.lower() for line in lines]))
    assert truth.f1 == truth.precision == truth.recall
    assert truth.f1 == (1 if any(line != line.lower() for line in lines) else 0)
    assert lower.recall == 0


@pytest.mark.parametrize(
    ("character", "upper"),
    [
        ("a", "A"),
        ("é", "É"),
        ("ж", "Ж"),
        ("ß", None),
        ("ŉ", None),
        ("ı", None),
        ("ς", None),
        ("7", None),
        ("A", None),
    ],
)
def test_upper_forms_are_one_to_one(character, upper):
    assert upper_of(character) == upper


@given(st.characters())
def test_upper_forms_come_back(character):
    upper = upper_of(character)
    assert upper is None or (len(upper) == 1 and upper.lower() == character)


def test_alphabet_by_hand():
    characters = alphabet_of(["bA", "a!"])
    assert characters.ids == {"\n": NEWLINE, "!": 2, "A": 3, "a": 4, "b": 5}
    assert len(characters) == 6
    assert encoded(characters, "aAz\n").tolist() == [4, 3, UNKNOWN, NEWLINE]
    assert stream(characters, ["b", "a"]).tolist() == [5, 1, 4, 1]
    # b has an upper form that training does not hold, z is unknown itself
    assert candidates(characters, "ab!z").tolist() == [[4, 3], [5, -1], [2, -1], [0, -1]]


def test_usual_casings_by_hand():
    usual = usual_casings(["The MRI of the pt", "the mri The", "MRI Anna"])
    assert usual == {"the": "The", "mri": "MRI", "of": "of", "pt": "pt", "anna": "Anna"}
    assert restore_usual(["the  mri of zoe"], usual) == ["The MRI of zoe"]


@given(st.lists(any_text, max_size=4), st.integers(0, 5))
def test_dealing_casings_anew_keeps_the_words(lines, seed):
    lines = [" ".join(line.split()) for line in lines]
    dealt = permuted(lines, np.random.default_rng(seed))
    assert [len(line.split()) for line in dealt] == [len(line.split()) for line in lines]
    ascii_only = all(line.isascii() for line in lines)
    if ascii_only:
        assert [line.lower() for line in dealt] == [line.lower() for line in lines]


def test_dealing_casings_anew_moves_capitals():
    lines = ["Anna saw bob and Carl there in Delhi"] * 20
    dealt = permuted(lines, np.random.default_rng(0))
    counts = count_words(lines, dealt)
    assert 0.2 < score(counts).recall < 0.6
    assert counts[:, 1].sum() == counts[:, 2].sum()


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz", "sentences"])
def test_lines_of_a_text_file(tmp_path, name):
    data = "\ufeff  A line \r\n\n\t\nÄnother\u2028one".encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert read_lines(tmp_path / name).lines == ["A line", "Änother\u2028one"]


def test_lines_of_notes(tmp_path):
    (tmp_path / "n.csv").write_text(
        'note_id,patient_id,text\n1,p,"One.\n\nTwo."\n2,q,Three.\n3,q,\n'
    )
    found = read_lines(tmp_path / "n.csv")
    assert found.lines == ["One.", "Two.", "Three."]
    assert found.owners == ["p", "p", "q"]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("x.txt", b"", "no line"),
        ("x.txt", b" \n\n", "no line"),
        ("x.txt", b"fine\nzyqquavex\xe9\n", "line 2"),
        ("x.txt.gz", b"no gzip", "damaged"),
        ("x.csv", b"note_id,text\n", "no notes"),
        ("x.txt", "wide".encode("utf-16"), "UTF-16"),
    ],
)
def test_bad_text_gives_one_clear_line(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=says) as caught:
        read_lines(tmp_path / name)
    assert "zyqquavex" not in str(caught.value)


def test_a_missing_text(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_lines(tmp_path / "none.txt")


def test_lines_do_not_show_in_reprs():
    assert "zyqquavex" not in repr(Lines("x", ["zyqquavex"], ["zyqquavex"]))


@given(
    st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDE"), min_size=60, max_size=90),
    st.integers(0, 9),
)
def test_equal_lines_stay_on_one_side(letters, seed):
    if len({letter.lower() for letter in letters}) < 12:
        return  # too few to split
    train, dev, test = split_lines(Lines("x", letters), None, None, np.random.default_rng(seed))
    assert len(train) + len(dev) + len(test) == len(letters)
    sides = [{line.lower() for line in part.lines} for part in (train, dev, test)]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]


def test_lines_of_one_patient_stay_on_one_side():
    lines = Lines(
        "x",
        ["Plan:" if i % 10 == 0 else f"line {i}" for i in range(200)],
        [f"p{i // 10}" for i in range(200)],
    )
    parts = split_lines(lines, None, None, np.random.default_rng(0))
    owners = [set(part.owners) for part in parts]
    assert [len(part) for part in parts] == [170, 10, 20]
    assert not owners[0] & owners[1]
    assert not owners[0] & owners[2]


def test_what_is_given_is_kept():
    lines = Lines("x", [f"line {i}" for i in range(100)])
    own = Lines("y", ["own"])
    train, dev, test = split_lines(lines, None, own, np.random.default_rng(0))
    assert test is own
    assert (len(train), len(dev)) == (95, 5)
    assert split_lines(lines, own, own, np.random.default_rng(0)) == (lines, own, own)


def test_too_few_lines_are_refused():
    with pytest.raises(InputError, match="too few lines"):
        split_lines(Lines("x", ["one", "ONE", "One"]), None, None, np.random.default_rng(0))
