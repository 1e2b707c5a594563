"""Vectors on disk: what is written comes back, and what is broken is refused in one line."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from clinveil.core import InputError, Maker, UsageError
from clinveil.vectors import Vectors, load_vectors, save_vectors

MAKER = Maker("test")

WORDS = [
    "pain",
    "josé",
    "a\u0085b",
    "a\u2028b",
    "a\u00a0b",
    "中文",
    "New_York",
    "don't",
    "\u200b",
    "\t",
    "e\u0301",
]
MATRIX = np.random.default_rng(0).standard_normal((len(WORDS), 5)).astype(np.float32)


def full():
    counts = np.arange(len(WORDS), 0, -1, dtype=np.int64)
    return Vectors(
        WORDS, MATRIX, counts * 7, counts, 61, {"algorithm": "cbow", "determinism": "bitwise"}
    )


def same(one, two):
    assert list(one.words) == list(two.words)
    np.testing.assert_array_equal(one.matrix, two.matrix)
    assert two.matrix.dtype == np.float32


def test_a_folder_holds_everything(tmp_path):
    vectors = full()
    save_vectors(vectors, tmp_path / "v")
    back = load_vectors(tmp_path / "v")
    same(vectors, back)
    assert back.counts.tolist() == vectors.counts.tolist()
    assert back.patients.tolist() == vectors.patients.tolist()
    assert (back.n_patients, dict(back.meta)) == (61, dict(vectors.meta))
    assert sorted(file.name for file in (tmp_path / "v").iterdir()) == [
        "matrix.npy",
        "meta.json",
        "words.arrow",
    ]
    assert '"secret": true' in (tmp_path / "v" / "meta.json").read_text()


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.bin"])
def test_word2vec_files_hold_words_and_numbers(tmp_path, name):
    save_vectors(full(), tmp_path / name)
    back = load_vectors(tmp_path / name)
    same(full(), back)
    assert (back.counts, back.patients, back.n_patients) == (None, None, None)


NAMES = st.text(
    st.characters(exclude_characters=" \n", exclude_categories=["Cs"]), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(NAMES, min_size=1, max_size=4, unique=True),
    data=st.data(),
    name=st.sampled_from(["v", "v.vec", "v.bin"]),
)
def test_any_finite_numbers_and_any_words_come_back(words, data, name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("v")
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    vectors = Vectors(words, data.draw(nps.arrays(np.float32, (len(words), 3), elements=numbers)))
    save_vectors(vectors, folder / name)
    same(vectors, load_vectors(folder / name))


@pytest.mark.parametrize("name", ["v", "v.vec", "v.bin"])
def test_only_the_owner_reads_them_and_a_taken_place_is_refused(tmp_path, name):
    save_vectors(full(), tmp_path / name, maker=MAKER)
    items = [tmp_path / name, *(tmp_path / name).glob("*")]
    assert {item.stat().st_mode & 0o777 for item in items if item.is_file()} == {0o600}
    assert {item.stat().st_mode & 0o777 for item in items if item.is_dir()} <= {0o700}
    with pytest.raises(UsageError, match="already"):
        save_vectors(full(), tmp_path / name)
    save_vectors(
        Vectors(["ab", "cd"], np.eye(2, dtype=np.float32)), tmp_path / name, force=True, maker=MAKER
    )
    assert list(load_vectors(tmp_path / name).words) == ["ab", "cd"]
    assert [item.name for item in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("word", ["", "a b", "a\nb"])
@pytest.mark.parametrize("name", ["v.vec", "v.bin"])
def test_a_word_that_would_break_the_file_is_not_written(tmp_path, word, name):
    with pytest.raises(InputError, match="row 2"):
        save_vectors(Vectors(["fine", word], np.eye(2, dtype=np.float32)), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_gensim_reads_what_we_write_and_we_read_what_gensim_writes(tmp_path):
    from gensim.models import KeyedVectors

    words = ["pain", "josé", "中文"]
    ours = Vectors(words, MATRIX[:3])
    for name, binary in (("v.vec", False), ("v.bin", True)):
        save_vectors(ours, tmp_path / name)
        theirs = KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=binary)
        assert theirs.index_to_key == words
        np.testing.assert_array_equal(theirs.vectors, ours.matrix)
        theirs.save_word2vec_format(str(tmp_path / f"g{name}"), binary=binary)
        same(ours, load_vectors(tmp_path / f"g{name}"))


def test_glove_text_has_no_header(tmp_path):
    (tmp_path / "glove.txt").write_bytes("the 0.5 -1 2e-3\njosé 1 2 3\r\n".encode())
    vectors = load_vectors(tmp_path / "glove.txt")
    assert list(vectors.words) == ["the", "josé"]
    np.testing.assert_allclose(vectors.matrix, [[0.5, -1, 0.002], [1, 2, 3]], rtol=1e-6)


BROKEN_TEXT = {
    "empty": (b"", "empty"),
    "blank": (b"\n\n", "empty"),
    "fewer rows": (b"3 2\nab 1 2\ncd 3 4\n", "has 2 words, but its header says 3"),
    "more rows": (b"1 2\nab 1 2\ncd 3 4\n", "has 2 words, but its header says 1"),
    "fewer numbers": (b"2 3\nab 1 2 3\ncd 1 2\n", "row 3: 2 numbers where 3"),
    "header lies on dimensions": (b"2 5\nab 1 2\ncd 3 4\n", "row 2: 2 numbers where 5"),
    "no number": (b"2 2\nab 1 2\ncd 1 secretword\n", "row 3: a value is not a number"),
    "nan": (b"2 2\nab 1 nan\ncd 1 2\n", "row 2: NaN"),
    "infinity": (b"2 2\nab 1 2\ncd inf 2\n", "row 3: NaN, infinity"),
    "too large": (b"2 2\nab 1 2\ncd 1e39 2\n", "row 3: NaN, infinity, or a number too large"),
    "twice": (b"2 2\nsecretword 1 2\nsecretword 1 2\n", "row 3: the word is repeated"),
    "a space in a word": (b"2 2\nab 1 2\nsecretword cd 1 2\n", "row 3: 3 numbers where 2"),
    "no word": (b"2 2\n 1 2\ncd 1 2\n", "row 2: the word is empty"),
    "not utf-8": (b"2 2\nab 1 2\n\xff\xfe 1 2\n", "row 3: the word is not UTF-8"),
    "no vectors": (b"secretword\n", "row 1"),
    "nothing after the header": (b"2 2\n", "has 0 words, but its header says 2"),
    "no dimensions": (b"2 0\nab\ncd\n", "row 1"),
    "glove of two widths": (b"ab 1 2\ncd 1 2 3\n", "row 2: 3 numbers where 2"),
}


ROW = np.array([1, 2], "<f4").tobytes()
BROKEN_BINARY = {
    "empty": (b"", "does not begin"),
    "no header": (b"secretword " + ROW, "does not begin"),
    "cut in a vector": (
        b"2 2\nab " + ROW + b"\ncdefghij " + ROW[:5],
        "row 2: the file ends inside a vector",
    ),
    "cut in a word": (b"2 2\nab " + ROW + b"\nsecretwordsecretword", "row 2: the file ends"),
    "fewer rows": (b"3 2\nab " + ROW + b"\ncd " + ROW, "too short for 3 words"),
    "a header that lies": (b"99999999999999 300\nab " + ROW, "too short"),
    "more rows": (b"1 2\nab " + ROW + b"\ncd " + ROW, "has more than 1"),
    "twice": (b"2 2\nsecretword " + ROW + b"\nsecretword " + ROW, "row 2: the word is repeated"),
    "no word": (b"2 2\nab " + ROW + b"\n " + ROW + b"\n\n", "row 2: the word is empty"),
    "nan": (b"1 2\nab " + np.array([1, np.nan], "<f4").tobytes(), "row 1: NaN"),
    "not utf-8": (b"1 2\n\xff\xfe " + ROW, "row 1: the word is not UTF-8"),
}


BROKEN = {("odd.vec", case): given for case, given in BROKEN_TEXT.items()}
BROKEN |= {("odd.bin", case): given for case, given in BROKEN_BINARY.items()}


@pytest.mark.parametrize(("name", "case"), BROKEN)
def test_a_broken_file_is_refused_with_name_and_row(name, case, tmp_path):
    data, match = BROKEN[name, case]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=match) as caught:
        load_vectors(tmp_path / name)
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)
    assert "secretword" not in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("file", ["words.arrow", "matrix.npy", "meta.json"])
@pytest.mark.parametrize("how", ["missing", "cut", "empty"])
def test_a_broken_folder_is_refused(file, how, tmp_path):
    save_vectors(full(), tmp_path / "v")
    broken = tmp_path / "v" / file
    data = broken.read_bytes()
    broken.unlink()
    if how != "missing":
        broken.write_bytes(data[: len(data) // 2] if how == "cut" else b"")
    with pytest.raises(InputError, match=file):
        load_vectors(tmp_path / "v")


def test_a_folder_whose_parts_do_not_agree_is_refused(tmp_path):
    save_vectors(full(), tmp_path / "v")
    np.save(tmp_path / "v" / "matrix.npy", MATRIX[:-1])
    with pytest.raises(InputError, match=r"^v: 11 words, but a matrix of shape"):
        load_vectors(tmp_path / "v")


def test_a_matrix_of_objects_is_not_unpickled(tmp_path):
    save_vectors(full(), tmp_path / "v")
    np.save(tmp_path / "v" / "matrix.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"matrix\.npy"):
        load_vectors(tmp_path / "v")


@pytest.mark.parametrize("name", ["none.vec", "none.bin", "none"])
def test_a_missing_file_is_refused(name, tmp_path):
    with pytest.raises(InputError, match=f"{name}: no vectors at this path"):
        load_vectors(tmp_path / name)


def test_an_unknown_kind_is_refused(tmp_path):
    with gzip.open(tmp_path / "v.gz", "wb") as file:
        file.write(b"1 2\nab 1 2\n")
    with pytest.raises(InputError, match=r"v\.gz: unknown format of vectors"):
        load_vectors(tmp_path / "v.gz")
