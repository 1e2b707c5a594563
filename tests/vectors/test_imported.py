"""Vectors from elsewhere, more text, and training that goes on from given vectors."""

from __future__ import annotations

import gzip
import shlex

import numpy as np
import pytest

from clinveil.cli import main
from clinveil.core import InputError
from clinveil.corpus import concatenated, memory_corpus, open_text, rows
from clinveil.vectors import (
    Vectors,
    VectorSettings,
    at_hand,
    count_words,
    load_vectors,
    of_notes,
    refuse_foreign,
    train,
    without_vector,
)
from clinveil.vectors.imported import FEWEST_WORDS

WORDS = ["w" + chr(97 + i // 26) + chr(97 + i % 26) for i in range(60)]


def notes_of(seed: int, n: int = 80, words: list[str] = WORDS):
    rng = np.random.default_rng(seed)
    return memory_corpus(
        [(f"n{i}", f"p{i % 20}", " ".join(rng.choice(words, 30))) for i in range(n)]
    )


def vectors_of(words: list[str], dim: int = 8) -> Vectors:
    return Vectors(
        words, np.random.default_rng(3).normal(size=(len(words), dim)).astype(np.float32)
    )


@pytest.fixture
def counts(tmp_path):
    return count_words(notes_of(1), tmp_path)


def test_rows_counts_and_patients_are_of_the_notes(counts):
    given = vectors_of(["elsewhere", "The", *reversed(WORDS[:50])])
    fitted = of_notes(given, counts)
    assert fitted.words == [word for word in counts.words if word in given.ids]
    for word in fitted.words:
        assert (fitted.matrix[fitted.ids[word]] == given.matrix[given.ids[word]]).all()
        assert fitted.counts[fitted.ids[word]] == counts.counts[counts.words.index(word)]
        assert fitted.patients[fitted.ids[word]] == counts.patients[counts.words.index(word)]
    assert fitted.n_patients == counts.n_patients == 20
    lacking = [word for word in counts.words if word in WORDS[50:]]
    tokens = sum(int(counts.counts[counts.words.index(word)]) for word in lacking)
    assert without_vector(fitted, counts) == (len(lacking), tokens) == (10, tokens)


def test_counts_of_another_hospital_do_not_decide(counts):
    """A name that thousands of patients have elsewhere may be one patient's here."""
    theirs = np.full(60, 10_000, dtype=np.int64)
    elsewhere = Vectors(WORDS, vectors_of(WORDS).matrix, theirs, theirs, 10_000)
    assert of_notes(elsewhere, counts).patients.max() <= 20
    assert at_hand(elsewhere, counts) is elsewhere, (
        "obfuscate may use a larger training corpus of its own"
    )
    assert at_hand(vectors_of(WORDS), counts).n_patients == 20


@pytest.mark.parametrize("known", [["das", "und", "nicht"], WORDS[:5], WORDS[: FEWEST_WORDS - 1]])
def test_another_language_is_refused_in_one_line(counts, known):
    vectors = vectors_of([*known, *(f"fremd{chr(97 + i)}" for i in range(20))])
    n = len([word for word in known if word in WORDS])
    with pytest.raises(InputError, match=f"only {n} of 60 words") as told:
        of_notes(vectors, counts)
    assert "language" in str(told.value)
    assert not any(word in str(told.value) for word in WORDS)
    with pytest.raises(InputError, match=f"only {n} of"):
        refuse_foreign(vectors, (note.text for note in rows(notes_of(1))))


def test_few_tokens_are_refused_though_many_words_are_known(tmp_path):
    texts = [("n", "p", " ".join(["common"] * 2000 + WORDS[:30]))]
    with pytest.raises(InputError, match=r"1\.5% of the tokens"):
        of_notes(vectors_of(WORDS), count_words(memory_corpus(texts), tmp_path))


# --- more text
# ---------------------------------------------------------------------------------------


def test_lines_are_texts(tmp_path):
    plain = tmp_path / "a.txt"
    packed = tmp_path / "b.txt.gz"
    plain.write_bytes("one two\r\nthree\n\nfour é".encode())
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        assert [note.text.strip() for note in rows(open_text(path))] == [
            "one two",
            "three",
            "",
            "four é",
        ]
        assert len({note.note_id for note in rows(open_text(path))}) == 4
    both = concatenated(notes_of(1, 3), open_text(plain))
    assert [note.text for note in rows(both)][3:] == [note.text for note in rows(open_text(plain))]


def test_lines_in_many_batches(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"word{i}\n" for i in range(4321)))
    assert [note.text for note in rows(open_text(tmp_path / "a.txt"))] == [
        f"word{i}" for i in range(4321)
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b"caf\xe9\n", "utf-8"),
        ("a.pdf", b"x", "unknown file type"),
    ],
)
def test_text_that_cannot_be_read_is_named(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        list(rows(open_text(tmp_path / name)))
    with pytest.raises(InputError, match="no such file"):
        open_text(tmp_path / "missing.txt")


def test_more_text_teaches_and_adds_no_row(tmp_path):
    """The notes never set different words side by side; the public text has two topics, which the
    vectors learn.
    """
    alone = [
        (f"n{i}", f"p{i}", f"{WORDS[i % 30]} {WORDS[i % 30]} {WORDS[i % 30]}") for i in range(300)
    ]
    rng = np.random.default_rng(2)
    topics = [[*WORDS[:15], "public"], [*WORDS[15:30], "texts"]]
    (tmp_path / "more.txt").write_text(
        "\n".join(" ".join(rng.choice(topics[i % 2], 8)) for i in range(600))
    )
    notes = memory_corpus(alone)
    how = {"dim": 8, "window": 5, "epochs": 30}
    run = {"seed": 1, "workers": 1, "scratch": tmp_path / "s"}
    plain = train(notes, VectorSettings(**how), **run)
    taught = train(notes, VectorSettings(**how, more_text=tmp_path / "more.txt"), **run)
    assert set(taught.words) == set(plain.words) == set(WORDS[:30])
    assert (
        (taught.counts.sum(), taught.n_patients)
        == (plain.counts.sum(), plain.n_patients)
        == (900, 300)
    )
    assert apart(taught) > apart(plain) + 0.2
    assert list((tmp_path / "s").iterdir()) == []


def apart(vectors: Vectors) -> float:
    """How much nearer words of one topic are to each other than to those of the other."""
    near, far = (
        [cosine(vectors, WORDS[i], WORDS[j]) for i in range(5) for j in range(n, n + 5)]
        for n in (5, 20)
    )
    return float(np.mean(near) - np.mean(far))


def cosine(vectors: Vectors, one: str, other: str) -> float:
    a, b = (vectors.matrix[vectors.ids[word]] for word in (one, other))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_the_passes_are_by_the_words_unless_said(tmp_path):
    run = {"seed": 1, "workers": 1, "scratch": tmp_path / "s"}
    told = VectorSettings(dim=4, window=2)
    made = train(notes_of(1, 20), told, **run)
    assert made.meta["epochs"] == told.passes_over(600) > 5
    assert train(notes_of(1, 20), told.but(epochs=2), **run).meta["epochs"] == 2
    done = []
    train(notes_of(1, 20), told, **run, on_epoch=lambda n, all_: done.append((n, all_)))
    assert done[-1] == (made.meta["epochs"],) * 2


def test_the_command_takes_more_text(tmp_path, capsys):
    notes = tmp_path / "notes.csv"
    lines = (f"{note.note_id},{note.patient_id},{note.text}" for note in rows(notes_of(1)))
    notes.write_text("note_id,patient_id,text\n" + "\n".join(lines))
    (tmp_path / "more.txt").write_text("\n".join(note.text for note in rows(notes_of(2))))
    common = shlex.split(
        f"{notes} --set vectors.dim=8 --set vectors.epochs=1 --set vectors.window=3 --workers 1"
        " --seed 1"
    )
    made = []
    for name, flags in (
        ("plain", []),
        ("more", ["--set", f"vectors.more_text={tmp_path / 'more.txt'}"]),
    ):
        assert main(["embed", *common, "-o", str(tmp_path / name), *flags]) == 0
        made.append(load_vectors(tmp_path / name))
    assert len({vectors.matrix.tobytes() for vectors in made}) == 2
    assert all((vectors.counts == made[0].counts).all() for vectors in made)
    both = [
        "--vectors",
        str(tmp_path / "plain"),
        "--set",
        f"vectors.more_text={tmp_path / 'more.txt'}",
    ]
    assert main(["release", *common, "--as", "obfuscated", "-o", str(tmp_path / "o"), *both]) == 2
    assert "--vectors cannot be combined with" in capsys.readouterr().err
    out = str(tmp_path / "more.txt")
    assert main(["embed", *common, "-o", out, "--force", "--set", f"vectors.more_text={out}"]) == 2
    assert "are the same path" in capsys.readouterr().err
