"""Training on a part of many notes: whole patients, every word with its neighbours, and the same
rows for any map.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.core import NotesSettings, words
from clinveil.corpus import KeyedShare, MemoryCorpus, memory_corpus, open_corpus, rows
from clinveil.scale import processes
from clinveil.vectors import VectorSettings, count_words, train
from clinveil.vectors.sentences import whole_note
from clinveil.vectors.training import ENOUGH, NEAR, Subsampling, subsampled

PATIENTS = 60
NOTES = 4


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(3)
    common = np.array([f"w{chr(97 + i)}" for i in range(20)])
    notes = []
    for patient in range(PATIENTS):
        for note in range(NOTES):
            text = rng.choice(common, 60).tolist()
            text.insert(30, f"once{chr(97 + patient // 8)}{chr(97 + patient % 8)}{chr(97 + note)}")
            notes.append((f"n{patient}.{note}", f"p{patient}", " ".join(text)))
    return memory_corpus(notes)


@pytest.fixture(scope="module")
def counts(corpus, tmp_path_factory):
    return count_words(corpus, tmp_path_factory.mktemp("count"))


def test_few_notes_and_a_setting_of_all_are_left_alone(counts):
    assert Subsampling.of(counts, counts.n_tokens, 1) is None
    assert Subsampling.of(counts, 0, 1) is None
    assert VectorSettings(train_words=0).words_of(10**9) == 10**9
    assert VectorSettings().words_of(10**9) == VectorSettings().train_words


def test_whole_patients_and_every_rare_word_where_it_stands(corpus, counts):
    how = Subsampling.of(counts, counts.n_tokens // 4, 7)
    seen = list(rows(subsampled(corpus, how)))
    taken = {note.patient_id for note in seen if note.patient_id in how.patients}
    whole = [note for note in rows(corpus) if note.patient_id in taken]
    assert [note for note in seen if note.patient_id in taken] == whole
    assert 4 < len(taken) < 30
    pieces = [words(note.text) for note in seen if note.patient_id not in taken]
    assert all(len(piece) == 2 * NEAR + 1 for piece in pieces)
    occurrences = Counter(word for note in seen for word in words(note.text))
    assert occurrences.keys() == set(
        counts.words
    )  # each once-word occurs once: it is taken wherever it stands


def test_rare_words_are_seen_about_often_enough(corpus):
    notes = [
        (f"n{i}", f"p{i}", f"a b c d {'rare' if i % 10 == 0 else 'x'} e f g h") for i in range(600)
    ]
    many = memory_corpus(notes)
    found = []
    for seed in range(12):
        how = Subsampling(KeyedShare(0.01, bytes([seed])), {"rare": ENOUGH / 60})
        found.append(sum(note.text.count("rare") for note in rows(subsampled(many, how))))
    assert 2.2 < np.mean(found) < 5.2  # three wanted, and 0.6 of the patients taken


def test_another_seed_takes_others_and_any_map_the_same(corpus, counts):
    how = Subsampling.of(counts, 4000, 1)
    once = list(rows(subsampled(corpus, how)))
    assert once != list(rows(subsampled(corpus, Subsampling.of(counts, 4000, 2))))
    cut = MemoryCorpus(
        [batch.slice(at, 17) for batch in corpus.batches() for at in range(0, batch.num_rows, 17)]
    )
    assert once == list(rows(subsampled(cut, how, whole_note, processes(2))))


def test_part_files_are_sampled_where_they_are_read(corpus, counts, tmp_path):
    table = pa.Table.from_batches(corpus.batches())
    for part in range(4):
        pq.write_table(table.slice(part * 60, 60), tmp_path / f"{part}.parquet")
    how = Subsampling.of(counts, 4000, 1)
    parts = subsampled(open_corpus(tmp_path, NotesSettings()), how, whole_note, processes(2))
    assert list(rows(parts)) == list(rows(subsampled(corpus, how)))


def test_vectors_of_a_part_know_every_word_and_say_so(corpus, counts, tmp_path):
    few = VectorSettings(dim=4, window=3, epochs=1, train_words=3000)
    made = train(corpus, few, seed=1, workers=1, scratch=tmp_path, counts=counts)
    assert list(made.words) == list(counts.words)
    assert made.counts.tolist() == counts.counts.tolist()
    assert made.meta["patients_share"] == pytest.approx(3000 / counts.n_tokens)
    assert (
        "patients_share"
        not in train(
            corpus, few.model_copy(update={"train_words": 0}), seed=1, workers=1, scratch=tmp_path
        ).meta
    )
