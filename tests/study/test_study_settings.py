"""The settings of the study: profiles, the grid they make, and what they refuse."""

from __future__ import annotations

import pytest

from clinveil.core.errors import UsageError
from clinveil.core.load_settings import load_settings
from clinveil.study.jmir_2020.settings import FIGURE_3, StudySettings, label_of, main_models, models


def test_the_default_grid_is_the_papers():
    settings = StudySettings()
    assert settings.miss_rate == 0.01
    assert settings.mode == "remove"
    assert settings.window == (1, 3, 5, 7, 9)
    assert settings.metric == ("cosine", "cityblock")
    assert len(models(settings)) == 15
    assert {model.algorithm for model in models(settings)} == {"cbow", "skipgram", "glove"}


def test_the_papers_size_has_44_embeddings_and_so_88_models():
    settings = StudySettings(size="paper")
    assert len(models(settings)) * len(settings.metric) == 88
    assert len(set(models(settings))) == 44
    assert len(main_models(settings)) == 33  # one GloVe a window has room in the tables
    assert {model.dim for model in models(settings)} == {100}


def test_what_is_given_wins_over_the_profile(tmp_path):
    config = tmp_path / "study.toml"
    config.write_text('size = "tiny"\nwindow = [5, 1, 5]\ndim = [8]\n')
    settings = load_settings(StudySettings, {"dim": (4,)}, config)
    assert (settings.window, settings.dim, settings.draws) == ((1, 5), (4,), 99)


def test_dimensions_counts_and_variants_multiply_the_grid():
    settings = StudySettings(
        window=(2,), dim=(8, 4), min_count=(1, 5), glove_variant=("single", "pair")
    )
    assert len(models(settings)) == 2 * 2 * 4
    assert all((model.dim, model.min_count) == (4, 1) for model in main_models(settings))
    assert [model.glove_variant for model in main_models(settings)] == ["pair"] * 3


def test_glove_takes_its_own_number_of_passes():
    settings = StudySettings(epochs=2, glove_epochs=7, window=(1,))
    assert {model.algorithm: model.epochs for model in models(settings)} == {
        "skipgram": 2,
        "cbow": 2,
        "glove": 7,
    }


def test_models_are_named_by_their_settings():
    assert label_of(FIGURE_3) == "GloVe, one vector per word, window 10, 100 d, count 1+"
    assert (
        label_of(models(StudySettings(window=(3,), algorithm=("cbow",)))[0])
        == "CBOW, window 3, 50 d, count 1+"
    )


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"algorithm": ("word2vec",)}, "--algorithm"),
        ({"metric": ()}, "--metric"),
        ({"window": (0,)}, "--window"),
        ({"miss_rate": 0.0}, "--miss-rate"),
        ({"miss_rate": 1.5}, "--miss-rate"),
        ({"glove_variant": ("double",)}, "--glove-variant"),
        ({"size": "huge"}, "--size"),
        ({"windows": (1,)}, "no setting windows"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_flag(flags, says):
    with pytest.raises(UsageError, match=says):
        load_settings(StudySettings, flags)
