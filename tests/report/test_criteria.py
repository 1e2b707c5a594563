"""The table of the three criteria, and the line of EMA Policy 0070: which figure stands where, and what is not said."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from invented_release import record

from clinveil.attacks.reader import KNOWLEDGE
from clinveil.core.finding import Finding
from clinveil.report import criteria
from clinveil.report.edition import external_edition
from clinveil.report.measures import clauses
from clinveil.report.render import render

WHO = ("without the vectors", "own vectors", "with the channel")


def linked(measure, value, attacker="without the vectors", *, n=300, half=0.02, **more):
    detail = {"attacker": attacker, "against": "whole texts"}
    low, high = max(0, value - half), min(1, value + half)
    return Finding(f"attack.{measure}", value, n, "lower", low, high, 1 / 300, unit="notes", detail=detail, **more)


def read(value, knows, stratum="all"):
    detail = {"reader": "somebody", "knowledge": "; ".join(KNOWLEDGE[one] for one in knows), "stratum": stratum}
    more = {"control": 0.04, "control_kind": "negative", "unit": "tokens", "detail": detail}
    return Finding(f"attack.reading.{stratum}", value, 9000, "lower", value - 0.01, value + 0.01, 0.05, **more)


def cells(*findings):
    """The table as {attacker: [cell of each criterion]}."""
    return {one.name: one.cells for one in criteria.table(replace(record(), findings=findings))}


def words_of(page, heading):
    """The words of a table by its caption."""
    (table,) = [t for t in re.findall("<table.*?</table>", page, re.S) if heading in t]
    return unescape(" ".join(re.sub("<[^>]+>", " ", table).split()))


def test_each_attacker_gets_his_own_figures_and_of_several_the_one_furthest_above_chance():
    said = cells(
        *(linked("linkage", value, who) for value, who in zip((0.02, 0.1, 0.6), WHO, strict=True)),
        linked("linkage", 0.04),
        linked("linkage_singled", 0.3, "with the channel"),
        read(0.12, ["others"]),
        read(0.3, ["others", "vectors"]),
        read(0.7, ["channel", "others"]),
        read(0.8, ["channel", "others"], "names"),
    )
    values = {who: [cell.row and cell.row.finding.value for cell in row] for who, row in said.items()}
    assert values["Recipient"] == [None, 0.04, 0.12]
    assert values["Recipient with vectors of their own"] == [None, 0.1, 0.3]
    assert values["Thief of the vectors"] == [0.3, 0.6, 0.8]
    assert said["Recipient"][1].of == 2 and said["Thief of the vectors"][2].of == 2
    assert said["Recipient"][0].words == "Not measured: the linkage of this attacker was not run."


def test_no_number_is_made_up_for_the_thief_of_the_key():
    (cell,) = cells(linked("linkage", 0.5))["Thief of the key"]
    assert cell.row is None and "By construction all is read back" in cell.words


def test_what_was_not_measured_says_why():
    none = Finding("attack.inference", None, 0, detail={"why": "fewer than two values that ten patients have"})
    assert cells(none)["Recipient"][2].words == "Not measured: fewer than two values that ten patients have."
    assert all(cell.row is None and cell.words for row in cells().values() for cell in row)


def test_some_who_holds_known_pairs_is_no_mere_recipient():
    assert cells(read(0.6, ["others", "pairs"]))["Recipient"][2].row is None


def test_the_line_of_the_threshold():
    found = (
        linked("linkage", 0.02),
        linked("linkage", 0.03),
        linked("linkage_rarest", 0.05, n=30),
        linked("linkage", 0.04, "own vectors"),
        linked("linkage", 0.3, "with the channel"),
        linked("linkage_unprotected", 0.97),
        replace(linked("linkage", 0.9), detail={"attacker": WHO[0], "against": "other notes"}),  # another attack
    )
    risks = criteria.risks(replace(record(), findings=found, risk_threshold=0.09))
    assert risks.initial.finding.value == 0.97 and risks.threshold == 0.09
    assert [line.attacker for line in risks.lines] == [*WHO]
    assert [line.average.finding.value for line in risks.lines] == [0.03, 0.04, 0.3]
    assert [line.small for line in risks.lines] == [True, None, False]  # of the second no maximum is known
    high = linked("linkage_rarest", 0.08, n=30)  # its upper end is over the threshold
    assert criteria.risks(replace(record(), findings=(*found[:2], high))).lines[0].small is False
    assert criteria.risks(replace(record(), findings=())) is None


@pytest.fixture(scope="module")
def pages():
    found = (*record().findings, linked("linkage", 0.01, half=0.01), linked("linkage_rarest", 0.03, n=30, half=0.03))
    held = replace(record(), findings=(*found, read(0.7, ["channel", "others"])), risk_threshold=0.05)
    return {"internal": render(held), "external": render(external_edition(held, []))}


def test_the_page_holds_both_and_hides_small_counts_outside(pages):
    inside, outside = (words_of(pages[edition], "lower is safer") for edition in ("internal", "external"))
    for said in (inside, outside):
        assert "Recipient" in said and "70.0" in said and "control 4.0" in said and "By construction" in said
    assert "1.0 %" in inside.replace("\u202f", " ") and "<11" in outside  # 3 of 300 notes
    assert "n = 300 notes" in inside
    line = words_of(pages["internal"], "Initial risk")
    assert "not measured" in line and "not shown to be below it" in line
    assert "<11" in words_of(pages["external"], "Initial risk")


def test_the_index_of_the_standard_leads_to_sections_that_are_there(pages):
    ids = set(re.findall(r'id="([^"]+)"', pages["internal"]))
    assert len(clauses()) >= 12 and {one.href for one in clauses()} <= ids
    said = words_of(pages["external"], "Where this report answers a clause")
    assert "8.2.3 Adversarial testing" in said and "7.3.2 Maximum or average risk" in said
