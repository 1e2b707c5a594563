"""What losing a unit does at one word, the word chosen under other training seeds than it is measured on.

S-PDTP takes the largest difference over a unit's words. That the word is chosen and measured on one pair of models
makes it grow with the noise, and maxima at different words do not add: score less placebo is far below what the unit
does (a true 2 nats on one word of 500 leaves 0.04 of 2.9). Here the word is chosen on the models of all training seeds
but one and measured on those of the one kept aside, less what losing another unit does at that same word. That is
unbiased for the effect at the chosen word. Where the word can be found it is what the unit does; where it cannot, it
falls towards 0. So, on average over seeds, the largest effect lies between this and the score.

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

FLIPS, EXACT = 9_999, 12  # signs of up to so many patients are flipped in every way
METHOD = "Student's t over patients, 95 %"
FEW = "an interval needs two patients"
P_IS = "own less control, signs flipped by patient, one-sided"
CONTROL = "another unit left out, its word chosen likewise"
NO_EFFECT: Mapping[str, Any] = {"chance": 0.0, "chance_is": "no effect"}
SOURCE = "paper C, equations 2 and 3, at a word chosen on other seeds (Cox 1975)"
UnitLogs = Sequence[NDArray[np.floating[Any]]]
"""Of each unit, log p of its words, natural log."""


@dataclass(frozen=True)
class Effects:
    """Effects at chosen words, by model that lost a unit (rows) and scored unit (columns).

    Attributes:
        matrix: (n_units, n_units) nats; above 0: the words are likelier where the unit was trained on. Off the diagonal
            NaN for two units, where no third model is left to compare with.
        seeds: training seeds; 1 only of models that are counted, where nothing is drawn at random.
    """

    matrix: Doubles = field(repr=False)
    seeds: int

    @property
    def own(self) -> Doubles:
        """(n_units,) of each unit on its own words."""
        return np.diag(self.matrix).copy()

    @property
    def control(self) -> float | None:
        """What losing somebody else does, each model at a word chosen for it; None for two units."""
        off = self.matrix[~np.eye(len(self.matrix), dtype=bool)]
        return float(off.mean()) if np.isfinite(off).all() else None


def cross_fit(seeds: Sequence[Sequence[UnitLogs]]) -> Effects:
    """The effects, from log-probabilities under the models without one unit each.

    Args:
        seeds: [s][i][j], of unit j's words under the model of training seed s that lost unit i. One seed only where
            training draws nothing at random: then the word is chosen and measured on the same models.

    Raises:
        InputError: a model gives a word no probability.
        ValueError: no seed, fewer than two units, a unit without words, or models that scored other words.
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
            raise InputError("a model gives a word no probability")
        matrix[:, j] = effects_on(logs, j)
    return Effects(matrix, len(seeds))


def effects_on(logs: Doubles, own: int) -> Doubles:
    """(n_models,) the effect of what each model lost on one unit's words; NaN where no other is left to compare with.

    A model is compared with the mean of those that lost neither its unit nor the scored one.

    Args:
        logs: (n_seeds, n_models, n_words) of that unit's words. own: which model lost the unit itself.
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
    """The difference on one seed, at the word where the mean of the others is largest; of a single seed its own."""
    others = np.delete(differences, seed, axis=0) if len(differences) > 1 else differences
    return float(differences[seed, int(others.mean(axis=0).argmax())])


def effect_finding(
    effects: Effects, rng: Generator, detail: Mapping[str, Any], patients: Sequence[str] | None = None
) -> Finding:
    """`attack.pdtp_effect`: mean effect at the chosen word, chance 0, beside what losing somebody else does."""
    group, more = groups_of(patients, len(effects.matrix)), dict[str, Any]()
    if effects.control is not None:
        more = {"control": effects.control, "control_is": CONTROL, "control_kind": "negative", "p_is": P_IS}
        more["p"] = flipped_p(above_floors(effects.matrix), group, rng)
    detail = {**detail, "seeds": effects.seeds, "scale": "nats"}
    return mean_finding("attack.pdtp_effect", effects.own, group, detail, source=SOURCE, **NO_EFFECT, **more)


def mean_finding(measure: str, values: Doubles, group: Ints, detail: Mapping[str, Any], **more: Any) -> Finding:
    """A mean over units, its interval over patients; of one patient without, and why."""
    more, ends = {"unit": "audited units", "detail": detail, **more}, mean_interval(values, group)
    if ends is None:
        more["detail"] = {**detail, "why": FEW}
    else:
        more |= {"low": ends.low, "high": ends.high, "method": METHOD}
    return Finding(measure, float(values.mean()), values.size, "lower", **more)


def above_floors(matrix: Doubles) -> Doubles:
    """(n_units,) the diagonal less what its row and its column have off it; three or more units.

    So neither a model that lost much and moved everywhere, nor a unit whose words move whoever is lost, counts.
    """
    n = len(matrix)
    off = matrix - np.diag(np.diag(matrix))
    return np.asarray(np.diag(matrix) - (off.sum(axis=0) + off.sum(axis=1)) / (n - 1) + off.sum() / (n * (n - 1)))


def groups_of(patients: Sequence[str] | None, n: int) -> Ints:
    """(n_units,) the number of each unit's patient; each unit is its own where nothing is known."""
    if patients is None:
        return np.arange(n)
    return np.unique(np.array(patients, dtype=object), return_inverse=True)[1].astype(np.int64)


def mean_interval(values: Doubles, group: Ints) -> Interval | None:
    """The interval of a mean over units by Student's t, patients (groups) being independent; None for one patient.

    Each patient's sum of deviations counts as one value; with one unit a patient it is the usual t interval.
    Source: Liang & Zeger 1986, Biometrika 73:13, with n-1 degrees of freedom for n patients.
    """
    n = int(group.max()) + 1
    if n < 2:
        return None
    sums = np.bincount(group, weights=values - values.mean(), minlength=n)
    return t_interval(values.mean() + sums * n / values.size)


def flipped_p(values: Doubles, group: Ints, rng: Generator) -> float:
    """One-sided P that units' values lie no more above 0 than below: signs flipped by patient, in all ways if few.

    Source: Fisher 1935, The Design of Experiments, section 21.
    """
    sums = np.bincount(group, weights=values)
    if sums.size <= EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=sums.size)))
        return float(np.mean(signs @ sums >= sums.sum() - 1e-12 * np.abs(sums).sum()))
    return permutation_p(float(sums.sum()), rng.choice([-1.0, 1.0], size=(FLIPS, sums.size)) @ sums)
