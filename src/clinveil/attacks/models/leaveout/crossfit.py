"""Effect of leaving a unit out at one word, where the word is chosen under other training seeds.

S-PDTP is the largest difference over a unit's words. Because the word is chosen and measured on the same two models,
the score grows with noise, and maxima at different words do not add: score minus placebo is far below the true effect
(a true 2 nats on one word of 500 leaves 0.04 of 2.9). Here the word is chosen on the models of all training seeds but
one, and measured on the remaining seed, minus the effect of leaving another unit out at the same word. This is unbiased
for the effect at the chosen word. If the word can be identified, it is the effect of the unit; otherwise it decreases
towards 0. On average over seeds, the largest effect is therefore between this value and the score.

Source: sample splitting, Cox 1975, Biometrika 62:441; its use on S-PDTP is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints
from clinveil.stats import Interval, permutation_p, t_interval

FLIPS, EXACT = 9_999, 12  # with at most `EXACT` patients, all combinations of signs are used
METHOD = "Student's t over patients, 95 %"
FEW = "an interval requires two patients"
P_IS = "own minus control, signs flipped by patient, one-sided"
CONTROL = "another unit left out, with its word chosen in the same way"
NO_EFFECT: Mapping[str, Any] = {"chance": 0.0, "chance_is": "no effect"}
SOURCE = "paper C, equations 2 and 3, at a word chosen on other seeds (Cox 1975)"
UnitLogs = Sequence[NDArray[np.floating[Any]]]
"""log p of the words of each unit, natural log."""


@dataclass(frozen=True)
class Effects:
    """Effects at chosen words, by model that lost a unit (rows) and scored unit (columns).

    Attributes:
        matrix: (n_units, n_units) nats; above 0: the words are more probable with the unit in training. NaN off the
            diagonal for two units, where no third model is left for comparison.
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
        """Return the mean effect of leaving out another unit, at a word chosen for it; None for two units."""
        off = self.matrix[~np.eye(len(self.matrix), dtype=bool)]
        return float(off.mean()) if np.isfinite(off).all() else None


def cross_fit(seeds: Sequence[Sequence[UnitLogs]]) -> Effects:
    """Compute the effects from log-probabilities under models without one unit each.

    Args:
        seeds: [s][i][j], of unit j's words under the model of training seed s without unit i. One seed only for
            deterministic training: then the word is chosen and measured on the same models.

    Raises:
        InputError: a model gives a word zero probability.
        ValueError: no seed, fewer than two units, a unit without words, or models that scored different words.
    """
    n = len(seeds[0]) if seeds else 0
    if n < 2 or any(len(models) != n or any(len(m) != n for m in models) for models in seeds):
        raise ValueError("cross-fitting needs two or more units, each left out once under every seed")
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


def effects_on(logs: Doubles, own: int) -> Doubles:
    """Return the effect of each model's left-out unit on one unit's words, (n_models,); NaN without a comparison.

    A model is compared with the mean of those that were trained with both its unit and the scored one.

    Args:
        logs: (n_seeds, n_models, n_words) of that unit's words. own: index of the model without the unit itself.
    """
    n_seeds, n, _ = logs.shape
    others = logs.sum(axis=1) - logs[:, own]
    found = np.full(n, np.nan)
    for i in range(n):
        left = n - 1 if i == own else n - 2
        if left:
            mean = (others if i == own else others - logs[:, i]) / left
            found[i] = np.mean([_held_out(mean - logs[:, i], s) for s in range(n_seeds)])
    return found


def _held_out(differences: Doubles, seed: int) -> float:
    """Return the difference on one seed at the word with the largest mean in the others; of a single seed its own."""
    others = np.delete(differences, seed, axis=0) if len(differences) > 1 else differences
    return float(differences[seed, int(others.mean(axis=0).argmax())])


def effect_finding(
    effects: Effects, rng: Generator, detail: Mapping[str, Any], patients: Sequence[str] | None = None
) -> Finding:
    """Return `attack.pdtp_effect`: mean effect at the chosen word, with the effect of another unit as control."""
    group, more = groups_of(patients, len(effects.matrix)), dict[str, Any]()
    if effects.control is not None:
        more = {"control": effects.control, "control_is": CONTROL, "control_kind": "negative", "p_is": P_IS}
        more["p"] = flipped_p(above_floors(effects.matrix), group, rng)
    detail = {**detail, "seeds": effects.seeds, "scale": "nats"}
    return mean_finding("attack.pdtp_effect", effects.own, group, detail, source=SOURCE, **NO_EFFECT, **more)


def mean_finding(measure: str, values: Doubles, group: Ints, detail: Mapping[str, Any], **more: Any) -> Finding:
    """Return a mean over units with an interval over patients; without an interval for one patient, with the reason."""
    more, ends = {"unit": "audited units", "detail": detail, **more}, mean_interval(values, group)
    if ends is None:
        more["detail"] = {**detail, "why": FEW}
    else:
        more |= {"low": ends.low, "high": ends.high, "method": METHOD}
    return Finding(measure, float(values.mean()), values.size, "lower", **more)


def above_floors(matrix: Doubles) -> Doubles:
    """Return the diagonal minus the off-diagonal means of its row and column, (n_units,); for three or more units.

    This excludes models that differ everywhere, and units with words that change with any left-out unit.
    """
    n = len(matrix)
    off = matrix - np.diag(np.diag(matrix))
    return np.asarray(np.diag(matrix) - (off.sum(axis=0) + off.sum(axis=1)) / (n - 1) + off.sum() / (n * (n - 1)))


def groups_of(patients: Sequence[str] | None, n: int) -> Ints:
    """Return the number of each unit's patient, (n_units,); every unit is its own patient if unknown."""
    if patients is None:
        return np.arange(n)
    return np.unique(np.array(patients, dtype=object), return_inverse=True)[1].astype(np.int64)


def mean_interval(values: Doubles, group: Ints) -> Interval | None:
    """Return the interval of a mean over units by Student's t with independent patients (groups); None for one patient.

    Each patient's sum of deviations counts as one value; with one unit per patient it is the usual t interval.
    Source: Liang & Zeger 1986, Biometrika 73:13, with n-1 degrees of freedom for n patients.
    """
    n = int(group.max()) + 1
    if n < 2:
        return None
    sums = np.bincount(group, weights=values - values.mean(), minlength=n)
    return t_interval(values.mean() + sums * n / values.size)


def flipped_p(values: Doubles, group: Ints, rng: Generator) -> float:
    """Return the one-sided P of a positive mean: signs flipped by patient, all combinations if few.

    Source: Fisher 1935, The Design of Experiments, section 21.
    """
    sums = np.bincount(group, weights=values)
    if sums.size <= EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=sums.size)))
        return float(np.mean(signs @ sums >= sums.sum() - 1e-12 * np.abs(sums).sum()))
    return permutation_p(float(sums.sum()), rng.choice([-1.0, 1.0], size=(FLIPS, sums.size)) @ sums)
