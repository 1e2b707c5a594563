"""The notes carry signal: a linear classifier finds the diagnosis, word vectors find planted
synonyms.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from clinveil.core import words
from clinveil.corpus.demo import demo_notes

# One-word ways of saying the same, planted in the terms, the names of diagnoses, and the drugs
# (generic, brand).
SYNONYMS = [
    ("dyspnea", "breathlessness"), ("fatigue", "tiredness"), ("itching", "pruritus"), ("edema",
        "swelling"),
    ("hypertension", "htn"), ("osteoarthritis", "oa"), ("lisinopril", "zestril"), ("metformin",
        "glucophage"),
    ("furosemide", "lasix"), ("sertraline", "zoloft"), ("salbutamol", "ventolin"), ("warfarin",
        "coumadin"),
    ("amlodipine", "norvasc"), ("ibuprofen", "advil"), ("mild", "moderate"), ("left", "right"),
    ("patient", "pt"), ("showed", "revealed"), ("unremarkable", "wnl"), ("history", "hx"),
]  # fmt: skip


@pytest.fixture(scope="module")
def notes() -> pa.Table:
    return pa.Table.from_batches(demo_notes(900, 21)).select(
        ["patient_id", "text", "code", "diagnosis_group"]
    )


def split_by_patient(table: pa.Table) -> np.ndarray:
    return np.array([int(identity[1:]) % 4 == 0 for identity in table["patient_id"].to_pylist()])


def test_a_linear_classifier_beats_the_majority_by_far(notes: pa.Table):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import SGDClassifier

    small = notes.slice(0, 2400)
    groups = np.array(small["diagnosis_group"].to_pylist())
    held = split_by_patient(small)
    texts = np.array(small["text"].to_pylist(), dtype=object)
    vectors = TfidfVectorizer(min_df=5, sublinear_tf=True).fit_transform(texts)
    model = SGDClassifier(random_state=0, max_iter=20, tol=None).fit(vectors[~held], groups[~held])
    accuracy = float(np.mean(model.predict(vectors[held]) == groups[held]))
    majority = max(np.mean(groups[held] == name) for name in set(groups))
    assert accuracy > 0.85
    assert accuracy > majority + 0.4


@pytest.mark.slow
def test_word_vectors_put_planted_synonyms_near(notes: pa.Table):
    from gensim.models import Word2Vec

    sentences = [words(text) for text in notes["text"].to_pylist()]
    model = Word2Vec(
        sentences, vector_size=40, window=4, min_count=6, epochs=4, sample=1e-3, seed=1, workers=1
    )
    known = model.wv.index_to_key[:2000]
    matrix = model.wv[known] / np.linalg.norm(model.wv[known], axis=1, keepdims=True)
    place = {word: row for row, word in enumerate(known)}
    pairs = [(a, b) for a, b in SYNONYMS if a in place and b in place]
    assert len(pairs) >= 15
    # The share of words nearer to the first than its synonym: a half by chance.
    shares = [
        np.mean(matrix @ matrix[place[a]] > matrix[place[a]] @ matrix[place[b]]) for a, b in pairs
    ]
    assert np.median(shares) < 0.03
    assert np.mean(shares) < 0.15
