"""An attacker who knows everything but whether one patient is among the notes cannot exceed epsilon."""

from __future__ import annotations

import numpy as np
import pytest
from private_cases import audited_epsilon, notes_of, public_text

from clinveil.core.keys import Key
from clinveil.lm.private.cells import GRID, LABELS, LabelledNote, Layout, by_patient, contribution, total
from clinveil.lm.private.gaussian import noise_for
from clinveil.lm.private.table import noisy

PUBLIC = public_text()
LAYOUT = Layout(2, len(PUBLIC.ids))
EPSILON, DELTA, TRIALS, AUDITS = 1.0, 1e-3, 100, 100
TARGET = contribution([LabelledNote("target", 0, "alpha beta gamma")], PUBLIC, LAYOUT)


def cells_without():
    others = by_patient(notes_of(8)).values()
    return total((contribution(own, PUBLIC, LAYOUT) for own in others), LAYOUT)


def bound(sigma, audit):
    """The optimal attack: the projection on the target's vector, halfway between the two expectations."""
    without, key = cells_without(), Key.from_seed(audit)
    member = without.copy()
    member[TARGET.places] += TARGET.values
    weights = TARGET.values * GRID

    def alarms(cells, side):
        found = 0
        for trial in range(TRIALS):
            table = noisy(cells, LAYOUT, sigma, key, f"{side} {trial}")
            vector = np.concatenate([table.cells.ravel(), table.patients * LABELS])[TARGET.places]
            found += float((vector - without[TARGET.places] * GRID) @ weights) > 0.5 * TARGET.norm**2
        return found

    return audited_epsilon(alarms(member, "in"), alarms(without, "out"), TRIALS, DELTA)


@pytest.mark.slow
def test_the_audited_bound_is_below_epsilon():
    bounds = [bound(noise_for(EPSILON, DELTA), audit) for audit in range(AUDITS)]
    assert sum(b <= EPSILON for b in bounds) >= 95
    assert max(bounds) > 0, "the attack has no power"


def test_noise_switched_off_is_caught():
    assert bound(1e-9, 0) > 3 * EPSILON


def test_a_tenth_of_the_noise_is_caught():
    assert all(bound(noise_for(EPSILON, DELTA) / 10, audit) > EPSILON for audit in range(3))
