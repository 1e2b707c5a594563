"""The networks: against NumPy by hand, gradients against differences, padding that nothing sees."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [neural]")

from papers.jamia_2020.networks import (  # noqa: E402
    NETWORKS,
    PAD,
    Attention,
)
from papers.jamia_2020.training import TextNetwork  # noqa: E402

from clinveil import Vectors  # noqa: E402
from clinveil.utility import (  # noqa: E402
    ClassifiedNotes,
    parts_of,
    predict,
)
from clinveil.utility.scores import score  # noqa: E402

MODELS = ("cnn", "cnn-attention", "lstm", "lstm-attention")


@pytest.fixture
def matrix():
    torch.manual_seed(0)
    table = torch.randn(12, 6)
    table[PAD] = 0
    return table


def network(model, matrix, n_classes, *, several):
    return NETWORKS[model](matrix, n_classes, several=several)


def net_of(model, matrix, n_classes=3, several=False):
    torch.manual_seed(1)
    return network(model, matrix, n_classes, several=several).eval()


@pytest.mark.parametrize("model", MODELS)
def test_padding_changes_nothing(model, matrix):
    net = net_of(model, matrix)
    short = torch.tensor([[2, 3, 4, 5, 6, 7, 8]])
    long = torch.tensor([[2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]])
    assert torch.allclose(net(short), net(long), atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_gradients_equal_differences(model, matrix):
    net = net_of(model, matrix).double()
    ids = torch.tensor([[2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 2, 0]])
    vectors = net.words(ids).detach().requires_grad_(True)
    assert torch.autograd.gradcheck(
        lambda v: net.output(net.body(v, ids != PAD)), (vectors,), eps=1e-6, atol=1e-5
    )


def test_kims_cnn_by_hand(matrix):
    net = net_of("cnn", matrix)
    ids = torch.tensor([[2, 3, 4, 5, 6]])
    words = matrix[ids[0]].numpy()
    pooled = []
    for maps, width in zip(net.convolutions.maps, (3, 4, 5), strict=True):
        kernel = maps.weight.detach().numpy()
        bias = maps.bias.detach().numpy()
        values = [
            (kernel * words[i : i + width].T).sum(axis=(1, 2)) + bias for i in range(5 - width + 1)
        ]
        pooled.append(np.maximum(values, 0).max(axis=0))
    scores = (
        net.output.weight.detach().numpy() @ np.concatenate(pooled)
        + net.output.bias.detach().numpy()
    )
    assert np.allclose(net(ids).detach().numpy()[0], scores, atol=1e-5)


def test_attention_by_hand():
    torch.manual_seed(2)
    attend = Attention(4).eval()
    states = torch.randn(1, 3, 4)
    real = torch.tensor([[True, True, False]])
    weight = attend.inner.weight.detach().numpy()
    bias = attend.inner.bias.detach().numpy()
    h = states[0].numpy()
    raw = np.tanh(h @ weight.T + bias) @ attend.score.weight.detach().numpy()[0]
    raw = np.exp(raw[:2])
    expected = (raw / raw.sum()) @ h[:2]
    assert np.allclose(attend(states, real).detach().numpy()[0], expected, atol=1e-6)
    weights = attend.weights(states, real)
    assert weights[0, 2] == 0
    assert weights.sum().item() == pytest.approx(1.0)


def test_lstm_takes_the_state_after_the_last_word(matrix):
    net = net_of("lstm", matrix)
    states, _ = net.lstm(net.words(torch.tensor([[2, 3, 4]])))
    body = net.body(
        net.words(torch.tensor([[2, 3, 4, 0, 0]])), torch.tensor([[True] * 3 + [False] * 2])
    )
    assert torch.allclose(body, states[:, -1], atol=1e-6)


ORGAN_WORDS = {"heart": ("cardiac", "murmur"), "lung": ("wheeze", "lobe"), "skin": ("rash", "itch")}
OTHER_WORDS = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]


def organ_notes(n, *, several=False):
    """Notes of ten shared words and two words of each of their classes."""
    rng = np.random.default_rng(0)
    table = np.zeros((n, 3), dtype=bool)
    classes = rng.integers(3, size=n)
    table[np.arange(n), classes] = True
    if several:
        table |= rng.random((n, 3)) < 0.2
    texts = []
    for row in table:
        organs = [words for words, has in zip(ORGAN_WORDS.values(), row, strict=True) if has]
        signs = [rng.choice(words) for words in organs for _ in range(2)]
        texts.append(" ".join(rng.permutation([*signs, *rng.choice(OTHER_WORDS, 10)])))
    ids = [f"n{i}" for i in range(n)]
    targets = table if several else classes
    return ClassifiedNotes(ids, ids, texts, tuple(ORGAN_WORDS), targets, "organ", {})


def predicted(model, notes, epochs, shuffled=False):
    words = sorted({word for text in notes.texts for word in text.split()})
    matrix = np.random.default_rng(0).normal(0, 1, (len(words), 12)).astype(np.float32)
    network = TextNetwork(model, Vectors(words, matrix), max_tokens=20, epochs=epochs, patience=4)
    parts = parts_of(notes, np.random.default_rng(1))
    return predict(network, notes, parts, 7, shuffled=shuffled), notes.targets[parts.test]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_a_planted_rule_is_learnt_and_shuffled_labels_are_at_chance(model):
    notes = organ_notes(600)
    learnt, truth = predicted(model, notes, epochs=30)
    assert score("accuracy", truth, learnt.test) > 0.85
    shuffled, _ = predicted(model, notes, epochs=8, shuffled=True)
    assert score("accuracy", truth, shuffled.test) < 0.65


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_predictions(model):
    first, again = (predicted(model, organ_notes(90), epochs=2)[0] for _ in range(2))
    assert np.array_equal(first.test, again.test)
