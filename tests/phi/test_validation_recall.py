"""Places, their allocation, and recall from marks: by hand, and its interval over drawn corpora
with gold.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import Span
from clinveil.corpus import Note
from clinveil.phi import (
    STRATA,
    JudgedStratum,
    NoteView,
    allocation,
    locations,
    open_parts,
    recall,
    usual_forms,
)
from clinveil.phi.validation import sample as sample_module
from clinveil.phi.validation.design import MIN_SAMPLE
from clinveil.phi.validation.sample import Draw, suspected
from clinveil.stats import Interval, ratio_of_intervals, sum_of_intervals, weighted_poisson

TEXT = (
    "Seen by Dr. Smith today with Gorvak Bly. Call 555-0199 on arrival. The patient walks and eats"
    " well, mary said."
)


def of(text, found=(), **more):
    return locations(NoteView(text), list(found), words=more.pop("words", 8), **more)


def shown(text, some):
    return {(text[p.start : p.end], p.stratum) for p in some}


def test_places_by_how_suspicious_they_are():
    made = of(TEXT, [Span(12, 17, "NAME", "rules", 0.9)])
    told = shown(TEXT, made)
    assert {
        ("Smith", "found"),
        ("Gorvak Bly", "name_like"),
        ("555-0199", "digits"),
        ("mary", "name_like"),
    } <= told
    passages = [p for p in made if p.stratum in ("cued", "rest")]
    assert (
        passages[0].stratum == "cued" and "".join(TEXT[p.start : p.end] for p in passages) == TEXT
    )


def test_an_unsure_span_and_a_suspicion_are_strata_of_their_own():
    made = of(
        TEXT, [Span(12, 17, "NAME", "rules", 0.5)], suspected=[Span(29, 35, "NAME", "tagger", 0.2)]
    )
    assert {("Smith", "found_unsure"), ("Gorvak", "tagger")} <= shown(TEXT, made)


def test_what_is_left_of_a_word_found_in_part_is_a_place():
    text = "Dr. Okwuosa-Adeyemi came."
    assert ("-Adeyemi", "name_like") in shown(text, of(text, [Span(4, 11, "NAME")])) or any(
        p.start <= 12 < p.end and p.stratum != "found" for p in of(text, [Span(4, 11, "NAME")])
    )


def test_words_of_many_patients_are_less_suspicious():
    notes = [Note(str(i), f"p{i}", "The Zoglor test.") for i in range(5)] + [
        Note("6", "p6", "Mr Vexmir Zoglor")
    ]
    usual = usual_forms(notes)
    assert usual == {"zoglor"}
    assert ("Zoglor", "unknown") in shown(notes[0].text, of(notes[0].text, usual=usual))
    assert ("Zoglor", "unknown_rare") in shown(notes[0].text, of(notes[0].text))


@given(
    st.text(st.sampled_from("aB 1.\nJohn é-/"), max_size=80),
    st.lists(st.tuples(st.integers(0, 79), st.integers(1, 9)), max_size=3),
)
def test_every_letter_and_digit_lies_in_exactly_one_place(text, ranges):
    found = []
    at = 0
    for start, length in sorted(ranges):
        if start >= at and start + length <= len(text):
            found.append(Span(start, start + length, "NAME"))
            at = start + length
    made = of(text, found, words=3)
    covered = np.zeros(len(text), dtype=int)
    for place in made:
        for a, b in open_parts(text, place, made):
            covered[a:b] += 1
    assert all(covered[i] == 1 for i, c in enumerate(text) if c.isalnum())
    assert covered.max(initial=0) <= 1


def test_allocation_takes_all_of_few_and_so_many_in_all():
    sizes = {"found": 9000, "name_like": 5, "unknown_rare": 3000, "rest": 24_000}
    taken = allocation(sizes, 200)
    assert sum(taken.values()) == 200 and taken["name_like"] == 5
    assert all(taken[name] >= min(size, MIN_SAMPLE) for name, size in sizes.items())
    assert taken["rest"] > taken["found"]
    assert allocation({"found": 3, "rest": 4}, 200) == {"found": 3, "rest": 4}
    assert allocation({"found": 3, "rest": 4, "cued": 0}, 200).get("cued", 0) == 0


def test_recall_by_hand():
    seen = [
        JudgedStratum(True, 100, 10, (1,) * 10),
        JudgedStratum(False, 50, 50, (1,) * 5),
        JudgedStratum(False, 1000, 100, (2,)),
    ]
    found = recall(seen)
    assert found.detected == 100 and found.missed == 5 + 20
    assert found.value == pytest.approx(100 / 125) and found.low < 0.8 < found.high
    complete = recall([JudgedStratum(True, 10, 10, (1,) * 9), JudgedStratum(False, 20, 20, (1, 1))])
    assert complete == pytest.approx((9 / 11, 9 / 11, 9 / 11, 9, 2))
    assert recall([JudgedStratum(True, 10, 10), JudgedStratum(False, 20, 20)]) is None
    with pytest.raises(ValueError):
        recall([JudgedStratum(True, 10, 0)])


def test_a_stratum_without_a_hit_is_part_of_the_interval():
    none = recall([JudgedStratum(True, 1000, 20, (1,) * 20), JudgedStratum(False, 10_000, 100)])
    fewer = recall([JudgedStratum(True, 1000, 20, (1,) * 20), JudgedStratum(False, 10_000, 50)])
    assert none.value == 1.0 and none.low < 0.75 and fewer.low < none.low


def test_intervals_of_sums_and_ratios():
    assert sum_of_intervals([1.0, 2.0], [(0.0, 4.0), (2.0, 6.0)]) == pytest.approx((2.0, 8.0))
    low, high = ratio_of_intervals(1.0, Interval(0.5, 2.0), 2.0, Interval(2.0, 2.0))
    assert (low, high) == pytest.approx((0.25, 1.0))
    assert ratio_of_intervals(0.0, Interval(0.0, 1.0), 2.0, Interval(2.0, 2.0)) == pytest.approx(
        (0.0, 0.5)
    )
    assert ratio_of_intervals(1.0, Interval(0.5, 2.0), 2.0, Interval(0.0, 3.0)).high == float("inf")
    assert weighted_poisson([], most=10.0).high == pytest.approx(10 * weighted_poisson([]).high)


def draws(sizes, rates, n_locations, seed, rounds):
    """Recall's interval over rounds of drawing from one corpus of places; how often it holds the
    truth.
    """
    rng = np.random.default_rng(seed)
    truth = {name: rng.random(size) < rates[name] for name, size in sizes.items()}
    found = sum(hits.sum() for name, hits in truth.items() if STRATA[name].detected)
    value = found / sum(hits.sum() for hits in truth.values())
    taken = allocation(sizes, n_locations)
    held = 0
    width = []
    for _ in range(rounds):
        some = {name: rng.choice(hits, taken[name], replace=False) for name, hits in truth.items()}
        seen = [
            JudgedStratum(STRATA[n].detected, sizes[n], taken[n], (1,) * int(hits.sum()))
            for n, hits in some.items()
        ]
        one = recall(seen)
        held += one.low <= value <= one.high
        width.append(one.high - one.low)
    return held / rounds, float(np.mean(width))


SIZES = {
    "found": 4000,
    "found_unsure": 600,
    "name_like": 300,
    "unknown_rare": 1500,
    "digits": 900,
    "rest": 9000,
}
RATES = {
    "found": 0.97,
    "found_unsure": 0.8,
    "name_like": 0.3,
    "unknown_rare": 0.05,
    "digits": 0.02,
    "rest": 0.001,
}


def test_the_interval_holds_the_truth_and_narrows_with_more_places():
    held, width = draws(SIZES, RATES, 200, 1, 300)
    assert held >= 0.93
    assert draws(SIZES, RATES, 800, 1, 100)[1] < 0.7 * width


@pytest.mark.slow
@pytest.mark.parametrize("leave", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("n_locations", [100, 200, 400])
def test_coverage_over_many_corpora(leave, n_locations):
    rates = {n: min(r * (1 if STRATA[n].detected else leave), 1.0) for n, r in RATES.items()}
    held = np.mean([draws(SIZES, rates, n_locations, seed, 5)[0] for seed in range(200)])
    assert held >= 0.93


def test_a_detector_that_suspects_is_asked(monkeypatch):
    class Unsure:
        name = "unsure"
        labels = frozenset({"NAME"})
        examples = ()

        def find(self, note):
            return []

        def suspect(self, note):
            return [note.span(4, 9, "NAME", "unsure", 0.1)]

    note = Note("1", "1", "The gloom is deep.")
    assert suspected(note) == []
    monkeypatch.setattr(sample_module, "DETECTORS", (Unsure(),))
    draw = Draw(40, 8, frozenset(), np.random.default_rng(1))
    assert ("gloom", "tagger") in shown(note.text, draw.add(note, [], suspected(note)))


def test_drawn_places_are_a_random_sample_whatever_the_order():
    notes = [
        Note(str(i), str(i), f"Zimmel{chr(97 + i % 26)}{chr(97 + i // 26)} walks.")
        for i in range(300)
    ]
    counts = np.zeros(300)
    for seed in range(40):
        draw = Draw(40, 8, frozenset(), np.random.default_rng(seed))
        for note in notes if seed % 2 else notes[::-1]:
            draw.add(note, [])
        counts[[int(s.note_id) for s in draw.drawn() if s.stratum != "rest"]] += 1
    assert draw.sizes.total() >= 600
    first = counts[:150].sum()
    last = counts[150:].sum()
    assert abs(first - last) < 4 * np.sqrt(first + last)
