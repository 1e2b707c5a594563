"""What planted names did to S-PDTP: does the score rise, and does its largest difference fall on the name?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.models.leaveout.data import AuditData
from clinveil.attacks.models.leaveout.pdtp import LeaveOut
from clinveil.core.finding import Finding
from clinveil.stats import clopper_pearson, permutation_p

PERMUTATIONS = 9_999
METHOD = "Welch's t over units with a name and those without, 95 %"
FEW = "an interval of the effect of names needs two units with a name and two without, not all alike"
Scores = NDArray[np.float64]
SOURCE = "paper C, section 4.4, asks whether names raise it; the experiment is ours"


def name_findings(data: AuditData, compared: LeaveOut, rng: Generator, detail: Mapping[str, Any]) -> list[Finding]:
    """`attack.pdtp_planted`, the mean score of units with a name less that of those without, P by permuting which have
    one; `attack.pdtp_on_name`, the share of units whose largest difference is on the name. None without planted names.
    """
    planted = np.array([bool(span) for span in data.planted])
    if not planted.any() or planted.all():
        return []
    scores = compared.scores
    gap = float(scores[planted].mean() - scores[~planted].mean())
    null = np.array([_gap(scores, planted[rng.permutation(planted.size)]) for _ in range(PERMUTATIONS)])
    more = {**detail, "planted": int(planted.sum()), "scale": "nats"}
    more |= {"with_name": float(scores[planted].mean()), "without": float(scores[~planted].mean())}
    low, high = _interval(scores[planted], scores[~planted])
    rise = Finding(
        "attack.pdtp_planted",
        gap,
        planted.size,
        "lower",
        low,
        high,
        chance=0.0,
        source=SOURCE,
        detail=more if low is not None else {**more, "why": FEW},
        unit="audited units",
        p=permutation_p(gap, null),
        p_is="which units have a name dealt out anew, one-sided",
        method=METHOD if low is not None else "",
        chance_is="no effect of a name",
    )
    return [rise, _on_name(data, compared, detail)]


def _interval(one: Scores, other: Scores) -> tuple[float, float] | tuple[None, None]:
    """Of the difference of two means; units are few, and a bootstrap of three too narrow. Source: Welch 1947."""
    from scipy.stats import ttest_ind

    if min(one.size, other.size) < 2 or one.var() + other.var() == 0:
        return None, None
    ends = ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    return float(ends.low), float(ends.high)


def _gap(scores: Scores, planted: NDArray[np.bool_]) -> float:
    return float(scores[planted].mean() - scores[~planted].mean())


def _on_name(data: AuditData, compared: LeaveOut, detail: Mapping[str, Any]) -> Finding:
    rows = [unit for unit, span in enumerate(data.planted) if span]
    hits = sum(data.planted[u][0] <= int(compared.places[u]) < data.planted[u][1] for u in rows)
    low, high = clopper_pearson(hits, len(rows))
    shares = [(s[1] - s[0]) / int(data.encoded.lengths[data.units[u]].sum()) for u in rows if (s := data.planted[u])]
    return Finding(
        "attack.pdtp_on_name",
        hits / len(rows),
        len(rows),
        "lower",
        low,
        high,
        chance=float(np.mean(shares)),
        source=SOURCE,
        detail={**detail, "hits": hits, "scale": "share of units"},
        unit="units with a planted name",
        count=hits,
        method="exact over units (Clopper-Pearson), 95 %",
        chance_is="the name's share of a unit's words",
    )
