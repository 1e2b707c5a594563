"""The scenario attack on random sets of targets: in what share of them it beats always naming the most frequent.

Beating is strict; a draw in which both score the same is not beaten, and counted. The same is done with other patients'
names, for a baseline is beaten in some draws by guesses that know nothing of the person.

Source: JMIR 2020;22(7):e18055, Experiment 3, Table 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.vectors._groups import Groups, distance_matrix
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.stats import permutation_p, wilson
from clinveil.stats.findings import unmeasured
from clinveil.stats.strata import permuted, strata

SOURCE = "JMIR 2020;22(7):e18055, Experiment 3, Table 4"
TOPS = (1, 5)
REPLICATES = 39
UNIT = "draws of targets"


def drawn_targets(
    found: Groups, draws: int, drawn: int, detail: dict[str, Any], rng: Generator, *, min_patients: int
) -> Iterator[Finding]:
    """The share of draws in which farthest, and nearest, beat the majority, for A@1 and A@5.

    Args:
        draws, drawn, min_patients: as for `scenario`. detail: of all findings; its `metric` is used.
    """
    eligible = np.flatnonzero(found.prevalence >= min_patients)
    detail = {**detail, "eligible": len(eligible), "targets_drawn": drawn}
    if len(eligible) <= drawn or drawn <= max(TOPS):
        why = f"{len(eligible)} diagnoses occur in {min_patients} or more of these patients; draws of {drawn} "
        why += f"need more, and more than {max(TOPS)} targets"
        yield unmeasured("attack.scenario_draws", why, detail=detail, source=SOURCE, unit=UNIT)
        return
    distances = distance_matrix(found.names, found.diagnoses[eligible], detail["metric"])
    has = found.has[:, eligible]
    parts = strata(found.sizes, found.frequency)
    orders = [np.arange(len(distances))] + [permuted(parts, rng) for _ in range(REPLICATES)]
    sets = [rng.permutation(len(eligible))[:drawn] for _ in range(draws)]
    for series, sign in (("farthest (the paper's)", -1.0), ("nearest", 1.0)):
        scores = np.array([_scores(sign * distances[:, columns], has[:, columns], orders) for columns in sets])
        for place, top in enumerate(TOPS):
            yield _finding(scores[:, place], {**detail, "series": series, "label": f"A@{top}", "top": top})


def _scores(key: Doubles, has: Mask, orders: list[Ints]) -> Doubles:
    """Of one draw: A@1 and A@5 under each order of names, and last those of the majority, (2, n_orders + 1)."""
    rows = np.flatnonzero(has.any(axis=1))
    best = np.argpartition(key, max(TOPS), axis=1)[:, : max(TOPS)]
    first = key.argmin(axis=1)
    counts = has.sum(axis=0)
    frequent = np.argsort(-counts, kind="stable")[: max(TOPS)]
    out = np.empty((2, len(orders) + 1))
    own, patients = has[rows], np.arange(len(rows))
    for place, order in enumerate(orders):
        names = order[rows]
        out[0, place] = own[patients, first[names]].mean()
        out[1, place] = own[patients[:, None], best[names]].any(axis=1).mean()
    out[0, -1] = has[rows, frequent[0]].mean()
    out[1, -1] = has[np.ix_(rows, frequent)].any(axis=1).mean()
    return out


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
