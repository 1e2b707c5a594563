"""Inference: an attribute that words tell is read, one that they do not is at chance; scores by
brute force.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from clinveil.attacks import Context, Inference
from clinveil.attacks.text.inference import (
    PLAIN,
    RELEASED,
    AttributePredictions,
    _balanced,
    predict,
    read_labelled,
)
from clinveil.core import InputError
from clinveil.corpus import MemoryCorpus, memory_corpus

N = 120


def corpus(texts, labels, patients=None, prefix=""):
    ids = [f"{prefix}{i}" for i in range(len(texts))]
    (batch,) = memory_corpus(list(zip(ids, patients or ids, texts, strict=True))).batches()
    return MemoryCorpus((batch.append_column("sick", pa.array(labels)),))


def case(rng, told, *, prefix="", n=N):
    """Notes of two classes; `told`: how often a note has a word of its class."""
    labels = ["yes" if i % 3 == 0 else "no" for i in range(n)]
    usual = ["ab", "cd", "ef", "gh"]
    own = {"yes": ["cough", "fever"], "no": ["well", "fine"]}
    mark = [
        rng.choice(own[label]) if rng.random() < told else rng.choice(usual) for label in labels
    ]
    texts = [" ".join([*rng.choice(usual, 12), word]) for word in mark]
    return corpus(texts, labels, prefix=prefix)


def of(found, against=RELEASED):
    return next(f for f in found if against in f.labels)


def test_what_words_tell_is_read():
    rng = np.random.default_rng(0)
    found = Inference()(Context(released=case(rng, 1.0), keep=("sick",)), np.random.default_rng(1))
    one = of(found)
    assert one.value > 0.95 and one.low > 0.85 and "turned" not in one.numbers
    assert one.chance == 0.5 and abs(one.control - 0.5) < 0.15
    assert one.numbers["majority"] == pytest.approx(2 / 3) and one.numbers["classes"] == 2
    assert "cough" not in str([f.as_dict() for f in found])


def test_of_two_values_one_who_is_mostly_wrong_names_the_other():
    notes = read_labelled(
        case(np.random.default_rng(0), 1.0), "sick", np.random.default_rng(0), most=N
    )
    wrong = np.eye(2)[1 - notes.labels]
    wrong[:6] = 1 - wrong[:6]
    turned, usual = (
        AttributePredictions(notes, p, p).finding((), np.random.default_rng(1))
        for p in (wrong, 1 - wrong)
    )
    assert turned.numbers["turned"] and turned.value == pytest.approx(usual.value)
    assert (turned.low, turned.high) == pytest.approx(
        (usual.low, usual.high)
    ) and turned.value > 0.9


def test_plain_notes_of_others_transfer_where_words_are_the_same():
    rng = np.random.default_rng(0)
    context = Context(released=case(rng, 1.0), reference=case(rng, 1.0, prefix="o"), keep=("sick",))
    assert of(Inference()(context, np.random.default_rng(1)), against=PLAIN).value > 0.95
    (batch,) = case(rng, 1.0).batches()
    coded = pa.array([f"z{i % 2}" for i in range(N)], pa.large_string())
    context = Context(
        released=MemoryCorpus((batch.set_column(2, "text", coded),)),
        original=MemoryCorpus((batch,)),
        keep=("sick",),
    )
    one = of(Inference()(context, np.random.default_rng(1)), against=PLAIN)
    assert one.low < 0.5 + 1e-9


def test_a_patient_is_never_learnt_from_and_asked():
    patients = [f"p{i // 4}" for i in range(N)]
    words = [f"{'abcdefghij'[i // 4 % 10]}{'abcdefghij'[i // 40]}q" for i in range(N)]
    labels = ["yes" if (i // 4) % 2 else "no" for i in range(N)]
    held = read_labelled(corpus(words, labels, patients), "sick", np.random.default_rng(0), most=N)
    made = predict(held, held.training_set, np.random.default_rng(0))
    assert _balanced(held.labels, made.chances, np.ones(N)) < 0.65  # each word is of one patient


def test_rare_values_and_lists_are_left_out():
    texts = ["ab cd"] * 40
    labels = ["x"] * 15 + ["y"] * 15 + ["z"] * 5 + [None] * 5
    held = read_labelled(corpus(texts, labels), "sick", np.random.default_rng(0), most=100)
    assert (held.names, len(held.labels), held.left_out) == (["x", "y"], 30, 5)
    (finding,) = Inference()(
        Context(released=corpus(texts, ["x"] * 40), keep=("sick",)), np.random.default_rng(0)
    )
    assert finding.value is None and "two values" in finding.why


def test_known_notes_must_have_the_labels():
    rng = np.random.default_rng(0)
    few = corpus(["ab cd"] * 20, ["yes"] * 20)
    with pytest.raises(InputError, match="lack a label"):
        Inference()(Context(released=case(rng, 1.0), reference=few, keep=("sick",)), rng)
    with pytest.raises(InputError, match="no source"):
        Inference()(Context(released=case(rng, 1.0), original=few, keep=("sick",)), rng)


def test_scores_equal_brute_force():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 30)
    chances = rng.integers(0, 4, (30, 3)) / 4
    weights = rng.integers(0, 3, 30).astype(float)
    again = np.repeat(np.arange(30), weights.astype(int))
    shares = [(chances[again][labels[again] == c].argmax(axis=1) == c).mean() for c in range(3)]
    assert _balanced(labels, chances, weights) == pytest.approx(np.mean(shares))
