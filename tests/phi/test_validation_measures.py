"""Known patients whose own name survives detection."""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.core import InputError, Span
from clinveil.corpus import Note, Patient
from clinveil.phi import NameSurvival

RNG = np.random.default_rng
PATIENTS = {"p1": Patient("p1", ("Mary", "Zoglor")), "p2": Patient("p2", ("Anton", "Vexmir"))}


def test_known_patients_survival():
    survival = NameSurvival(PATIENTS, RNG(1))
    survival.add(Note("1", "p1", "Mary ZOGLOR came with Anton."), [Span(0, 4, "NAME")])
    survival.add(Note("2", "p2", "Vexmir left."), [Span(0, 6, "NAME")])
    survival.add(Note("3", "p9", "Mary"), [])
    patients, mentions = survival.findings("without the patient list")
    assert (patients.value, patients.n, patients.count) == (0.5, 2, 1) and patients.chance == 0.5
    assert (mentions.value, mentions.n) == (1 / 3, 3)
    assert patients.labels == ("without the patient list",)


def test_a_feed_of_other_patients_is_refused():
    survival = NameSurvival(PATIENTS, RNG(1))
    survival.add(Note("3", "p9", "Mary"), [])
    with pytest.raises(InputError, match="none of its 2 patients"):
        survival.findings("with the patient list")


def test_notes_that_name_nobody_measure_nothing():
    survival = NameSurvival(PATIENTS, RNG(1))
    survival.add(Note("3", "p1", "The patient slept."), [])
    (only,) = survival.findings("with the patient list")
    assert only.value is None and "own name" in only.why
