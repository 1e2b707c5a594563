"""Small notes, recipes and trainings that the tests of language models share."""

from __future__ import annotations

import numpy as np

from clinveil.lm import Recipe, WordVocabulary, encode, plan_of

WORDS = [f"w{i}" for i in range(20)]
VOCABULARY = WordVocabulary(WORDS)
LSTM = Recipe(
    kind="lstm", layers=2, width=8, dropout=0.3, tied=True, optimizer="sgd", rate=5.0, clip=0.25,
    window=5, lanes=3, epochs=2, plan="rows", precision="float32",
)  # fmt: skip
LLAMA = {
    "model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 256,
    "attention_dropout": 0.1, "initializer_range": 0.3,
}  # fmt: skip


def changed(recipe=LSTM, **values):
    return Recipe(**{**recipe.as_dict(), **values})


# A public architecture with random weights: a network without a state, in packed rows.
PRETRAINED = changed(
    kind="pretrained", dropout=0.0, tied=False, optimizer="adamw", rate=1e-2, clip=1.0, window=6,
    plan="packed", config=LLAMA,
)  # fmt: skip


def texts_of(n=12, seed=0, longest=30, words=WORDS):
    """Notes of a few lines of random words."""
    rng = np.random.default_rng(seed)
    notes = []
    for _ in range(n):
        lines = [
            " ".join(rng.choice(words, rng.integers(1, max(2, longest // 3))))
            for _ in range(rng.integers(1, 4))
        ]
        notes.append("\n".join(lines))
    return notes


def encoded_of(n=12, seed=0, longest=30):
    return encode(texts_of(n, seed, longest), VOCABULARY)


def training_of(recipe=LSTM, *, seed=1, encoded=None, plan=None, validate=None):
    """A training on the CPU; use it inside `seeded`."""
    import torch

    from clinveil.lm import Training

    encoded = encoded_of() if encoded is None else encoded
    plan = plan_of(encoded, recipe, 0) if plan is None else plan
    device = torch.device("cpu")
    return Training(VOCABULARY.size, recipe, plan, seed=seed, device=device, validate=validate)


def trained(recipe=LSTM, **how):
    """A network that was trained to the end."""
    from clinveil.core import seeded

    with seeded(0):
        training = training_of(recipe, **how)
        training.fit()
        return training.finish()


def model_of(recipe=LSTM, *, sharpen=0.0, **how):
    """A trained model; `sharpen` adds random numbers to its weights, so that it is far from
    uniform.
    """
    import torch

    from clinveil.lm import NeuralModel

    network = trained(recipe, **how)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weights in network.parameters():
            weights.add_(torch.randn(weights.shape, generator=generator) * sharpen)
    return NeuralModel(VOCABULARY, network)


def same(one, other):
    """Whether two state dictionaries are equal, bit for bit."""
    return one.keys() == other.keys() and all(
        bool((one[name] == other[name]).all()) for name in one
    )


def first_step_of(plan, rows):
    """The first step with one of these notes; leaving them out changes nothing before it."""
    less = plan.without(rows)
    return next(
        step
        for step in range(plan.steps)
        if (plan.batch(step).weights != less.batch(step).weights).any()
    )
