"""The inference model: by hand, against a slow reference, with planted rules, shuffled labels, and
per seed.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from papers.clinicalnlp_2019.nli import (
    InferenceSettings,
    nli,
)
from papers.clinicalnlp_2019.sentence_pairs import SentencePairs, nli_parts

from clinveil import InputError, Vectors

torch = pytest.importorskip("torch", reason="the extra [neural] is not installed")
from papers.clinicalnlp_2019.pairs_model import (  # noqa: E402
    BagOfWords,
    PairRows,
    PairTraining,
)

from clinveil.core import seeded  # noqa: E402

SMALL = InferenceSettings(hidden=16, seeds=2, batch=64, max_tokens=6, epochs=25, dropout=0.2)
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
    return next(f for f in findings if f.series == series)


def measured(pairs, settings=SMALL, seed=0, words=WORDS):
    rng = np.random.default_rng(seed)
    return nli(vectors_of(words), nli_parts(pairs, None, None, rng), rng, settings)


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


def test_one_training_pair_is_refused():
    model = BagOfWords(np.eye(5, 4, dtype=np.float32), 2, SMALL)
    with pytest.raises(InputError, match="at least two training pairs"):
        PairTraining(model, rows_of(1), rows_of(8), SMALL, torch.device("cpu"))


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
    assert own.numbers["seed_lowest"] <= own.value <= own.numbers["seed_highest"]
    assert "id3" not in json.dumps([f.as_dict() for f in (own, floor, gain)])


def test_seeds_stand_beside_the_interval_and_not_in_it():
    """Two seeds drawn anew are one of them twice in half of the draws; pairs of one premise are one
    unit.
    """
    own, _, gain = measured(colours(300), SMALL.model_copy(update={"epochs": 3, "seeds": 2}))
    for found in (own, gain):
        assert "premises" in found.method and "of the mean of these seeds" in found.method
        assert found.numbers["seed_lowest"] <= found.value <= found.numbers["seed_highest"]
        assert found.unit == "test pairs" and found.low <= found.value <= found.high
    assert (own.chance_is, own.control_kind) == ("majority label", "negative")
