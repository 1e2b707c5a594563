"""What replacement of names buys: how well a ranking tells the real names that were missed from surrogates.

Under removal every name that is left is real. Under replacement the missed names stand among surrogates that were put
there, so the attacker's list holds both; the question is the share of real ones among the full names that he puts
together, against their share among all full names of the notes.

Source: the defence that JMIR 2020;22(7):e18055 recommends in its conclusion and does not test.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.vectors.name_ranking import NameRanking
from clinveil.attacks.vectors.name_tokens import NameTokens
from clinveil.attacks.vectors.names import Found, names_found
from clinveil.core.finding import Finding
from clinveil.stats import clopper_pearson, permutation_p

_UNIT = "full names found"
_SOURCE = "JMIR 2020;22(7):e18055, conclusion: PHI replacement"


def leaked_names(
    real: NameTokens, surrogates: NameTokens, ranking: NameRanking, k: int, rng: Generator, *, draws: int = 9999
) -> Finding:
    """The share of leaked real names among the full names that the first k pairs hold.

    Args:
        real: the names that were missed, `also` the surrogates.
        surrogates: the names that were put in place of the others, `also` the real ones.
        ranking: of the tokens of both.
        k: the length of the list.
        rng: draws which names are called real, for the P.
        draws: how many times.

    The P is of one label permutation: as many names, real or surrogate alike, called real at random; two-sided, since
    real names may lie nearer together or farther apart.
    """
    found = np.concatenate([names_found(names, ranking, k) > 0 for names in (real, surrogates)])
    is_real = np.arange(len(found)) < real.n_names
    count, n = int(found[is_real].sum()), int(found.sum())
    chance = real.n_names / len(found)
    detail: dict[str, float | str] = {
        "k": min(k, len(ranking)),
        "model": ranking.label,
        "metric": ranking.metric,
        "real_names": real.n_names,
        "surrogate_names": surrogates.n_names,
        "draws": draws,
    }
    if not n:
        detail["why"] = "the list holds no full name, real or surrogate"
        return Finding(
            "attack.names_leaked", None, 0, "lower", chance=chance, source=_SOURCE, detail=detail, unit=_UNIT
        )
    null = _labels(found, real.n_names, rng, draws)
    return Finding(
        "attack.names_leaked",
        count / n,
        n,
        "lower",
        *clopper_pearson(count, n),
        chance=chance,
        control=float(null.mean() / n),
        source=_SOURCE,
        detail=detail,
        unit=_UNIT,
        count=count,
        p=permutation_p(abs(count - n * chance), np.abs(null - n * chance)),
        p_is="as many names called real at random, two-sided",
        method="exact over names found (Clopper-Pearson), 95 %",
        chance_is="the share of real names among all full names of the notes",
        control_is="mean with as many names called real at random",
        control_kind="negative",
    )


def _labels(found: NDArray[np.bool_], n_real: int, rng: Generator, draws: int) -> Found:
    """How many of the names found are called real, when the label is dealt out at random: (draws,)."""
    return rng.hypergeometric(int(found.sum()), int((~found).sum()), n_real, size=draws).astype(np.float64)
