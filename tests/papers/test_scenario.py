"""Paper B's attack on diagnoses: by hand, with planted truth, and under other patients' names."""

from __future__ import annotations

import numpy as np
import pytest
from papers.jmir_2020.scenario import Attempt, Contest, Scenario, drawn_targets
from papers.jmir_2020.targets import target_columns

from association_cases import CODES, one, swapped, world
from clinveil.attacks import distance_matrix, groups
from clinveil.stats import permuted, strata
from clinveil.vectors import Vectors

FAR = "farthest (the paper's)"
NEAR = "nearest"
HELD = "far or near fixed on the other half"


def the_four():
    """Distances of the four names from the four diagnoses, by hand (test_groups), each with one
    diagnosis.
    """
    far = np.array([[1.0, 4, 9, 14], [5, 0, 11, 10], [9, 10, 1, 10], [13, 8, 9, 2]])
    return Contest(far, np.eye(4, dtype=bool), [np.arange(4)])


def plan_for(made, targets, **changes):
    values = {"metrics": ("cosine",), "permutations": 99, "draws": 60, "drawn": 8}
    values |= {"min_patients": 3, "targets": [made.codes[f"c{j}"] for j in targets], **changes}
    return Scenario(**values)


def attack(made, plan, seed=0):
    return plan.findings(made.vectors, made.patients, made.codes, np.random.default_rng(seed))


def test_the_four_by_hand():
    field = the_four()
    assert field.guesses(nearest=True)[:, 0].tolist() == [0, 1, 2, 3]
    assert field.guesses(nearest=False)[:, 0].tolist() == [3, 2, 1, 0]
    assert field.right(field.guesses(nearest=True), 1).tolist() == [True] * 4
    assert not field.right(
        field.guesses(nearest=False), 3
    ).any()  # the own diagnosis is the last of all
    assert field.right(field.guesses(nearest=False), 4).all()


def test_the_majority_guesses_the_most_frequent_for_everybody():
    has = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1]], dtype=bool)
    field = Contest(np.zeros((4, 3)), has, [np.arange(4)])
    assert field.majority().tolist() == [[2, 0, 1]] * 4
    assert field.right(field.majority(), 1).tolist() == [False, True, True, True]
    assert field.majority(has[:1])[0].tolist() == [0, 1, 2]


def test_permuted_accuracies_are_an_enumeration():
    """Each of the 24 permutations of four names is as likely, and k of them are right as often as k
    points stay.
    """
    field = the_four()
    scored = Attempt(field, field.guesses(nearest=True), field.majority(), "nearest", ())
    null = scored.permuted_accuracies(1, 6_000, np.random.default_rng(0))
    for k, ways in enumerate([9, 8, 6, 0, 1]):  # permutations of four with k fixed points
        assert np.mean(null == k / 4) == pytest.approx(ways / 24, abs=0.025)


def test_the_p_of_the_four_is_one_in_24():
    field = the_four()
    scored = Attempt(field, field.guesses(nearest=True), field.majority(), "nearest", ())
    first, fifth = scored.findings({"names": 4}, 6_000, np.random.default_rng(0))
    assert first.value == 1 and first.p == pytest.approx(1 / 24, abs=0.012)
    assert first.chance == pytest.approx(1 / 4, abs=0.02)
    assert fifth.value is None and "name them all" in fifth.why


@pytest.mark.parametrize(
    ("link", "found", "direction"), [(3.0, NEAR, "nearest"), (-3.0, FAR, "farthest")]
)
def test_planted_truth_is_found_and_its_direction_too(link, found, direction):
    made = world(np.random.default_rng(2), link=link, prevalence=0.1)
    findings = attack(made, plan_for(made, range(11)))
    hit = one(findings, "attack.scenario", found, "A@1")
    assert hit.value > 0.9 and hit.p == 0.01 and hit.chance < 0.35 and hit.control < 0.4
    other = one(findings, "attack.scenario", FAR if found == NEAR else NEAR, "A@1")
    assert other.value < 0.1
    held = one(findings, "attack.scenario", HELD, "A@1")
    assert f"fixed: {direction}" in held.labels and held.value > 0.9
    assert held.n + held.numbers["fixed_on"] == hit.n
    draws = one(findings, "attack.scenario_draws", found, "A@1")
    assert draws.value == 1 and draws.chance < 0.6 and draws.numbers["mean_accuracy"] > 0.9


def test_whole_names_permuted_over_like_patients_fall_to_chance():
    made = world(np.random.default_rng(3), link=3.0, prevalence=0.1)
    rng = np.random.default_rng(4)
    sizes = np.array([len(p.codes) for p in made.patients])
    others = swapped(made.patients, permuted(strata(sizes, None), rng))
    findings = plan_for(made, range(11)).findings(made.vectors, others, made.codes, rng)
    for found in (f for f in findings if f.measure == "attack.scenario"):
        assert found.low <= found.chance <= found.high
        assert found.p > 0.005


def test_nothing_known_still_beats_a_baseline_that_is_low():
    """Guesses that know only prevalence score as they would under any name: the paper's share alone
    shows nothing.
    """
    made = world(np.random.default_rng(5), prevalence=1.0)
    findings = attack(made, plan_for(made, range(11), metrics=("cityblock",)))
    far = one(findings, "attack.scenario", FAR, "A@5")
    near = one(findings, "attack.scenario", NEAR, "A@5")
    assert (
        far.value > near.value
    )  # frequent diagnoses are longer vectors, so they lie far from every name
    assert abs(far.value - far.chance) < 0.1 and far.p > 0.02


def test_ties_are_drawn_and_counted():
    made = world(np.random.default_rng(7), n=60, m=12)
    flat = Vectors(made.vectors.words, np.ones_like(made.vectors.matrix), made.vectors.counts)
    accuracies = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        found = plan_for(made, range(12), draws=2).findings(flat, made.patients, made.codes, rng)
        first = one(found, "attack.scenario", FAR, "A@1")
        assert first.numbers["ties"] == 60
        assert first.value == first.control == pytest.approx(first.chance)
        accuracies.append(first.value)
    mean = np.mean([len(p.codes) / 12 for p in made.patients])
    assert np.mean(accuracies) == pytest.approx(mean, abs=0.08)  # no target is favoured


def brute_draws(found, sign, rng_sets):
    far = sign * distance_matrix(found.names, found.diagnoses, "cosine")
    wins = []
    for columns in rng_sets:
        right = majority = 0
        having = [row for row in range(len(found)) if found.has[row, columns].any()]
        counts = found.has[:, columns].sum(axis=0)
        for row in having:
            right += found.has[row, columns[int(np.argmin(far[row, columns]))]]
            majority += found.has[row, columns[int(np.argmax(counts))]]
        wins.append(right > majority)
    return np.mean(wins)


def test_draws_of_targets_are_a_plain_loop():
    made = world(np.random.default_rng(8), n=50, m=16, link=0.4)
    found = groups(made.vectors, made.patients, made.codes)
    eligible = np.flatnonzero(found.prevalence >= 2)
    plan = Scenario(draws=25, drawn=7, min_patients=2)
    results = list(drawn_targets(found, plan, "cosine", {}, np.random.default_rng(3)))
    # The same sets, drawn again from the same generator after the same permutations of names.
    rng = np.random.default_rng(3)
    parts = strata(found.sizes, found.frequency)
    for _ in range(39):
        permuted(parts, rng)
    sets = [eligible[rng.permutation(len(eligible))[:7]] for _ in range(25)]
    for series, sign in ((FAR, -1.0), (NEAR, 1.0)):
        first = one(results, "attack.scenario_draws", series, "A@1")
        assert first.value == brute_draws(found, sign, sets)
        assert first.n == 25 and first.numbers["eligible"] == len(eligible)


@pytest.mark.parametrize(
    ("wanted", "why"), [((), "0 of the targets"), (("illnessa",), "1 of the targets")]
)
def test_without_targets_there_is_a_reason(wanted, why):
    made = world(np.random.default_rng(9), n=40, m=12)
    plan = Scenario(("cosine",), 19, draws=5, drawn=8, min_patients=1, targets=wanted)
    null = one(attack(made, plan), "attack.scenario")
    assert null.value is None and null.why.startswith(why)


def test_every_number_has_its_chance_interval_control_and_question():
    made = world(np.random.default_rng(1))
    for found in attack(made, plan_for(made, range(11))):
        assert None not in (found.value, found.low, found.high, found.chance, found.control)
        assert found.question.endswith("?") and isinstance(found.p, float)
        assert found.low <= found.value <= found.high


@pytest.mark.parametrize(
    ("wanted", "columns", "unknown", "without"),
    [
        (("flu", "ACNE "), (0, 1), 0, 0),
        (("3", "nothing such"), (1,), 1, 0),
        (("gout",), (), 0, 1),
        (("flu", "1"), (0,), 0, 0),
        (("gas!",), (2,), 0, 0),
        ((), (), 0, 0),
    ],
)
def test_targets_are_codes_or_descriptions(wanted, columns, unknown, without):
    targets = target_columns(wanted, ("1", "3", "4"), CODES)
    assert (tuple(targets.columns), targets.unknown, targets.without_vector) == (
        columns,
        unknown,
        without,
    )
