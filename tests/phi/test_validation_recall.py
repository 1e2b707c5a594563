"""Places, their allocation, and recall from marks: by hand, and its interval over drawn corpora
with gold.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

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
    Planted,
    allocation,
    locations,
    minutes_of_marks,
    open_parts,
    recall,
    usual_forms,
    what_marks_prove,
    without_marks,
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


def strata_of(text, found=(), **more):
    """The stratum of each passage, by its undetected text."""
    made = of(text, found, **more)
    return {
        "".join(text[a:b] for a, b in open_parts(text, place, made)).strip(): place.stratum
        for place in made
        if not place.detected
    }


def test_a_passage_has_the_stratum_of_its_most_suspicious_word():
    assert strata_of(TEXT, [Span(12, 17, "NAME", "rules", 0.9)]) == {
        "Seen by Dr.  today with Gorvak Bly.": "name_like",
        "Call 555-0199 on arrival. The patient walks and eats well, mary said.": "name_like",
    }
    assert strata_of("Call 555-0199 on arrival.") == {"Call 555-0199 on arrival.": "digits"}
    assert strata_of("It was seen by the nurse.") == {"It was seen by the nurse.": "cued"}
    assert strata_of("The pain is worse now.") == {"The pain is worse now.": "rest"}
    found = [p for p in of(TEXT, [Span(12, 17, "NAME", "rules", 0.9)]) if p.detected]
    assert [(TEXT[p.start : p.end], p.stratum) for p in found] == [("Smith", "found")]


def test_an_unsure_span_and_a_suspicion_are_strata_of_their_own():
    span = Span(12, 17, "NAME", "rules", 0.5)
    suspicion = Span(29, 35, "NAME", "tagger", 0.2)
    made = of(TEXT, [span], suspected=[suspicion])
    assert [p.stratum for p in made if p.detected] == ["found_unsure"]
    assert "suspected" in strata_of(TEXT, [span], suspected=[suspicion]).values()
    # what is detected is not suspected again
    again = Span(12, 17, "NAME", "tagger", 0.2)
    assert "suspected" not in strata_of(TEXT, [span], suspected=[again]).values()


def test_what_is_left_of_a_word_found_in_part_is_in_a_passage():
    text = "Dr. Okwuosa-Adeyemi came."
    (left,) = strata_of(text, [Span(4, 11, "NAME")])
    assert left == "Dr. -Adeyemi came."


def test_words_of_many_patients_are_less_suspicious():
    notes = [Note(str(i), f"p{i}", "The Zoglor test.") for i in range(5)] + [
        Note("6", "p6", "Mr Vexmir Zoglor")
    ]
    usual = usual_forms(notes)
    assert usual == {"zoglor"}
    assert strata_of(notes[0].text, usual=usual) == {"The Zoglor test.": "rest"}
    assert strata_of(notes[0].text) == {"The Zoglor test.": "rare"}


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
    sizes = {"found": 9000, "suspected": 5, "rare": 3000, "rest": 24_000}
    taken = allocation(sizes, 200)
    assert sum(taken.values()) == 200 and taken["suspected"] == 5
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
    assert complete == pytest.approx((9 / 11, 9 / 11, 9 / 11, 9, 2, 2))
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


def test_a_reviewer_who_misses_planted_identifiers_lowers_recall():
    seen = [JudgedStratum(True, 1000, 40, (1,) * 40), JudgedStratum(False, 1000, 100, (1, 1))]
    careful = recall(seen, Planted(20, 20))
    careless = recall(seen, Planted(10, 20))
    assert careful.missed == 20 and careless.missed == 40
    assert careless.low < careful.low < recall(seen).low
    assert careless.high == pytest.approx(careful.high)
    assert recall(seen, Planted(0, 20)) is None


def test_few_passages_that_are_nearly_all_judged_leave_little_open():
    """Without replacement: half of the passages show nothing, so few of the other half can."""
    found = JudgedStratum(True, 1000, 100, (1,) * 100)
    half = recall([found, JudgedStratum(False, 200, 100)])
    assert half.most_missed == pytest.approx(1.25 * 3.689 / np.log(2), rel=0.01)
    assert recall([found, JudgedStratum(False, 200, 200)]).most_missed == 0


class Corpus(NamedTuple):
    """Locations of a corpus by stratum, and the missed identifiers per passage with any."""

    sizes: dict[str, int]
    rates: dict[str, float]
    clump: float = 1.0


DENSE = Corpus(
    {
        "found": 4000,
        "found_unsure": 600,
        "suspected": 60,
        "name_like": 300,
        "rare": 200,
        "digits": 250,
        "cued": 400,
        "rest": 900,
    },
    {
        "found": 0.97,
        "found_unsure": 0.8,
        "suspected": 0.2,
        "name_like": 0.06,
        "rare": 0.03,
        "digits": 0.02,
        "cued": 0.01,
        "rest": 0.005,
    },
)
# 2.5 identifiers per 1,000 words, like notes from which most were removed
SPARSE = DENSE._replace(sizes=DENSE.sizes | {"found": 450, "found_unsure": 110})
CORPORA = {
    "dense": DENSE,
    "sparse": SPARSE,
    "misses in the rest only": SPARSE._replace(
        rates=dict.fromkeys(DENSE.sizes, 0.0) | {"found": 0.97, "found_unsure": 0.8, "rest": 0.02}
    ),
    "few misses": SPARSE._replace(
        rates={
            name: rate * (1 if STRATA[name].detected else 0.2) for name, rate in DENSE.rates.items()
        }
    ),
    "misses next to each other": SPARSE._replace(clump=1.5),
}


@cache
def _allocation(sizes, n_marks):
    return allocation(dict(sizes), n_marks)


def draws(corpus, n_marks, seed, rounds, finds=1.0):
    """How often the interval holds the recall of a corpus, and its mean lower end.

    Args:
        finds: share of the identifiers in passages that the reviewer marks, planted ones too.
    """
    rng = np.random.default_rng(seed)
    hits = {
        name: (rng.random(size) < corpus.rates[name]).astype(int)
        for name, size in corpus.sizes.items()
    }
    for name, values in hits.items():
        if not STRATA[name].detected:
            values *= rng.geometric(1 / corpus.clump, len(values))
    found = sum(values.sum() for name, values in hits.items() if STRATA[name].detected)
    truth = found / sum(values.sum() for values in hits.values())
    taken = _allocation(tuple(corpus.sizes.items()), n_marks)
    held = 0
    low = []
    for _ in range(rounds):
        seen = []
        for name, size in corpus.sizes.items():
            detected = STRATA[name].detected
            some = rng.choice(hits[name], taken[name], replace=False)
            marked = rng.binomial(some, 1.0 if detected else finds)
            seen.append(JudgedStratum(detected, size, taken[name], tuple(n for n in marked if n)))
        estimate = recall(seen, Planted(int(rng.binomial(20, finds)), 20))
        held += estimate.low <= truth <= estimate.high
        low.append(estimate.low)
    return held / rounds, float(np.mean(low))


@pytest.mark.parametrize("finds", [1.0, 0.7])
@pytest.mark.parametrize("name", CORPORA)
def test_the_interval_holds_the_recall_of_many_corpora(name, finds):
    """Also for misses where nobody suspects them, and for a careless reviewer."""
    held = [draws(CORPORA[name], 200, seed, 5, finds)[0] for seed in range(60)]
    assert np.mean(held) >= 0.95


def test_a_reviewer_who_is_not_measured_proves_too_much():
    """The planted identifiers are needed: without them the interval misses the truth."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        hits = rng.random(1000) < 0.3
        some = rng.choice(hits, 100, replace=False)
        marked = (1,) * int(rng.binomial(some.sum(), 0.5))
        found = JudgedStratum(True, 2000, 100, (1,) * 100)
        estimate = recall([found, JudgedStratum(False, 1000, 100, marked)])
        held += estimate.low <= 2000 / (2000 + hits.sum())
    assert held < 100


def test_more_marks_prove_more():
    assert draws(DENSE, 800, 1, 50)[1] > draws(DENSE, 200, 1, 50)[1] + 0.005


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("n_marks", [100, 200, 400])
def test_coverage_over_many_more_corpora(name, n_marks):
    held = np.mean([draws(CORPORA[name], n_marks, seed, 5)[0] for seed in range(400)])
    assert held >= 0.95


def test_what_marks_prove_grows_with_marks_and_density_and_is_what_a_perfect_sample_proves():
    proven = [what_marks_prove(n, 200_000, 10) for n in (50, 100, 200, 400)]
    assert proven == sorted(proven) and proven[0] < proven[-1] < 1
    by_density = [what_marks_prove(200, 200_000, density) for density in (1, 5, 20, 80)]
    assert by_density == sorted(by_density)
    assert what_marks_prove(200, 200_000, 0) == 0
    assert what_marks_prove(200, 5_000, 20) == 1  # every word is read
    sizes = SPARSE.sizes
    taken = allocation(sizes, 200)
    seen = [
        JudgedStratum(
            STRATA[name].detected, sizes[name], n, (1,) * n if STRATA[name].detected else ()
        )
        for name, n in taken.items()
    ]
    words = 100 * sum(n for name, n in sizes.items() if not STRATA[name].detected)
    assert recall(seen).low == pytest.approx(what_marks_prove(200, words, 560e3 / words), abs=0.01)
    with pytest.raises(ValueError, match="at least 1"):
        what_marks_prove(0, 1, 1)


def test_the_cost_of_marks_is_that_of_reading():
    assert 60 <= minutes_of_marks(200, 200_000, 10) <= 120
    assert minutes_of_marks(200, 1_000, 10) == 5
    text = without_marks(200_000, 4_000)
    proven = what_marks_prove(200, 200_000, 20)
    assert f"at most .{int(proven * 1000)}" in text and "200 marks" in text and "minutes" in text
    assert "no identifier was detected" in without_marks(200_000, 0)


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
    (passage,) = draw.add(note, [], suspected(note))
    assert passage.stratum == "suspected"


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
        counts[[int(s.note_id) for s in draw.drawn()]] += 1
    assert draw.sizes == {"rare": 300}
    first = counts[:150].sum()
    last = counts[150:].sum()
    assert abs(first - last) < 4 * np.sqrt(first + last)
