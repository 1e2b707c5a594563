"""Canaries and known patients' survival: detectors that are known to find and to miss."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from clinveil.core.errors import InputError
from clinveil.core.spans import Span
from clinveil.corpus.corpus import Note
from clinveil.corpus.people import Patient
from clinveil.lexicons.ambiguity import lexical_classes
from clinveil.lexicons.names import held_out
from clinveil.phi.detection.finder import Finder
from clinveil.phi.validation.invented import SHAPES, UNLISTED, invented, invented_name, name_pools
from clinveil.phi.validation.survival import Canary, Survival, canary_survival, planted, planted_for_roles, survived


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
