"""Recipes from settings, reading notes, and a model made ready."""

from __future__ import annotations

import numpy as np
import pytest
from lm_cases import LSTM, VOCABULARY, encoded_of, model_of

from clinveil.core import InputError, NotesSettings, UsageError
from clinveil.corpus import open_corpus
from clinveil.lm import LANGUAGE_MODELS, ModelSettings, Recipe, read_notes, train_model
from clinveil.lm.recipe import NeuralKind, neural_kind

pytest.importorskip("torch", reason="a network's sizes stand in its file")
from clinveil.lm.training import BACKOFF, GAIN, LOWEST_RATE


def test_the_papers_lstm():
    """Paper C, section 4.1, and code: 2 layers of 650, dropout 0.5, SGD from 20, clip 0.25, 35
    steps, 20 columns.
    """
    recipe = ModelSettings(size="paper").recipe()
    assert (recipe.layers, recipe.width, recipe.dropout, recipe.tied) == (2, 650, 0.5, True)
    assert (recipe.optimizer, recipe.rate, recipe.clip) == ("sgd", 20.0, 0.25)
    assert (recipe.window, recipe.lanes, recipe.epochs) == (35, 20, 20)
    assert recipe.plan == "stream"
    assert (BACKOFF, GAIN, LOWEST_RATE) == (4.0, 0.1, 0.1)
    assert ModelSettings(size="paper").word_vocabulary


def test_counting_models_have_no_recipe():
    for model in ("unigram", "ngram"):
        settings = ModelSettings(model=model)
        assert not settings.neural
        assert settings.word_vocabulary
        with pytest.raises(UsageError, match="is not a network"):
            settings.recipe()
    with pytest.raises(UsageError, match=r"lm\.model pretrained has no lm\.size paper") as refused:
        ModelSettings(model="pretrained", size="paper").recipe()
    assert refused.value.exit_code == 2


def test_a_new_language_model_is_one_entry(tmp_path, monkeypatch):
    """Its sizes are settings, its recipe can be kept, and its model is trained, saved and read like
    any other.
    """
    from clinveil.lm import Lstm, load_model, save_model

    sizes = {"tiny": {**neural_kind("lstm").sizes["tiny"], "width": 8, "epochs": 1}}
    twin = NeuralKind("a twin of the LSTM", Lstm, sizes, layer_weights=8)
    with monkeypatch.context() as patch:
        patch.setitem(LANGUAGE_MODELS.paths, "twin", "")
        patch.setitem(LANGUAGE_MODELS._loaded, "twin", twin)
        settings = ModelSettings(model="twin", size="tiny", vocabulary="words")
        assert "twin" in LANGUAGE_MODELS.names() and settings.neural
        model, went = train_model(encoded_of(), VOCABULARY, settings, seed=1)
        assert (model.kind, len(went["losses"])) == ("twin", 1)
        save_model(model, tmp_path / "m", {})
        assert load_model(tmp_path / "m")[0].kind == "twin"
    with pytest.raises(ValueError, match="one of unigram, ngram, lstm, pretrained"):
        ModelSettings(model="twin")
    with pytest.raises(InputError, match="unknown kind"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    "data", [{}, {**LSTM.as_dict(), "more": 1}, {**LSTM.as_dict(), "plan": "spiral"}]
)
def test_other_data_is_no_recipe(data):
    with pytest.raises(InputError, match="not a valid recipe"):
        Recipe.from_dict(data)


def corpus_of(tmp_path, rows, header="note_id,patient_id,text"):
    path = tmp_path / "notes.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return open_corpus(path, NotesSettings())


def test_notes_are_read_in_medtexts_form_and_empty_ones_left_out(tmp_path):
    rows = ['1,a,"No pain. Fever: none."', '2,a,""', '3,b,"   "', '4,b,"Second  note."']
    notes = read_notes(corpus_of(tmp_path, rows))
    assert notes.texts == ("No pain .\nFever :\nnone .", "Second note .")
    assert notes.note_ids == ("1", "4")
    assert notes.patients == ("a", "b")
    assert notes.words == 10
    assert notes.rows([1, 0]).note_ids == ("4", "1")


def test_prepared_notes_keep_their_tokens(tmp_path):
    notes = read_notes(corpus_of(tmp_path, ['1,a,"a.b  c\n\n d\u2028e"']), prepared=True)
    assert notes.texts == ("a.b c\nd\ne",)


def test_no_note_with_a_word_is_refused(tmp_path):
    with pytest.raises(InputError, match="no note contains a word"):
        read_notes(corpus_of(tmp_path, ['1,a," "']))


def test_a_model_made_ready_is_doubled_and_the_generator_comes_back():
    import torch

    model = model_of(LSTM)
    note = encoded_of().note(0)
    before = model.score([note])[0]
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with model.ready(double=True):
        torch.rand(7)
        doubled = model.score([note])[0]
    assert (torch.rand(2) == expected).all()
    assert model.network.input.dtype == torch.float64
    assert doubled == pytest.approx(before, abs=1e-5)
    assert np.isfinite(doubled).all()
