"""Canaries: planted as often as said, ranked by hand, at chance for a model that never saw them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clinveil.attacks.models.canaries import (
    Canary,
    Family,
    canary_findings,
    expected_exposure,
    exposures,
    extracted,
    invent,
    planted,
)
from clinveil.core import InputError
from clinveil.corpus import TEXT, memory_corpus

COMMON = ["pain", "fever", "cough", "right", "left", "normal", "patient", "denies"]


def phrase_family(words, length=5):
    return Family("phrase", "reference phrase", (tuple(words),) * length)


def number_family():
    return Family("number", "record number", (tuple("0123456789"),) * 7)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def texts_of(corpus):
    return [text for batch in corpus.batches() for text in batch[TEXT].to_pylist()]


@pytest.mark.parametrize("alternatives", [(), (("a",),), (("a", "a"),), (("a", "b"), ())])
def test_a_family_without_choice_is_refused(alternatives):
    with pytest.raises(InputError, match="no alternatives to choose from"):
        Family("x", "b", alternatives)


def test_canaries_are_invented_for_each_number_of_repeats_and_for_none(rng):
    found = invent(
        [phrase_family(COMMON), number_family()], rng, repeats=(1, 4), each=3, unplanted=5
    )
    assert [c.repeats for c in found] == 2 * ([0] * 5 + [1] * 3 + [4] * 3)
    control = invent([number_family()], rng, repeats=(1,), each=3)
    assert (
        sum(c.repeats == 0 for c in control) == 200
    )  # enough to be a control, however few are planted
    assert "secret" not in repr(found[0])
    assert found[0].secret not in repr(found[0])


def test_planted_as_often_as_said_in_one_patients_notes(rng):
    notes = memory_corpus([(f"n{i}", f"p{i // 2}", f"note {i}") for i in range(10)])
    family = phrase_family(COMMON)
    canaries = [
        Canary(family, secret, n) for secret, n in zip(family.draw(3, rng), (0, 1, 5), strict=True)
    ]
    corpus = planted(notes, canaries, rng)
    texts = texts_of(corpus)
    for canary in canaries:
        holders = [i for i, text in enumerate(texts) if canary.text in text]
        assert sum(text.count(canary.text) for text in texts) == canary.repeats
        assert len({i // 2 for i in holders}) <= 1
    assert texts_of(corpus) == texts
    assert [text.split("\n")[0] for text in texts] == [f"note {i}" for i in range(10)]


def test_null_texts_stay_null_and_no_notes_are_refused(rng):
    notes = memory_corpus([("a", "p", None), ("b", "q", "text")])
    canary = Canary(number_family(), "1 2 3 4 5 6 7", 2)
    assert texts_of(planted(notes, [canary], rng)) == [
        None,
        "text\nrecord number 1 2 3 4 5 6 7\nrecord number 1 2 3 4 5 6 7",
    ]
    with pytest.raises(InputError, match="no note"):
        planted(memory_corpus([("a", "p", None)]), [canary], rng)


def test_exposure_by_hand(rng):
    """Of 1,000 fresh draws none scores more than the first canary, and all more than the second."""
    family = number_family()
    best = Canary(family, "1 1 1 1 1 1 1", 1)
    worst = Canary(family, "2 2 2 2 2 2 2", 1)
    special = {best.text: 10.0, worst.text: -10.0}
    bits = exposures(
        [best, worst], lambda texts: np.array([special.get(text, 0.0) for text in texts]), rng
    )
    assert bits[0] == pytest.approx(math.log2(1001))
    assert bits[1] == pytest.approx(0.0)


def test_equals_are_ranked_at_random(rng):
    """All secrets equally likely: the rank is uniform, the mean exposure what `expected_exposure`
    says.
    """
    canaries = invent([number_family()], rng, repeats=(1,), each=3, unplanted=4_000)
    bits = exposures(canaries, lambda texts: np.zeros(len(texts)), rng, references=50)
    ranks = np.round(51 / 2**bits).astype(int)
    assert ranks.min() == 1 and ranks.max() == 51
    assert np.bincount(ranks)[1:].min() > 40
    assert bits.mean() == pytest.approx(expected_exposure(50), abs=0.1)


@pytest.mark.parametrize("references", [1, 2, 10, 1_000])
def test_expected_exposure_is_the_mean_over_all_ranks(references):
    ranks = range(1, references + 2)
    assert expected_exposure(references) == pytest.approx(
        sum(math.log2((references + 1) / r) for r in ranks) / (references + 1)
    )
    assert expected_exposure(references) < 1 / math.log(2)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_p_of_an_exposure_is_level_where_nothing_is_remembered(n, rng):
    bits = np.log2(1_001) - np.log2(rng.integers(1, 1_002, size=(4_000, n)))
    p = np.array([by_exposure(row).p for row in bits[:1_000]])
    assert 0.02 < (p <= 0.05).mean() <= 0.07
    assert by_exposure([math.log2(1_001)] * n).p <= 1e-3 * 1.01**n


def test_a_model_that_knows_nothing_leaves_chance(rng):
    canaries = invent([phrase_family(COMMON * 1, 5), number_family()], rng, repeats=(1,), each=200)
    bits = exposures(canaries, lambda texts: rng.normal(size=len(texts)), rng)
    assert bits.mean() == pytest.approx(expected_exposure(), abs=0.2)
    found = canary_findings(canaries, bits, np.zeros(len(canaries), dtype=bool))
    exposure = [f for f in found if f.measure == "attack.canary_exposure"]
    assert [f.labels[-1] for f in exposure] == ["phrase", "number"]
    assert all(abs(f.value - f.chance) < 0.4 for f in exposure)


def test_a_model_that_remembers_by_repeats_shows_it(rng):
    canaries = invent([number_family()], rng, repeats=(1, 16), each=6)
    seen = {c.text: 0.5 * c.repeats for c in canaries}
    bits = exposures(
        canaries,
        lambda texts: np.array([seen.get(t, 0.0) for t in texts]) + rng.normal(0, 1, len(texts)),
        rng,
    )
    one, sixteen = (
        f
        for f in canary_findings(canaries, bits, bits > 9)
        if f.measure == "attack.canary_exposure"
    )
    assert sixteen.value > 9 > one.value
    assert sixteen.numbers["most"] > sixteen.control
    assert (one.numbers["repeats"], sixteen.numbers["repeats"]) == (1, 16)


def by_exposure(bits, repeats=1, **how):
    canaries = [Canary(number_family(), str(i), repeats) for i in range(len(bits))]
    found = canary_findings(canaries, np.array(bits), np.zeros(len(bits), bool), **how)
    return found[0]


def test_an_exposure_at_its_ceiling_is_marked():
    most = math.log2(1_001)
    whole = by_exposure([most] * 5)
    part = by_exposure([most, 3.0, 4.0])
    below = by_exposure([9.0, 3.0])
    assert [f.numbers["at_ceiling"] for f in (whole, part, below)] == [5, 1, 0]
    assert all(f.numbers["ceiling"] == pytest.approx(most) for f in (whole, part, below))
    assert "maximum for 1,000 fresh draws" in whole.warning == part.warning
    assert not below.warning
    assert (whole.low, whole.high) == (None, None) and "no upper end" in whole.why
    assert whole.method == ""
    assert 0 <= part.low < part.value < part.high <= most and below.low < below.high
    assert by_exposure([math.log2(101)], references=100).numbers["at_ceiling"] == 1


def test_one_canary_has_no_interval():
    alone = by_exposure([4.0])
    assert (alone.value, alone.low, alone.high, alone.numbers["at_ceiling"]) == (4.0, None, None, 0)
    assert "identical exposures" in alone.why


def test_extraction_needs_the_whole_secret_in_order():
    family = number_family()
    canaries = [
        Canary(family, secret, 1) for secret in ("1 2 3 4 5 6 7", "7 6 5 4 3 2 1", "0 0 0 0 0 0 1")
    ]
    released = memory_corpus(
        [
            ("a", "a", "record number 1 2 3 4 5 6 7 seen"),
            ("b", "b", "7 6 5 4 3 2"),
            ("c", "c", "0000001"),
        ]
    )
    assert extracted(canaries, released).tolist() == [True, False, True]


def test_extraction_of_phrases_is_by_lookup_form():
    family = phrase_family(COMMON, 3)
    canaries = [Canary(family, "pain fever cough", 1), Canary(family, "left left left", 0)]
    released = memory_corpus(
        [("a", "a", "Pain, FEVER cough."), ("b", "b", "left left"), ("c", "c", None)]
    )
    taken = extracted(canaries, released)
    assert taken.tolist() == [True, False]
    found = canary_findings(canaries, np.array([3.0, 1.0]), taken)
    assert [f.measure for f in found] == ["attack.canary_exposure", "attack.canary_extraction"]
    assert (found[1].value, found[1].control) == (1.0, 0.0)


def test_scores_that_are_no_numbers_are_refused(rng):
    canary = Canary(number_family(), "1 2 3 4 5 6 7", 1)
    with pytest.raises(InputError, match="zero probability"):
        exposures([canary], lambda texts: np.full(len(texts), -np.inf), rng)
