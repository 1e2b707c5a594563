"""The scenario attack on random sets of targets: in what share of them it beats always naming the most frequent.

Beating is strict; a draw in which both score the same is not beaten, and counted. The same is done with other patients'
names, for a baseline is beaten in some draws by guesses that know nothing of the person.

Source: JMIR 2020;22(7):e18055, Experiment 3, Table 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.vectors.groups import Groups, distances
from clinveil.attacks.vectors.nulls import permuted, strata
from clinveil.core.finding import Finding
from clinveil.stats import permutation_p, wilson

if TYPE_CHECKING:
    from clinveil.attacks.vectors.scenario import ScenarioPlan

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
SOURCE = "JMIR 2020;22(7):e18055, Experiment 3, Table 4"
TOPS = (1, 5)
REPLICATES = 39
UNIT = "draws of targets"


def drawn_targets(
    found: Groups, metric: str, plan: ScenarioPlan, detail: dict[str, Any], rng: Generator
) -> Iterator[Finding]:
    """The share of draws in which farthest, and nearest, beat the majority, for A@1 and A@5."""
    eligible = np.flatnonzero(found.prevalence >= plan.min_patients)
    detail = {**detail, "eligible": len(eligible), "targets_drawn": plan.drawn}
    if len(eligible) <= plan.drawn or plan.drawn <= max(TOPS):
        why = (
            f"{len(eligible)} diagnoses occur in {plan.min_patients} or more of these patients; draws of {plan.drawn} "
        )
        why += f"need more, and more than {max(TOPS)} targets"
        detail = {**detail, "why": why}
        yield Finding("attack.scenario_draws", None, 0, "lower", source=SOURCE, detail=detail, unit=UNIT)
        return
    far = distances(found.names, found.diagnoses[eligible], metric)
    has = found.has[:, eligible]
    parts = strata(found.sizes, found.frequency)
    orders = [np.arange(len(far))] + [permuted(parts, rng) for _ in range(REPLICATES)]
    sets = [rng.permutation(len(eligible))[: plan.drawn] for _ in range(plan.draws)]
    for series, sign in (("farthest (the paper's)", -1.0), ("nearest", 1.0)):
        scores = np.array([_scores(sign * far[:, columns], has[:, columns], orders) for columns in sets])
        for top, place in zip(TOPS, range(len(TOPS)), strict=True):
            yield _finding(scores[:, place], {**detail, "series": series, "label": f"A@{top}", "top": top})


def _scores(key: Doubles, has: Mask, orders: list[Ints]) -> Doubles:
    """Of one draw: A@1 and A@5 under each order of names, and last those of the majority, (2, n_orders + 1)."""
    rows = np.flatnonzero(has.any(axis=1))
    best = np.argpartition(key, max(TOPS), axis=1)[:, : max(TOPS)]
    first = key.argmin(axis=1)
    counts = has.sum(axis=0)
    frequent = np.argsort(-counts, kind="stable")[: max(TOPS)]
    out = np.empty((2, len(orders) + 1))
    for place, order in enumerate(orders):
        out[:, place] = _accuracies(has, rows, order[rows], first, best)
    out[0, -1] = has[rows, frequent[0]].mean()
    out[1, -1] = has[np.ix_(rows, frequent)].any(axis=1).mean()
    return out


@njit(nogil=True)
def _accuracies(has: Mask, rows: Ints, names: Ints, first: Ints, best: Ints) -> tuple[float, float]:
    """A@1 and A@5 of these patients under these names."""
    one = five = 0
    for at in range(len(rows)):
        own, name = has[rows[at]], names[at]
        one += own[first[name]]
        for guess in best[name]:
            if own[guess]:
                five += 1
                break
    return one / len(rows), five / len(rows)


def _finding(scores: Doubles, detail: dict[str, Any]) -> Finding:
    """From accuracies (draws, orders + majority)."""
    majority = scores[:, -1:]
    beaten = (scores[:, :-1] > majority).mean(axis=0)
    n = len(scores)
    count = round(float(beaten[0]) * n)
    detail = {
        **detail,
        "tied": float((scores[:, 0] == majority[:, 0]).mean()),
        "mean_accuracy": float(scores[:, 0].mean()),
        "best_accuracy": float(scores[:, 0].max()),
        "mean_accuracy_by_chance": float(scores[:, 1:-1].mean()),
        "mean_majority": float(majority.mean()),
    }
    share = count / n
    return Finding(
        "attack.scenario_draws",
        share,
        n,
        "lower",
        *wilson(count, n),
        float(beaten[1:].mean()),
        float(beaten[1]),
        SOURCE,
        detail,
        unit=UNIT,
        count=count,
        p=permutation_p(float(beaten[0]), beaten[1:]),
        p_is="names permuted over like patients, one-sided",
        method="Wilson over the draws of targets, 95 %; says nothing of other patients",
        chance_is=f"mean over {REPLICATES} permutations of names over patients alike in name frequency and diagnoses",
        control_is="one of these permutations",
        control_kind="negative",
        question="In how many random sets of targets is the attack right more often than always naming the most "
        "frequent ones, and in how many would it be under other patients' names?",
    )
