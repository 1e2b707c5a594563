"""Canaries, known patients' survival and capture-recapture: detectors that are known to find and to miss."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from clinveil.core.errors import InputError, UsageError
from clinveil.core.spans import Span
from clinveil.corpus.corpus import Note
from clinveil.corpus.people import Patient
from clinveil.lexicons.ambiguity import lexical_classes
from clinveil.lexicons.names import held_out
from clinveil.phi.detection.finder import Finder
from clinveil.phi.settings import PhiSettings
from clinveil.phi.validation.canaries import canary_survival, planted, planted_for_roles, survived
from clinveil.phi.validation.invented import SHAPES, UNLISTED, invented, invented_name, name_pools
from clinveil.phi.validation.recapture import BOTH, FIRST, SECOND, Captures, compared, missed, recapture_findings, side
from clinveil.phi.validation.recapture import strata as by_label
from clinveil.phi.validation.survival import Survival


@dataclass(frozen=True)
class Pattern:
    """A detector that finds what a pattern says."""

    pattern: str
    label: str = "NAME"
    name: str = "pattern"
    examples: tuple[str, ...] = ()

    @property
    def labels(self):
        return frozenset({self.label})

    def find(self, note):
        for match in re.finditer(self.pattern, note.text):
            yield note.span(*match.span(), self.label, self.name)


RNG = np.random.default_rng
TITLED, ANY = Pattern(r"(?<=Dr\. )\w+"), Pattern(r"(?<=Dr\. )\w+|(?<=Nurse )\w+")


def test_invented_names_are_of_their_kind():
    rng = RNG(1)
    assert len(name_pools()) >= 12
    for kind in name_pools():
        for family in (False, True):
            name = invented_name(kind, family=family, rng=rng)
            assert name[0].isupper()
            assert not lexical_classes(name) if kind == UNLISTED else held_out(name)
    assert all(lexical_classes(n) & 4 for n in name_pools()["that are words"][1][:50])


def test_invented_identifiers_keep_the_form_where_they_say_so():
    rng = RNG(1)
    for label in SHAPES:
        for _ in range(20):
            made, form = invented(label, "AB-12-345", rng)
            assert made and "{" not in made
            if form == "same form":
                assert re.fullmatch(r"[A-Z]{2}-\d\d-\d{3}", made)
    assert int(invented("AGE", "94", rng)[0]) >= 90


def test_a_planted_note_differs_in_its_identifiers_only():
    text = "Dr. SMITH saw Mary Smith's son on 3/4/2019."
    spans = [Span(4, 9, "NAME"), Span(14, 24, "NAME"), Span(34, 42, "DATE"), Span(42, 43, "CITY")]
    made, canaries = planted(text, spans, "usual", RNG(2))
    assert re.fullmatch(r"Dr\. [A-Z]+ saw [A-Z]\w+ [A-Z]\w+'s son on .*\.", made)
    names = [made[c.start : c.end] for c in canaries if c.label == "NAME"]
    assert names[0] == names[2].upper() and "Smith" not in made and "Mary" not in made
    assert [c.kind for c in canaries] == ["usual"] * 3 + ["another form"]


def test_roles_become_names_and_days_dates():
    made, canaries = planted_for_roles("The patient reports pain since yesterday; her daughter, too.", "rare", RNG(3))
    assert re.fullmatch(r"[A-Z]\w+ [A-Z]\w+ reports pain since on .*; her daughter [A-Z]\w+ [A-Z]\w+, too\.", made)
    shown = [made[c.start : c.end] for c in canaries]
    assert len(shown) == 3 and all(text == text.strip() and "on " not in text for text in shown)


def test_a_canary_survives_unless_every_letter_is_found():
    text = "Dr. O'Neil-Bly"
    from clinveil.phi.validation.canaries import Canary

    canary = Canary(4, 14, "NAME", "rare", "found")
    assert survived(text, canary, []) and survived(text, canary, [Span(4, 10, "NAME")])
    assert not survived(text, canary, [Span(4, 6, "NAME"), Span(6, 10, "NAME"), Span(11, 14, "NAME")])


@pytest.mark.parametrize(("pattern", "left"), [(r"(?<=Dr\. )\w+", 0.0), (r"(?<=Dr\. )(?:Ann|Smith)\b", 1.0)])
def test_survival_by_what_the_engine_leans_on(pattern, left):
    notes = [Note(str(i), f"p{i // 2}", "Dr. Smith and Dr. Ann came.") for i in range(60)]
    found = canary_survival(notes, Finder([Pattern(pattern)]), RNG(1))
    whole = next(f for f in found if f.detail["series"] == "all")
    assert whole.value == pytest.approx(left, abs=0.04) and whole.n == 120 and whole.detail["patients"] == 30
    assert whole.low <= whole.value <= whole.high and whole.better == "lower"
    assert sum(f.n for f in found if f.detail["series"] != "all") == 120
    assert all("detects nothing" in f.detail["warning"] for f in found)


PATIENTS = {"p1": Patient("p1", ("Mary", "Zoglor")), "p2": Patient("p2", ("Anton", "Vexmir"))}


def test_known_patients_survival():
    survival = Survival(PATIENTS, RNG(1))
    survival.add(Note("1", "p1", "Mary ZOGLOR came with Anton."), [Span(0, 4, "NAME")])
    survival.add(Note("2", "p2", "Vexmir left."), [Span(0, 6, "NAME")])
    survival.add(Note("3", "p9", "Mary"), [])
    patients, mentions = survival.findings("without the feed")
    assert (patients.value, patients.n, patients.count) == (0.5, 2, 1) and patients.chance == 0.5
    assert (mentions.value, mentions.n) == (1 / 3, 3)
    assert patients.detail["setting"] == "without the feed"


def test_a_feed_of_other_patients_is_refused():
    survival = Survival(PATIENTS, RNG(1))
    survival.add(Note("3", "p9", "Mary"), [])
    with pytest.raises(InputError, match="none of its 2 patients"):
        survival.findings("with the feed")


def test_notes_that_name_nobody_measure_nothing():
    survival = Survival(PATIENTS, RNG(1))
    survival.add(Note("3", "p1", "The patient slept."), [])
    (only,) = survival.findings("with the feed")
    assert only.value is None and "own name" in only.detail["why"]


def test_who_found_what():
    text = "Ann Lee and Bob and Cy"
    first, second = [Span(0, 3, "NAME"), Span(12, 15, "NAME")], [Span(0, 7, "NAME"), Span(20, 22, "NAME")]
    assert list(compared(text, first, second)) == [("NAME", BOTH), ("NAME", FIRST), ("NAME", SECOND)]


def test_chapman_by_hand_and_dependence():
    one = missed([[[60, 12, 10]]])
    assert one.value == pytest.approx(12 * 10 / 61) and one.detected == 82  # Chapman's N is 84 - 1 + ...
    assert pytest.approx(one.value) == (60 + 12 + 1) * (60 + 10 + 1) / (60 + 1) - 1 - 82
    five = missed([[[60, 12, 10]]], 5.0)
    assert five.value == pytest.approx(5 * one.value) and five.high > one.high
    assert missed([[[60, 0, 0]]]).value == 0 < missed([[[60, 9, 0]]]).high


def captures(notes, first=TITLED, second=ANY):
    made = Captures((first,), (second,))
    for note in notes:
        made.add(note)
    return made


def test_two_detectors_over_notes():
    notes = [Note(str(i), str(i), "Dr. Smith and Nurse Bly") for i in range(20)]
    found = recapture_findings(captures(notes), ("a", "b"), (1.0, 5.0))
    assert [f.detail["setting"] for f in found] == ["odds ratio 1", "odds ratio 5"]
    assert found[0].detail["both"] == 20 and found[0].detail["second_only"] == 20 and found[0].value == 0
    assert "lower bound" in found[0].detail["warning"] and "warning" not in found[1].detail
    (none,) = recapture_findings(captures([Note("1", "1", "Nurse Bly")]), ("a", "b"), (1.0,))
    assert none.value is None


def test_sides_are_named():
    assert {one.name for one in side("names+dates")} == {"names", "dates"}
    assert not {"known", "tagger"} & {one.name for one in side("rules")}
    with pytest.raises(UsageError, match="unknown detector nomes"):
        side("nomes")


def test_sides_follow_the_settings():
    there = Finder.of(PhiSettings(no_tagger=True)).detectors
    also = SimpleNamespace(name="presidio")
    assert "presidio" in {one.name for one in side("rules", [*there, also])}
    assert side("presidio", [*there, also]) == (also,)
    with pytest.raises(UsageError, match="unknown detector tagger"):
        side("names+tagger", there)


def simulated(rng, chances, odds=1.0, patients=60, mean=8):
    """Counts by stratum and patient, and how many were missed; with an odds ratio by a share of hard identifiers."""
    table, left = np.zeros((len(chances), patients, 3), dtype=int), 0
    for s, (p, q) in enumerate(chances):
        sizes = rng.poisson(mean, patients)
        for i, n in enumerate(sizes):
            hard = rng.random(n) < (0.1 if odds > 1 else 0.0)
            a, b = (rng.random(n) < np.where(hard, r / 3, r) for r in (p, q))
            table[s, i] = [(a & b).sum(), (a & ~b).sum(), (~a & b).sum()]
            left += int((~a & ~b).sum())
    return table, left


def coverage(chances, rounds, odds=1.0):
    rng = RNG(5)
    cases = [simulated(rng, chances, odds) for _ in range(rounds)]
    ends = [(missed(table), left) for table, left in cases]
    return np.mean([m.low <= left <= m.high for m, left in ends]), np.mean([m.value - left for m, left in ends])


def test_independent_detectors_are_covered():
    held, bias = coverage([(0.9, 0.8), (0.7, 0.8)], 100)
    assert held >= 0.92 and abs(bias) < 6


def test_dependent_detectors_make_it_a_lower_bound():
    held, bias = coverage([(0.9, 0.8)], 60, odds=5.0)
    assert bias < -5 and held < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("chances", [[(0.9, 0.8), (0.7, 0.8)], [(0.97, 0.9)], [(0.99, 0.95), (0.8, 0.5)], [(0.6, 0.6)]])
def test_coverage_of_independent_detectors_over_many_corpora(chances):
    assert coverage(chances, 400)[0] >= 0.93


def test_labels_with_few_identifiers_are_one_stratum():
    counts = {"NAME": {"a": [30, 1, 0]}, "DATE": {"a": [2, 0, 0]}, "AGE": {"b": [1, 0, 1]}}
    assert by_label(counts) == [[[30, 1, 0], [0, 0, 0]], [[2, 0, 0], [1, 0, 1]]]
