"""The plain classifier of a release's utility: what a recipient would write with scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from clinveil.utility import ClassifierInput, RowsOfSplit, TrainTestTexts, classifier


def job(several=False):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    texts = [
        " ".join(rng.choice(["a1", "b", "c", "d", "e", f"cue{k} cue"], 12)) for k in "abcabc" * 20
    ]
    texts = [
        f"{text} topic{'xyz'[k]}" if rng.random() < 0.8 else text
        for text, k in zip(texts, y, strict=True)
    ]
    other = [text.replace("topicx", "topicx topicy") for text in texts]
    parts = RowsOfSplit(np.arange(60), np.arange(60, 80), np.arange(80, 120))
    targets = np.stack([y == k for k in range(3)], axis=1) if several else y
    return ClassifierInput(TrainTestTexts(texts, other), targets, 3, parts, 1), y


def test_equals_the_scikit_learn_pipeline():
    given, y = job()
    made = classifier("tfidf-lr")(given)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, token_pattern=r"[a-z]+")
    model = LogisticRegression(C=10, max_iter=300).fit(
        vectorizer.fit_transform(given.side.train[:80]), y[:80]
    )
    right = model.predict(vectorizer.transform(given.side.test[80:]))
    assert (made.test == right).all()
    assert (made.test == y[80:]).mean() > 0.6


def test_several_labels_a_note():
    given, y = job(several=True)
    made = classifier("tfidf-lr")(given)
    assert made.test.shape == (40, 3) and made.test.dtype == np.bool_
    assert (made.test[:, 0] == (y[80:] == 0)).mean() > 0.7
