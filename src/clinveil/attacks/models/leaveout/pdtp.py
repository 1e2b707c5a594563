"""S-PDTP, sequential pointwise differential training privacy, with the floors needed to interpret
it.

The score of a unit (all notes of a patient) is the largest |log p(word | before) - log p'(word |
before)| over its words, p trained with the unit and p' without (paper C, equations 2 and 3; natural
log). Much of the score does
not depend on the unit: the same largest difference under a model that lost *another* unit is the
placebo, and between models that differ only in their seed, the reseed floor. It is not an epsilon:
one pair of trained models bounds nothing. For a unigram it is exact, for every unit, without any
training: `closed_form`.

Score minus placebo is not the effect of the unit. The word is chosen and measured on the same two
models, so the score grows with noise, and maxima at different words do not add (a true 2 nats on
one word of 500 leaves 0.04 of 2.9). `cross_fit` chooses the word on the models of all training
seeds but one, and measures it on the remaining seed, minus the effect of leaving another unit out
at the same word (sample splitting, Cox 1975, Biometrika 62:441; its use on S-PDTP is ours). This is
unbiased for the effect at the chosen word. If the word can be identified, it is the effect of the
unit; otherwise it decreases towards 0. On average over seeds, the largest effect is between this
value and the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core import NO_NUMBERS, Doubles, Finding, InputError, Ints, Numbers
from clinveil.lm import PlainNotes
from clinveil.stats import HitCounts, MeasureSpec, permutation_p, t_interval

SEEDS = (
    "no interval for the reseed floor: seeds are few and it varies by seed; their range is not an"
    " interval"
)
SOURCE = "paper C, equations 2 and 3; placebo, reseed floor and gap are ours"
OTHERS = 5  # units left out for the placebo of one unit of a unigram
PLACEBO = f"{OTHERS} other units left out, one at a time, mean"
UNIGRAM_SOURCE = "paper C, section 4.2 and Table 2 (unigram), closed form"
# with at most `EXACT` patients, all combinations of signs are used
FLIPS = 9_999
EXACT = 12
METHOD = "Student's t over patients, 95 %"
FEW = "an interval requires two patients"
P_IS = "own minus control, signs flipped by patient, one-sided"
CONTROL = "another unit left out, with its word chosen in the same way"
NO_EFFECT = "no effect"
PLACEBO_UNIT = "placebo: another unit left out"
EFFECT_SOURCE = "paper C, equations 2 and 3, at a word chosen on other seeds (Cox 1975)"
UnitLogs = Sequence[NDArray[np.floating[Any]]]
"""log p of the words of each unit, natural log."""


@dataclass(frozen=True)
class LeaveOut:
    """Differences between the model of all units and other models, by model (rows) and scored unit
    (columns).
    """

    # (n, n) the largest absolute one over the words of unit j without unit i.
    largest: Doubles = field(repr=False)
    # (n, n) the mean of log p - log p': the strongest sign of membership.
    gaps: Doubles = field(repr=False)
    # (n,) with its sign where it is largest, for each unit left out.
    signed: Doubles = field(repr=False)
    places: Ints = field(repr=False)  # (n,) the index of that word
    # (n_seeds, n) largest to models of all units with other seeds; may have no row.
    reseeded: Doubles = field(repr=False)

    @property
    def scores(self) -> Doubles:
        """Return the score of each unit, (n_units,)."""
        return np.diag(self.largest).copy()

    @property
    def placebos(self) -> Doubles:
        """Return the mean over models that lost another unit, (n_units,)."""
        return _others(self.largest)

    @property
    def own_gaps(self) -> Doubles:
        """Return the gap of each unit when it is left out, (n_units,)."""
        return np.diag(self.gaps).copy()


def leave_out(
    full: UnitLogs, left_out: Sequence[UnitLogs], reseeded: Sequence[UnitLogs] = ()
) -> LeaveOut:
    """Compute the differences from log-probabilities of every unit's words under every model.

    Args:
        full: under the model of all units. left_out: [i][j], of unit j under the model without unit
            i.
        reseeded: [s][j], of unit j under models of all units with other seeds.

    Raises:
        InputError: a model gives a word zero probability.
        ValueError: fewer than two units, a unit without words, or models that scored different
            words.
    """
    n = len(full)
    if n < 2 or len(left_out) != n:
        raise ValueError(
            f"{len(left_out)} leave-outs of {n} units; S-PDTP needs each of two or more left out"
            " once"
        )
    if min(logs.size for logs in full) == 0:
        raise ValueError("a unit has no scored word")
    pairs = [[_differences(full[j], model[j]) for j in range(n)] for model in left_out]
    own = [pairs[j][j] for j in range(n)]
    places = np.array([int(np.abs(d).argmax()) for d in own], dtype=np.int64)
    floor = [
        [np.abs(_differences(full[j], model[j])).max() for j in range(n)] for model in reseeded
    ]
    return LeaveOut(
        np.array([[np.abs(d).max() for d in row] for row in pairs]),
        np.array([[d.mean() for d in row] for row in pairs]),
        np.array([d[place] for d, place in zip(own, places, strict=True)]),
        places,
        np.array(floor, dtype=np.float64).reshape(len(reseeded), n),
    )


def _differences(first: NDArray[np.floating[Any]], other: NDArray[np.floating[Any]]) -> Doubles:
    if first.shape != other.shape:
        raise ValueError("two models scored different words")
    difference = first.astype(np.float64) - other.astype(np.float64)
    if not np.isfinite(difference).all():
        raise InputError("a model gives a word zero probability")
    return difference


def _others(matrix: Doubles) -> Doubles:
    n = len(matrix)
    return np.asarray((matrix.sum(axis=0) - np.diag(matrix)) / (n - 1))


SIGN = MeasureSpec(
    measure="attack.pdtp_sign",
    over="patients",
    unit="audited units",
    chance_is="either sign",
    source=SOURCE,
)


def findings(
    audit: LeaveOut,
    rng: Generator,
    labels: tuple[str, ...] = (),
    numbers: Numbers = NO_NUMBERS,
) -> list[Finding]:
    """Return `attack.pdtp`, `attack.pdtp_gap` (mean log-likelihood gap; control: the placebo) and
    `attack.pdtp_sign`.

    `labels` and `numbers` are those of every finding, for example the mode and the model.
    """
    n = len(audit.signed)
    reseeds = len(audit.reseeded)
    shared = {
        **numbers,
        "reseeds": reseeds,
        "reseed_floor": float(audit.reseeded.mean()) if reseeds else None,
        "units": n,
    }
    positive = audit.signed > 0
    return [
        mean_finding(
            "attack.pdtp",
            audit.scores,
            (*labels, "nats"),
            shared,
            source=SOURCE,
            control=float(audit.placebos.mean()),
            control_is=PLACEBO_UNIT,
        ),
        mean_finding(
            "attack.pdtp_gap",
            audit.own_gaps,
            (*labels, "nats per token"),
            shared,
            source=SOURCE,
            chance=0.0,
            chance_is=NO_EFFECT,
            control=float(_others(audit.gaps).mean()),
            control_is=PLACEBO_UNIT,
            p=flipped_p(above_floors(audit.gaps), rng) if n > 2 else None,
        ),
        SIGN.share(
            HitCounts(hits=int(positive.sum()), tries=positive.size, chance=0.5),
            labels=(*labels, "share of units"),
            numbers=shared,
        ),
    ]


def reseed_floor(
    audit: LeaveOut, labels: tuple[str, ...] = (), numbers: Numbers = NO_NUMBERS
) -> Finding:
    """Return `attack.pdtp_reseed_floor`: the score between models that differ only in their seed.

    It varies more by seed than by patient, and seeds are few: no interval, but the smallest and
    largest in its numbers.
    """
    by_seed = audit.reseeded.mean(axis=1)
    least = float(by_seed.min())
    largest = float(by_seed.max())
    n = len(by_seed)
    seeds = f"{n} seeds: {least:.4f} to {largest:.4f}" if n > 1 else "1 seed"
    return Finding(
        "attack.pdtp_reseed_floor",
        float(by_seed.mean()),
        len(audit.signed),
        source=SOURCE,
        labels=(*labels, "nats", seeds),
        numbers={
            **numbers,
            "reseeds": n,
            "least_of_seeds": least,
            "largest_of_seeds": largest,
        },
        why=SEEDS,
        unit="audited units",
    )


@dataclass(frozen=True)
class Effects:
    """Effects at chosen words, by model that lost a unit (rows) and scored unit (columns).

    Attributes:
        matrix: (n_units, n_units) nats; above 0: the words are more probable with the unit in
            training. NaN off the diagonal for two units, where no third model is left for
            comparison.
        seeds: training seeds; 1 only for count models, with deterministic training.
    """

    matrix: Doubles = field(repr=False)
    seeds: int

    @property
    def own(self) -> Doubles:
        """Return the effect of each unit on its own words, (n_units,)."""
        return np.diag(self.matrix).copy()

    @property
    def control(self) -> float | None:
        """Return the mean effect of leaving out another unit, at a word chosen for it; None for two
        units.
        """
        off = self.matrix[~np.eye(len(self.matrix), dtype=bool)]
        return float(off.mean()) if np.isfinite(off).all() else None


def cross_fit(seeds: Sequence[Sequence[UnitLogs]]) -> Effects:
    """Compute the effects from log-probabilities under models without one unit each.

    Args:
        seeds: [s][i][j], of unit j's words under the model of training seed s without unit i. One
            seed only for
            deterministic training: then the word is chosen and measured on the same models.

    Raises:
        InputError: a model gives a word zero probability.
        ValueError: no seed, fewer than two units, a unit without words, or models that scored
            different words.
    """
    n = len(seeds[0]) if seeds else 0
    if n < 2 or any(len(models) != n or any(len(m) != n for m in models) for models in seeds):
        raise ValueError(
            "cross-fitting needs two or more units, each left out once under every seed"
        )
    matrix = np.empty((n, n))
    for j in range(n):
        if len({model[j].shape for models in seeds for model in models}) != 1:
            raise ValueError("two models scored different words")
        logs = np.array([[model[j] for model in models] for models in seeds], dtype=np.float64)
        if not logs.size:
            raise ValueError("a unit has no scored word")
        if not np.isfinite(logs).all():
            raise InputError("a model gives a word zero probability")
        matrix[:, j] = effects_on(logs, j)
    return Effects(matrix, len(seeds))


def effects_on(logs: Doubles, unit: int) -> Doubles:
    """Return the effect of each model's left-out unit on one unit's words, (n_models,); NaN without
    a comparison.

    A model is compared with the mean of those that were trained with both its unit and the scored
    one.

    Args:
        logs: (n_seeds, n_models, n_words) of that unit's words.
        unit: index of the model without the unit itself.
    """
    n_seeds, n, _ = logs.shape
    others = logs.sum(axis=1) - logs[:, unit]
    found = np.full(n, np.nan)
    for i in range(n):
        left = n - 1 if i == unit else n - 2
        if left:
            mean = (others if i == unit else others - logs[:, i]) / left
            found[i] = np.mean([_held_out(mean - logs[:, i], s) for s in range(n_seeds)])
    return found


def _held_out(differences: Doubles, seed: int) -> float:
    """Return the difference on one seed at the word with the largest mean in the others; of a
    single seed its own.
    """
    others = np.delete(differences, seed, axis=0) if len(differences) > 1 else differences
    return float(differences[seed, int(others.mean(axis=0).argmax())])


def effect_finding(
    effects: Effects,
    rng: Generator,
    labels: tuple[str, ...] = (),
    numbers: Numbers = NO_NUMBERS,
) -> Finding:
    """Return `attack.pdtp_effect`: mean effect at the chosen word, with the effect of another unit
    as control.
    """
    measured = effects.control is not None
    return mean_finding(
        "attack.pdtp_effect",
        effects.own,
        (*labels, "nats"),
        {**numbers, "seeds": effects.seeds},
        source=EFFECT_SOURCE,
        chance=0.0,
        chance_is=NO_EFFECT,
        control=effects.control,
        control_is=CONTROL if measured else "",
        p=flipped_p(above_floors(effects.matrix), rng) if measured else None,
    )


def mean_finding(
    measure: str,
    values: Doubles,
    labels: tuple[str, ...] = (),
    numbers: Numbers = NO_NUMBERS,
    *,
    source: str = SOURCE,
    unit: str = "audited units",
    chance: float | None = None,
    chance_is: str = "",
    control: float | None = None,
    control_is: str = "",
    p: float | None = None,
) -> Finding:
    """Return a mean over patients with Student's t interval; without an interval for one patient,
    with the reason. The control is negative; P is that of `flipped_p`.
    """
    low = None
    high = None
    has_interval = values.size >= 2
    if has_interval:
        low, high = t_interval(values)
    return Finding(
        measure,
        float(values.mean()),
        values.size,
        "lower",
        low,
        high,
        chance=chance,
        chance_is=chance_is,
        control=control,
        control_is=control_is,
        control_kind="negative" if control_is else None,
        source=source,
        labels=labels,
        numbers=numbers,
        why="" if has_interval else FEW,
        unit=unit,
        p=p,
        p_is="" if p is None else P_IS,
        method=METHOD if has_interval else "",
    )


def above_floors(matrix: Doubles) -> Doubles:
    """Return the diagonal minus the off-diagonal means of its row and column, (n_units,); for three
    or more units.

    This excludes models that differ everywhere, and units with words that change with any left-out
    unit.
    """
    n = len(matrix)
    off = matrix - np.diag(np.diag(matrix))
    return np.asarray(
        np.diag(matrix) - (off.sum(axis=0) + off.sum(axis=1)) / (n - 1) + off.sum() / (n * (n - 1))
    )


def flipped_p(values: Doubles, rng: Generator) -> float:
    """Return the one-sided P of a positive mean: signs flipped by patient, all combinations if few.

    Source: Fisher 1935, The Design of Experiments, section 21.
    """
    if values.size <= EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=values.size)))
        return float(np.mean(signs @ values >= values.sum() - 1e-12 * np.abs(values).sum()))
    return permutation_p(
        float(values.sum()), rng.choice([-1.0, 1.0], size=(FLIPS, values.size)) @ values
    )


def closed_form(notes: PlainNotes, rng: Generator, *, alpha: float = 1.0) -> list[Finding]:
    """Return `attack.pdtp` and `attack.pdtp_effect` of the unigram over all patients; words only,
    as in paper C's code.

    There is no reseed floor and no other seed, because training is deterministic. Leaving out
    another unit changes a word's probability by that unit's share of it; the control is the mean
    over a few others of each unit.
    """
    numbers: dict[str, int] = {}
    rows = [
        [numbers.setdefault(word, len(numbers)) for word in text.split()] for text in notes.texts
    ]
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(notes.patients):
        groups.setdefault(patient, []).extend(rows[row])
    units = [
        np.unique(np.array(words, dtype=np.int64), return_counts=True) for words in groups.values()
    ]
    counts = np.bincount(
        np.concatenate([np.repeat(word, count) for word, count in units]), minlength=len(numbers)
    )
    scores = unigram_pdtp(counts, units, alpha)
    labels = ("unigram", "nats")
    n_words = {"words": len(numbers)}
    floors = _floors(counts, units, alpha, rng) if len(units) > 1 else None
    score = mean_finding(
        "attack.pdtp",
        scores,
        labels,
        {**n_words, "largest": float(scores.max())},
        source=UNIGRAM_SOURCE,
        unit="patients",
        control=None if floors is None else float(floors[:, 0].mean()),
        control_is="" if floors is None else PLACEBO,
    )
    if floors is None:
        return [score]
    has_others = len(units) > 2
    effect = mean_finding(
        "attack.pdtp_effect",
        floors[:, 1],
        labels,
        n_words,
        source=UNIGRAM_SOURCE,
        unit="patients",
        chance=0.0,
        chance_is=NO_EFFECT,
        control=float(floors[:, 2].mean()) if has_others else None,
        control_is=CONTROL if has_others else "",
    )
    return [score, effect]


def unigram_pdtp(counts: Ints, units: Sequence[tuple[Ints, Ints]], alpha: float = 1.0) -> Doubles:
    """Return S-PDTP of a unigram model with Lidstone smoothing in closed form, (n_units,); the
    vocabulary is kept.

    max over words w of the unit of |log (C_w + a)/(N + aV) - log (C_w + a - n_w)/(N + aV -
    |unit|)|.

    Args:
        counts: (n_words,) occurrences of each word in all training notes, including the units.
        units: the distinct words of each unit (rows) and their counts.
        alpha: Lidstone's constant.

    Raises:
        ValueError: alpha not positive, a unit without words, or with more of a word than the total.
    Source: paper C, section 4.2, and its released code.
    """
    if alpha <= 0:
        raise ValueError("Lidstone's constant must be positive")
    total = counts.sum() + alpha * counts.size
    scores = np.empty(len(units))
    for place, (rows, often) in enumerate(units):
        if not rows.size or (often > counts[rows]).any():
            raise ValueError("a unit has no word, or more of one than all notes together")
        with_unit = np.log((counts[rows] + alpha) / total)
        without = np.log((counts[rows] + alpha - often) / (total - often.sum()))
        scores[place] = np.abs(with_unit - without).max()
    return scores


def _floors(counts: Ints, units: list[tuple[Ints, Ints]], alpha: float, rng: Generator) -> Doubles:
    """Return placebo, effect of the unit at one of its words, and mean effect of others (or NaN),
    (n_units, 3).
    """
    found = np.empty((len(units), 3))
    for unit in range(len(units)):
        others = rng.choice(len(units) - 1, min(OTHERS, len(units) - 1), replace=False)
        left = [unit, *(others + (others >= unit))]
        changes = np.stack([_change(counts, units[unit][0], units[other], alpha) for other in left])
        effects = effects_on(-changes[None], 0)
        found[unit] = np.abs(changes[1:]).max(axis=1).mean(), effects[0], effects[1:].mean()
    return found


def _change(counts: Ints, scored: Ints, left: tuple[Ints, Ints], alpha: float) -> Doubles:
    """Return log p of some words minus the same without a unit, (n_scored,)."""
    total = counts.sum() + alpha * counts.size
    before = counts[scored] + alpha
    _, here, there = np.intersect1d(scored, left[0], assume_unique=True, return_indices=True)
    gone = np.zeros(scored.size, dtype=np.int64)
    gone[here] = left[1][there]
    return np.asarray(np.log((total - left[1].sum()) / total) - np.log((before - gone) / before))
