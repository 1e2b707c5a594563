"""Scores as a share of the gap between a floor and a ceiling, with a paired bootstrap over
patients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator

from clinveil.core import NO_NUMBERS, Doubles, Finding, GapScores, Numbers
from clinveil.stats import MeasureSpec, clopper_pearson

DRAWS = 1000
BLOCK = 50
LEVEL = (0.025, 0.975)
SOURCE = "docs/report.md"
NOT_ABOVE_CHANCE = (
    "Models trained on real notes are not significantly better than chance (their predictions on"
    " permuted labels), so no share can be given."
)
NOT_ABOVE_FLOOR = (
    "Models trained on real notes are not significantly better than the floor, "
    "so no share of the gap can be given."
)
Score = Callable[[Doubles], Doubles]
"""Sums over patients (…, n_sums) -> scores (…)."""


@dataclass(frozen=True)
class Arms:
    """The score of each arm, and its value in every draw of a bootstrap that all arms share.

    `scores` and `draws` ((n_draws,) each) have the keys released, floor and ceiling, and chance
    where there are labels. `better`: "lower" where lower scores are better.
    """

    scores: Mapping[str, float]
    draws: Mapping[str, Doubles] = field(repr=False)
    better: str = "higher"

    def gain(self, arm: str, other: str) -> tuple[float, Doubles]:
        """Return by how much an arm is better than another, and the same for each draw."""
        sign = 1.0 if self.better == "higher" else -1.0
        return sign * (self.scores[arm] - self.scores[other]), sign * (
            self.draws[arm] - self.draws[other]
        )

    def exceeds(self, arm: str, other: str) -> bool:
        """Return whether an arm is better than another at the 2.5 % level (one-sided)."""
        value, draws = self.gain(arm, other)
        return value > 0 and bool(np.nanquantile(draws, LEVEL[0]) > 0)

    def of_ceiling(self) -> tuple[float, Doubles]:
        """Return released / ceiling, or ceiling / released where lower is better: 1 is as good as
        real notes.
        """
        one, other = ("released", "ceiling") if self.better == "higher" else ("ceiling", "released")
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.scores[one] / self.scores[other], self.draws[one] / self.draws[other]


def bootstrap_arms(
    sums: Mapping[str, Doubles],
    score: Score,
    rng: Generator,
    *,
    better: str = "higher",
    chance: Score | None = None,
) -> Arms:
    """Score every arm on all patients and on patients drawn with replacement, the same draws for
    all arms.

    Args:
        sums: contributions of every patient by arm, (n_patients, n_sums).
        score: maps sums over patients to a score. chance: maps sums of the ceiling to its score by
            chance.

    Source: Davison & Hinkley 1997, section 3.8 (bootstrap of clusters).
    """
    scored = {arm: (score, each) for arm, each in sums.items()}
    if chance:
        scored["chance"] = chance, sums["ceiling"]
    scores = {arm: float(of(each.sum(axis=0))) for arm, (of, each) in scored.items()}
    drawn: dict[str, list[Doubles]] = {arm: [] for arm in scored}
    for weights in _weights(len(sums["ceiling"]), rng):
        for arm, (of, each) in scored.items():
            drawn[arm].append(of(weights @ each))
    return Arms(scores, {arm: np.concatenate(blocks) for arm, blocks in drawn.items()}, better)


def _weights(n: int, rng: Generator) -> Iterator[Doubles]:
    """Yield how often each patient is drawn, (BLOCK, n) at a time, so memory does not grow with the
    draws.
    """
    for _ in range(DRAWS // BLOCK):
        rows = rng.integers(n, size=(BLOCK, n)) + np.arange(BLOCK)[:, None] * n
        yield np.bincount(rows.ravel(), minlength=BLOCK * n).reshape(BLOCK, n).astype(np.float64)


def share_finding(
    spec: MeasureSpec,
    arms: Arms,
    n: int,
    metric: str,
    *,
    labels: tuple[str, ...],
    numbers: Numbers = NO_NUMBERS,
    tested_on: str = "",
    agreeing: int = 0,
) -> Finding:
    """Return a finding of (released - floor) / (ceiling - floor), 0 at the floor and 1 at the
    ceiling.

    The value is None if the ceiling is not significantly above chance or above the floor, with the
    reason in `why`. Draws in which the ceiling is not above the floor are left out of the
    interval.

    Args:
        spec: name, unit and method of the measure. n: number of tested items. metric: of the arms.
        agreeing: number of test patients, if the models of release and ceiling agree on all of
            their notes. Then the bootstrap has no variance, and the interval is the exact one of
            the share of patients on whom they differ.
        labels, numbers, tested_on: fields of the finding.
    """
    scores = GapScores(
        metric,
        score=arms.scores["released"],
        floor=arms.scores["floor"],
        ceiling=arms.scores["ceiling"],
        chance=arms.scores.get("chance"),
    )
    finding = Finding(
        spec.measure,
        None,
        n,
        "higher",
        source=SOURCE,
        unit=spec.unit,
        labels=labels,
        numbers=numbers,
        scores=scores,
        tested_on=tested_on,
        why=NOT_ABOVE_CHANCE,
    )
    if "chance" in arms.scores and not arms.exceeds("ceiling", "chance"):
        return finding
    value, draws = arms.of_ceiling()
    low, high = np.nanquantile(draws, LEVEL)
    unseen = 1 - clopper_pearson(agreeing, agreeing).low if agreeing else 0.0
    low = low - unseen
    high = high + unseen
    scores = replace(
        scores, of_ceiling=value, of_ceiling_low=float(low), of_ceiling_high=float(high)
    )
    if not arms.exceeds("ceiling", "floor"):
        return replace(finding, scores=scores, why=NOT_ABOVE_FLOOR)
    gained, gains = arms.gain("released", "floor")
    gap, gaps = arms.gain("ceiling", "floor")
    usable = (gaps > 0) & ~np.isnan(gains)
    low, high = np.quantile(gains[usable] / gaps[usable], LEVEL)
    unseen *= arms.scores["ceiling"] / gap
    low = low - unseen
    high = high + unseen
    return replace(
        finding,
        value=gained / gap,
        low=float(low),
        high=float(high),
        scores=scores,
        method=spec.method,
        why="",
    )


def ratio(sums: Doubles) -> Doubles:
    """Return the first sum over the second, for example bits over words."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1))
