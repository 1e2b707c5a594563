"""What a clinician saw in synthetic notes, as numbers: hand-solved notes, properties, and MTSamples against itself."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial import distance

from clinveil.core.finding import Finding
from clinveil.corpus.medtext import medtext
from clinveil.utility.qualities import (
    PAIR_NOTES,
    Precedence,
    headings,
    jensen_shannon,
    lists,
    pronouns,
    qualities,
    shuffled_control,
)

MEASURES = (
    "study.pronoun_switch",
    "study.pronoun_switches",
    "study.repeated_entries",
    "study.section_order",
    "study.repeated_headings",
    "study.note_length",
    "study.type_token_ratio",
    "study.unigram_divergence",
)


def measured(notes: list[str], real: list[str], seed: int = 0) -> dict[str, Finding]:
    """The findings by name."""
    return {f.measure: f for f in qualities(notes, real, np.random.default_rng(seed))}


def of_headings(*names: str) -> str:
    """A note of these headings with a line of text below each."""
    return "\n".join(f"{name} :\nstable as before , and no change was seen today ." for name in names)


# Pronouns


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("", []),
        ("The patient is well .", []),
        ("He says his wife sees him himself .", [0, 0, 0, 0]),
        ("SHE hurt Her hand , and hers alone ,\nherself .", [1, 1, 1, 1]),
        ("He was seen .\nShe left .\nHe came back .", [0, 1, 0]),
        ("Call his / her doctor if he or she is ill .", []),
        ("She took his / her pills and he / she left with him .", [1, 0]),
        ("He / his pills , she or her mother .", [0, 0, 1, 1]),  # one gender: no alternative
        ("here theirs hero sheer HERS", [1]),
        ("he or", [0]),
    ],
)
def test_pronouns_of_a_note(note: str, expected: list[int]) -> None:
    assert pronouns(note) == expected


def test_pronoun_switches_by_hand() -> None:
    notes = ["He is well .\nShe left .\nHe came .", "She ate her lunch .", "He slept .", "No gender ."]
    real = ["He ate .\nHe slept .", "She ate .\nHe slept ."]
    found = measured(notes, real)
    share, rate = found["study.pronoun_switch"], found["study.pronoun_switches"]
    assert (share.value, share.n, share.control) == (0.5, 2, 0.5)  # notes with one pronoun or none are not asked
    assert (rate.value, rate.n, rate.control) == (pytest.approx(2000 / 5), 5, 250)
    assert share.detail["control_n"] == 2
    assert share.better == rate.better == "lower"


def test_chance_of_pronouns_is_that_of_pronouns_dealt_out_anew() -> None:
    rng = np.random.default_rng(5)
    words = np.array(["he", "she"])
    lengths = rng.integers(2, 12, size=4000)
    notes = [" ".join(words[(rng.random(n) < 0.7).astype(int)]) for n in lengths]
    found = measured(notes, ["he he"])
    for name, within in (("study.pronoun_switch", 0.02), ("study.pronoun_switches", 12.0)):
        value, chance = found[name].value, found[name].chance
        assert value is not None
        assert chance is not None
        assert abs(value - chance) < within


@given(st.lists(st.lists(st.sampled_from(["he", "she", "and", "his", "hers", "/"]), max_size=12), max_size=5))
def test_swapping_the_genders_changes_no_switch(rows: list[list[str]]) -> None:
    swap = {"he": "she", "she": "he", "his": "hers", "hers": "his"}
    notes = [" ".join(row) for row in rows]
    swapped = [" ".join(swap.get(t, t) for t in row) for row in rows]
    assert [[1 - g for g in pronouns(n)] for n in notes] == [pronouns(n) for n in swapped]


# Lists


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("", []),
        ("Medications :\n1 . Aspirin .\n2 . Plavix", [["aspirin", "plavix"]]),
        ("1 . Aspirin\n2 . ASPIRIN .", [["aspirin", "aspirin"]]),
        (", PLAN :\n, 1 .\nRest .\nThen walk .\n, 2 .\nSee us .\n,", [["rest", "see us"]]),  # MTSamples
        (", 1 ) Rest .\n, 2 )\nWalk .", [["rest", "walk"]]),
        ("Aspirin is above .\n1 . Only one entry .", []),
        ("1 . A .\n2 . B .\nNext :\n1 . A .\n2 . C .", [["a", "b"], ["a", "c"]]),  # a heading ends a list
        ("1 . A .\n2 . B .\n1 . A .\n2 . C .", [["a", "b"], ["a", "c"]]),  # and so does a new 1
        ("1 . A .\n1 . B .\n1 . A .", [["a", "b", "a"]]),  # but not where every number is 1
        ("1 . Zocor b.i.d. , 2 .\nLasix , 3 .\nZocor b.i.d.", [["zocor b.i.d", "lasix", "zocor b.i.d"]]),
        ("1 . A .\nalert and oriented x 1 , 2 .\nHe slept .\n2 . B .", [["a", "b"]]),  # no entry: a number before it
        (", 1 .\n, 2 .\nRest .\n, 3 .\nWalk .", [["rest", "walk"]]),  # an entry without text
        (", 1 .\nHypertension :\nstable .\n, 2 .\nGout :\nstable .", [["hypertension", "gout"]]),
        ("1 . Gout .\nToday :\nstable .\n2 . Gout .", []),  # a heading between: two lists of one entry
        ("Problems :\ngout\nasthma\ngout\nHe is well .\nfever", [["gout", "asthma", "gout"]]),
        ("Sex :\nF\nService :\nSURGERY", []),  # one line below a heading is no list
        ("gout\nasthma", []),  # and none without a heading is
        ("Problems :\n" + " ".join("abcdefgh") + "\ngout", [["a b c d e f g h", "gout"]]),  # eight tokens are short
        ("Problems :\n" + " ".join("abcdefghi") + "\ngout\ngout", []),
        ("0 . no\n123 . no\n5.5 mg .", []),
    ],
)  # fmt: skip
def test_lists_of_a_note(note: str, expected: list[list[str]]) -> None:
    assert lists(note) == expected


def test_lists_of_notes_as_they_come() -> None:
    mimic = "Medications:\n1. Aspirin 81 mg daily.\n2. Plavix 75 mg daily.\n3. Aspirin 81 mg daily.\n\nPlan:\nrest"
    samples = "PLAN:,1.  Aspirin daily.  Take it with food.,2.  Aspirin daily.,3.  Rest."
    assert lists(medtext(mimic)) == [["aspirin 81 mg daily", "plavix 75 mg daily", "aspirin 81 mg daily"]]
    assert lists(medtext(samples)) == [["aspirin daily", "aspirin daily", "rest"]]


def test_repeated_entries_by_hand() -> None:
    notes = ["1 . a\n2 . b\n3 . A .\n4 . a", "1 . a\n2 . b", "1 . <unk> x\n2 . <unk> x\n3 . c\n4 . c", "none"]
    found = measured(notes, ["1 . a\n2 . b\n3 . c\n4 . c"])["study.repeated_entries"]
    assert (found.value, found.n, found.control) == (3 / 8, 8, 0.25)
    assert (found.unit, found.control_is, found.control_kind) == ("list entries", "real notes", "negative")


@given(st.lists(st.sampled_from(["gout", "asthma", "fever", "cough"]), min_size=2, max_size=20))
def test_a_list_is_read_as_it_was_written(entries: list[str]) -> None:
    note = "\n".join(f"{i} . {entry} ." for i, entry in enumerate(entries, 1))
    assert lists(note) == [entries]
    assert lists(f"Before :\nnone .\n{note}\nAfter :\nnone .") == [entries]


# Sections


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Chief Complaint :", ["chief complaint"]),
        (", PAST MEDICAL HISTORY :", ["past medical history"]),
        ("2 . Allergies :", ["allergies"]),
        ("Assessment / Plan :", ["assessment plan"]),
        ("one two three four five six :", ["one two three four five six"]),
        ("one two three four five six seven :", []),
        ("Chief Complaint : cough", []),
        (":", []),
        ("12 :", []),
        ("<unk> history :", []),
        ("<deidentified> :", []),
        ("Überweisung – Größe :", ["überweisung grösse"]),
    ],
)
def test_headings_of_a_line(line: str, expected: list[str]) -> None:
    assert headings(f"text before .\n{line}\ntext below .") == expected


def test_precedence_by_hand() -> None:
    precedence = Precedence([["a", "b", "c"]] * 5 + [["b", "a"]] * 2 + [["c", "a", "rare"]] * 5)
    assert precedence.score(["a", "b"]) == (1, 1)
    assert precedence.score(["b", "a"]) == (0, 1)
    assert precedence.score(["a", "c"]) == (0, 0)  # five one way and five the other
    assert precedence.score(["c", "b", "a"]) == (0, 2)  # c-b and b-a are against the most
    assert precedence.score(["b", "unheard", "c"]) == (1, 1)
    assert precedence.score([]) == (0, 0)


def test_a_pair_must_stand_in_five_notes_but_ones_own() -> None:
    order = ["a", "b"]
    assert Precedence([order] * (PAIR_NOTES - 1)).score(order) == (0, 0)
    assert Precedence([order] * PAIR_NOTES).score(order) == (1, 1)
    assert Precedence([order] * PAIR_NOTES).score(order, order) == (0, 0)
    assert Precedence([order] * (PAIR_NOTES + 1)).score(order, order) == (1, 1)


ORDERS = st.lists(
    st.permutations(list("abcd")).flatmap(lambda p: st.integers(0, 4).map(lambda n: list(p[:n]))), max_size=14
)


@given(ORDERS, st.permutations(list("abcd")))
@example([["a", "b"]] * 6 + [["b", "a"]] * 5, ["b", "a", "c", "d"])
def test_leave_one_out_is_learning_without_the_note(orders: list[list[str]], order: list[str]) -> None:
    everything, without = Precedence([*orders, order]), Precedence(orders)
    assert everything.score(order, order) == without.score(order)
    mixed = order[::-1]
    assert everything.score(mixed, order) == without.score(mixed)


@given(ORDERS, st.permutations(list("abcd")))
def test_an_order_and_its_reverse_share_the_pairs(orders: list[list[str]], order: list[str]) -> None:
    precedence = Precedence(orders)
    right, known = precedence.score(order)
    assert precedence.score(order[::-1]) == (known - right, known)


def test_section_order_by_hand() -> None:
    real = [of_headings("Chief Complaint", "History", "Plan")] * 6
    notes = [of_headings("History", "Chief Complaint", "Plan", "History"), "no heading here"]
    found = measured(notes, real)
    order, again = found["study.section_order"], found["study.repeated_headings"]
    assert (order.value, order.n, order.control) == (pytest.approx(2 / 3), 3, 1.0)
    assert (order.better, order.detail["notes_scored"], order.detail["control_n"]) == ("higher", 1, 18)
    assert (again.value, again.n, again.control) == (0.5, 2, 0.0)


def test_shuffled_headings_are_right_half_of_the_time() -> None:
    real = [of_headings(*"abcdefgh") for _ in range(300)]
    chance = shuffled_control(real, np.random.default_rng(1))
    assert chance is not None
    assert 0.45 < chance < 0.55
    assert measured(real, real)["study.section_order"].control == 1.0
    assert shuffled_control(["no heading"] * 9, np.random.default_rng(1)) is None
    assert shuffled_control([], np.random.default_rng(1)) is None


# Words


COUNTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12)


@given(COUNTS)
def test_divergence_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array([*pairs, (1, 1)]).T
    value = jensen_shannon(first, second)
    assert value == pytest.approx(distance.jensenshannon(first, second, base=2) ** 2, abs=1e-7)
    assert value == pytest.approx(jensen_shannon(second, first), abs=1e-12)
    assert 0 <= value <= 1


def test_divergence_by_hand() -> None:
    assert jensen_shannon(np.array([2, 0]), np.array([0, 7])) == 1
    assert jensen_shannon(np.array([3, 1]), np.array([6, 2])) == 0
    # (1/2, 1/2) and (1, 0): H(3/4, 1/4) - 1/2
    assert jensen_shannon(np.array([1, 1]), np.array([5, 0])) == pytest.approx(0.8112781 - 0.5)


def test_length_and_type_token_ratio_by_hand() -> None:
    found = measured(["a b c\na .", "", "b"], ["x y x y x y x y", "z"])
    length, types = found["study.note_length"], found["study.type_token_ratio"]
    assert (length.value, length.n, length.control, length.better) == (2.0, 3, 4.5, None)
    assert (length.detail["median"], length.detail["control_median"]) == (1.0, 4.5)
    assert (types.value, types.control, types.n) == (4 / 6, 2 / 6, 6)  # the first six tokens of either side
    assert types.method.startswith("none")


def test_type_token_ratio_reads_no_further_than_ten_thousand() -> None:
    found = measured(["a b"] * 5000 + ["new words"] * 10, ["c"] * 20_000)["study.type_token_ratio"]
    assert (found.value, found.control, found.n) == (2 / 10_000, 1 / 10_000, 10_000)


def test_divergence_of_notes_that_are_like_the_real_and_that_are_not() -> None:
    rng = np.random.default_rng(2)
    words = np.array([f"w{i}" for i in range(200)])
    real, like = ([" ".join(rng.choice(words, 40)) for _ in range(200)] for _ in range(2))
    same, other = measured(like, real), measured(["another tongue altogether"] * 2000, real)
    same_value, control = same["study.unigram_divergence"].value, same["study.unigram_divergence"].control
    assert same_value is not None
    assert same_value == pytest.approx(control, rel=0.2)
    assert other["study.unigram_divergence"].value == pytest.approx(1)
    assert other["study.unigram_divergence"].detail["whole"] == pytest.approx(1)
    assert measured(real, real)["study.unigram_divergence"].detail["whole"] == 0
    few = measured(like[:10], real)["study.unigram_divergence"]  # as few words of the real ones: the control rises too
    assert few.n == 400
    assert few.value == pytest.approx(few.control, rel=0.2)
    assert few.control is not None
    assert control is not None
    assert few.control > 3 * control


# The whole


def test_every_measure_is_there_in_its_order_with_a_source() -> None:
    found = qualities(["He is well ."] * 3, ["She is well ."] * 3, np.random.default_rng(0))
    assert tuple(f.measure for f in found) == MEASURES
    assert all("section 4.2" in f.source for f in found)


@pytest.mark.parametrize("notes", [[], ["", ""]])
def test_nothing_to_count_is_null_with_the_reason(notes: list[str]) -> None:
    found = measured(notes, ["He is well .\nHe left .", "1 . a\n2 . b"])
    for name in set(MEASURES) - {"study.note_length", "study.repeated_headings"}:
        assert found[name].value is None
        assert found[name].detail["why"]
        assert found[name].n == 0
    assert found["study.pronoun_switch"].control == 0
    assert found["study.type_token_ratio"].control == 9 / 13
    assert found["study.note_length"].value == (0 if notes else None)


def test_without_real_notes_there_is_no_control() -> None:
    found = measured(["He is well .\nShe left .\n1 . a\n2 . a"], [])
    assert all(f.control is None for f in found.values())
    assert found["study.pronoun_switch"].value == 1
    assert found["study.repeated_entries"].value == 0.5
    assert found["study.section_order"].value is None
    assert found["study.unigram_divergence"].value is None


def test_no_word_of_a_note_is_in_a_finding() -> None:
    note = "Zebrafinch History :\nHe saw Zebrafinch .\nShe left .\n1 . Zebrafinch\n2 . Zebrafinch"
    text = json.dumps([f.as_dict() for f in qualities([note] * 8, [note] * 8, np.random.default_rng(0))])
    assert "zebrafinch" not in text.casefold()


def test_a_seed_gives_the_same_findings() -> None:
    notes = [of_headings(*names) + f"\nHe and she saw {i} ." for i, names in enumerate(["abc", "bca", "acb"] * 6)]
    assert qualities(notes, notes, np.random.default_rng(3)) == qualities(notes, notes, np.random.default_rng(3))


LINES = st.sampled_from(
    ["He left .", "She saw him .", "Plan :", ", Plan :", "1 . gout", ", 2 .", "2 . gout .", "", ",", ":"]
) | st.text(max_size=12)  # fmt: skip
NOTES = st.lists(st.lists(LINES, max_size=8).map("\n".join), max_size=8)


@settings(max_examples=25)
@given(NOTES, NOTES)
@pytest.mark.slow
def test_any_notes_can_be_measured(notes: list[str], real: list[str]) -> None:
    found = measured(notes, real)
    for finding in found.values():
        assert (finding.value is None) == ("why" in finding.detail)
        if finding.low is not None and finding.value is not None and finding.high is not None:
            assert finding.low <= finding.high
    for name in ("study.pronoun_switch", "study.repeated_entries", "study.section_order", "study.type_token_ratio"):
        assert all(0 <= number <= 1 for number in (found[name].value, found[name].control) if number is not None)


@settings(max_examples=15)
@given(NOTES, st.integers(0, 9))
def test_the_order_of_notes_does_not_matter(notes: list[str], seed: int) -> None:
    shuffled = [notes[i] for i in np.random.default_rng(seed).permutation(len(notes))]
    first, second = measured(notes, notes), measured(shuffled, shuffled)
    for name in MEASURES[:6]:
        assert (first[name].value, first[name].control) == (second[name].value, second[name].control)


# Real notes


@pytest.fixture(scope="module")
def halves(real_data: Callable[[str], Path]) -> tuple[list[str], list[str]]:
    """MTSamples in MedText's form, in two random halves."""
    with gzip.open(real_data("notes/mtsamples.csv.gz"), "rt", encoding="utf-8") as file:
        notes = [medtext(row["transcription"]) for row in csv.DictReader(file)]
    order = np.random.default_rng(0).permutation(len(notes))
    half = len(notes) // 2
    return [notes[i] for i in order[:half]], [notes[i] for i in order[half:]]


@pytest.mark.slow
def test_half_of_mtsamples_is_like_the_other_half(halves: tuple[list[str], list[str]]) -> None:
    found = measured(*halves)
    for finding in found.values():
        assert finding.value is not None
        assert finding.control is not None
        assert finding.n > 500
    order = found["study.section_order"]
    assert order.value is not None
    assert order.value == pytest.approx(order.control, abs=0.03)
    assert order.value > 0.85
    assert order.chance == pytest.approx(0.5, abs=0.03)
    assert found["study.repeated_entries"].value == pytest.approx(0, abs=0.01)
    assert found["study.pronoun_switch"].value == pytest.approx(found["study.pronoun_switch"].control, abs=0.06)


def test_lines_drawn_at_random_are_told_from_notes(halves: tuple[list[str], list[str]]) -> None:
    first, second = halves
    rng = np.random.default_rng(1)
    lines = [line for note in first for line in note.split("\n")]
    mixed = ["\n".join(lines[i] for i in rng.integers(len(lines), size=note.count("\n") + 1)) for note in first]
    found = measured(mixed, second)
    order, switch = found["study.section_order"], found["study.pronoun_switch"]
    assert order.value == pytest.approx(0.5, abs=0.05)
    assert switch.value is not None
    assert switch.control is not None
    assert switch.value > 3 * switch.control
