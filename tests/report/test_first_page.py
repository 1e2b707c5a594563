"""Page one: rows, figures, chance, conditions, and the adversary table that they come from."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from invented_release import (
    area,
    gate,
    gates,
    missing,
    of_kind,
    record,
    share,
    use,
    verdicts,
    with_findings,
)
from markupsafe import escape

from clinveil.core import KnownList
from clinveil.report import Limits, Verdict, release_card, render
from clinveil.report.numerals import number
from clinveil.report.page_one import KINDS, first_page
from clinveil.report.risks import table


def row_of(held, question):
    return next(row for row in first_page(held).rows if row.question.name == question)


def words_of(page):
    """The words of page one."""
    first = page.partition('id="details"')[0].partition("</style>")[2]
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", first)).split())


def row_words(page, question):
    line = page.partition(html.escape(question, quote=False))[2].partition("</tr>")[0]
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", line)).split())


def test_a_row_shows_the_strongest_gated_adversary():
    names = row_of(record(), "names disclosed")
    assert names.gate.name == "planted names recovered"
    assert names.note == "planted names recovered; Recipient with 20 known pairs"
    assert names.figure.value.value == 14 / 512
    linked = row_of(record(), "notes found from ten words")
    assert linked.figure.value.value == 47 / 300 and linked.outcome == "not limited"
    assert row_of(record(audience="public"), linked.question.name).outcome == "not held"
    assert not any("vault" in row.note for row in first_page(record()).rows)


def test_a_row_has_the_figure_its_interval_chance_and_limit():
    page = render(record(audience="public"))
    row = row_words(page, "Is a note found from ten words of it?")
    shown = ["15.7 % ( 11.7 % to 20.3 % )", "0.35 %", "9.3 %", "not held"]
    assert [words for words in shown if words not in row] == []


def test_questions_that_do_not_apply_are_named_and_those_without_a_gate_are_not_measured():
    held = replace(
        record(),
        verdicts=(Verdict("agreement", (gate("names", "held"), gate("copies", "does not apply"))),),
    )
    page = first_page(held)
    assert [row.question.name for row in page.rows] == ["names disclosed"]
    assert page.absent == ("copies and memory",)
    assert len(page.unmeasured) == 8 and "words recovered" in page.unmeasured
    said = words_of(render(held))
    assert "Does not apply: copies and memory." in said
    assert "Not measured: identifiers missed, identifiers left, words" in said


def test_readable_notes_say_that_recall_is_not_known_and_what_it_costs():
    row = row_of(of_kind("deidentified"), "identifiers missed")
    assert row.outcome == "not decided"
    assert row.why == "Not known without a reviewer: 200 marks, about an hour."
    assert row.why in words_of(render(of_kind("deidentified")))


def test_terms_are_explained_where_they_are_used():
    terms = [term.partition(":")[0] for term in first_page(record()).terms]
    assert terms == ["Shadow vectors", "Known pairs", "Planted names"]
    bare = replace(record(), verdicts=(Verdict("agreement", (gate("copies", "held"),)),))
    assert first_page(bare).terms == []


def test_own_identifiers_state_how_many_patients_of_the_list_were_searched_for():
    own = share("own identifiers", "recipient", 0, 60, 0.0, gated=True, unit="patients")
    covered = replace(own, known_list=KnownList(in_feed=851, in_release=851), control=0.5)
    judged = replace(gate("own_identifiers", "held"), value=0, finding=covered)
    held = replace(record(), listed=0.5, verdicts=(Verdict("agreement", (judged,)),))
    said = words_of(render(held))
    assert "of 60 listed patients" in said
    assert "The patient list has 50.0 % of the patients; the others were not searched" in said
    assert "50.0 %" in row_words(render(held), "Are identifiers of patients left?")
    assert "not searched" not in words_of(render(replace(held, listed=1.0)))
    assert "patient list" not in words_of(render(replace(held, listed=None)))


def test_counts_of_patients_are_next_to_rates_of_notes():
    said = row_words(render(record()), "Is a note found from ten words of it?")
    assert f"about {round(47 / 300 * 1702)} of 1,702 patients" in said
    nobody = replace(record(), corpus=replace(record().corpus, patients=None))
    assert "about" not in row_words(render(nobody), "Is a note found from ten words of it?")


@pytest.mark.parametrize("audience", ["agreement", "public"])
def test_a_hidden_small_count_is_hidden_everywhere(audience):
    few = share("note by ten words", "recipient", 4, 300, 0.003, gated=True, unit="notes")
    held = with_findings(record(audience=audience), few)
    row = row_of(held, "notes found from ten words")
    assert row.figure.hidden and row.figure.value.text == "<11" and row.patients == ""
    page = render(held)
    assert "<11 of 300 notes" in row_words(page, row.question.asks)
    assert "1.3 %" not in words_of(page)
    limits = page.partition('id="gates"')[2].partition("</section>")[0]
    line = row_words(limits, "notes found from ten words")
    assert "<11" in line and "1.3 %" not in line


def test_small_counts_of_notes_and_of_identifiers_are_hidden():
    page = render(record())
    assert row_words(page, "Are identifiers of patients left?").startswith(
        "no residues after treatment – <11 notes"
    )
    few = replace(gate("kept_columns", "held"), value=3 / 4999, limit=0.01, unit="share of notes")
    held = replace(record(), verdicts=(Verdict("agreement", (few,)),), findings=())
    said = words_of(render(held))
    assert "<11" in said and "0.060\u202f%" not in render(held)


def test_a_row_that_is_not_held_says_what_to_change():
    page = first_page(record(failed=True))
    assert page.state == "refused"
    assert [name for name, _ in page.changes] == ["identifiers left"]
    said = words_of(render(record(failed=True)))
    assert "What to change for identifiers left: Raise channel.background" in said
    assert "What to change" not in words_of(render(record()))


def test_one_hint_for_several_questions_is_given_once():
    both = Verdict("agreement", (gate("names", "not held"), gate("words", "not held")))
    assert [name for name, _ in first_page(replace(record(), verdicts=(both,))).changes] == [
        "names disclosed"
    ]


def test_limits_that_the_officer_changed_are_shown_with_their_defaults(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        "[names]\nagreement = 0.2\n[ten_words]\nagreement = 0.5\n[copies]\npublic = 0\n"
    )
    held = record(limits=Limits.read(path))
    assert first_page(held).changed == (
        "names recovered: default 5.0\u202f% above chance",
        "notes found from ten words: default: no limit",
    )
    said = words_of(render(held))
    assert "Changed limits: names recovered: default 5.0 % above chance" in said
    row = row_words(render(held), "Is a note found from ten words of it?")
    assert "50.3 % default: no limit held" in row
    assert "Changed limits" not in words_of(render(record()))


def test_unlimited_risks_make_the_sentences_of_the_agreement():
    rules = Limits.read().rules("agreement")
    page = first_page(record())
    risks = ("words", "ten_words", "other_notes", "public_texts")
    assert page.covers == tuple(rules[risk].covers for risk in risks)
    said = words_of(render(record())).partition("What the agreement must say")[2]
    assert all(sentence in said for sentence in page.covers)
    assert first_page(record(audience="public")).covers == ()
    same = (gate("names", "not limited"), gate("planted_names", "not limited"))
    both = replace(record(), verdicts=(Verdict("agreement", same),))
    assert first_page(both).covers == (rules["names"].covers,)


def test_the_headline_has_no_green_next_to_red():
    for held in (record(), record(failed=True), record(audience="public"), of_kind("deidentified")):
        page = render(held).partition('id="details"')[0].partition("</style>")[2]
        state = first_page(held).state
        assert f'<header class="{state}">' in page
        assert ("not held</td>" in page) is (state == "refused")


def test_states():
    assert first_page(record()).state == "clear"
    assert first_page(of_kind("deidentified")).state == "open"
    assert first_page(record(failed=True)).state == "refused"
    assert first_page(record(audience="public")).state == "refused"
    assert first_page(replace(record(), verdicts=(Verdict("agreement", ()),))).state == "refused"


def test_recipient_purpose_and_review_are_printed_or_left_blank():
    blank = words_of(render(record()))
    assert "Recipient: ____" in blank and "Purpose: ____" in blank
    assert "Review of the decision on: ____" in blank
    named = replace(
        record(), recipient="Ward 7", purpose="A classifier", review_on="2027-11-20"
    )  # fmt: skip
    said = words_of(render(named))
    assert "Recipient: Ward 7 · Purpose: A classifier" in said
    assert "Review of the decision on: 2027-11-20" in said


def test_earlier_releases_are_named():
    assert "none in the ledger" in words_of(render(record()))
    held = replace(record(), earlier=tuple(f"run-{i} (synthetic)" for i in range(5)))
    said = words_of(render(held))
    assert "run-0 (synthetic), run-1 (synthetic), run-2 (synthetic) and 2 more" in said
    assert "the verdict and figures here cover the notes of this one alone" in words_of(
        render(replace(record(), reuses="run-9"))
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


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (-11.2, -70.0, -5.0, "worse than random"),
        (-0.1, -0.3, 0.1, "like random"),
        (0.2, 0.0, 0.4, "like random"),
        (0.5, 0.4, 0.6, "better than random"),
        (0.95, 0.91, 1.02, "as good as real"),
        (0.95, 0.85, 1.02, "better than random"),
    ],
)
def test_use_is_said_in_words(value, low, high, words):
    measured = replace(use("transfer", value, (0.3, 0.2, 0.31)), low=low, high=high)
    held = replace(record(), findings=(measured,))
    assert first_page(held).uses[0].in_words == words
    assert words in words_of(render(held)) and words in release_card(held)


def test_the_limit_of_use_is_a_least_value():
    assert "above 0 %" in row_words(render(record()), "Does it teach more than random words?")


def test_a_task_that_was_not_shown_to_be_better_is_not_a_purpose(passed):
    none = missing("utility.transfer", "no share can be given", None, "section")
    others = [f for f in passed.findings if f.measure != "utility.transfer"]
    assert "text classifiers" not in release_card(replace(passed, findings=(none, *others)))
    bad = replace(use("transfer", -0.3, (0.33, 0.2, 0.94)), low=-0.5, high=-0.1)
    card = release_card(replace(passed, findings=(bad, *passed.findings)))
    assert "text classifiers" not in card
    assert "task_categories" not in card and "text classifiers" in release_card(passed)


def test_an_adversary_with_more_has_at_least_the_success_of_one_with_less():
    lines = {line.target: line.cells for line in table(record()).lines}
    cells = lines["Names of patients recovered"]
    assert [cell.row.value.value for cell in cells] == [n / 835 for n in (3, 9, 21, 160, 331)]
    assert [cell.gated for cell in cells] == [True] * 3 + [False] * 2
    assert lines["Kept columns inferred or unique"][0].row is None


def test_known_pairs_have_one_figure_on_page_one_and_in_the_table():
    found = (
        share("words", "shadow", 94, 10_000, 0.001, gated=True),
        share("words", "pairs-20", 47, 10_000, 0.001, gated=True),
    )
    held = with_findings(record(), *found)
    row, (line,) = row_of(held, "words recovered"), table(held).lines
    assert row.note == "Recipient with shadow vectors"  # who got it
    assert row.figure.value == line.cells[-1].row.value == number(0.0094, "share")
    assert [cell.by for cell in line.cells] == ["", "Recipient with shadow vectors"]


def columns_of(page, target):
    """The cells of a line of the adversary table, by the heading of their column."""
    matrix = page.partition('<table class="stack matrix">')[2].partition("</table>")[0]
    line = next(row for row in matrix.split("<tr>") if target in row)
    cells = re.findall(r'<td class="n" data-head="([^"]+)">(.*?)</td>', line, re.DOTALL)
    heads = re.findall(r'<th scope="col" class="n">([^<]+)</th>', matrix)
    assert [html.unescape(head) for head, _ in cells] == [html.unescape(head) for head in heads]
    return {html.unescape(head): re.sub("<[^>]+>", " ", cell) for head, cell in cells}


def test_a_figure_is_only_in_the_column_of_the_attacker_who_got_it():
    found = (
        share("words", "recipient", 30, 1_000, 0.02),
        share("words", "pairs-20", 20, 1_000, 0.02),
        share("words", "stolen-vectors", 90, 1_000, 0.02),
    )
    for held in (record(), of_kind("deidentified")):
        cells = columns_of(render(replace(held, findings=found)), "Words recovered")
        recipient, pairs, vault = cells.values()
        assert recipient.split()[:1] == ["3.0"] and "chance 2.0\u202f%" in recipient
        assert pairs.split() == ["as", "recipient"]
        assert vault.split()[:1] == ["9.0"] and "chance 2.0\u202f%" in vault


def test_every_figure_of_the_adversary_table_has_chance_or_says_that_there_is_none(passed):
    kept = share("kept columns", "recipient", 290, 300, None, unit="notes")
    copied = replace(
        share("copies", "recipient", 40, 20_000, None), control=0.004, control_kind="negative"
    )
    held = replace(passed, findings=(*passed.findings, kept, copied))
    got = [cell for line in table(held).lines for cell in line.cells if cell.row]
    assert all(
        re.match("chance .*\\d|no chance level|control .*\\d", cell.row.reference) for cell in got
    )
    said = columns_of(render(held), "Kept columns")
    assert "no chance level" in next(iter(said.values()))


def test_membership_is_on_page_one_of_synthetic_releases_with_chance_and_interval():
    """An area of .545 is a success of 9 % above guessing."""
    weaker = replace(area(0.61, 0.58, 0.64), attack="loss threshold")
    held = with_findings(of_kind("synthetic", "public"), weaker, area(0.7, 0.65, 0.75))
    row = row_of(held, "membership")
    assert row.note == "Recipient"
    said = row_words(render(held), row.question.asks)
    assert re.findall(r"\d?\.\d+", said) == ["0.700", "0.650", "0.750", "0.500", "0.545"]
    assert said.endswith("not held")


def test_a_held_row_does_not_conceal_a_risk_without_a_limit():
    found = (area(0.7, 0.65, 0.75), *of_kind("synthetic").findings)
    held = replace(
        of_kind("synthetic"),
        findings=found,
        verdicts=verdicts(found=found, kind="synthetic"),
    )
    (verdict, *others) = held.verdicts
    # As if membership and memory were one question.
    gates = tuple(
        replace(one, risk="memory" if one.risk == "membership" else one.risk)
        for one in verdict.gates
    )
    held = replace(held, verdicts=(replace(verdict, gates=gates), *others))
    row = row_of(held, "copies and memory")
    assert row.outcome == "held" and row.gate.name == "no long copies"
    said = "Not limited: training patients recognized 70.0\u202f% (chance 50.0\u202f%)."
    assert row.besides == said
    assert said.replace("\u202f", " ") in row_words(render(held), row.question.asks)
    assert said.replace("\u202f", " ") in release_card(held).replace("\\", "")
    assert row_of(record(), "words recovered").besides == ""


def test_risks_that_were_not_measured_have_a_reason():
    why = replace(gate("names", "not decided"), value=None, meaning="no name is known")
    held = replace(record(), verdicts=(Verdict("agreement", (why,)),))
    assert row_of(held, "names disclosed").why == "No name is known."
    assert "No name is known. not decided" in row_words(
        render(held), "Can names of patients be recovered?"
    )


@pytest.mark.parametrize("audience", ["agreement", "public"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_card_says_the_same_as_page_one(kind, audience):
    held = of_kind(kind, audience)
    page = first_page(held)
    card = release_card(held).replace("\\", "")
    assert page.headline in card
    lines = card.splitlines()
    for row in page.rows:
        (said,) = (line for line in lines if line.startswith(f"| {row.question.asks}"))
        assert said.rstrip(" |").endswith(row.outcome)
    assert all(f"- {sentence}" in card for sentence in page.covers)
    assert f"Does not apply: {', '.join(page.absent)}." in card


def test_the_gates_of_the_details_are_those_of_page_one():
    held = record(audience="public")
    limits = render(held).partition('id="gates"')[2].partition("</section>")[0]
    for made in gates("public"):
        assert str(escape(made.name)) in limits
    assert "<p>May leave to recipients under an agreement: every limit is held.</p>" in limits
    assert verdicts("public")[1].audience == "agreement"
