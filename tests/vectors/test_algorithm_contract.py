"""What every vector algorithm promises: planted synonyms, counts of the notes, repeatable bits."""

from __future__ import annotations

import numpy as np
import pytest
from test_train import corpus_of, cosine, synonym_texts

from clinveil.core import InputError
from clinveil.vectors import VectorSettings, train

ALGORITHMS = {
    "cbow": VectorSettings(algorithm="cbow", dim=20, epochs=40),
    "skipgram": VectorSettings(algorithm="skipgram", dim=20, epochs=40),
    "fasttext": VectorSettings(algorithm="fasttext", dim=20, epochs=40),
    "glove": VectorSettings(algorithm="glove", dim=10, window=4, epochs=60),
    "glove of one matrix": VectorSettings(
        algorithm="glove", glove_variant="single", dim=10, window=4, epochs=60
    ),
}
# Algorithms whose vectors do not depend on the number of workers.
ANY_WORKERS = ("skipgram", "glove", "glove of one matrix")
every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)


@pytest.fixture
def trained(tmp_path):
    """Train an algorithm on texts; nothing is left in the folder of scratch files."""

    def run(name, texts, *, seed=3, workers=1, on_epoch=None, **changes):
        settings = ALGORITHMS[name].but(**changes)
        try:
            return train(
                corpus_of(texts),
                settings,
                seed=seed,
                workers=workers,
                scratch=tmp_path,
                on_epoch=on_epoch,
            )
        finally:
            assert list(tmp_path.iterdir()) == []

    return run


@every_algorithm
def test_planted_synonyms_come_near(name, trained):
    vectors = trained(name, synonym_texts())
    for word, synonym, other in (
        ("dyspnea", "breathlessness", "itching"),
        ("pruritus", "itching", "dyspnea"),
    ):
        assert cosine(vectors, word, synonym) > cosine(vectors, word, other) + 0.3
        assert cosine(vectors, word, synonym) > cosine(vectors, synonym, other) + 0.3


@every_algorithm
def test_the_same_seed_gives_the_same_bits_and_another_does_not(name, trained):
    def matrix(seed, workers=1):
        return trained(name, synonym_texts(120), seed=seed, workers=workers, epochs=3).matrix

    first = matrix(2**70 + 1)
    assert matrix(2**70 + 1).tobytes() == first.tobytes()
    assert not np.allclose(matrix(1), first)
    if name in ANY_WORKERS:
        assert matrix(2**70 + 1, workers=3).tobytes() == first.tobytes()


@every_algorithm
def test_rows_counts_and_patients_are_those_of_the_notes(name, trained, capfd):
    texts = ["жар боль жар", None, "", "josé\u00a0café\u2028naïve 12", "中文 боль", "a\u0085b"] * 30
    passes = []
    vectors = trained(
        name, texts, epochs=3, on_epoch=lambda done, epochs: passes.append((done, epochs))
    )
    assert set(vectors.words) == {"жар", "боль", "josé", "café", "naïve", "中文", "a", "b"}
    assert list(vectors.words)[:2] == ["боль", "жар"]
    assert vectors.counts.tolist() == [60, 60, 30, 30, 30, 30, 30, 30]
    owners = [i % 60 for i in range(len(texts))]
    for word in ("боль", "josé", "中文"):
        having = {owner for owner, text in zip(owners, texts, strict=True) if text and word in text}
        assert vectors.patients[vectors.ids[word]] == len(having)
    assert vectors.n_patients == len({owners[i] for i in range(len(texts)) if texts[i] is not None})
    assert vectors.meta["n_notes"] == sum(text is not None for text in texts)
    assert (vectors.matrix.shape, vectors.matrix.dtype) == ((8, vectors.dim), np.float32)
    assert set(trained(name, texts, epochs=1, min_count=31).words) == {"жар", "боль"}
    assert passes == [(1, 3), (2, 3), (3, 3)]
    assert capfd.readouterr() == ("", "")


@every_algorithm
@pytest.mark.parametrize(
    ("texts", "min_count"), [([], 1), (["", None, "12"], 1), (["pain"], 1), (["pain fever"], 2)]
)
def test_fewer_than_two_words_are_refused_without_naming_them(name, texts, min_count, trained):
    with pytest.raises(InputError, match="two") as caught:
        trained(name, texts, min_count=min_count)
    assert "pain" not in str(caught.value)
