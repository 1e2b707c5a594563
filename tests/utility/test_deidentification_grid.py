"""The grid of contexts and names: its gold spans, its names, and what its findings say of finders
that are known.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from itertools import islice

import pytest
from numpy.random import default_rng

from clinveil.core import Span
from clinveil.lexicons import (
    given_names,
    held_out,
    name_form,
    surnames,
    vocabulary,
    world_given,
    world_surnames,
)
from clinveil.utility import grid_notes, sample
from clinveil.utility.deidentification.grid import contexts, write
from clinveil.utility.deidentification.grid_findings import grid_findings, scored
from clinveil.utility.deidentification.grid_names import (
    BANDS,
    CLASSES,
    GridPerson,
    name_lists,
)


@pytest.fixture(scope="module")
def notes():
    return list(grid_notes(default_rng(7)))


def test_every_context_holds_an_identifier_and_none_stands_twice():
    assert len(contexts()) >= 60
    assert len({context.text for context in contexts()}) == len(contexts())
    assert len({context.kind for context in contexts()}) >= 14
    assert all("«" in context.text for context in contexts())


def test_gold_spans_are_where_the_names_are():
    text, gold = write(
        "Mr. «{Family}, {Given} {G}» ({he|she}), «EMAIL|{g}.{family2}@x.example», «{FAMILY}»",
        GridPerson("José", "O'Neill", "male"),
        GridPerson("Ana", "Núñez", "male"),
    )
    assert [text[s.start : s.end] for s in gold] == [
        "O'Neill, José J",
        "j.nunez@x.example",
        "O'NEILL",
    ]
    assert [s.label for s in gold] == ["NAME", "EMAIL", "NAME"]
    assert "(he)" in text


def test_nothing_of_a_template_is_left(notes):
    left = re.compile(r"[«»]|\{[A-Za-z]+2?\}|\{[A-Za-z ]+\|[A-Za-z ]+\}")
    assert not [note.note_id for note in notes if left.search(note.text)]
    assert len({note.note_id for note in notes}) == len(notes)


def test_every_cell_is_there_and_women_are_as_many_as_men(notes):
    cells = {(note.context.number, note.case, note.kind_of_name, note.culture) for note in notes}
    assert len(cells) >= 0.95 * len(notes)
    assert {note.kind_of_name for note in notes} == {*CLASSES, "culture"}
    assert len({note.culture for note in notes if note.culture}) >= 40
    sexes = Counter(note.sex for note in notes)
    assert 0.45 < sexes["female"] / (sexes["female"] + sexes["male"]) < 0.55


def test_names_are_held_out():
    for (kind, culture), names in name_lists().items():
        if kind not in ("hyphenated", "particles"):
            all_of = (*names.female, *names.male, *names.family)
            assert all(map(held_out, all_of)), (kind, culture)
        assert min(map(len, (names.female, names.male, names.family))) >= 3, (kind, culture)
    parts = {part for pair in name_lists()["hyphenated", ""].family for part in pair.split("-")}
    assert all(map(held_out, parts))


def test_classes_are_what_they_say():
    lists = name_lists()
    rank = {name: place for place, name in enumerate(surnames())}
    for which, ranks in BANDS.items():
        assert all(
            rank[name_form(name)] in range(len(rank))[ranks] for name in lists[which, ""].family
        )
    assert all(name_form(name) in vocabulary() for name in lists["words", ""].family)
    known = {
        *surnames(),
        *given_names("female"),
        *given_names("male"),
        *world_given(),
        *world_surnames(),
    }
    unlisted = lists["unlisted", ""]
    assert (
        not {name.lower() for name in (*unlisted.female, *unlisted.male, *unlisted.family)} & known
    )


def test_a_seed_gives_the_same_notes_and_another_does_not(notes):
    again = list(islice(grid_notes(default_rng(7)), 200))
    assert again == notes[:200]
    assert list(islice(grid_notes(default_rng(8)), 200)) != again
    assert len(sample(default_rng(7), 50)) == 50


def _of(found, measure, series):
    return next(f for f in found if f.measure == measure and f.series == series)


def test_a_perfect_finder_and_a_blind_one(notes):
    few = notes[:: len(notes) // 1500]
    gold = {note.text: note.gold for note in few}
    found = grid_findings(list(scored(few, gold.__getitem__)))
    assert _of(found, "phi.grid", "all names").value == 1.0
    assert _of(found, "phi.grid_leaky", "all names").value == 0.0
    assert _of(found, "phi.grid_words", "all names").value == 0.0
    blind = grid_findings(list(scored(few, lambda text: [])))
    assert _of(blind, "phi.grid", "all names").value == 0.0
    assert _of(blind, "phi.grid_leaky", "all names").value == 1.0


def test_a_finder_that_sees_men_and_capitals_only_shows_the_gaps(notes):
    gold = {
        note.text: note.gold if note.sex == "male" and note.case != "lower" else ()
        for note in notes
    }
    found = grid_findings(list(scored(notes, gold.__getitem__)))
    assert _of(found, "phi.grid", "gender: female").value == 0.0
    men = _of(found, "phi.grid_gap", "men less women")
    assert men.value == _of(found, "phi.grid", "gender: male").value > 0.5
    assert men.low <= men.value <= men.high
    assert _of(found, "phi.grid_gap", "as written less lower case").value > 0.4
    assert next(f for f in found if f.measure == "phi.grid_worst").value == 0.0


def test_a_name_found_in_part_is_left_and_a_covered_word_counts():
    note = next(note for note in grid_notes(default_rng(7)) if note.context.kind == "header")
    first = note.gold[0]
    row = next(
        scored(
            [note], lambda text: [Span(first.start, first.start + 2, "NAME"), Span(0, 4, "NAME")]
        )
    )
    assert (row.whole, row.touched) == (0, 1)


def test_the_command_prints_the_groups(capsys):
    from clinveil.cli import main

    assert (
        main(
            shlex.split("evaluate deidentification --grid --seed 3 --set size=700 --set quiet=true")
        )
        == 0
    )
    said = capsys.readouterr().out
    for words in (
        "all names",
        "culture: malay",
        "gender: female",
        "case: lower, with a cue",
        "worst cell",
        "men less",
    ):
        assert words in said


def test_the_command_lists_what_was_missed(tmp_path, capsys):
    import json

    from clinveil.cli import main

    errors = tmp_path / "errors.jsonl"
    arguments = shlex.split(f"--grid --seed 3 --set size=60 --set quiet=true --errors {errors}")
    assert main(["evaluate", "deidentification", *arguments]) == 0
    assert "SECRET" in capsys.readouterr().err
    for line in errors.read_text().splitlines():
        assert json.loads(line)["error"] in ("missed", "found in part", "no identifier")
