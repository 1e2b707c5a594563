"""Attack 1 by an attacker who is told no name tokens: he ranks the words that he took for names himself.

Names of clinicians and relatives stand in his list too and count as wrong, so the precision is a lower bound.
Source: JMIR 2020;22(7):e18055, experiment 1, without the assumption that name tokens are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.random import Generator

from clinveil.attacks.vectors.distances import Metric
from clinveil.attacks.vectors.name_ranking import rank_names
from clinveil.attacks.vectors.name_tokens import Name, NameTokens
from clinveil.attacks.vectors.names import SOURCE, K, attack_names
from clinveil.attacks.vectors.repairing import DRAWS
from clinveil.core.finding import Detail, Finding
from clinveil.vectors.table import Vectors

_KEPT = {"attack.names": "attack.names_picked", "attack.names_patients": "attack.names_picked_patients"}


def attack_picked_names(
    vectors: Vectors,
    names: Sequence[Name],
    picked: frozenset[str],
    metric: Metric,
    rng: Generator,
    *,
    k: int = K,
    draws: int = DRAWS,
    threads: int = 2,
    label: str = "",
) -> list[Finding]:
    """Precision and patients named where only the picked words are ranked; null where fewer than two were picked.

    Args:
        vectors: what is to be released.
        names: the true names: the secret.
        picked: words of the vocabulary that the attacker took for names (`find_names`).
        metric, rng, k, draws, threads, label: as in `rank_names` and `attack_names`.
    """
    if len(picked) < 2:
        why = f"only {len(picked)} words were taken for names"
        detail: Detail = {"model": label, "metric": metric, "k": k, "why": why}
        return [Finding(measure, None, 0, "lower", source=SOURCE, detail=detail) for measure in _KEPT.values()]
    tokens = NameTokens(names, also=[(word,) for word in sorted(picked)])
    ranking = rank_names(vectors, tokens, metric, k, candidates=picked, threads=threads, label=label)
    found = attack_names(tokens, [ranking], rng, k=k, curve=(), draws=draws)
    return [replace(finding, measure=_KEPT[finding.measure]) for finding in found if finding.measure in _KEPT]
