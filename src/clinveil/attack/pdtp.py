"""S-PDTP, sequential pointwise differential training privacy, with the floors without which it says nothing.

The score of a unit (a note, or all notes of a patient) is the largest |log p(word | before) - log p'(word | before)|
over its words, p trained with the unit and p' without (paper C, equations 2 and 3; natural log). Much of it is there
whatever is left out: the same largest difference under a model that lost *another* unit is the placebo, and between
models that differ in their seed alone the reseed floor. What leaving out the unit itself adds is the excess.

It is not an epsilon: one pair of trained models bounds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.errors import InputError
from clinveil.finding import Finding
from clinveil.stats import bootstrap_clusters, permutation_p, share_by_patient, share_method

PERMUTATIONS = 9_999
SEEDS = "an interval of the reseed floor: it strays by seed, and seeds are few; their range is no interval"
BY_PATIENT = "bootstrap over patients, 95 %"
SOURCE = "paper C, equations 2 and 3; placebo, reseed floor and excess are ours"
Matrix = NDArray[np.float64]
Logs = Sequence[NDArray[np.floating[Any]]]  # of each unit, log p of its words, natural log


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

    largest: Matrix = field(repr=False)
    gaps: Matrix = field(repr=False)
    signed: Matrix = field(repr=False)
    places: NDArray[np.int64] = field(repr=False)
    reseeded: Matrix = field(repr=False)

    @property
    def n_units(self) -> int:
        """How many units were left out and scored."""
        return len(self.signed)

    @property
    def scores(self) -> Matrix:
        """(n_units,) the score of each unit."""
        return np.diag(self.largest).copy()

    @property
    def placebos(self) -> Matrix:
        """(n_units,) the mean over models that lost another unit."""
        return _others(self.largest)

    @property
    def excess(self) -> Matrix:
        """(n_units,) what leaving out the unit itself adds."""
        return self.scores - self.placebos


def leave_out(full: Logs, left_out: Sequence[Logs], reseeded: Sequence[Logs] = ()) -> LeaveOut:
    """The differences, from log-probabilities of every unit's words under every model.

    Args:
        full: under the model of all units. left_out: [i][j], of unit j under the model without unit i.
        reseeded: [s][j], of unit j under models of all units with other seeds.

    Raises:
        InputError: fewer than two units, a unit without words, or models that scored other words.
    """
    n = len(full)
    if n < 2 or len(left_out) != n:
        raise InputError(f"{len(left_out)} leave-outs of {n} units; S-PDTP needs each of two or more left out once")
    if min(logs.size for logs in full) == 0:
        raise InputError("a unit has no scored word", remedy="leave it out of the audit")
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


def _differences(one: NDArray[np.floating[Any]], other: NDArray[np.floating[Any]]) -> Matrix:
    if one.shape != other.shape:
        raise InputError("two models scored different words", remedy="give them one vocabulary")
    difference = one.astype(np.float64) - other.astype(np.float64)
    if not np.isfinite(difference).all():
        raise InputError("a model gives a word no probability")
    return difference


def _others(matrix: Matrix) -> Matrix:
    n = len(matrix)
    return np.asarray((matrix.sum(axis=0) - np.diag(matrix)) / (n - 1))


def findings(
    measured: LeaveOut,
    rng: Generator,
    detail: Mapping[str, Any] | None = None,
    *,
    patients: Sequence[str] | None = None,
) -> list[Finding]:
    """Score, excess, mean log-likelihood gap and share of positive signs, each with its floors.

    Args:
        patients: whose each unit is, where units are notes; intervals draw patients anew.
        detail: goes into every finding, for example the mode and the model.

    Returns:
        `attack.pdtp` (control: the placebo), `attack.pdtp_excess` (chance 0, P by permuting which model lost which
        unit), `attack.pdtp_gap` (control: its placebo), `attack.pdtp_sign`.
    """
    group = _groups(patients, measured.n_units)
    reseed = _reseed(measured)
    shared = {**(detail or {}), **reseed, "units": measured.n_units, "unit": "audited units"}
    score = _mean(measured.scores, group, rng)
    p = permutation_p(float(np.trace(measured.largest)), _permuted(measured.largest, rng))
    gap_p = permutation_p(float(np.trace(measured.gaps)), _permuted(measured.gaps, rng))
    placebo, gap_placebo = float(measured.placebos.mean()), float(_others(measured.gaps).mean())
    excess, gap = _mean(measured.excess, group, rng), _mean(np.diag(measured.gaps), group, rng)
    n, shared = measured.n_units, {**shared, "interval": BY_PATIENT, "scale": "nats"}
    by_control = {**shared, "control_is": "placebo: another unit left out"}

    def number(name: str, value: tuple[float, float, float], chance: Any, control: Any, more: Any) -> Finding:
        return Finding(f"attack.{name}", value[0], n, "lower", *value[1:], chance, control, SOURCE, more)

    return [
        number("pdtp", score, None, placebo, by_control),
        number("pdtp_excess", excess, 0.0, None, {**shared, "p": p}),
        number("pdtp_gap", gap, 0.0, gap_placebo, {**by_control, "p": gap_p, "scale": "nats a token"}),
        _sign(measured, shared, group, rng),
    ]


def reseed_floor(measured: LeaveOut, detail: Mapping[str, Any]) -> Finding:
    """`attack.pdtp_reseed_floor`: the score between models that differ in their seed alone; there must be one.

    It strays more by seed than by patient, and seeds are few: no interval, but the least and largest in the detail.
    """
    by_seed = measured.reseeded.mean(axis=1)
    least, largest, n = float(by_seed.min()), float(by_seed.max()), len(by_seed)
    more = {**detail, "unit": "audited units", "reseeds": n, "scale": "nats", "why": SEEDS}
    more |= {"least_of_seeds": least, "largest_of_seeds": largest}
    more["range"] = f"{n} seeds: {least:.4f} to {largest:.4f}" if n > 1 else "1 seed"
    mean = float(by_seed.mean())
    return Finding("attack.pdtp_reseed_floor", mean, measured.n_units, None, source=SOURCE, detail=more)


def _groups(patients: Sequence[str] | None, n: int) -> NDArray[np.int64]:
    if patients is None:
        return np.arange(n)
    return np.unique(np.array(patients, dtype=object), return_inverse=True)[1].astype(np.int64)


def _reseed(measured: LeaveOut) -> dict[str, Any]:
    if not len(measured.reseeded):
        return {"reseeds": 0, "reseed_floor": None}
    return {"reseeds": len(measured.reseeded), "reseed_floor": float(measured.reseeded.mean())}


def _mean(values: Matrix, group: NDArray[np.int64], rng: Generator) -> tuple[float, float, float]:
    """The mean over units, and its interval over patients."""
    by_patient = np.stack([np.bincount(group, weights=values), np.bincount(group)], axis=1)
    low, high = bootstrap_clusters(by_patient, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()), rng)
    return float(values.mean()), low, high


def _permuted(matrix: Matrix, rng: Generator) -> Matrix:
    """(n_permutations,) the sum of the diagonal when it is dealt out anew which model lost which unit."""
    n = len(matrix)
    columns = np.arange(n)
    return np.array([matrix[rng.permutation(n), columns].sum() for _ in range(PERMUTATIONS)])


def _sign(measured: LeaveOut, detail: dict[str, Any], group: NDArray[np.int64], rng: Generator) -> Finding:
    positive = measured.signed > 0
    by_patient = np.stack([np.bincount(group, weights=positive), np.bincount(group)], axis=1).astype(np.int64)
    low, high = share_by_patient(by_patient, rng)
    more = {**detail, "positive": int(positive.sum()), "scale": "share of units"}
    more["interval"] = share_method(by_patient, "patients")
    return Finding(
        "attack.pdtp_sign", float(positive.mean()), measured.n_units, "lower", low, high, 0.5, None, SOURCE, more
    )


def unigram_pdtp(
    counts: NDArray[np.int64], units: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]], alpha: float = 1.0
) -> Matrix:
    """(n_units,) S-PDTP of a unigram model with Lidstone smoothing, in closed form; the vocabulary is kept.

    max over words w of the unit of |log (C_w + a)/(N + aV) - log (C_w + a - n_w)/(N + aV - |unit|)|.

    Args:
        counts: (n_words,) occurrences of each word in all training notes, the units' own among them.
        units: of each unit the words it holds (distinct rows) and how often.
        alpha: Lidstone's constant.

    Raises:
        InputError: alpha not positive, a unit without words, or with more of a word than there is.
    Source: paper C, section 4.2, and its released code.
    """
    if alpha <= 0:
        raise InputError("Lidstone's constant must be positive")
    total = counts.sum() + alpha * counts.size
    scores = np.empty(len(units))
    for place, (rows, often) in enumerate(units):
        if not rows.size or (often > counts[rows]).any():
            raise InputError("a unit has no word, or more of one than all notes together")
        with_unit = np.log((counts[rows] + alpha) / total)
        without = np.log((counts[rows] + alpha - often) / (total - often.sum()))
        scores[place] = np.abs(with_unit - without).max()
    return scores
