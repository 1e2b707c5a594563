"""GloVe: the gradient, one epoch against a slow reference, what is learnt, and what must not
change.
"""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.cli import main
from clinveil.core import InputError
from clinveil.corpus import memory_corpus
from clinveil.vectors import Glove, Notes, count_words, load_vectors
from clinveil.vectors.algorithms.glove import PAIR, descend, new_parameters, training_pairs

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


def test_nothing_to_learn_is_refused(tmp_path):
    notes = memory_corpus([("1", "a", "alone"), ("2", "b", "single")])
    with pytest.raises(InputError, match="no two words occur within a window"):
        train_glove(notes, Glove(), seed=0, workers=1, scratch=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("variant", VARIANTS)
def test_divergence_names_epoch_and_eta_and_leaves_nothing_behind(tmp_path, variant):
    settings = Glove(dim=10, window=4, eta=1e6, variant=variant, x_max=1)
    with pytest.raises(InputError, match=r"diverged in epoch \d+ of 15 with eta 1e\+06") as failure:
        train_glove(notes_of_two_topics(40), settings, seed=0, workers=2, scratch=tmp_path)
    assert "syn" not in str(failure.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "flags", [[], ["--set", "vectors.glove_variant=single", "--set", "vectors.epochs=2"]]
)
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
