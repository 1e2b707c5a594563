from __future__ import annotations

import json
from dataclasses import replace

import pytest
from invented_release import CANARIES, note, record

from clinveil.report.edition import external_edition
from clinveil.report.record import Column, Gate
from clinveil.report.render import release_card, size_class


def header(card: str) -> dict[str, str]:
    lines = card.split("---\n")[1].splitlines()
    return dict(line.split(": ", 1) for line in lines)


def test_the_header_is_plain_yaml(external):
    fields = header(release_card(external))
    assert json.loads(fields["pretty_name"]) == "Consultation notes 2026"
    assert fields["size_categories"] == "[1K<n<10K]"
    assert fields["license"] == "other"


def test_the_card_quotes_no_source_word_and_no_place(external):
    card = release_card(external)
    for secret in (*CANARIES, "/srv", "ward7-db", "77" * 32):
        assert secret not in card


def test_an_internal_record_makes_no_card():
    with pytest.raises(ValueError, match="external edition only"):
        release_card(record())


def test_the_card_says_what_counts(external):
    card = release_card(external)
    assert "**7 of 7 gates passed. This is evidence for a qualified reviewer, not a determination.**" in card
    assert "The mechanism has no epsilon" in card
    assert "| Notes | 4,966 |" in card
    assert "| of which words replaced | 2,154,290 |" in card
    assert "| A patient's own full name in their own notes | all | \\<11 | – |" in card
    assert "- Not tried: Linking the notes of one patient by style." in card
    assert "TEST SEED" not in card


def test_a_test_seed_is_said():
    assert "TEST SEED: not for release" in release_card(external_edition(record(test_seed=True), []))


def test_without_a_phi_step_the_card_says_so(external):
    assert "**not** treated by a step of their own" in release_card(replace(external, phi=None))


def test_hostile_names_break_neither_header_nor_tables(external):
    bad = 'a": b\n---\n# x | y <script>'
    held = replace(
        external, title=bad, corpus=replace(external.corpus, columns=(Column(bad, bad),)),
        gates=(Gate(bad, bad, True, 0, 0, bad, bad),),
    )  # fmt: skip
    card = release_card(held)
    assert json.loads(header(card)["pretty_name"]) == " ".join(bad.split())
    assert "<script>" not in card.split("---\n", 2)[2].replace("\\<script\\>", "")
    tables = [line for line in card.splitlines() if line.startswith("| a")]
    assert len(tables) == 2 and all(line.replace("\\|", "").count("|") in (3, 4) for line in tables)


def test_every_table_row_has_as_many_cells_as_its_head(external):
    widths: list[int] = []
    for line in release_card(external).splitlines():
        cells = line.replace("\\|", "").count("|")
        if not line.startswith("|"):
            widths = []
            continue
        widths.append(cells)
        assert cells == widths[0], line


@pytest.mark.parametrize(
    ("notes", "name"),
    [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (10**6, "1M<n<10M"), (10**9, "n>1B")],
)
def test_size_classes(notes, name):
    assert size_class(notes) == name


def test_the_demo_note_does_not_reach_the_card(external):
    assert note(demo=True).tokens[0].released not in release_card(external)
