"""Subword vectors: n-grams and hash by hand and as gensim has them; trained, saved, loaded."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clinveil.core import InputError
from clinveil.corpus import memory_corpus
from clinveil.vectors import VectorSettings, load_vectors, save_vectors, train
from clinveil.vectors.algorithms import fasttext as algorithm
from clinveil.vectors.table import Subwords, hashed, n_grams


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    rng = np.random.default_rng(0)
    stems = ["cardi", "nephr", "hepat", "gastr", "neur", "derm"]
    ends = ["itis", "ology", "opathy", "algia", "ectomy"]
    words = [stem + end for stem in stems for end in ends]
    notes = [(f"n{i}", f"p{i}", " ".join(rng.choice(words, 40))) for i in range(60)]
    settings = VectorSettings(algorithm="fasttext", dim=12, epochs=2)
    return train(
        memory_corpus(notes),
        settings,
        seed=1,
        workers=1,
        scratch=tmp_path_factory.mktemp("scratch"),
    )


def test_hash_is_fnv_1a_by_hand():
    assert hashed("") == 2166136261
    assert hashed("a") == 0xE40C292C  # of the published FNV-1a test vectors
    assert hashed("foobar") == 0xBF9CF968


@pytest.mark.parametrize("word", ["he", "née", "日本語", "é", "a😀b", "cardiologists"])
def test_buckets_of_n_grams_are_gensims(word):
    from gensim.models.fasttext import ft_ngram_hashes

    ours = sorted(hashed(gram) % 1000 for gram in n_grams(word, 3, 6))
    assert ours == sorted(ft_ngram_hashes(word, 3, 6, 1000))


def test_an_unknown_word_is_the_mean_of_its_known_n_grams():
    grams = {gram: hashed(gram) % 1000 for gram in n_grams("ab", 3, 6)}
    kept = sorted([grams["<ab"], grams["ab>"]])
    rows = {grams["<ab"]: [1.0, 0.0], grams["ab>"]: [0.0, 3.0]}
    found = Subwords(
        np.array(kept), np.array([rows[b] for b in kept], dtype=np.float32), 1000
    ).vector("ab")
    assert found.tolist() == [0.5, 1.5]


def test_a_word_of_which_no_n_gram_was_seen_has_no_vector():
    empty = Subwords(np.zeros(0, dtype=np.int64), np.zeros((0, 4), dtype=np.float32), 10)
    assert empty.vector("word") is None
    assert empty.vector("") is None


@pytest.fixture(scope="module")
def gensims():
    from gensim.models import FastText

    words = ["cardiology", "cardiopathy", "neurology", "aaaaaaaa"]
    return FastText([words * 20] * 20, vector_size=8, min_count=1, bucket=5000)


@pytest.mark.parametrize("word", ["a" * 9, "a" * 30])
def test_an_unknown_word_of_trained_n_grams_has_gensims_vector(gensims, word):
    assert word not in gensims.wv.key_to_index
    assert np.allclose(
        algorithm.FastText().subwords(gensims).vector(word), gensims.wv[word], atol=1e-6
    )


@pytest.mark.parametrize("word", ["cardiologist", "neuropathy", "née"])
def test_other_unknown_words_differ_from_gensims_by_untrained_n_grams_only(gensims, word):
    """gensim adds the random start of n-grams that no training word has; without it the two
    agree.
    """
    subwords = algorithm.FastText().subwords(gensims)
    buckets = np.array([hashed(gram) % 5000 for gram in n_grams(word, 3, 6)])
    untrained = ~np.isin(buckets, subwords.buckets)
    noise = gensims.wv.vectors_ngrams[buckets[untrained]].sum(axis=0)
    trained = gensims.wv[word] * len(buckets) - noise
    ours = subwords.vector(word)
    if ours is None:
        assert untrained.all()
    else:
        assert np.allclose(ours, trained / (~untrained).sum(), atol=1e-5)
    assert np.abs(noise).max() <= untrained.sum() / 8  # the start lies within 1 / dim


def test_training_keeps_subwords_and_unknown_relatives_are_near(trained):
    assert trained.subwords is not None
    assert trained.subwords.matrix.shape[1] == trained.dim
    assert len(trained.subwords.buckets) < trained.subwords.n_buckets
    assert "cardiologists" not in trained.ids
    assert trained.subwords.vector("cardiologists") is not None


def test_saved_and_loaded_the_same(trained, tmp_path):
    save_vectors(trained, tmp_path / "v")
    again = load_vectors(tmp_path / "v")
    assert np.array_equal(again.subwords.matrix, trained.subwords.matrix)
    assert np.array_equal(again.subwords.buckets, trained.subwords.buckets)
    assert again.subwords.n_buckets == trained.subwords.n_buckets
    assert np.array_equal(
        again.subwords.vector("cardiologists"), trained.subwords.vector("cardiologists")
    )


def test_word2vec_files_drop_them(trained, tmp_path):
    save_vectors(trained, tmp_path / "v.bin")
    assert load_vectors(tmp_path / "v.bin").subwords is None


@pytest.mark.parametrize("part", ["subwords.npy", "buckets.npy"])
def test_broken_subword_files_are_refused_in_one_line(trained, tmp_path, part):
    save_vectors(trained, tmp_path / "v")
    (tmp_path / "v" / part).write_bytes(b"nothing")
    with pytest.raises(InputError, match=part):
        load_vectors(tmp_path / "v")


def test_a_broken_description_is_refused(trained, tmp_path):
    save_vectors(trained, tmp_path / "v")
    file = tmp_path / "v" / "meta.json"
    meta = json.loads(file.read_text())
    file.write_text(json.dumps({**meta, "subwords": {"n_buckets": "many"}}))
    with pytest.raises(InputError, match=r"meta.json"):
        load_vectors(tmp_path / "v")
