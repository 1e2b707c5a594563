"""Bias of S-PDTP's effect with known memorisation, coverage of its interval, and level of its test.

    python benchmarks/crossfit.py [RUNS]

Simulated models: each log-probability has normal noise of 0.66, so that the largest difference
among 500 words is about 3 nats, whichever unit is left out. One word of each unit is memorised by a
number of nats. In the last rows nothing is memorised, and the noise of a model grows with the
square root of the size of the left-out unit; `systematic`: half of the noise is the same under
every seed.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.random import Generator

from clinveil.attacks import (
    Effects,
    LeaveOut,
    UnitLogs,
    above_floors,
    cross_fit,
    flipped_p,
    leave_out,
)
from clinveil.stats import t_interval

NOISE = 0.66
REMEMBERED = 7


def models(
    rng: Generator,
    sizes: list[int],
    nats: float,
    seeds: int,
    *,
    spread: bool = False,
    systematic: float = 0.0,
) -> tuple[list[UnitLogs], list[list[UnitLogs]]]:
    """The models of all units, and those without one each: [s][j], [s][i][j]."""
    n = len(sizes)
    far = np.sqrt(np.array(sizes) / np.mean(sizes)) if spread else np.ones(n)
    same = [[systematic * rng.normal(0, NOISE, m) for m in sizes] for _ in sizes]
    full = [[rng.normal(0, NOISE, m) for m in sizes] for _ in range(seeds)]
    lost = [
        [
            [far[i] * (rng.normal(0, NOISE, m) + same[i][j]) for j, m in enumerate(sizes)]
            for i in range(n)
        ]
        for _ in range(seeds)
    ]
    for rows in lost:
        for unit in range(n):
            rows[unit][unit][REMEMBERED] -= nats
    return [list(one) for one in full], [[list(row) for row in rows] for rows in lost]


def remembered(runs: int) -> None:
    """Score, placebo and effect by what is remembered, seeds and units."""
    print("nats  seeds  units  score  placebo  score-placebo  effect  control  covered  P <= .05")
    for n in (6, 8):
        for seeds in (2, 3):
            for nats in (0.0, 2.0, 3.0, 4.0):
                print(f"{nats:4.1f}  {seeds:5}  {n:5}  {_row(runs, n, seeds, nats)}")


def _row(runs: int, n: int, seeds: int, nats: float) -> str:
    rng = np.random.default_rng([n, seeds, int(nats)])
    scores: list[LeaveOut] = []
    effects: list[Effects] = []
    for _ in range(runs):
        full, lost = models(rng, [500] * n, nats, seeds)
        scores.append(leave_out(full[0], lost[0]))
        effects.append(cross_fit(lost))
    means = np.array([one.own.mean() for one in effects])
    ends = np.array([t_interval(one.own) for one in effects])
    covered = ((ends[:, 0] <= means.mean()) & (means.mean() <= ends[:, 1])).mean()
    score, placebo = (
        np.mean([getattr(one, name).mean() for one in scores]) for name in ("scores", "placebos")
    )
    control = np.mean([one.control for one in effects])
    figures = (
        f"{score:5.2f}  {placebo:7.2f}  {score - placebo:13.2f}  {means.mean():6.2f} "
        f" {control:7.2f}"
    )
    return f"{figures}  {covered:7.3f}  {_rejected(effects, rng):8.3f}"


def level(runs: int) -> None:
    """How often the test rejects where nobody is remembered, and larger units move the model
    more.
    """
    print("\nunits  systematic  effect  control  P <= .05")
    for n in (6, 8, 30):
        sizes = [int(m) for m in np.geomspace(60, 600, n)]
        for systematic in (0.0, 1.0):
            rng = np.random.default_rng([n, int(systematic), 9])
            times = runs if n < 30 else max(1, runs // 4)
            effects = [
                cross_fit(models(rng, sizes, 0, 2, spread=True, systematic=systematic)[1])
                for _ in range(times)
            ]
            own = np.mean([e.own.mean() for e in effects])
            control = np.mean([e.control for e in effects])
            print(
                f"{n:5}  {systematic:10.1f}  {own:6.2f}  {control:7.2f} "
                f" {_rejected(effects, rng):8.3f}"
            )


def _rejected(effects: list[Effects], rng: Generator) -> float:
    return float(np.mean([flipped_p(above_floors(one.matrix), rng) <= 0.05 for one in effects]))


if __name__ == "__main__":
    often = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    remembered(often)
    level(often)
