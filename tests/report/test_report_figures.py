from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from invented_release import record, repeats

from clinveil.core.finding import Finding
from clinveil.report import draw
from clinveil.report.cells import row
from clinveil.report.edition import external_edition
from clinveil.report.record import TokenRow
from clinveil.report.tiles import attack_rows, utility_pairs

HOSTILE = '<script>alert("x")</script> & "quotes" $2 \\n {{ 7*7 }}'


@pytest.fixture(scope="module")
def figures():
    held = record()
    made = (
        draw.forest(attack_rows(held)),
        draw.repeats([row(f, "internal") for f in repeats()]),
        draw.utility(utility_pairs(held)),
        draw.accounting(held.accounting),
    )
    assert all(made)
    return made


def test_figures_are_well_formed_and_labelled(figures):
    for figure in figures:
        root = ElementTree.fromstring(figure.svg)
        assert root.tag == "svg" and root.get("role") == "img"
        names = root.get("aria-labelledby").split()
        assert [root.find(f".//*[@id='{name}']").tag for name in names] == ["title", "desc"]
        assert root.find("desc").text == figure.says
        assert figure.caption and figure.legend


def test_text_stays_text_in_the_font_of_the_page(figures):
    for figure in figures:
        root = ElementTree.fromstring(figure.svg)
        assert [t for t in root.iter("text") if t.text]
        assert not any("font-family" in e.attrib for e in root.iter())


def test_all_colours_are_the_pages(figures):
    allowed = {"none", "transparent"}
    for figure in figures:
        used = set(re.findall(r'(?:fill|stroke)="([^"]*)"', figure.svg)) - allowed
        assert used and all(c.startswith("var(--") for c in used), used


def test_figures_fetch_nothing_and_run_nothing(figures):
    for figure in figures:
        assert "http" not in figure.svg and "href" not in figure.svg
        elements = list(ElementTree.fromstring(figure.svg).iter())
        assert "script" not in {element.tag for element in elements}
        names = {name for element in elements for name in element.attrib}
        assert not any(name.startswith("on") or name == "style" for name in names)


def test_ids_of_several_figures_do_not_clash(figures):
    ids = [name for figure in figures for name in re.findall(r'\bid="([^"]+)"', figure.svg)]
    assert len(ids) == len(set(ids))
    assert all(name.startswith("fig-") for name in ids)


def test_what_a_figure_shows_it_says(figures):
    forest, repeated, used, tokens = figures
    assert "18.3\u202f%" in forest.says and "chance 4.1\u202f%" in forest.says
    assert "all words, memo patient, 8 draws: 87.1\u202f%" in repeated.says
    assert "doc_type: 0.742 before, 0.655 after" in used.says
    assert "words: 2,154,290 replaced" in tokens.says


def test_repeats_show_the_memo_for_all_and_for_rare_words(figures):
    assert [words for _, words in figures[1].legend] == [
        "all words, memo patient", "words seen below 20 times, memo patient", "chance",
    ]  # fmt: skip


def test_nothing_to_draw_is_no_figure():
    assert draw.forest([]) is None
    assert draw.repeats([]) is None
    assert draw.repeats([row(repeats()[0], "internal")]) is None
    assert draw.utility([]) is None
    assert draw.accounting([]) is None
    assert draw.accounting([TokenRow("words", 0)]) is None


def test_hostile_labels_stay_words():
    finding = Finding("attack.x", 0.2, 40, "lower", 0.1, 0.3, 0.1, detail={"label": HOSTILE})
    figure = draw.forest([row(finding, "internal")])
    root = ElementTree.fromstring(figure.svg)
    assert not list(root.iter("script"))
    assert "<script>" in "".join(root.itertext())
    sides = [Finding("utility.x", v, 40, "higher", detail={"side": "s", "label": HOSTILE}) for v in (0.5, 0.4)]
    figure = draw.utility([(HOSTILE, *(row(f, "internal") for f in sides))])
    assert not list(ElementTree.fromstring(figure.svg).iter("script"))


def test_a_hidden_count_is_not_drawn_at_its_place():
    finding = Finding("attack.own_name", 3 / 712, 712, "lower", 0.001, 0.01, 0.0048, unit="patients")
    shown = draw.forest([row(finding, "external")])
    other = draw.forest([row(replace(finding, value=7 / 712), "external")])
    assert "<11" in shown.says
    assert shown.svg == other.svg


def test_a_figure_needs_no_interval_chance_or_control():
    held = external_edition(record(), [])
    bare = [replace(r, finding=replace(r.finding, low=None, high=None, control=None)) for r in attack_rows(held)]
    assert draw.forest(bare) is not None
    assert draw.repeats([row(replace(f, chance=None), "internal") for f in repeats()]) is not None


def test_the_same_rows_make_the_same_picture():
    rows = attack_rows(record())
    assert draw.forest(rows).svg == draw.forest(rows).svg


def _own(kind, words="the same search in the source notes"):
    return Finding(
        "attack.own_phone", 0.0, 90, "lower", 0.0, 0.04, 0.0, 0.78, unit="own phones", count=0,
        control_is=words, control_kind=kind,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "glyph", "words"),
    [
        ("positive", "diamond", "positive control: it must find something"),
        ("negative", "ring", "control: nothing to find"),
        (None, "ring", "control (each table says which)"),
    ],
)
def test_a_control_is_drawn_and_worded_as_its_kind(kind, glyph, words):
    assert (glyph, words) in draw.forest([row(_own(kind), "internal")]).legend


def test_where_the_attack_must_succeed_nobody_says_that_there_is_nothing_to_find():
    legend = [words for _, words in draw.forest([row(_own("positive"), "internal")]).legend]
    assert not any("nothing to find" in words for words in legend)
