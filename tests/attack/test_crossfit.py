"""The effect at a word chosen on other seeds: by hand, where the truth is known, at chance, and its
interval.
"""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.attacks import above_floors, cross_fit, leave_out
from clinveil.attacks.models.leaveout.pdtp import FEW, effect_finding, mean_finding
from clinveil.core import InputError
from clinveil.stats import t_interval

# sd of each model's logs: the placebo of 500 words is then about 3 nats
NOISE = 0.66
REMEMBERED = 7


def models(rng, effect=0.0, n=8, seeds=2, sizes=None, spread=None, systematic=0.0):
    """[s][i][j]: models without unit i; losing unit j itself lowers one of its words by `effect`.

    spread: how much model i strays, and `systematic` how much of that is the same under every seed.
    """
    sizes = [500] * n if sizes is None else sizes
    spread = np.ones(n) if spread is None else spread
    same = [[systematic * rng.normal(0, 1, m) for m in sizes] for _ in range(n)]
    found = []
    for _ in range(seeds):
        rows = [
            [spread[i] * (rng.normal(0, NOISE, m) + same[i][j]) for j, m in enumerate(sizes)]
            for i in range(n)
        ]
        for unit in range(n):
            rows[unit][unit][REMEMBERED] -= effect
        found.append(rows)
    return found


def finding(effects, seed=0):
    return effect_finding(effects, np.random.default_rng(seed))


def test_three_units_by_hand():
    """One seed chooses the second word of unit 1, the other measures it; and the other way round
    the first word.
    """
    none = [np.zeros(2), np.zeros(1), np.zeros(1)]
    first = [[np.array([-1.0, -3.0]), *none[1:]], [np.array([0.0, 1.0]), *none[1:]], none]
    second = [[np.array([-4.0, -1.0]), *none[1:]], none, [np.array([0.0, 0.5]), *none[1:]]]
    effects = cross_fit([first, second])
    # differences of unit 1, others' mean less own: first seed 1, 3.5; second seed 4, 1.25
    assert effects.own.tolist() == [(1.0 + 1.25) / 2, 0.0, 0.0]
    # of the model without unit 2, on unit 1's words, against the one without unit 3: (0, -1) and
    # (0, 0.5)
    assert effects.matrix[1, 0] == (-1.0 + 0.0) / 2
    assert effects.control == pytest.approx(effects.matrix[~np.eye(3, dtype=bool)].mean())
    assert effects.seeds == 2


@pytest.mark.parametrize(("effect", "least"), [(0.0, -0.15), (3.0, 2.3), (4.0, 3.85)])
def test_what_is_remembered_is_measured_without_bias_where_the_word_can_be_found(effect, least):
    """The score is 3 nats whatever is remembered; score less placebo finds 0.4 of 3."""
    rng = np.random.default_rng(1)
    found = [cross_fit(models(rng, effect)) for _ in range(25)]
    assert least < np.mean([one.own.mean() for one in found]) < effect + 0.15
    assert np.mean([one.control for one in found]) == pytest.approx(0, abs=0.05)


def test_an_effect_that_maxima_hide_is_found():
    """2 nats on one word of 500: score less placebo is about 0, the effect is not, and more seeds
    find more of it.
    """
    rng = np.random.default_rng(2)
    hidden = []
    two = []
    three = []
    tested = []
    for _ in range(15):
        seeds = models(rng, 2.0, seeds=3)
        compared = leave_out([np.zeros(500)] * 8, seeds[0])
        hidden.append((compared.scores - compared.placebos).mean())
        two.append(cross_fit(seeds[:2]).own.mean())
        three.append(cross_fit(seeds).own.mean())
        tested.append(finding(cross_fit(seeds)).p <= 0.05)
    assert np.mean(hidden) < 0.4 < 0.6 < np.mean(two) < np.mean(three) < 2.1
    assert np.mean(tested) > 0.9


def test_one_planted_word_is_found_and_a_control_word_is_not():
    """Positive control: units 0 to 3 remember a word; 4 to 7, which no model ever saw, remember
    nothing.
    """
    rng = np.random.default_rng(3)
    seeds = models(rng)
    for rows in seeds:
        for unit in range(4):
            rows[unit][unit][REMEMBERED] -= 6.0
    effects = cross_fit(seeds)
    assert effects.own[:4] == pytest.approx(6.0, abs=2.0)
    low, high = t_interval(effects.own[4:])
    assert low < 0 < high
    for rows in seeds:  # without that word nothing is left
        for row in rows:
            for unit in range(8):
                row[unit][REMEMBERED] = 0.0
    low, high = t_interval(cross_fit(seeds).own)
    assert low < 0 < high


def level(n, runs, **how):
    rng = np.random.default_rng(4)
    return np.mean([finding(cross_fit(models(rng, n=n, **how))).p <= 0.05 for _ in range(runs)])


@pytest.mark.parametrize("systematic", [0.0, NOISE])
def test_larger_patients_who_move_the_model_more_are_no_sign_of_memory(systematic):
    """Nobody is remembered, a model strays with the square root of what it lost; permuting models
    rejects 35 %.
    """
    sizes = np.geomspace(40, 400, 8).astype(int)
    spread = (sizes / sizes.mean()) ** 0.5
    assert level(8, 150, sizes=sizes, spread=spread, systematic=systematic) <= 0.1


def test_what_moves_all_words_is_no_effect():
    """A row or a column that is high as a whole changes nothing."""
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(5, 5))
    row = rng.normal(size=(5, 1))
    column = rng.normal(size=5)
    for other in (matrix + 3.0, matrix + row, matrix + column):
        assert above_floors(other).mean() == pytest.approx(above_floors(matrix).mean())
    off = matrix[~np.eye(5, dtype=bool)]
    assert above_floors(matrix).mean() == pytest.approx(np.diag(matrix).mean() - off.mean())


@pytest.mark.parametrize("n", [6, 8])
def test_the_interval_covers_and_a_bootstrap_of_so_few_did_not(n):
    rng = np.random.default_rng(6)
    values = rng.gumbel(-np.euler_gamma, 1, size=(1500, n))  # a largest value's; mean 0
    inside = [low <= 0 <= high for low, high in map(t_interval, values)]
    assert np.mean(inside) >= 0.92


def test_a_finding_says_what_stands_beside_it():
    found = finding(cross_fit(models(np.random.default_rng(9), 4.0)))
    assert (found.chance, found.control_kind, found.unit) == (0.0, "negative", "audited units")
    assert found.numbers == {"seeds": 2} and found.labels == ("nats",) and found.p == 1 / 2**8
    two = finding(cross_fit(models(np.random.default_rng(9), 4.0, n=2)))
    assert (two.control, two.control_kind, two.p, two.p_is) == (None, None, None, "")
    alone = mean_finding("attack.pdtp", np.ones(1))
    assert (alone.low, alone.method, alone.why) == (None, "", FEW)


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([], "two or more units"),
        ([[[np.zeros(2)]]], "two or more units"),
        ([[[np.zeros(2)] * 2] * 2, [[np.zeros(2)] * 2]], "two or more units"),
        ([[[np.zeros(2)] * 2, [np.zeros(3)] * 2]], "different words"),
        ([[[np.zeros(0)] * 2] * 2], "no scored word"),
        ([[[np.full(2, -np.inf)] * 2] * 2], "zero probability"),
    ],
)
def test_what_does_not_fit_is_refused(seeds, message):
    with pytest.raises(InputError if "probability" in message else ValueError, match=message):
        cross_fit(seeds)
