"""Public models: read without network access or code, converted to pieces of notes, trained
further, and sampled.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from lm_cases import same

from clinveil.core import InputError, Key, seeded
from clinveil.lm import (
    ModelSettings,
    NeuralModel,
    NeuralTask,
    PublicModel,
    SamplingConfig,
    Steering,
    encode,
    files_of,
    generate,
    load_model,
    save_model,
    train_layout,
    train_model,
)
from clinveil.lm.layout import RARE_WORD
from clinveil.lm.models.pretrained import LowRank, Pretrained
from clinveil.lm.network import weights_of
from public_model import saved_public_model

WORDS = [
    "the",
    "patient",
    "has",
    "fever",
    "and",
    "cough",
    "since",
    "Monday",
    "denies",
    "cholecystectomy",
]
PREFIXES = ("Type: Surgery\n", "Type: Consult\n")


def texts_of(n=24, seed=0):
    rng = np.random.default_rng(seed)
    return [f"HISTORY:\n{' '.join(rng.choice(WORDS, 12))}. BP {100 + i % 3}/80." for i in range(n)]


TEXTS = [PREFIXES[i % 2] + text for i, text in enumerate(texts_of())]
VOCABULARY = train_layout(TEXTS, [str(i) for i in range(len(TEXTS))], 3)
ENCODED = encode(TEXTS, VOCABULARY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved_public_model(tmp_path_factory.mktemp("public"), TEXTS)


@pytest.fixture(scope="module")
def public(folder):
    return PublicModel.open(str(folder))


SETTINGS = ModelSettings(
    model="pretrained", window=16, lanes=4, epochs=2, rank=2, rate=0.01, precision="float32"
)


def task_of(public, settings=SETTINGS, **more):
    recipe = public.recipe(settings.recipe())
    prefixes = [VOCABULARY.encode(prefix).tolist()[:-1] for prefix in PREFIXES]
    made = NeuralTask(ENCODED, VOCABULARY, recipe, 1, prefixes=prefixes, **more)
    return replace(made, start=lambda: public.network(VOCABULARY, recipe, ENCODED))


@pytest.fixture(scope="module")
def model(public):
    return task_of(public).run()[0]


def test_pieces_of_one_subword_keep_their_scores(public):
    """Before training, two pieces that are subwords differ in score as in the public model."""
    recipe = public.recipe(SETTINGS.recipe())
    with seeded(0):
        network = public.network(VOCABULARY, recipe, ENCODED).eval()
    rows = public.tokens(VOCABULARY.pieces)
    firsts = [row[0] if row else -1 for row in rows]
    single = [i for i, row in enumerate(rows) if len(row) == 1 and firsts.count(row[0]) == 1]
    assert len(single) > 5
    inputs = torch.tensor([single[0], single[1], single[2]])[:, None]
    with torch.inference_mode():
        scores = network.scores(network(inputs, ())[0])[:, 0, single]
        expected = public.model(
            inputs.new_tensor([[rows[i][0] for i in inputs[:, 0].tolist()]])
        ).logits[0]
    assert torch.allclose(scores, expected[:, [rows[i][0] for i in single]], atol=1e-5)


def test_only_the_update_and_the_vectors_are_trained(public, model):
    with seeded(0):
        before = weights_of(public.network(VOCABULARY, model.network.recipe, ENCODED))
    after = weights_of(model.network)
    changed = {name for name in after if not torch.equal(before[name], after[name])}
    assert {"input", "output", "bias"} <= changed
    assert all(name.endswith((".down", ".up")) for name in changed - {"input", "output", "bias"})
    assert sum(isinstance(layer, LowRank) for layer in model.network.modules()) == 2 * 7


def test_rank_0_trains_all_weights_and_lowers_the_loss(public):
    made, history = task_of(public, SETTINGS.but(rank=0, epochs=6)).run()
    assert not any(isinstance(layer, LowRank) for layer in made.network.modules())
    assert history["losses"][-1] < history["losses"][0] - 0.3


def test_a_resumed_training_has_the_same_weights(public, model, tmp_path):
    state = tmp_path / "state.safetensors"
    with seeded(1):
        from clinveil.lm.training import save_training

        stopped = task_of(public, state=state)
        training = stopped.training()
        training.fit(3)
        save_training(training, state, stopped.identity)
    resumed, _ = task_of(public, state=state).run()
    assert same(weights_of(resumed.network), weights_of(model.network))


def test_notes_do_not_depend_on_the_batch_size(model):
    steering = Steering(np.zeros((2, VOCABULARY.size)), np.ones((2, 1)), VOCABULARY)

    def written(batch):
        how = SamplingConfig(batch, 100, steering=steering)
        notes = generate(model, Key.from_seed(1), how, labels=(i % 2 for i in range(100)))
        return [(note.ids.tolist(), note.truncated) for note in islice(notes, 9)]

    with model.ready(double=True):
        one = written(1)
        three = written(3)
    model.network.float()
    assert one == three and any(ids for ids, _ in one)
    assert all(len(ids) < 64 for ids, _ in one), "a note ends where the model has no more positions"
    assert not any(RARE_WORD in ids for ids, _ in one)


def test_a_stream_predicts_as_the_network_scores(model):
    note = ENCODED.note(0)[:20]
    prefix = model.prefixes[1]
    stream = model.stream(2)
    stream.reset(np.array([1]), np.array([1]))
    logs = []
    for token in note:
        logs.append(np.log(stream.probabilities()[1, token]))
        stream.push(np.array([5, token]))
    whole = np.concatenate([prefix, note]).astype(np.int32)
    model.network.recipe = replace(model.network.recipe, window=60)
    scored = model.score([whole])[0][len(prefix) :]
    model.network.recipe = replace(model.network.recipe, window=16)
    assert np.allclose(logs, scored, atol=1e-4)


def test_in_bfloat16_scores_and_streams_are_close_and_double_precision_is_kept(model):
    network = model.network
    half = NeuralModel(
        VOCABULARY, type(network)(VOCABULARY.size, replace(network.recipe, precision="bfloat16"))
    )
    half.network.load_state_dict(network.state_dict())
    exact = model.score([ENCODED.note(0)])[0]
    close = half.score([ENCODED.note(0)])[0]
    assert not np.array_equal(exact, close) and np.allclose(exact, close, atol=0.1)
    streams = [one.stream(1) for one in (model, half)]
    for token in ENCODED.note(0)[:5].tolist():
        first, second = (stream.probabilities() for stream in streams)
        assert np.allclose(first, second, atol=0.02) and not np.array_equal(first, second)
        for stream in streams:
            stream.push(np.array([token]))
    assert half.network.input.dtype == torch.float32  # a copy writes
    with half.ready(double=True):
        assert np.allclose(half.score([ENCODED.note(0)])[0], exact, atol=1e-4)


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "qwen2", "mistral", "gemma3_text", "opt"])
def test_other_architectures_write_as_they_score_and_see_no_later_token(name):
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
    }
    others = {"gpt2": {}, "gpt_neox": {}, "opt": {"word_embed_proj_dim": 16}}
    config = {"model_type": name, **sizes, **others.get(name, {"num_key_value_heads": 1})}
    recipe = replace(SETTINGS.but(window=60, rank=0).recipe(), width=16, config=config)
    with seeded(1):
        network = Pretrained(VOCABULARY.size, recipe)
        with torch.no_grad():
            for weights in network.parameters():
                weights.add_(torch.randn(weights.shape) * 0.3)
    made = NeuralModel(VOCABULARY, network)
    note = np.array([*range(3, 16), 0], dtype=np.int32)
    stream = made.stream(2)
    logs = []
    for token in note:
        logs.append(np.log(stream.probabilities()[0, token]))
        stream.push(np.array([token, 3]))
    scored = made.score([note])[0]
    assert np.allclose(logs, scored, atol=1e-4)
    changed = np.where(np.arange(note.size) == 10, 3, note).astype(np.int32)
    assert np.array_equal(made.score([changed])[0][:10], scored[:10])


def test_an_architecture_without_masks_is_refused():
    recipe = replace(
        SETTINGS.recipe(),
        config={"model_type": "bloom", "hidden_size": 16, "n_layer": 1, "n_head": 2},
    )
    with pytest.raises(InputError, match="bloom is not supported"):
        Pretrained(VOCABULARY.size, recipe)


def test_a_saved_model_is_the_same(model, tmp_path):
    save_model(model, tmp_path / "m", {})
    loaded, _ = load_model(tmp_path / "m")
    assert isinstance(loaded, NeuralModel) and loaded.prefixes == model.prefixes
    assert same(weights_of(loaded.network), weights_of(model.network))
    assert np.array_equal(loaded.score([ENCODED.note(0)])[0], model.score([ENCODED.note(0)])[0])


def test_log_likelihoods_do_not_depend_on_the_other_texts(public):
    texts = ["the patient", "the patient has fever and cough since Monday", "x"]
    together = public.log_likelihoods(texts)
    assert np.allclose(together, [public.log_likelihoods([text])[0] for text in texts], atol=1e-4)
    assert (together < 0).all()


def test_a_model_needs_a_public_model():
    with pytest.raises(Exception, match=r"synthetic\.init"):
        train_model(ENCODED, VOCABULARY, SETTINGS, seed=1)


@pytest.mark.parametrize(("name", "content", "message"), [
    ("pytorch_model.bin", b"\x80\x02", "contains a pickle, which can run code: pytorch_model.bin"),
    ("training_args.bin", b"", "contains a pickle"),
    ("modeling_own.py", b"", "needs code of its own: modeling_own.py"),
    ("tokenizer_config.json", json.dumps({"auto_map": {"AutoModel": "x"}}).encode(),
        "needs code of its own"),
    ("config.json", b"{", "not readable JSON"),
])  # fmt: skip
def test_folders_with_code_are_refused(folder, tmp_path, name, content, message):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        PublicModel.open(str(tmp_path))


def test_folders_without_a_model_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="not a folder"):
        files_of(str(tmp_path / "none"))
    with pytest.raises(InputError, match="no safetensors"):
        files_of(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    with pytest.raises(InputError, match="cannot load a language model"):
        PublicModel.open(str(tmp_path))
