from __future__ import annotations

from dataclasses import replace

import pytest
from invented_release import findings, record, repeats

from clinveil.core.finding import Finding
from clinveil.report.cells import row
from clinveil.report.edition import external_edition
from clinveil.report.measures import COMPANIONS, catalogue, rules
from clinveil.report.record import TokenRow
from clinveil.report.summarise import accounting, badness, blocks, furthest, of_room
from clinveil.report.tiles import attack_rows, points, tiles, utility_pairs


def one(measure="attack.own_name", value=3 / 712, n=712, **more):
    return Finding(measure, value, n, "lower", chance=0.004, unit="patients", count=3, **more)


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_a_block_of_every_known_measure_has_four_lines(name):
    (block,) = blocks([Finding(f"{name}.x" if "." not in name else name, 0.25, 40, "lower", chance=0.1)], "internal")
    assert block.name == name
    assert block.asked and block.next and block.meaning[0].words
    assert block.rows[0].value.text and block.rows[0].n.text == "40" and block.rows[0].direction


def test_an_unknown_measure_gets_an_honest_block():
    (block,) = blocks([Finding("moon.phase", 0.25, 40)], "internal")
    assert block.title.endswith("moon.phase")
    assert "Nothing is claimed" in block.meaning[0].words
    assert not block.exact


def test_findings_of_one_measure_share_a_block_in_order():
    shown = blocks(findings(), "internal")
    names = [block.name for block in shown]
    assert len(names) == len(set(names))
    assert names[0] == "attack.inversion"
    assert sum(len(block.rows) for block in shown) == len(findings())


def test_rooms_split_the_findings_without_loss():
    held = record()
    counted = [sum(len(b.rows) for b in of_room(held, room)) for room in ("attack", "utility", "phi", "")]
    assert sum(counted) == len(held.findings)
    assert counted[3] == 1


def test_rows_are_told_apart_by_their_labels():
    (block,) = blocks(repeats(), "internal")
    labels = [r.label for r in block.rows]
    assert len(set(labels)) == len(labels) == 10
    assert labels[0] == "all words · 1 patient · memo patient"
    assert labels[-1] == "words seen below 20 times · 8 patients · memo patient"


def test_the_meaning_speaks_of_the_worst_row_of_each_stratum():
    (block,) = blocks(repeats(), "internal")
    assert [line.label for line in block.meaning] == [
        "",
        "all words · 8 patients · memo patient",
        "words seen below 20 times · 8 patients · memo patient",
    ]


def test_furthest_is_beyond_chance_on_the_bad_side():
    low, high = (Finding("attack.x", v, 10, "lower", chance=c) for v, c in ((0.5, 0.4), (0.3, 0.1)))
    assert badness(high) > badness(low)
    assert [r.finding for r in furthest([row(high, "internal"), row(low, "internal")])] == [high]
    useless, useful = (Finding("utility.x", v, 10, "higher", chance=0.1) for v in (0.2, 0.8))
    assert badness(useless) > badness(useful)
    assert badness(Finding("attack.x", None, 0, detail={"why": "-"})) == float("inf")


def test_companions_become_columns_only_where_some_row_fills_them():
    (block,) = blocks([one(detail={"one_draw": 0.871, "label": "a"}), one()], "internal")
    assert block.companions.keys() == {"one_draw", "count"}
    assert block.companions["one_draw"] == COMPANIONS["one_draw"][0]
    assert block.rows[0].beside["one_draw"].value == 0.871
    assert blocks([one()], "internal")[0].companions.keys() == {"count"}


def test_what_stands_for_chance_is_said_by_the_finding_if_it_says_it():
    (block,) = blocks([one(chance_is="permuted names")], "internal")
    assert block.chance == "permuted names"
    assert blocks([one()], "internal")[0].chance == catalogue()["attack.own_name"].chance


def test_a_small_count_hides_all_that_gives_it_away():
    shown = row(replace(one(detail={"expected": 3.4}, p=0.6), low=0.001, high=0.01), "external")
    assert shown.hidden and shown.value.text == "<11" and shown.value.value is None
    assert shown.ends is None and shown.beside == {}
    (block,) = blocks([one()], "external")
    assert block.meaning[1].words == "The count behind it is <11; this edition does not print it."


@pytest.mark.parametrize(("count", "is_hidden"), [(0, False), (1, True), (10, True), (11, False)])
def test_the_rule_of_eleven(count, is_hidden):
    finding = Finding("attack.own_name", count / 712, 712, "lower", unit="patients", count=count)
    assert row(finding, "external").hidden is is_hidden
    assert not row(finding, "internal").hidden


def test_a_share_of_people_hides_its_count_even_where_no_count_is_given():
    assert row(Finding("attack.layout_unique", 0.01, 500, "lower", unit="notes"), "external").hidden
    assert not row(Finding("attack.layout_unique", 0.01, 500, "lower", unit="tokens"), "external").hidden
    assert not row(Finding("attack.layout_unique", 0.5, 500, "lower", unit="notes"), "external").hidden


def test_a_small_n_of_people_is_hidden_too():
    assert row(Finding("attack.x", 0.0, 4, "lower", unit="patients"), "external").n.text == "<11"


def test_the_accounting_ends_with_its_total():
    shown = accounting(record())
    assert [r.kind for r in shown] == ["words", "numbers", "punctuation", "other", "all"]
    assert shown[-1].seen == 2154311 + 181022 + 402817 + 12


def test_five_tiles_and_no_overall_score():
    shown = tiles(record())
    assert [t.head for t in shown] == [
        "Words replaced", "Own identifiers left", "Strongest attack", "Use that is kept", "Seal",
    ]  # fmt: skip
    assert shown[0].figure.value == 2154290 / 2154311
    assert shown[0].figure.text.startswith(">99.99")
    assert shown[1].figure.value == 0
    assert shown[2].figure.value == pytest.approx(0.934)
    assert shown[3].figure.value == pytest.approx(0.655 / 0.742)


def test_tiles_say_what_was_not_measured():
    shown = tiles(replace(record(), findings=()))
    assert [t.figure.text for t in shown[1:4]] == ["not searched", "not measured", "not measured"]
    assert all(t.figure.value is None for t in shown[1:4])


def test_tiles_of_nothing_at_all():
    empty = replace(record(), findings=(), accounting=(TokenRow("words", 0),))
    assert tiles(empty)[0].figure.text == "–"


def test_the_tile_of_identifiers_counts_over_all_kinds():
    found = [
        Finding(f"attack.own_{k}", c / 100, 100, "lower", unit=f"own {k}s", count=c)
        for k, c in (("phone", 9), ("email", 7))
    ]
    held = replace(record(), findings=tuple(found))
    assert tiles(held)[1].figure.value == 16
    assert tiles(external_edition(held, []))[1].figure.value == 16
    held = replace(record(), findings=(found[0],))
    assert tiles(external_edition(held, []))[1].figure.text == "<11"


def test_the_test_seed_is_on_the_seal():
    assert "TEST SEED" in tiles(record(test_seed=True))[4].lines[0]
    assert "secret key" in tiles(record())[4].lines[0]


def test_attack_rows_are_shares_with_a_chance_level_once_a_stratum():
    rows = attack_rows(record())
    names = [(r.finding.measure, r.finding.detail.get("stratum")) for r in rows]
    assert len(names) == len(set(names)) or {"own source", "any source"} <= {r.label for r in rows}
    assert all(r.finding.chance is not None and r.kind == "share" for r in rows)
    assert "attack.inversion_candidates" not in [r.finding.measure for r in rows]


def test_utility_pairs_are_original_and_released_of_one_column():
    ((name, original, released),) = utility_pairs(record())
    assert name == "doc_type"
    assert (original.finding.value, released.finding.value) == (0.742, 0.655)


def test_points():
    assert points(0.142) == "14.2\u202fpoints"
    assert points(-0.01) == "−1.0\u202fpoints"


def test_the_map_says_where_nothing_was_measured():
    measured = {rule.rule.split(",")[0]: rule.measured for rule in rules(record())}
    assert measured["HIPAA Safe Harbor"] and measured["GDPR"]
    bare = rules(replace(record(), findings=(), phi=None))
    assert not any(rule.measured for rule in bare if "section 4" in rule.evidence)
    assert all(rule.human and rule.asks and rule.evidence for rule in bare)


def test_a_null_finding_is_no_evidence():
    null = Finding("attack.own_phone", None, 0, detail={"why": "none known"})
    (harbor, *_) = rules(replace(record(), findings=(null,)))
    assert not harbor.measured


def test_the_control_of_others_names_is_the_search_in_the_source():
    found = Finding("attack.other_names", 0.2, 400, "lower", chance=0.2, control=0.3, unit="notes", count=80)
    (block,) = blocks([found], "internal")
    assert block.control == "the same search in the source notes"


def test_the_tile_of_use_says_what_share_of_notes_and_classes_it_is_of():
    detail = {"label": "doc_type", "classes_in_notes": 32, "classes_merged": 20, "notes_share": 1.0}
    sides = [
        Finding("utility.classification", v, 400, "higher", detail={**detail, "side": s}, unit="test notes")
        for s, v in (("original", 0.8), ("released", 0.6))
    ]
    lines = tiles(replace(record(), findings=tuple(sides)))[3].lines
    assert "measured on 100\u202f% of the labelled notes: 12 of 32 classes and all others as one" in lines
