"""Utility of a release: floor and ceiling, controls, unpaired notes, labels that cannot be used."""

from __future__ import annotations

import numpy as np
import pytest
from utility_cases import FINDINGS, corpus, notes

from clinveil.channel import identity_channel
from clinveil.core import word_spans, words
from clinveil.stats import MeasureSpec
from clinveil.utility import useful
from clinveil.utility.labelled import WrongNotes
from clinveil.utility.scores import f1_sums, macro_f1, permuted_f1, score
from clinveil.utility.shares import LEVEL, Arms, bootstrap_arms, share_finding
from clinveil.utility.tasks.notes import Sides
from clinveil.utility.tasks.sequence import AFFIRMED, NEGATED, negation_labels

ORDER = ["utility.transfer", "utility.sequence", "utility.language_model", "utility.within"]


def measured(real, released, labels=("label",), paired=True, channel=None):
    ids = {row[0]: row[0] for row in released} if paired else None
    sides = Sides(
        corpus(real),
        corpus(released),
        entered=corpus(real),
        notes=ids,
        channel=channel,
        workers=1,
    )
    return {finding.measure: finding for finding in useful(sides, labels, ("lr",))}


def held_out_findings(real, released, tested, paired=True, labels=("label",), unread=True):
    """Findings with test patients; those of the release are read as the training notes that they
    are.
    """
    sides = Sides(
        corpus(real),
        corpus(released),
        entered=corpus(real),
        notes={row[0]: row[0] for row in released} if paired else None,
        workers=1,
        test_patients=frozenset(tested),
        unread=unread,
    )
    return {finding.measure: finding for finding in useful(sides, labels, ("lr",))}


TESTED = [f"p{i}" for i in range(0, 100, 4)]


def word_by_word(rows):
    """A channel that writes one word for each word of the source."""
    return identity_channel(sorted({form for _, _, text, _ in rows for form in words(text)}))


@pytest.fixture(scope="module")
def same():
    return measured(notes(), notes())


def test_labels_at_random_have_no_share():
    rows = notes(shuffled_labels=True)
    found = measured(rows, rows)
    for name in ("utility.transfer", "utility.within"):
        assert found[name].value is None
        assert "chance" in found[name].why and found[name].scores.of_ceiling is None
        assert found[name].scores.ceiling == pytest.approx(found[name].scores.chance, abs=0.15)


def test_source_words_carry_labels_to_words_that_no_rule_knows():
    rows = notes()
    coded = [
        (n, p, " ".join(text[a:b][::-1] + "q" for a, b in word_spans(text)), label)
        for n, p, text, label in rows
    ]
    channel = word_by_word(rows)
    by_rules = measured(rows, coded, labels=())["utility.sequence"]
    assert by_rules.value is None and "negated words" in by_rules.why
    carried = measured(rows, coded, labels=(), channel=channel)["utility.sequence"]
    assert (
        carried.numbers["labels_of_source"] and carried.scores.score < 0.75
    )  # other words teach nothing
    unchanged = measured(rows, rows, labels=(), channel=channel)["utility.sequence"]
    assert unchanged.value == pytest.approx(1, abs=0.05)


def test_figures_are_of_test_patients_only():
    """A release that repeats the test notes, and of the training notes has the words of another
    language only.
    """
    found = held_out_findings(notes(), notes(), TESTED)
    assert list(found) == ORDER
    words = "that the release's models have not read"
    assert all(f.tested_on == f"50 notes of 25 patients {words}" for f in found.values())
    for name, finding in found.items():
        assert finding.value == pytest.approx(1, abs=0.05), name
    contaminated = [
        (n, p, text if p in TESTED else "autre langue sans aucun mot commun", label)
        for n, p, text, label in notes()
    ]
    honest = held_out_findings(notes(), contaminated, TESTED)
    assert (
        honest["utility.transfer"].scores.score < 0.5
    )  # training text of test patients teaches nothing
    assert honest["utility.language_model"].value < 0
    crossed = measured(notes(), contaminated)
    assert crossed["utility.transfer"].scores.score > honest["utility.transfer"].scores.score


def test_classifiers_that_agree_on_all_test_notes_may_differ_on_others():
    scores = held_out_findings(notes(), notes(), TESTED)["utility.transfer"].scores
    assert scores.of_ceiling == 1
    width = 1 - 0.025 ** (1 / 25)
    assert (scores.of_ceiling_low, scores.of_ceiling_high) == pytest.approx((1 - width, 1 + width))


def test_without_test_patients_it_is_not_known_what_the_models_have_read():
    for found in (
        measured(notes(), notes()),
        held_out_findings(notes(), notes(), TESTED, unread=False),
    ):
        for finding in found.values():
            assert finding.tested_on.endswith(
                "whether the release's models have read them is not known"
            )


def test_notes_that_were_written_are_tested_on_test_patients_too():
    other = [(f"x{n}", f"y{p}", text, label) for n, p, text, label in notes(seed=9)]
    found = held_out_findings(notes(), other, TESTED, paired=False)
    for name in ("utility.transfer", "utility.language_model", "utility.sequence"):
        assert found[name].tested_on.startswith("50 notes of 25 patients")
    assert found["utility.within"].n == 200  # released notes on both sides


@pytest.mark.parametrize(
    ("rows", "tested"),
    [
        (notes(80), [f"p{i}" for i in range(6)]),  # 40 patients
        (notes(), TESTED[:19]),
        ([(n, p, text, "one") for n, p, text, _ in notes()], TESTED),
        (notes(shuffled_labels=True), TESTED),
        ([(n, p, text, label if p in TESTED else "rest") for n, p, text, label in notes()], TESTED),
    ],
)
def test_too_few_test_patients_or_labels_without_meaning_give_the_reason(rows, tested):
    finding = held_out_findings(rows, rows, tested)["utility.transfer"]
    assert finding.value is None and finding.why
    assert finding.scores is None or finding.scores.of_ceiling is None


def test_labels_of_few_test_patients_are_merged():
    rows = [
        (n, p, text, "rare" if p in ("p1", "p4", "p5", "p8", "p9", "p13") else label)
        for n, p, text, label in notes()
    ]
    numbers = held_out_findings(rows, rows, TESTED)["utility.transfer"].numbers
    assert (numbers["classes_merged"], numbers["classes"]) == (1, 2)  # two test patients: left out


def test_notes_of_other_patients_are_unpaired():
    other = [(f"x{n}", f"y{p}", text, label) for n, p, text, label in notes(seed=9)]
    found = measured(notes(), other, paired=False)
    assert list(found) == [*ORDER[:3], "utility.two_sample", ORDER[3]]
    assert found.pop("utility.two_sample").value > 0.5
    for finding in found.values():
        assert finding.value == pytest.approx(1, abs=0.3) and finding.scores.of_ceiling > 0.85
    without = measured(notes(), [(n, p, text, "") for n, p, text, _ in other], paired=False)
    assert without["utility.transfer"].value is None
    assert without["utility.language_model"].value == found["utility.language_model"].value


def test_unpaired_notes_without_the_column_say_so():
    sides = Sides(corpus(notes()), corpus(notes(seed=9), label=""), workers=1)
    found = {finding.measure: finding for finding in useful(sides, ("label",), ("lr",))}
    assert "no such column" in found["utility.transfer"].why
    assert found["utility.language_model"].value is not None


@pytest.mark.parametrize("labels", [["heart"] * 197 + ["lung"] * 3, [""] * 200])
def test_labels_that_hardly_vary_have_no_share(labels):
    rows = [(n, p, text, label) for (n, p, text, _), label in zip(notes(), labels, strict=True)]
    found = measured(rows, rows)
    for name in ("utility.transfer", "utility.within"):
        assert found[name].value is None and found[name].why.startswith(
            "Column 'label' cannot be used"
        )
    assert found["utility.sequence"].value is not None


def test_fewer_notes_than_folds_and_notes_without_words():
    for rows in (notes(4), [(n, p, "", label) for n, p, _, label in notes(60)]):
        found = measured(rows, rows)
        assert list(found) == ORDER
        assert all(finding.value is None and finding.why for finding in found.values())


def test_an_unknown_column_and_an_unknown_id_are_errors():
    with pytest.raises(WrongNotes):
        measured(notes(40), notes(40), labels=("nothing",))
    sides = Sides(corpus(notes(40)), corpus(notes(40)), notes={"n0": "n0"}, workers=1)
    with pytest.raises(WrongNotes):
        useful(sides, (), ())


def test_the_same_release_gives_the_same_findings_whatever_the_order_of_rows(same):
    rows = notes()
    again = measured(rows[::-1], rows[::-1], labels=("label",))
    assert {name: f.value for name, f in again.items()} == {
        name: f.value for name, f in same.items()
    }


def test_word_pairs_without_enough_common_words_say_so(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(
        "term1,term2,score\n"
        + "\n".join(
            f"{a},{b},{i}"
            for i, (a, b) in enumerate(zip(FINDINGS[:30], FINDINGS[20:], strict=True))
        )
    )
    rows = notes()
    sides = Sides(corpus(rows), corpus(rows), notes={row[0]: row[0] for row in rows}, workers=1)
    found = {f.measure: f for f in useful(sides, (), (), [path])}["utility.vectors"]
    assert found.scores.metric == "Spearman" and found.n == 30
    assert found.value is None and found.why.startswith(
        "no evidence"
    )  # scores in any order: nothing to keep


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("He denies fever, chills or cough.", {"fever", "chills", "cough"}),
        ("No edema. Murmur heard.", {"edema"}),
        ("no edema but murmur", {"edema"}),
        ("without difficulty swallowing", set()),
        ("pneumonia was ruled out", {"pneumonia"}),
        ("no red green blue white black fever", {"red", "green", "blue", "white", "black"}),
        ("no evidence of acute fracture", {"acute", "fracture"}),
        ("gram negative rods", set()),
    ],
)
def test_negated_words(text, negated):
    forms, spans, labels = negation_labels(text)
    assert {form for form, label in zip(forms, labels, strict=True) if label == NEGATED} == negated
    assert [text[a:b].lower() for a, b in spans] == forms and len(labels) == len(forms)
    assert AFFIRMED in negation_labels("murmur heard")[2]


def test_macro_f1_of_sums_is_that_of_predictions_and_chance_is_the_mean_over_permutations():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 400)
    guess = rng.integers(0, 3, 400)
    guess[:150] = truth[:150]
    sums = f1_sums(truth, guess, 4).sum(axis=0)
    assert float(macro_f1(sums)) == pytest.approx(score("macro_f1", truth, guess))
    permuted = [score("macro_f1", rng.permutation(truth), guess) for _ in range(400)]
    assert float(permuted_f1(sums)) == pytest.approx(np.mean(permuted), abs=0.005)


def test_a_ceiling_at_the_floor_gives_no_share_but_the_percent_of_real():
    rng = np.random.default_rng(1)
    scores = {"released": 0.8, "floor": 0.9, "ceiling": 0.9, "chance": 0.5}
    draws = {arm: value + rng.normal(0, 0.01, 1000) for arm, value in scores.items()}
    finding = share_finding(
        MeasureSpec(measure="utility.transfer", unit="notes", method="refitted classifier"),
        Arms(scores, draws),
        10,
        "macro-F1",
        labels=(),
    )
    assert finding.value is None and "floor" in finding.why
    assert finding.scores.of_ceiling == pytest.approx(0.8 / 0.9)
    assert finding.scores.of_ceiling_low < 0.8 / 0.9 < finding.scores.of_ceiling_high


def test_fewer_bits_are_better():
    draws = {
        arm: np.full(100, bits)
        for arm, bits in {"released": 8.0, "floor": 10.0, "ceiling": 6.0}.items()
    }
    finding = share_finding(
        MeasureSpec(
            measure="utility.language_model", unit="words", method="refitted language model"
        ),
        Arms({k: float(v[0]) for k, v in draws.items()}, draws, "lower"),
        10,
        "macro-F1",
        labels=(),
    )
    assert finding.value == finding.low == finding.high == 0.5
    assert finding.scores.of_ceiling == 0.75


@pytest.mark.slow
def test_intervals_of_shares_cover():
    """Patients of one to five notes; an arm is right with a probability of its own, alike within a
    patient.
    """
    right = {"floor": 0.7, "released": 0.8, "ceiling": 0.9}
    truth = 0.5
    covered = 0
    of_ceiling = 0
    runs = 200
    for run in range(runs):
        rng = np.random.default_rng(run)
        patient = np.repeat(np.arange(150), rng.integers(1, 6, 150))
        ease = rng.normal(0, 0.08, 150)[patient]
        label = rng.integers(0, 2, patient.size)
        sums = {}
        for arm, share in right.items():
            hit = rng.random(patient.size) < np.clip(share + ease, 0, 1)
            each = f1_sums(label, np.where(hit, label, 1 - label), 2)
            sums[arm] = np.stack(
                [np.bincount(patient, column, minlength=150) for column in each.T], axis=1
            )
        finding = share_finding(
            MeasureSpec(measure="utility.transfer", unit="notes", method="refitted classifier"),
            bootstrap_arms(sums, macro_f1, rng, chance=permuted_f1),
            1,
            "macro-F1",
            labels=(),
        )
        covered += finding.low <= truth <= finding.high
        of_ceiling += finding.scores.of_ceiling_low <= 0.8 / 0.9 <= finding.scores.of_ceiling_high
    assert (
        LEVEL == (0.025, 0.975)
        and 0.91 <= covered / runs <= 0.99
        and 0.91 <= of_ceiling / runs <= 0.99
    )
