"""The inference model: by hand, against a slow reference, with planted rules, shuffled labels, and
per seed.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from papers.clinicalnlp_2019.nli import (
    InferenceSettings,
    matrix_of,
    nli,
    random_vectors,
    words_of,
)
from papers.clinicalnlp_2019.nli import rows_of as token_rows
from papers.clinicalnlp_2019.sentence_pairs import SentencePairs, nli_parts

from clinveil import InputError, UsageError, Vectors
from clinveil.core.tokens import WordIds

torch = pytest.importorskip("torch", reason="the extra [neural] is not installed")
from papers.clinicalnlp_2019.pairs_model import (  # noqa: E402
    BagOfWords,
    PairRows,
    PairTraining,
    predictions,
)

from clinveil.core.neural import seeded  # noqa: E402

SMALL = InferenceSettings(hidden=16, seeds=2, batch=64, max_tokens=6, epochs=25, dropout=0.2)
CPU = torch.device("cpu")
WORDS = ["red", "blue", "green", "dog", "cat", "cow", "pig", "hen", "owl", "bee"]


def vectors_of(words=WORDS, dim=12, seed=0):
    return Vectors(
        list(words), np.random.default_rng(seed).normal(size=(len(words), dim)).astype(np.float32)
    )


def colours(n=600, seed=0, noise=False):
    """The label is whether the hypothesis names the colour `red`; sentences are else random."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        one, other = ([WORDS[3 + j] for j in rng.integers(7, size=3)] for _ in range(2))
        colour = WORDS[rng.integers(3)]
        label = "yes" if (rng.random() < 0.5 if noise else colour == "red") else "no"
        rows.append(((f"id{i}", *one), (*other, colour), label))
    premises, hypotheses, labels = zip(*rows, strict=True)
    return SentencePairs("colours.csv", premises, hypotheses, labels)


def one(findings, series):
    return next(f for f in findings if f.detail["series"] == series)


def measured(pairs, settings=SMALL, seed=0, words=WORDS):
    rng = np.random.default_rng(seed)
    return nli(vectors_of(words), nli_parts(pairs, None, None, rng), rng, settings)


def test_rows_of_tokens_by_hand():
    pairs = SentencePairs("x", [("a", "b", "a")], [("B",)], ["l"])
    vocabulary = words_of(pairs)
    assert vocabulary.ids == {"a": 1, "b": 2, "B": 3}
    rows = token_rows(
        vocabulary, [("a", "zz", "B"), ("b", "a", "b", "a", "a"), ()], 4, np.random.default_rng(0)
    )
    assert rows[:2].tolist() == [[0, 0, 1, 3], [1, 2, 1, 1]]
    assert rows[2, :3].tolist() == [0, 0, 0]
    assert 1 <= rows[2, 3] <= 3


def test_matrix_by_hand():
    vocabulary = WordIds.of(["Dog", "?", "7", "cat", "Cat"], first=1)
    vectors = Vectors(["dog", "cat", "Cat"], np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32))
    matrix = matrix_of(vocabulary, vectors, np.random.default_rng(0))
    assert matrix[[0, 1, 4, 5]].tolist() == [[0, 0], [1, 2], [3, 4], [5, 6]]
    assert (matrix[2] == matrix[3]).all()
    assert (np.abs(matrix[2]) <= 0.5).all()
    assert matrix[2].any()


def test_pairs_without_a_token_are_refused():
    with pytest.raises(InputError, match="no token"):
        words_of(SentencePairs("x", [()], [()], ["l"]))


def test_random_vectors_keep_words_and_scale():
    vectors = vectors_of(list(map(str, range(500))))
    floor = random_vectors(vectors, np.random.default_rng(1))
    assert list(floor.words) == list(vectors.words)
    assert np.std(floor.matrix) == pytest.approx(np.sqrt(np.mean(vectors.matrix**2)), rel=0.05)
    assert abs(np.corrcoef(floor.matrix.ravel(), vectors.matrix.ravel())[0, 1]) < 0.05


def slow_scores(model, premises, hypotheses):
    """The model as the paper's code writes it: every place projected, dropout off."""
    sides = []
    for rows, norm in zip((premises, hypotheses), model.norms, strict=True):
        embedded = model.vectors[rows]
        bag = torch.relu(embedded @ model.project.weight.T + model.project.bias).sum(dim=1)
        mean = bag.mean(dim=0)
        variance = bag.var(dim=0, unbiased=False)
        sides.append((bag - mean) / torch.sqrt(variance + norm.eps))
    x = torch.cat(sides, dim=1)
    linears = [layer for layer in model.layers if isinstance(layer, torch.nn.Linear)]
    for linear in linears[:-1]:
        x = torch.relu(linear(x))
        x = (x - x.mean(dim=0)) / torch.sqrt(x.var(dim=0, unbiased=False) + 1e-5)
    return linears[-1](x)


def test_scores_and_gradients_equal_a_slow_reference():
    settings = InferenceSettings(hidden=5, dropout=0)
    with seeded(3):
        matrix = torch.randn(9, 4).numpy()
        model = BagOfWords(
            matrix, 3, settings
        ).double()  # so that the order of sums does not matter
        rows = torch.randint(0, 9, (2, 7, 6))
    assert len([m for m in model.layers if isinstance(m, torch.nn.Linear)]) == 4
    weight = model.project.weight
    (fast,) = torch.autograd.grad(model(rows[0], rows[1]).square().sum(), weight)
    (slow,) = torch.autograd.grad(slow_scores(model, rows[0], rows[1]).square().sum(), weight)
    torch.testing.assert_close(model(rows[0], rows[1]), slow_scores(model, rows[0], rows[1]))
    torch.testing.assert_close(fast, slow)


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    one = rng.integers(1, 5, (n, 3))
    other = rng.integers(1, 5, (n, 3))
    return PairRows(one, other, (other == 4).any(axis=1).astype(np.int64))


def test_the_kept_model_is_that_of_the_lowest_dev_loss():
    settings = InferenceSettings(hidden=8, batch=32, epochs=40, dropout=0.1)
    # 321: the last batch would hold one pair
    train = rows_of(321)
    dev = rows_of(40, seed=1)
    with seeded(0):
        training = PairTraining(
            BagOfWords(np.eye(5, 4, dtype=np.float32), 2, settings), train, dev, settings, CPU
        )
        model = training.fit().finish()
        scores = model(torch.from_numpy(dev.premises), torch.from_numpy(dev.hypotheses))
    losses = torch.nn.functional.cross_entropy(
        scores.detach(), torch.from_numpy(dev.targets), reduction="none"
    )
    batches = torch.split(losses, 32)
    assert training.progress.best == pytest.approx(
        float(torch.stack([b.mean() for b in batches]).mean()), rel=1e-5
    )
    assert (predictions(model, dev, 7, CPU) == dev.targets).mean() > 0.9


def test_training_stops_after_its_patience():
    settings = InferenceSettings(hidden=8, batch=32, epochs=200, patience=2)
    train = rows_of(64)
    dev = rows_of(64, seed=1)
    noise = PairRows(
        dev.premises, dev.hypotheses, np.random.default_rng(5).permutation(dev.targets)
    )
    with seeded(0):
        model = BagOfWords(np.eye(5, 4, dtype=np.float32), 2, settings)
        training = PairTraining(model, train, noise, settings, CPU).fit()
    assert (training.stopped, training.done) == ("patience", True)
    assert training.epochs == training.progress.best_look + 2 < 200


def test_one_training_pair_is_refused():
    with pytest.raises(InputError, match="at least two"):
        PairTraining(
            BagOfWords(np.eye(5, 4, dtype=np.float32), 2, SMALL), rows_of(1), rows_of(8), SMALL, CPU
        )


@pytest.mark.slow
def test_a_planted_rule_is_learnt_and_shuffled_labels_are_at_chance():
    findings = measured(colours())
    own = one(findings, "vectors")
    floor = one(findings, "random vectors")
    assert own.value > 0.95
    assert own.low <= own.value <= own.high
    assert own.control == floor.value
    assert own.chance == pytest.approx(2 / 3, abs=0.1)
    assert floor.control < own.value - 0.2


def test_labels_without_a_rule_stay_at_chance():
    own = one(measured(colours(noise=True)), "vectors")
    assert own.low < 0.5 < own.high


def test_the_same_seed_gives_the_same_findings():
    quick = SMALL.model_copy(update={"epochs": 2})
    first, again, other = (measured(colours(200), quick, seed) for seed in (4, 4, 5))
    assert first == again
    assert first != other


def test_gain_is_the_paired_difference():
    own, floor, gain = measured(colours(300), SMALL.model_copy(update={"epochs": 3}))
    assert gain.measure == "utility.nli_gain"
    assert gain.value == pytest.approx(own.value - floor.value)
    assert own.n == gain.n == 60
    assert own.detail["seed_lowest"] <= own.value <= own.detail["seed_highest"]
    assert "id3" not in json.dumps([f.as_dict() for f in (own, floor, gain)])


def test_seeds_stand_beside_the_interval_and_not_in_it():
    """Two seeds drawn anew are one of them twice in half of the draws; pairs of one premise are one
    unit.
    """
    own, _, gain = measured(colours(300), SMALL.model_copy(update={"epochs": 3, "seeds": 2}))
    for found in (own, gain):
        assert "premises" in found.method and "of the mean of these seeds" in found.method
        assert found.detail["seed_lowest"] <= found.value <= found.detail["seed_highest"]
        assert found.unit == "test pairs" and found.low <= found.value <= found.high
    assert (own.chance_is, own.control_kind) == ("majority label", "negative")


def test_sentences_that_training_holds_are_warned_of():
    pairs = colours(100)
    shared = SentencePairs("x.csv", pairs.premises, [("the", "same")] * 100, pairs.labels)
    quick = SMALL.model_copy(update={"epochs": 1, "seeds": 1})
    assert "100%" in one(measured(shared, quick), "vectors").detail["warning"]
    assert "warning" not in one(measured(pairs, quick), "vectors").detail


def test_an_unknown_device_is_a_usage_error():
    with pytest.raises(UsageError, match="tpu"):
        measured(colours(60), SMALL.model_copy(update={"device": "tpu"}))
