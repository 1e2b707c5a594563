from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon
from statsmodels.stats.multitest import multipletests

from association_cases import CODES, context, four, one, vectors, world
from clinveil.attacks import Association, over_models
from clinveil.attacks.vectors.association import NAMES, PAPERS, RANDOM
from clinveil.core import document
from clinveil.corpus import Patient
from clinveil.stats import rank_biserial, wilcoxon_p

QUICK = dict(metric=("cityblock",), permutations=399)


def association(vectors, patients, codes, rng, *, threads=2, **plan):
    return Association(**plan).on(vectors, context(patients, codes, workers=threads), rng)


def attack(made, seed=0, plan=QUICK):
    return association(made.vectors, made.patients, made.codes, np.random.default_rng(seed), **plan)


@pytest.fixture(scope="module")
def unlinked():
    return attack(world(np.random.default_rng(1)))


def test_the_four_by_hand():
    """in - out: 1 - 9, 0 - 26/3, 1 - 29/3, 2 - 10; a fifth patient shares the first one's place."""
    people = [*four(), Patient("p4", ("Ann", "Arne"), ("1",))]
    findings = association(vectors(), people, CODES, np.random.default_rng(0), **QUICK)
    gaps = [-8, -26 / 3, 1 - 29 / 3, -8, -8]
    found = one(findings, "attack.association_difference")
    assert found.value == pytest.approx(np.mean(gaps))
    assert found.n == 5 and found.low <= found.value <= found.high
    assert one(findings, "attack.association_absolute").value == pytest.approx(-np.mean(gaps))
    signed = one(findings, "attack.association_wilcoxon")
    assert signed.value == -1 and signed.numbers["in_minus_out"] == pytest.approx(np.mean(gaps))
    coverage = one(findings, "attack.association_coverage")
    assert (coverage.value, coverage.n, coverage.numbers["shared_names"]) == (1, 5, 2)


def test_the_signed_rank_test_is_an_enumeration():
    values = np.array([1.0, -2.0, 3.5, 4.0])
    ranks = rankdata(np.abs(values))
    sums = [ranks[np.array(signs) > 0].sum() for signs in product([-1, 1], repeat=4)]
    own = ranks[values > 0].sum()
    middle = ranks.sum() / 2
    exact = np.mean([abs(s - middle) >= abs(own - middle) for s in sums])
    assert wilcoxon_p(values) == pytest.approx(exact) == pytest.approx(wilcoxon(values).pvalue)
    assert rank_biserial(values) == (own - (10 - own)) / 10


def test_a_planted_link_away_from_the_diagnoses_is_found():
    plan = dict(metric=("cosine",), permutations=399)
    findings = attack(world(np.random.default_rng(2), link=-3.0, prevalence=0.1), plan=plan)
    found = one(findings, "attack.association_difference")
    assert found.value > found.chance
    assert found.p == 1 / 400
    assert one(findings, "attack.association_patients", NAMES).value > 0.8


def test_without_a_link_the_papers_tests_reject_and_the_nulls_do_not(unlinked):
    signed = one(unlinked, "attack.association_wilcoxon")
    assert signed.p < 0.001 and signed.value > 0.3  # "in > out", as in the paper
    assert signed.numbers["rejected_with_names_permuted"] > 0.9
    found = one(unlinked, "attack.association_difference")
    assert found.low > 0.2 and found.p > 0.05
    assert (
        found.value == pytest.approx(found.chance, rel=0.2) == pytest.approx(found.control, rel=0.2)
    )
    held = one(unlinked, "attack.association_patients", NAMES)
    assert held.value == 0 and held.numbers["unadjusted"] < 0.12


def test_the_papers_p_values_come_with_their_error_rate():
    plan = dict(metric=("cosine",), permutations=99, paper_p=True)
    found = one(
        attack(world(np.random.default_rng(5)), plan=plan),
        "attack.association_patients",
        PAPERS,
    )
    assert found.numbers["draws"] == 1_000
    assert found.numbers["family_wise_error"] == pytest.approx(1 - (1000 / 1001) ** 120)
    assert "count/n" in found.warning and "could never reject" in found.warning
    assert found.chance == pytest.approx(1 / 1001)


def test_each_metric_is_measured_and_the_first_draws_the_curve(unlinked):
    plan = dict(metric=("euclidean", "cosine"), permutations=99)
    findings = attack(world(np.random.default_rng(1)), plan=plan)
    for metric in ("euclidean", "cosine"):
        assert one(findings, "attack.association_difference", metric).n == 120
    curve = [f for f in findings if f.measure == "attack.association_by_frequency"]
    assert {f.labels[1] for f in curve} == {"euclidean"}


def test_the_curve_holds_the_names_below_each_threshold(unlinked):
    made = world(np.random.default_rng(1))
    ids = made.vectors.ids
    counts = made.vectors.counts
    means = np.array([np.mean([counts[ids[word]] for word in p.name]) for p in made.patients])
    curve = [f for f in unlinked if f.measure == "attack.association_by_frequency"]
    assert [f.n for f in curve] == [
        int((means < (f.numbers["below"] or np.inf)).sum()) for f in curve
    ]
    assert curve[-1].numbers["below"] is None
    assert curve[-1].value == pytest.approx(one(unlinked, "attack.association_difference").value)
    assert curve[-1].chance == pytest.approx(one(unlinked, "attack.association_difference").chance)


def test_every_number_has_its_chance_interval_control_and_question(unlinked):
    for found in unlinked:
        assert found.question.endswith("?")
        assert found.unit == "patients"
        if found.measure != "attack.association_coverage":
            assert None not in (found.value, found.low, found.high, found.chance, found.control), (
                found.measure
            )
            assert found.low <= found.value <= found.high


def test_a_seed_gives_the_same_document_for_any_number_of_threads():
    made = world(np.random.default_rng(6), n=40, m=12)
    plans = [
        dict(metric=("cityblock", "cosine"), permutations=99, threads=threads) for threads in (1, 3)
    ]
    one_, two = (document("x", attack(made, seed=9, plan=plan), seed=9) for plan in plans)
    assert one_ == two
    assert one_ != document("x", attack(made, seed=10, plan=plans[0]), seed=9)


def test_few_patients_are_not_tested_but_counted():
    findings = association(
        vectors(), four((("1",), ("2",), (), ("1", "2", "3", "4"))), CODES, np.random.default_rng(0)
    )
    coverage, null = findings
    assert (
        coverage.value,
        coverage.numbers["no_diagnosis"],
        coverage.numbers["all_diagnoses"],
    ) == (
        0.5,
        1,
        1,
    )
    assert null.value is None and "2 patients" in null.why


def test_over_models_is_statsmodels_holm_within_each_measure():
    plan = dict(metric=("cityblock", "cosine"), permutations=99)
    findings = [
        f
        for seed in (1, 2)
        for f in attack(world(np.random.default_rng(seed), n=40, m=12), plan=plan)
    ]
    adjusted = over_models(findings)
    assert [f.value for f in adjusted] == [f.value for f in findings]
    for measure in ("attack.association_difference", "attack.association_wilcoxon"):
        family = [f for f in adjusted if f.measure == measure]
        expected = multipletests([f.p for f in family], method="holm")[1]
        assert [f.numbers["p_over_models"] for f in family] == pytest.approx(list(expected))
        assert {f.numbers["models"] for f in family} == {4}
    assert (
        "p_over_models"
        not in one(adjusted[: len(adjusted) // 2], "attack.association_coverage").numbers
    )


def test_who_could_be_found_at_all_is_counted():
    """One diagnosis of 30 gives no P below 1/30; four of 30 give one of 1/27,405."""
    made = world(np.random.default_rng(8), n=100, m=30)
    sizes = np.array([len(p.codes) for p in made.patients])
    found = one(attack(made), "attack.association_patients", RANDOM)
    assert found.numbers["could_reject"] == int((sizes >= 3).sum())
