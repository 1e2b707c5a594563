"""GloVe: the gradient, one epoch against a slow reference, what is learnt, and what must not
change.
"""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.cli.main import main
from clinveil.core.errors import InputError
from clinveil.corpus.corpus import memory_corpus
from clinveil.vectors.algorithm import Notes
from clinveil.vectors.algorithms.glove import (
    PAIR,
    Glove,
    GloveUpdate,
    descend,
    new_parameters,
    training_pairs,
)
from clinveil.vectors.count import count_words
from clinveil.vectors.files import load_vectors
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.train import train

VARIANTS = ["pair", "single"]


def train_glove(corpus, settings, *, seed, workers, scratch, on_epoch=None):
    return settings.train(
        Notes(corpus, count_words(corpus, scratch), seed, workers, scratch, on_epoch)
    )


def some_pairs(rng, n_words, n, *, distinct):
    rows, columns = rng.integers(0, n_words, (2, n))
    if distinct:
        rows, columns = rows[rows != columns], columns[rows != columns]
    pairs = np.empty(rows.size, PAIR)
    pairs["row"] = rows
    pairs["column"] = columns
    pairs["target"] = rng.normal(size=rows.size)
    pairs["weight"] = rng.random(rows.size)
    return pairs


def sides(rng, n_words, dim, variant, *, scale=1.0):
    left = new_parameters(n_words, dim, rng)
    left[:, 0] += rng.normal(0, scale, left[:, 0].shape)
    if variant == "single":
        return left, left
    right = new_parameters(n_words, dim, rng)
    right[:, 0] += rng.normal(0, scale, right[:, 0].shape)
    return left, right


def loss_of(pairs, left, right):
    """Equation 8 of Pennington et al. 2014, halved, in float64."""
    u = left[pairs["row"], 0].astype(np.float64)
    v = right[pairs["column"], 0].astype(np.float64)
    difference = (u[:, :-1] * v[:, :-1]).sum(1) + u[:, -1] + v[:, -1] - pairs["target"]
    return float((0.5 * pairs["weight"] * difference**2).sum())


def reference_epoch(pairs, order, left, right, rule):
    """The readable one: a pair at a time, both gradients taken before either step."""
    total = 0.0
    for position in order:
        row, column, target, weight = pairs[position].tolist()
        u = left[row]
        v = right[column]
        difference = u[0, :-1] @ v[0, :-1] + u[0, -1] + v[0, -1] - target
        total += 0.5 * weight * difference**2
        error = np.clip(weight * difference, -rule.clip, rule.clip)
        gradients = error * np.append(v[0, :-1], 1), error * np.append(u[0, :-1], 1)
        for parameters, gradient in zip((u, v), gradients, strict=True):
            parameters[0] -= rule.eta * gradient / np.sqrt(parameters[1])
            parameters[1] += (rule.square_scale * gradient) ** 2
    return total


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_step_follows_the_gradient_by_finite_differences(variant):
    rng = np.random.default_rng(0)
    for _ in range(5):
        left, right = sides(rng, 4, 6, variant)
        pair = some_pairs(rng, 4, 40, distinct=True)[:1]
        before = [p.astype(np.float64) for p in ((left,) if left is right else (left, right))]
        tiny = GloveUpdate(np.float32(1e-3), np.float32(1), np.float32(np.inf))
        descend(pair, np.zeros(1, np.int32), left, right, tiny)
        for place, (old, new) in enumerate(zip(before, (left, right), strict=False)):
            for where in np.ndindex(old[:, 0].shape):
                up = [b.copy() for b in before]
                down = [b.copy() for b in before]
                up[place][where[0], 0, where[1]] += 1e-5
                down[place][where[0], 0, where[1]] -= 1e-5
                slope = (loss_of(pair, up[0], up[-1]) - loss_of(pair, down[0], down[-1])) / 2e-5
                moved = new[where[0], 0, where[1]] - old[where[0], 0, where[1]]
                assert moved == pytest.approx(-1e-3 * slope, rel=1e-3, abs=3e-7)
                squares = new[where[0], 1, where[1]] - 1
                assert squares == pytest.approx(slope**2, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dim", [2, 7, 50])
def test_an_epoch_equals_the_slow_reference(variant, dim):
    rng = np.random.default_rng(dim)
    pairs = some_pairs(rng, 30, 500, distinct=variant == "single")
    order = rng.permutation(pairs.size).astype(np.int32)
    left, right = sides(rng, 30, dim, variant, scale=0.3)
    slow_left = left.astype(np.float64)
    slow_right = slow_left if left is right else right.astype(np.float64)
    rule = Glove(variant=variant).rule
    loss = descend(pairs, order, left, right, rule)
    assert loss == pytest.approx(
        reference_epoch(pairs, order, slow_left, slow_right, rule), rel=1e-4
    )
    np.testing.assert_allclose(left, slow_left, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(right, slow_right, rtol=1e-3, atol=1e-5)


def test_a_word_with_itself_is_a_pair_of_two_different_vectors():
    rng = np.random.default_rng(3)
    pairs = np.array([(2, 2, 1.5, 0.8)], PAIR)
    left, right = sides(rng, 4, 5, "pair")
    slow = left.astype(np.float64), right.astype(np.float64)
    rule = Glove().rule
    descend(pairs, np.zeros(1, np.int32), left, right, rule)
    reference_epoch(pairs, [0], *slow, rule)
    np.testing.assert_allclose(left, slow[0], rtol=1e-5)
    np.testing.assert_allclose(right, slow[1], rtol=1e-5)


def test_only_the_single_variant_clips_a_large_error():
    for variant, bias in (("single", 0.05 * 10), ("pair", 0.05 * 1000)):
        left, right = (np.zeros((2, 2, 3), np.float32) for _ in range(2))
        left[:, 1] = right[:, 1] = 1
        descend(
            np.array([(0, 1, 1000, 1)], PAIR),
            np.zeros(1, np.int32),
            left,
            right,
            Glove(variant=variant).rule,
        )
        assert left[0, 0, 2] == right[1, 0, 2] == pytest.approx(bias)


def test_parameters_begin_as_both_programs_begin():
    parameters = new_parameters(500, 20, np.random.default_rng(0))
    vectors = parameters[:, 0, :20]
    assert np.abs(vectors).max() <= 0.5 / 20
    assert vectors.std() == pytest.approx(1 / 20 / np.sqrt(12), rel=0.02)
    assert (parameters[:, 0, 20] == 0).all()
    assert (parameters[:, 1] == 1).all()


def test_training_pairs_by_hand():
    rows = np.array([0, 0, 1], np.int32)
    columns = np.array([0, 1, 2], np.int32)
    values = np.array([4.0, 200.0, 50.0])

    def entries(**settings):
        pairs = training_pairs(rows, columns, values, Glove(x_max=100, **settings))
        return {
            (p["row"].item(), p["column"].item()): (p["target"].item(), p["weight"].item())
            for p in pairs
        }

    weight = {4.0: 0.04**0.75, 200.0: 1.0, 50.0: 0.5**0.75}
    once = {(0, 0): 4.0, (0, 1): 200.0, (1, 2): 50.0}
    both = once | {(1, 0): 200.0, (2, 1): 50.0}
    for found, wanted in (
        (entries(), both),
        (entries(variant="single"), {(0, 1): 200.0, (1, 2): 50.0}),
    ):
        assert found == {
            k: (pytest.approx(np.log(x)), pytest.approx(weight[x])) for k, x in wanted.items()
        }


def notes_of_two_topics(n=300, seed=0):
    """Words of one topic stand together; `s0a` and `s0b` are planted synonyms, each note uses one
    of them.
    """
    rng = np.random.default_rng(seed)
    notes = []
    for i in range(n):
        topic = i % 2
        body = [f"t{'xy'[topic]}{'abcdefghij'[k]}" for k in rng.integers(0, 10, 20)]
        for place in (4, 9, 14):
            body[place] = f"syn{'xy'[topic]}{'pq'[rng.integers(0, 2)]}"
        notes.append((str(i), f"p{i % 50}", " ".join(body)))
    return memory_corpus(notes)


def cosines(vectors):
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.mark.parametrize("variant", VARIANTS)
def test_planted_synonyms_and_topics_are_found(tmp_path, variant):
    settings = Glove(dim=10, window=4, epochs=30, x_max=10, variant=variant)
    vectors = train_glove(notes_of_two_topics(), settings, seed=0, workers=2, scratch=tmp_path)
    table = cosines(vectors)
    topic = np.array([word[1 if word[0] == "t" else 3] == "x" for word in vectors.words])
    inside = topic[:, None] == topic[None, :]
    assert table[inside].mean() > table[~inside].mean() + 0.5
    for t in "xy":
        one = vectors.ids[f"syn{t}p"]
        other = vectors.ids[f"syn{t}q"]
        across = [vectors.ids[w] for w in vectors.words if w.startswith("syn") and w[3] != t]
        assert table[one, other] > table[one, across].max() + 0.5


def test_the_loss_falls_and_the_table_is_whole(tmp_path):
    done = []
    few, many = (
        train_glove(
            notes_of_two_topics(),
            Glove(dim=8, window=4, epochs=epochs),
            seed=0,
            workers=1,
            scratch=tmp_path,
            on_epoch=lambda *at: done.append(at),
        )
        for epochs in (1, 20)
    )
    assert many.meta["loss"] < 0.5 * few.meta["loss"]
    assert done[:3] == [(1, 1), (1, 20), (2, 20)]
    assert many.counts.sum() == 300 * 20
    assert many.n_patients == 50
    assert many.patients.max() <= 50
    assert many.matrix.shape == (24, 8)
    assert many.meta["determinism"] == "bitwise"
    assert (many.meta["algorithm"], many.meta["variant"], many.meta["epochs"]) == (
        "glove",
        "pair",
        20,
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("variant", VARIANTS)
def test_workers_change_no_bit_and_the_seed_does(tmp_path, variant):
    def matrix(**run):
        settings = Glove(dim=9, window=6, epochs=3, variant=variant)
        return train_glove(notes_of_two_topics(80), settings, scratch=tmp_path, **run).matrix

    first = matrix(seed=1, workers=1)
    assert matrix(seed=1, workers=1).tobytes() == first.tobytes()
    assert matrix(seed=1, workers=4).tobytes() == first.tobytes()
    assert not np.allclose(matrix(seed=2, workers=1), first)


def test_the_pair_model_has_both_orders_and_the_single_one_each_pair_once(tmp_path):
    corpus = memory_corpus([(str(i), str(i), "left right") for i in range(50)])
    run = {"seed": 0, "workers": 1, "scratch": tmp_path}
    assert train_glove(corpus, Glove(dim=2), **run).meta["n_pairs"] == 2
    assert train_glove(corpus, Glove(dim=2, variant="single"), **run).meta["n_pairs"] == 1


def test_null_and_odd_texts(tmp_path):
    notes = [
        ("1", "a", None),
        ("2", "a", ""),
        ("3", "b", "Ärzte\u200b ÄRZTE 💉 病人 12 once"),
        ("4", "b", "once more"),
    ]
    vectors = train_glove(memory_corpus(notes), Glove(dim=4), seed=0, workers=2, scratch=tmp_path)
    assert set(vectors.words) == {"ärzte", "病人", "once", "more"}
    floor = train_glove(
        memory_corpus(notes), Glove(dim=4, min_count=2), seed=0, workers=1, scratch=tmp_path
    )
    assert list(floor.words) == ["once", "ärzte"]


@pytest.mark.parametrize(
    "notes", [[], [("1", "a", None)], [("1", "a", "alone"), ("2", "b", "single")]]
)
def test_nothing_to_learn_is_said(tmp_path, notes):
    with pytest.raises(InputError, match="no two words occur within a window"):
        train_glove(memory_corpus(notes), Glove(), seed=0, workers=1, scratch=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("variant", VARIANTS)
def test_divergence_names_epoch_and_eta_and_leaves_nothing_behind(tmp_path, variant):
    settings = Glove(dim=10, window=4, eta=1e6, variant=variant, x_max=1)
    with pytest.raises(InputError, match=r"diverged in epoch \d+ of 15 with eta 1e\+06") as failure:
        train_glove(notes_of_two_topics(40), settings, seed=0, workers=2, scratch=tmp_path)
    assert "syn" not in str(failure.value)
    assert not list(tmp_path.iterdir())


def test_train_hands_glove_over_with_its_settings(tmp_path):
    settings = VectorSettings(
        algorithm="glove", glove_variant="single", dim=6, window=3, min_count=2
    )
    run = {"seed": 4, "workers": 2, "scratch": tmp_path}
    wanted = Glove(variant="single", dim=6, window=3, min_count=2, epochs=15)
    vectors = train(notes_of_two_topics(40), settings, **run)
    direct = train_glove(notes_of_two_topics(40), wanted, **run)
    assert vectors.matrix.tobytes() == direct.matrix.tobytes()
    assert vectors.meta == direct.meta
    assert VectorSettings(algorithm="glove").passes_over(10**9) == 15
    assert VectorSettings(algorithm="glove", epochs=3).passes_over(10**9) == 3


@pytest.mark.parametrize("flags", [[], ["--set", "glove_variant=single", "--set", "epochs=2"]])
def test_the_command_trains_and_stores_glove(tmp_path, flags, capsys):
    notes = tmp_path / "notes.csv"
    (batch,) = notes_of_two_topics(60).batches()
    rows = zip(*batch.to_pydict().values(), strict=True)
    notes.write_text(
        "\n".join(["note_id,patient_id,text", *(",".join(row) for row in rows)]), encoding="utf-8"
    )
    out = tmp_path / "vectors"
    assert (
        main(
            [
                "embed",
                str(notes),
                "--algorithm",
                "glove",
                "--dim",
                "8",
                "--seed",
                "1",
                *flags,
                "-o",
                str(out),
            ]
        )
        == 0
    )
    vectors = load_vectors(out)
    assert vectors.matrix.shape == (24, 8)
    assert vectors.meta["variant"] == ("single" if flags else "pair")
    assert vectors.meta["epochs"] == (2 if flags else 15)
    assert {p.name for p in tmp_path.iterdir()} == {"notes.csv", "vectors"}
    assert "bitwise" in capsys.readouterr().err
