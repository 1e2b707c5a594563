"""Training: planted synonyms come near, one worker is reproducible to the bit, and gensim drops no
token.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from clinveil.cli import main
from clinveil.core import InputError, at_most_cores
from clinveil.corpus import memory_corpus
from clinveil.vectors import VectorSettings, token_lines, train
from clinveil.vectors.algorithms import cbow as room
from clinveil.vectors.sentences import whole_note

SMALL = VectorSettings(dim=16, epochs=3)
ONE_PASS = VectorSettings(algorithm="cbow", dim=2, epochs=1, window=1)


def corpus_of(texts):
    return memory_corpus([(str(i), f"p{i % 60}", text) for i, text in enumerate(texts)])


def flat_texts(n_notes, length, n_words, seed=0):
    """Words of equal frequency, so that gensim's subsampling leaves nearly all of them."""
    rng = np.random.default_rng(seed)
    names = np.array(
        ["w" + "".join(chr(97 + int(d)) for d in f"{row:04d}") for row in range(n_words)]
    )
    return [" ".join(rng.choice(names, length)) for _ in range(n_notes)]


def synonym_texts(n_notes=900):
    """Two names for one thing share their contexts, and so do two names for another."""
    rng = np.random.default_rng(1)
    contexts = {
        ("dyspnea", "breathlessness"): [
            "lungs",
            "oxygen",
            "exertion",
            "wheeze",
            "inhaler",
            "breathing",
        ],
        ("pruritus", "itching"): ["skin", "rash", "lotion", "scratch", "hives", "cream"],
    }
    sides = list(contexts)
    texts = []
    for _ in range(n_notes):
        pair = sides[rng.integers(2)]
        around = rng.choice(contexts[pair], 4)
        texts.append(f"{around[0]} {around[1]} {pair[rng.integers(2)]} {around[2]} {around[3]}")
    return texts


def cosine(vectors, one, two):
    a = vectors.matrix[vectors.ids[one]]
    b = vectors.matrix[vectors.ids[two]]
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


SCRIPT = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_train import corpus_of, synonym_texts
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.training import train
for algorithm in ("cbow", "skipgram", "fasttext"):
    for seed in (5, 6):
        kind = VectorSettings(algorithm=algorithm, dim=12, epochs=2)
        scratch = Path(sys.argv[2])
        vectors = train(corpus_of(synonym_texts()), kind, seed=seed, workers=1, scratch=scratch)
        print(vectors.meta["determinism"], hashlib.sha256(vectors.matrix.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_one_worker_is_the_same_to_the_bit_in_any_process(tmp_path):
    def printed(hash_seed):
        command = [sys.executable, "-c", SCRIPT, os.path.dirname(__file__), str(tmp_path)]
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.split("\n")

    first = printed(0)
    again = printed(12345)
    assert first == again
    assert all(line.startswith("bitwise ") for line in first[:-1])
    assert len(set(first[:-1])) == 6  # another seed or algorithm, other bits


def trained_counts(monkeypatch):
    """What gensim says that it read and trained on, per call of train."""
    from gensim.models import Word2Vec

    said = []
    original = Word2Vec.train

    def listening(self, *args, **kwargs):
        said.append(original(self, *args, **kwargs))
        return said[-1]

    monkeypatch.setattr(Word2Vec, "train", listening)
    return said


@pytest.mark.parametrize(
    ("n_notes", "length"),
    [
        (1, 35_000),
        (4, 10_000),
        (7, 7_000),
        (3, 9_999),
        (2, 10_001),
        (12_000, 3),
        (20_001, 1),
        (300, 211),
    ],
)
def test_gensim_trains_on_every_token(n_notes, length, monkeypatch, tmp_path):
    monkeypatch.setattr(room.Cbow, "model", without_subsampling(room.Cbow.model))
    said = trained_counts(monkeypatch)
    corpus = corpus_of(flat_texts(n_notes, length, 3_000))
    train(corpus, ONE_PASS, seed=1, workers=1, scratch=tmp_path)
    assert said[0] == (n_notes * length, n_notes * length)


def without_subsampling(original):
    def model(*args, **how):
        made = original(*args, **how)
        made.sample = 0
        return made

    return model


@pytest.mark.parametrize("workers", [2, 3])
def test_several_workers_leave_no_part_of_the_notes_unread(workers, monkeypatch, tmp_path):
    from gensim.models import Word2Vec

    before = []
    original = Word2Vec.train

    def listening(self, *args, **kwargs):
        before.append(self.wv.vectors.copy())
        return original(self, *args, **kwargs)

    monkeypatch.setattr(room.Cbow, "model", without_subsampling(room.Cbow.model))
    monkeypatch.setattr(Word2Vec, "train", listening)
    long = ["longwordindeed" * 3 + " " + t for t in flat_texts(360, 300, 3_000)]
    short = [" ".join(chr(97 + i % 26) + chr(97 + i // 26 % 26) for i in range(400))] * 360
    last = [" ".join("q" + chr(97 + i) + chr(97 + j) for j in range(26)) for i in range(26)]
    vectors = train(
        corpus_of(long + short + last), ONE_PASS, seed=1, workers=workers, scratch=tmp_path
    )
    assert vectors.meta["workers"] == at_most_cores(workers)
    assert vectors.meta["determinism"] == (
        "statistical" if at_most_cores(workers) > 1 else "bitwise"
    )
    rows = [vectors.ids[word] for text in last for word in text.split()]
    assert (vectors.matrix[rows] != before[0][rows]).any(axis=1).all()


@pytest.mark.parametrize("algorithm", ["cbow", "skipgram"])
def test_the_file_of_words_goes_when_training_fails(algorithm, tmp_path, monkeypatch):
    def failing(*args, **how):
        (file,) = tmp_path.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        raise MemoryError

    monkeypatch.setattr(room.Cbow, "model", failing)
    monkeypatch.setattr("clinveil.vectors.algorithms.skipgram.train_skipgram", failing)
    with pytest.raises(MemoryError):
        how = VectorSettings(algorithm=algorithm, dim=16, epochs=3)
        train(corpus_of(synonym_texts(5)), how, seed=1, workers=1, scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_token_lines_keep_case_numbers_and_placeholders_and_stop_at_line_ends():
    text = "Pain : 0 of <unk>\n\n<deidentified> has pain ."
    assert token_lines(text) == [
        ["Pain", ":", "0", "of", "<unk>"],
        ["<deidentified>", "has", "pain", "."],
    ]
    assert whole_note(text) == [["pain", "of", "unk", "deidentified", "has", "pain"]]


def test_vectors_of_token_lines(tmp_path):
    """0 is a token like any other; without lines, all is in lower case and without numbers."""
    texts = ["Left 0\nright <unk>"] * 200
    vectors = train(corpus_of(texts), SMALL, seed=1, workers=1, scratch=tmp_path, split=token_lines)
    counted = dict(zip(vectors.words, vectors.counts.tolist(), strict=True))
    assert counted == dict.fromkeys(("0", "<unk>", "Left", "right"), 200)
    assert set(train(corpus_of(texts), SMALL, seed=1, workers=1, scratch=tmp_path).words) == {
        "left",
        "right",
        "unk",
    }


def test_glove_of_lines_is_refused(tmp_path):
    how = VectorSettings(algorithm="glove", dim=4, min_count=1)
    with pytest.raises(InputError, match="whole notes only"):
        train(
            corpus_of(synonym_texts(5)), how, seed=1, workers=1, scratch=tmp_path, split=token_lines
        )


@pytest.mark.parametrize("algorithm", ["cbow", "fasttext"])
def test_gensim_is_asked_for_before_anything_is_read(monkeypatch, tmp_path, capsys, algorithm):
    monkeypatch.setattr("clinveil.vectors.algorithms.cbow.find_spec", lambda name: None)
    notes = tmp_path / "notes.csv"
    notes.write_text("note_id,text\n1,no fever\n")
    for command in (["embed"], ["release", "--as", "obfuscated"]):
        assert (
            main(
                [
                    *command,
                    str(notes),
                    "-o",
                    str(tmp_path / "out"),
                    "--set",
                    f"vectors.algorithm={algorithm}",
                ]
            )
            == 6
        )
        assert "pip install 'clinveil[gensim]'" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
