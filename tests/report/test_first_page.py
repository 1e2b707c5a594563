from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from invented_release import gates, missing, of_kind, record, share, use

from clinveil.core import Cell, Finding, KnownList
from clinveil.report import enough, release_card, render
from clinveil.report.numerals import number
from clinveil.report.page_one import KINDS, first_page
from clinveil.report.risks import criteria, limit_of, table, verdict


def risk(value, low=None, high=None, n=300):
    return Finding("attack.linkage", value, n, "lower", low, high, 0.003, unit="notes")


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (risk(0.357, 0.302, 0.414), "above the threshold"),
        (risk(0.012, 0.004, 0.03), "below the threshold"),
        (risk(0.08, 0.02, 0.2, 30), "too few cases to tell"),
        (
            risk(0.12, 0.02, 0.32, 25),
            "too few cases to tell",
        ),  # above, but the gate would have no power
        (risk(0.11, 0.08, 0.15), "above the threshold"),  # enough cases, so the estimate decides
        (risk(0.07, 0.045, 0.105), "too few cases to tell"),
        (risk(0.2), "above the threshold"),
        (risk(0.05), "below the threshold"),
        (risk(0.0, 0.0, 0.3, 10), "too few cases to tell"),
        (risk(1.0, 0.999, 1.0), "above the threshold"),
    ],
)
def test_the_interval_decides_the_verdict(finding, expected):
    assert verdict(finding, 0.09) == expected


def test_a_clustered_sample_counts_by_its_interval_not_by_n():
    assert verdict(risk(0.12, 0.02, 0.32, n=5000), 0.09) == "too few cases to tell"


def test_enough_cases_by_hand():
    assert enough(0.09) == pytest.approx((1.645 / 0.045) ** 2 * 0.045 * 0.955)


def test_a_finding_without_a_value_has_no_verdict():
    with pytest.raises(ValueError, match="no verdict"):
        verdict(Finding("attack.x", None, 0, why="no"), 0.09)


def test_the_risks_are_those_of_the_strongest_gated_adversary():
    names, linked, pairs, others = first_page(record()).risks
    assert (
        others.target == "Notes found from the patient's other notes"
        and others.row.value.value == 111 / 300
    )
    assert (names.target, names.adversary) == (
        "Planted names recovered",
        "Recipient with 20 known pairs",
    )
    assert linked.row.value.value == 47 / 300 and linked.verdict == "above the threshold"
    assert pairs.adversary == "Recipient with 20 known pairs" and pairs.target != names.target
    assert all("vault" not in one.adversary for one in (names, linked, pairs))


@pytest.mark.parametrize("kind", ["deidentified", "synthetic"])
def test_the_third_risk_depends_on_the_kind(kind):
    assert first_page(of_kind(kind)).risks[2].target == "Passages copied from real notes"


def test_the_first_page_of_readable_notes_names_linkage_without_a_gate_and_that_recall_is_unknown():
    ungated = share("note by ten words", "recipient", 240, 300, 0.003, unit="notes")
    page = first_page(replace(of_kind("deidentified"), findings=(ungated,)))
    assert page.risks[0].why.startswith("Not measured on these notes") and page.without_figure == 3
    assert page.risks[1].row.value.value == 0.8 and page.risks[1].verdict == "above the threshold"


def test_terms_are_explained_where_they_are_used():
    terms = [term.partition(":")[0] for term in first_page(record()).terms]
    assert terms == ["Shadow vectors", "Known pairs", "Planted names"]
    assert first_page(replace(of_kind("deidentified"), findings=())).terms == []
    off = replace(gates()[0], name="names not recovered, with shadow vectors", switched_off=True)
    terms = first_page(replace(record(), findings=(), gates=(off,))).terms
    assert [term.partition(":")[0] for term in terms] == ["Shadow vectors", "Known pairs"]


def test_own_identifiers_name_their_limit_and_what_does_not_apply_is_not_unmeasured():
    own = share("own identifiers", "recipient", 0, 60, 0.0, gated=True, unit="patients")
    third = first_page(replace(of_kind("deidentified"), findings=(own,))).risks[2]
    assert "known-patient list only" in third.adversary
    page = first_page(replace(of_kind("synthetic"), findings=()))
    assert page.risks[0].why.startswith("Does not apply") and page.without_figure == 3


def test_own_identifiers_state_the_coverage_of_the_patient_list():
    own = share("own identifiers", "recipient", 0, 60, 0.0, gated=True, unit="patients")
    covered = replace(own, known_list=KnownList(in_feed=851, in_release=851))
    third = first_page(replace(of_kind("deidentified"), findings=(covered,))).risks[2]
    assert "known-patient list (50.0\u202f% of the patients) only" in third.adversary


def test_a_risk_at_chance_stays_above_the_threshold_and_says_so():
    at_chance = replace(
        share("names", "recipient", 60, 300, 0.2, gated=True, unit="names"), low=0.156, high=0.25
    )
    page = first_page(replace(record(), findings=(at_chance,)))
    assert page.above == page.not_better == 1 and page.risks[0].not_above == "chance"
    assert "1 of 4 risks above the threshold (1 not above chance or control)" in render(
        replace(record(), findings=(at_chance,))
    )
    assert (
        not first_page(replace(record(), findings=(replace(at_chance, chance=0.1),)))
        .risks[0]
        .not_above
    )


@pytest.mark.parametrize(("control", "told"), [(0.958, "the control"), (0.5, "")])
def test_copies_that_held_out_patients_have_too_say_so(control, told):
    copies = replace(share("copies", "recipient", 229, 239, None, gated=True), control=control)
    held_out = replace(
        copies, low=0.922, high=0.981, control_is="held-out patients", control_kind="negative"
    )
    third = first_page(replace(of_kind("synthetic"), findings=(held_out,))).risks[2]
    assert third.verdict == "above the threshold" and third.not_above == told
    assert (
        not first_page(
            replace(of_kind("synthetic"), findings=(replace(held_out, control_kind="positive"),))
        )
        .risks[2]
        .not_above
    )


def test_a_share_below_the_floor_is_said_in_words(passed):
    worse = replace(use("transfer", -11.2, (0.3, 0.2, 0.31)), low=-70.0, high=-5.0)
    page = render(replace(passed, findings=(worse,)))
    assert "worse than the floor" in page.partition('id="adversaries"')[0]


def test_risks_that_were_not_measured_have_a_reason():
    why = missing("attack.reading.names", "no name is known", Cell("recipient", "names"))
    page = first_page(replace(record(), findings=(why,)))
    assert [one.why for one in page.risks] == ["No name is known.", *["Not measured."] * 3]


def test_a_hidden_small_count_still_has_a_verdict():
    few = share("note by ten words", "recipient", 3, 300, 0.003, gated=True, unit="notes")
    shown = first_page(replace(record(), findings=(few,))).risks[1]
    assert (
        shown.row.hidden
        and shown.row.value.text == "<11"
        and shown.verdict == "below the threshold"
    )


def test_the_lowest_label_is_shown_between_floor_and_ceiling():
    transfer, second, model = first_page(record()).uses
    assert (transfer.share.value, transfer.of) == (0.897, 2)
    assert [n.value for n in (transfer.floor, transfer.score, transfer.ceiling)] == [
        0.331,
        0.927,
        0.943,
    ]
    assert second.metric == "Spearman"  # the sequence task has no share, so vectors take its place
    assert model.floor.text == "10.62" and model.of_real.value == pytest.approx(7.2 / 9.21)


def test_without_a_share_the_reason_is_shown_with_the_scores():
    scored = use("transfer", 0.5, (0.3, 0.4, 0.41))
    why = "real notes are not above chance"
    none = replace(scored, value=None, low=None, high=None, why=why)
    shown = first_page(replace(record(), findings=(none,))).uses
    assert shown[0].why == "Real notes are not above chance." and shown[0].score.value == 0.4
    assert shown[0].share.value is None and shown[1].why == "Not measured in this run."


def test_states():
    assert first_page(record()).state == "clear"
    assert first_page(record(off=True)).state == "open"
    assert first_page(record(failed=True, off=True)).state == "refused"
    assert first_page(replace(record(), gates=())).state == "open"


def test_an_adversary_with_more_has_at_least_the_success_of_one_with_less():
    lines = {line.target: line.cells for line in table(record()).lines}
    cells = lines["Names of patients recovered"]
    assert [cell.row.value.value for cell in cells] == [n / 835 for n in (3, 9, 21, 160, 331)]
    assert [cell.gated for cell in cells] == [True] * 3 + [False] * 2
    assert lines["Kept columns inferred or unique"][0].row is None


def verdicts(held):
    return {name: (item.target, item.verdict) for name, _, item in criteria(held)}


def test_below_the_threshold_is_true_of_every_target_of_a_criterion():
    rare = share("rare words", "pairs-20", 250, 10_000, 0.001)
    words = share(
        "words", "pairs-20", 1130, 10_000, 0.1
    )  # nearer to chance, but above the threshold
    assert verdicts(replace(record(), findings=(rare, words)))["Inference"] == (
        "Words recovered",
        "above the threshold",
    )
    few = share("words", "pairs-20", 3, 25, 0.1)
    assert verdicts(replace(record(), findings=(rare, few)))["Inference"] == (
        "Words recovered",
        "too few cases to tell",
    )
    assert verdicts(replace(record(), findings=(rare,)))["Inference"][1] == "below the threshold"


@pytest.mark.parametrize("kind", KINDS)
def test_the_headline_counts_what_the_three_criteria_call_above_the_threshold(kind):
    held = of_kind(kind)
    unique = share("kept columns", "recipient", 300, 300, 0.0, unit="notes")
    held = replace(held, findings=(*held.findings, unique))
    page = first_page(held)
    counted = {
        one.target.partition(",")[0] for one in page.judged if one.verdict == "above the threshold"
    }
    above = {target for target, said in verdicts(held).values() if said == "above the threshold"}
    assert above and above <= counted
    assert page.above == len([one for one in page.judged if one.verdict == "above the threshold"])
    said = render(held).partition('id="adversaries"')[0]
    assert f"{page.above} of {len(page.judged)} risks above the threshold" in said
    assert "notes found from their whole text" in said and "kept columns inferred or unique" in said


def test_known_pairs_have_one_figure_on_page_one_and_in_the_table():
    found = (
        share("words", "shadow", 94, 10_000, 0.001),
        share("words", "pairs-20", 47, 10_000, 0.001),
    )
    held = replace(record(), findings=found)
    third, (line,) = first_page(held).risks[2], table(held).lines
    assert (third.target, third.adversary) == (
        "Words recovered",
        "Recipient with shadow vectors",
    )  # who got it
    assert third.row.value == line.cells[-1].row.value == number(0.0094, "share")
    assert [cell.by for cell in line.cells] == ["", "Recipient with shadow vectors"]


def columns_of(page, target):
    """The cells of a line of the adversary table, by the heading of their column."""
    matrix = page.partition('<table class="stack matrix">')[2].partition("</table>")[0]
    line = next(row for row in matrix.split("<tr>") if target in row)
    cells = re.findall(r'<td class="n" data-head="([^"]+)">(.*?)</td>', line, re.DOTALL)
    heads = re.findall(r'<th scope="col" class="n">([^<]+)</th>', matrix)
    assert [html.unescape(head) for head, _ in cells] == [html.unescape(head) for head in heads]
    return {html.unescape(head): re.sub("<[^>]+>", " ", cell) for head, cell in cells}


def test_a_figure_stands_only_in_the_column_of_the_attacker_who_got_it():
    found = (
        share("words", "recipient", 30, 1_000, 0.02),
        share("words", "pairs-20", 20, 1_000, 0.02),
        share("words", "stolen-vectors", 90, 1_000, 0.02),
    )
    for held in (record(), of_kind("deidentified")):
        cells = columns_of(render(replace(held, findings=found)), "Words recovered")
        recipient, pairs, vault = cells.values()
        assert recipient.split()[:1] == ["3.0"] and "chance 2.0\u202f%" in recipient
        assert pairs.split() == ["as", "recipient", "(release", "and", "public", "text)"]
        assert vault.split()[:1] == ["9.0"] and "chance 2.0\u202f%" in vault


def test_every_figure_of_the_adversary_table_has_chance_or_says_that_there_is_none(passed):
    kept = share("kept columns", "recipient", 290, 300, None, unit="notes")
    copied = replace(
        share("copies", "recipient", 40, 20_000, None), control=0.004, control_kind="negative"
    )
    held = replace(passed, findings=(*passed.findings, kept, copied))
    got = [(cell, line) for line in table(held).lines for cell in line.cells if cell.row]
    assert all(
        re.match("chance .*\\d|no chance level|control .*\\d", cell.row.reference)
        for cell, _ in got
    )
    said = columns_of(render(held), "Kept columns")
    assert "no chance level" in next(iter(said.values()))


def area(value, low, high, n=900):
    return Finding(
        "attack.membership",
        value,
        n,
        "lower",
        low,
        high,
        0.5,
        cell=Cell("recipient", "membership"),
        attack="calibrated",
        unit="patients",
    )


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (area(0.7, 0.65, 0.75), "above the threshold"),
        (area(0.52, 0.49, 0.544), "below the threshold"),
        (area(0.56, 0.5, 0.62), "too few cases to tell"),
        (area(0.53, 0.4, 0.66, 60), "too few cases to tell"),
        (area(0.56, 0.548, 0.572, 20_000), "above the threshold"),
    ],
)
def test_membership_is_judged_on_its_own_scale(finding, expected):
    """An area of .545 is a success of 9 % above guessing."""
    assert verdict(finding, 0.09) == expected
    assert limit_of(finding, 0.09) == pytest.approx(0.545)


def test_membership_stands_on_page_one_of_synthetic_releases_with_chance_and_interval():
    weaker = replace(area(0.61, 0.58, 0.64), attack="loss threshold")
    held = replace(of_kind("synthetic"), findings=(weaker, area(0.7, 0.65, 0.75)))
    shown = first_page(held).risks[3]
    assert shown.target == "Training patients told from others (AUC)"
    assert shown.adversary == "Recipient (release and public text); calibrated"
    page = render(held).partition('id="adversaries"')[0]
    row = re.sub("<[^>]+>", " ", page.partition("Training patients told")[2].partition("</tr>")[0])
    assert re.findall(r"\d?\.\d+", row)[:5] == ["0.500", "0.700", "0.650", "0.750", "0.545"]
    none = replace(held, findings=())
    assert first_page(none).risks[3].why == "Not measured." and first_page(record()).risks[
        3
    ].target.startswith("Notes")


def test_a_task_below_the_floor_is_a_warning_and_not_a_purpose(passed):
    bad = replace(use("transfer", -0.3, (0.33, 0.2, 0.94)), low=-0.5, high=-0.1)
    held = replace(passed, findings=(bad, *passed.findings))
    scores = "release 0.200, floor 0.330, real notes 0.940"
    card = release_card(held)
    page = render(held).partition('id="adversaries"')[0]
    assert "Warning: the release is of no use" in page and scores in page
    assert (
        scores in card
        and "training and testing taggers, word vectors;" in card
        and "text classifiers" not in card
    )
    assert "task_categories" not in card and "text classifiers" in release_card(passed)


def test_the_card_has_the_verdicts_of_the_report(passed):
    copies = replace(
        share("copies", "recipient", 229, 239, None, gated=True),
        control=0.958,
        control_kind="negative",
    )
    held = replace(passed, kind="synthetic", findings=(replace(copies, low=0.922, high=0.981),))
    verdict_text = "above the threshold, not above the control"
    assert verdict_text in render(held) and verdict_text in release_card(held)
    assert "Notes found from their whole text" in release_card(passed)
