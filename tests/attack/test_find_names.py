"""Real names among surrogates."""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.attacks import NameTokens, rank_names
from clinveil.attacks.vectors._name_scores import leaked_names
from clinveil.vectors import Vectors


def pairs_of(prefix, n):
    return [
        (f"{prefix}f{'abcdefghijklmnopqrst'[i]}", f"{prefix}l{'abcdefghijklmnopqrst'[i]}")
        for i in range(n)
    ]


def setting(real_noise, surrogate_noise, seed=0):
    """Five real and fifteen surrogate names; the two tokens of each lie together, but for noise."""
    draw = np.random.default_rng(seed)
    places = {}
    real = pairs_of("r", 5)
    surrogates = pairs_of("s", 15)
    for names, noise in ((real, real_noise), (surrogates, surrogate_noise)):
        for first, last in names:
            centre = draw.normal(size=30)
            places[first] = centre
            places[last] = centre + noise * draw.normal(size=30)
    vectors = Vectors(list(places), np.array(list(places.values()), dtype=np.float32))
    names = NameTokens(real, also=surrogates)
    assert names.forms == names.others.forms == NameTokens(surrogates, also=real).forms
    return names, rank_names(vectors, names, "cosine", 780)


def test_real_names_that_behave_like_surrogates_do_not_stand_out():
    finding = leaked_names(*setting(0.1, 0.1), 20, np.random.default_rng(0))
    assert (finding.value, finding.chance, finding.n) == (0.25, 0.25, 20)
    assert finding.control == pytest.approx(0.25)
    assert finding.p == 1


def test_real_names_that_lie_nearer_stand_out():
    finding = leaked_names(*setting(0.01, 5.0), 5, np.random.default_rng(0))
    assert (finding.value, finding.count) == (1.0, 5)
    assert finding.low > finding.chance == 0.25
    # 5 right of 5: one of C(20, 5) ways on the upper side; on the lower side even 0 of 5 is nearer
    # to the mean.
    assert finding.p == pytest.approx(1 / 15504, abs=3e-4)


def test_no_name_in_the_list_is_said():
    real, ranking = setting(0.1, 0.1)
    far = type(ranking)(ranking.codes[::-1], ranking.distances[::-1], "cosine", ranking.ranked)
    finding = leaked_names(real, far, 3, np.random.default_rng(0))
    assert finding.value is None
    assert "no full name" in finding.why
