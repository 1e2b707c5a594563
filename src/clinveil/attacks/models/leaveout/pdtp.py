"""S-PDTP, sequential pointwise differential training privacy, with the floors without which it says nothing.

The score of a unit (a note, or all notes of a patient) is the largest |log p(word | before) - log p'(word | before)|
over its words, p trained with the unit and p' without (paper C, equations 2 and 3; natural log). Much of it is there
whatever is left out: the same largest difference under a model that lost *another* unit is the placebo, and between
models that differ in their seed alone the reseed floor. Score less placebo is not what the unit adds: the two maxima
stand at different words. That is what `crossfit` measures.

It is not an epsilon: one pair of trained models bounds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.models.leaveout.crossfit import (
    NO_EFFECT,
    P_IS,
    UnitLogs,
    above_floors,
    flipped_p,
    groups_of,
    mean_finding,
)
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints
from clinveil.stats import clopper_pearson, share_by_patient, share_method

SEEDS = "an interval of the reseed floor: it strays by seed, and seeds are few; their range is no interval"
EXACT = "exact over patients (Clopper-Pearson), 95 %"
SOURCE = "paper C, equations 2 and 3; placebo, reseed floor and gap are ours"
_PLACEBO: Mapping[str, Any] = {
    "source": SOURCE,
    "control_is": "placebo: another unit left out",
    "control_kind": "negative",
}


@dataclass(frozen=True)
class LeaveOut:
    """Differences between the model of all units and other models, by model (rows) and scored unit (columns).

    Attributes:
        largest: (n_units, n_units) the largest absolute difference over the words of unit j when i was left out.
        gaps: (n_units, n_units) the mean of log p - log p' over the words of unit j: the strongest sign of membership.
        signed: (n_units,) the difference with its sign where it is largest, each unit left out itself.
        places: (n_units,) the word of each unit where that is.
        reseeded: (n_seeds, n_units) the largest difference to models of all units with another seed; may have no row.
    """

    largest: Doubles = field(repr=False)
    gaps: Doubles = field(repr=False)
    signed: Doubles = field(repr=False)
    places: Ints = field(repr=False)
    reseeded: Doubles = field(repr=False)

    @property
    def n_units(self) -> int:
        """How many units were left out and scored."""
        return len(self.signed)

    @property
    def scores(self) -> Doubles:
        """(n_units,) the score of each unit."""
        return np.diag(self.largest).copy()

    @property
    def placebos(self) -> Doubles:
        """(n_units,) the mean over models that lost another unit."""
        return _others(self.largest)

    @property
    def own_gaps(self) -> Doubles:
        """(n_units,) the gap of each unit when it is left out itself."""
        return np.diag(self.gaps).copy()


def leave_out(full: UnitLogs, left_out: Sequence[UnitLogs], reseeded: Sequence[UnitLogs] = ()) -> LeaveOut:
    """The differences, from log-probabilities of every unit's words under every model.

    Args:
        full: under the model of all units. left_out: [i][j], of unit j under the model without unit i.
        reseeded: [s][j], of unit j under models of all units with other seeds.

    Raises:
        InputError: a model gives a word no probability.
        ValueError: fewer than two units, a unit without words, or models that scored other words.
    """
    n = len(full)
    if n < 2 or len(left_out) != n:
        raise ValueError(f"{len(left_out)} leave-outs of {n} units; S-PDTP needs each of two or more left out once")
    if min(logs.size for logs in full) == 0:
        raise ValueError("a unit has no scored word")
    pairs = [[_differences(full[j], model[j]) for j in range(n)] for model in left_out]
    own = [pairs[j][j] for j in range(n)]
    places = np.array([int(np.abs(d).argmax()) for d in own], dtype=np.int64)
    floor = [[np.abs(_differences(full[j], model[j])).max() for j in range(n)] for model in reseeded]
    return LeaveOut(
        np.array([[np.abs(d).max() for d in row] for row in pairs]),
        np.array([[d.mean() for d in row] for row in pairs]),
        np.array([d[place] for d, place in zip(own, places, strict=True)]),
        places,
        np.array(floor, dtype=np.float64).reshape(len(reseeded), n),
    )


def _differences(one: NDArray[np.floating[Any]], other: NDArray[np.floating[Any]]) -> Doubles:
    if one.shape != other.shape:
        raise ValueError("two models scored different words")
    difference = one.astype(np.float64) - other.astype(np.float64)
    if not np.isfinite(difference).all():
        raise InputError("a model gives a word no probability")
    return difference


def _others(matrix: Doubles) -> Doubles:
    n = len(matrix)
    return np.asarray((matrix.sum(axis=0) - np.diag(matrix)) / (n - 1))


def findings(
    measured: LeaveOut,
    rng: Generator,
    detail: Mapping[str, Any] | None = None,
    *,
    patients: Sequence[str] | None = None,
) -> list[Finding]:
    """Score, mean log-likelihood gap and share of positive signs, each with its floors.

    Args:
        patients: whose each unit is, where units are notes; they are what is independent.
        detail: goes into every finding, for example the mode and the model.

    Returns:
        `attack.pdtp` and `attack.pdtp_gap` (control: the placebo), `attack.pdtp_sign`.
    """
    group = groups_of(patients, measured.n_units)
    shared = {**(detail or {}), **_reseed(measured), "units": measured.n_units}
    gap: dict[str, Any] = {**NO_EFFECT, "control": float(_others(measured.gaps).mean())}
    if measured.n_units > 2:
        gap |= {"p": flipped_p(above_floors(measured.gaps), group, rng), "p_is": P_IS}
    score = {"control": float(measured.placebos.mean())}
    nats, each = {**shared, "scale": "nats"}, {**shared, "scale": "nats a token"}
    return [
        mean_finding("attack.pdtp", measured.scores, group, nats, **_PLACEBO, **score),
        mean_finding("attack.pdtp_gap", measured.own_gaps, group, each, **_PLACEBO, **gap),
        _sign(measured, {**shared, "scale": "share of units"}, group),
    ]


def reseed_floor(measured: LeaveOut, detail: Mapping[str, Any]) -> Finding:
    """`attack.pdtp_reseed_floor`: the score between models that differ in their seed alone; there must be one.

    It strays more by seed than by patient, and seeds are few: no interval, but the least and largest in the detail.
    """
    by_seed = measured.reseeded.mean(axis=1)
    least, largest, n = float(by_seed.min()), float(by_seed.max()), len(by_seed)
    more = {**detail, "reseeds": n, "scale": "nats", "why": SEEDS}
    more |= {"least_of_seeds": least, "largest_of_seeds": largest}
    more["range"] = f"{n} seeds: {least:.4f} to {largest:.4f}" if n > 1 else "1 seed"
    mean = float(by_seed.mean())
    name = "attack.pdtp_reseed_floor"
    return Finding(name, mean, measured.n_units, None, source=SOURCE, detail=more, unit="audited units")


def _reseed(measured: LeaveOut) -> dict[str, Any]:
    if not len(measured.reseeded):
        return {"reseeds": 0, "reseed_floor": None}
    return {"reseeds": len(measured.reseeded), "reseed_floor": float(measured.reseeded.mean())}


def _sign(measured: LeaveOut, detail: dict[str, Any], group: Ints) -> Finding:
    positive = measured.signed > 0
    hits, n = int(positive.sum()), measured.n_units
    by_patient = np.stack([np.bincount(group, weights=positive), np.bincount(group)], axis=1).astype(np.int64)
    alone = len(by_patient) == n
    low, high = clopper_pearson(hits, n) if alone else share_by_patient(by_patient)
    return Finding(
        "attack.pdtp_sign",
        float(positive.mean()),
        n,
        "lower",
        low,
        high,
        chance=0.5,
        source=SOURCE,
        detail=detail,
        unit="audited units",
        count=hits,
        method=EXACT if alone else share_method(by_patient, "patients"),
        chance_is="either sign",
    )
