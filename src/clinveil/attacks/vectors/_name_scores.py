"""The scores of lists of token pairs against the true names: precision, patients named, the best of several models.

Beside each number stand the K-pair precision of a random list (chance) and the mean under re-pairings of the true names
(control), whose P is the one that counts; the hypergeometric tail takes pairs for independent, which pairs that share
tokens are not.

Source: JMIR 2020;22(7):e18055, experiment 1 and Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.vectors._name_pairs import (
    DRAWS,
    NamePermutationTest,
    NameRanking,
    NameTokens,
    name_permutation_test,
)
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles
from clinveil.stats import (
    Interval,
    bootstrap_weights,
    hypergeometric_tail,
    permutation_p,
    share_by_patient,
    share_method,
    weighted_poisson,
)
from clinveil.stats.findings import proportion, unmeasured

K = 600  # the paper's
CURVE = (10, 20, 50, 100, 200, 300, 400, 500, 600, 1000, 2000, 5000)
SOURCE = "JMIR 2020;22(7):e18055, Table 1"
REPLACED = "JMIR 2020;22(7):e18055, conclusion: PHI replacement"
FEW = 20  # hits, and a tenth of the true pairs: below both the interval is that of rare events
_RARE = "exact for rare events by name (Poisson; Fay and Feuer), 95 %; the vectors held fixed"
_INTERVAL = "bootstrap over names, 95 %; the vectors held fixed"
_CONTROL = {
    "control_is": "mean of the same list against names re-paired within position",
    "control_kind": "negative",
}


def list_lengths(names: NameTokens, k: int = K, curve: Sequence[int] = CURVE) -> dict[str, int]:
    """The lengths of the list that are scored, by what they are called in the findings.

    `names` is the K asked for, `names_half` half the tokens (what an attacker would expect of two-token names),
    `names_all` as many as there are true pairs, `names_at_…` the curve.
    """
    special = {"names": k, "names_half": max(1, len(names.tokens) // 2), "names_all": len(names.true_pairs)}
    return special | {f"names_at_{at}": at for at in curve if at < max(special.values())}


def attack_names(
    names: NameTokens,
    rankings: Sequence[NameRanking],
    rng: Generator,
    *,
    k: int = K,
    curve: Sequence[int] = CURVE,
    draws: int = DRAWS,
) -> list[Finding]:
    """Of each model the precision at each length, and the share of patients with a name found; of several the best.

    Args:
        names: the true names: the secret.
        rankings: one a model, at least as long as the longest of `list_lengths(names, k, curve)`, or all pairs.
        rng: `draws` re-pairings, and the bootstrap of the best, whose P pays for the choice.
        k: the list's length to report (the paper: 600). curve: further lengths.

    Raises InputError for no true pair at all, or no ranking.
    """
    if not len(names.true_pairs) or not rankings:
        raise InputError("there is no name of two tokens or more to look for", hint="full names, first name first")
    lengths = list_lengths(names, k, curve)
    test = name_permutation_test(names, rankings, list(lengths.values()), rng, draws=draws)
    found = []
    for model, ranking in enumerate(rankings):
        scored = _Scored(names, ranking, test, model)
        found += [scored.precision(*asked, place) for place, asked in enumerate(lengths.items())]
        found.append(scored.patients())
    return found + ([_best(names, rankings, test, rng)] if len(rankings) > 1 else [])


def names_found(names: NameTokens, ranking: NameRanking, k: int) -> Doubles:
    """What the first k pairs give of each name, (n_names,): its pairs among them, one of m namesakes' counting 1/m.

    The sum is the number of hits; a name over 0 is reconstructed (attack 3 goes on from there).
    """
    out = np.zeros(names.n_names)
    ranks = [ranking.ranks(names.codes(group.tokens)) for group in names.groups]
    flat = np.concatenate([np.empty(0, np.int64), *(r.ravel() for r in ranks)])
    bearers = np.bincount(flat, minlength=len(ranking) + 1).astype(np.float64)
    for group, r in zip(names.groups, ranks, strict=True):
        shares = np.divide(1.0, bearers[r], out=np.zeros(r.shape), where=r < min(k, len(ranking)))
        out[group.rows] = shares.sum(axis=1)
    return out


@dataclass(frozen=True)
class _Scored:
    """One model's findings."""

    names: NameTokens
    ranking: NameRanking
    test: NamePermutationTest
    model: int

    def precision(self, name: str, asked: int, place: int) -> Finding:
        """The precision of the first K pairs."""
        true, pairs = _true_pairs(self.names, self.ranking), self.ranking.n_pairs
        k, hits = min(asked, pairs), int(self.test.hits[self.model, place])
        null = self.test.null_hits[:, self.model, place]
        (low, high), method = _interval(self.names, names_found(self.names, self.ranking, k), k)
        detail: dict[str, Any] = {
            **self._about(),
            "k": k,
            "hits": hits,
            "hits_by_chance": k * true / pairs,
            "ceiling": min(1.0, true / k),
            "hits_repaired_most": int(null.max()),
            "hypergeometric_tail": hypergeometric_tail(hits, pairs, true, k),
            "hypergeometric_tail_is": "descriptive only: pairs share tokens",
        } | ({"k_asked": asked} if asked > pairs else {})
        beside: dict[str, Any] = {"chance": true / pairs, "control": float(null.mean() / k), **_CONTROL}
        beside |= {"p": float(self.test.p[self.model, place]), "p_is": self._p_is(), "source": SOURCE, "detail": detail}
        beside |= {"unit": "pairs", "count": hits, "method": method}
        return Finding(f"attack.{name}", hits / k, k, "lower", low, high, **beside)

    def patients(self) -> Finding:
        """The share of patients of whose name a pair is among the first K."""
        k, n = min(self.test.ks[0], self.ranking.n_pairs), self.names.n_names
        control = float(self.test.null_names[:, self.model, 0].mean() / n)
        beside: dict[str, Any] = {"chance": _chance_of_a_pair(self.names, self.ranking, k), "control": control}
        beside |= {"p": float(self.test.names_p[self.model, 0]), "p_is": self._p_is(), **_CONTROL}
        beside |= {
            "method": "Clopper-Pearson over patients, 95 %",
            "source": SOURCE,
            "detail": self._about() | {"k": k},
        }
        count = int(self.test.names[self.model, 0])
        return proportion("attack.names_patients", count, n, over="patients", **beside)

    def _p_is(self) -> str:
        return "re-pairing, all of them" if self.test.exact else "re-pairing, (count + 1) / (draws + 1)"

    def _about(self) -> dict[str, Any]:
        """What was attacked, and what was left out."""
        names, ranking = self.names, self.ranking
        return {
            "model": ranking.label,
            "metric": ranking.metric,
            "tokens_ranked": int(ranking.ranked.sum()),
            "name_tokens": len(names.tokens),
            "name_tokens_not_ranked": int((~ranking.ranked[names.tokens]).sum()),
            "zero_vectors": ranking.zero,
            "pairs": ranking.n_pairs,
            "true_pairs": len(names.true_pairs),
            "true_pairs_ranked": _true_pairs(names, ranking),
            "names_given": names.n_names,
            "names_of_one_token": names.lone,
            "letters_left_out": names.letters,
            "repairings": len(self.test.null_hits),
            "names_alone_in_their_shape": self.test.fixed,
        }


def _true_pairs(names: NameTokens, ranking: NameRanking) -> int:
    """True pairs that the list could hold: both tokens have vectors and were ranked."""
    return int(names.rankable(names.true_pairs, ranking.ranked).sum())


def _interval(names: NameTokens, found: Doubles, k: int) -> tuple[Interval, str]:
    """Of hits / k over names, and how it was made: for rare events where hits are few, else of the share of pairs."""
    if _rare(names, found):
        low, high = weighted_poisson(found[found > 0])
        return Interval(low / k, min(1.0, high / k)), _RARE
    true = np.zeros(names.n_names)  # each name's pairs; those of namesakes count for each of them
    for group in names.groups:
        true[group.rows] = names.codes(group.tokens).shape[1]
    shares = np.stack([np.minimum(found, true), true], axis=1)
    low, high = share_by_patient(shares)
    scale = true.sum() / k
    method = share_method(shares, "names") + "; vectors held fixed"
    return Interval(min(1.0, low * scale), min(1.0, high * scale)), method


def _rare(names: NameTokens, found: Doubles) -> bool:
    """Whether hits are few, and few of all that there could be."""
    return float(found.sum()) < min(FEW, len(names.true_pairs) / 10)


def _chance_of_a_pair(names: NameTokens, ranking: NameRanking, k: int) -> float:
    """The mean share of names with a pair among k pairs drawn at random."""
    from scipy.special import gammaln  # heavy at import

    total, n = ranking.n_pairs, np.zeros(names.n_names)
    for group in names.groups:
        codes = names.codes(group.tokens)
        n[group.rows] = ((codes >= 0) & names.rankable(np.maximum(codes, 0), ranking.ranked)).sum(axis=1)
    rest = np.maximum(total - n, 0)
    none = gammaln(rest + 1) + gammaln(total - k + 1) - gammaln(np.maximum(rest - k, 0) + 1) - gammaln(total + 1)
    return float(np.where(rest >= k, -np.expm1(none), n > 0).mean())


def _best(names: NameTokens, rankings: Sequence[NameRanking], test: NamePermutationTest, rng: Generator) -> Finding:
    """The best of several models at the K asked for; picking it is paid for by the largest under each re-pairing."""
    k = min(test.ks[0], *(ranking.n_pairs for ranking in rankings))
    best = int(test.hits[:, 0].argmax())
    hits = int(test.hits[best, 0])
    found = np.stack([names_found(names, ranking, k) for ranking in rankings], axis=1)
    (low, high), method = _interval(names, found[:, best], k)
    if not _rare(names, found[:, best]):
        low, high = bootstrap_weights(names.n_names, lambda weights: float((weights @ found).max()) / k, rng)
        method = _INTERVAL
    most = test.null_hits[:, :, 0].max(axis=1)
    detail: dict[str, Any] = {
        "k": k,
        "hits": hits,
        "models": len(rankings),
        "model": rankings[best].label,
        "metric": rankings[best].metric,
        "models_over_chance": int((test.adjusted_p[:, 0] <= 0.05).sum()),
        "repairings": len(test.null_hits),
    }
    beside: dict[str, Any] = {"chance": max(_true_pairs(names, r) / r.n_pairs for r in rankings)}
    beside |= {"control": float(most.mean() / k), "control_kind": "negative", "p": float(test.adjusted_p[best, 0])}
    beside |= {"control_is": "mean of the best of the same models against names re-paired within position"}
    beside |= {"p_is": "the most hits of any model, under the same re-pairings", "method": f"{method}; of the best"}
    beside |= {"source": f"{SOURCE}; maximum: Westfall & Young 1993", "unit": "pairs", "count": hits, "detail": detail}
    ends = min(low, hits / k), min(1.0, max(high, hits / k))
    return Finding("attack.names_best", hits / k, k, "lower", *ends, **beside)


def leaked_names(real: NameTokens, ranking: NameRanking, k: int, rng: Generator, *, draws: int = DRAWS) -> Finding:
    """The share of leaked real names among the full names that the first k pairs hold.

    Under removal every name that is left is real. Under replacement the missed names stand among surrogates, so the
    attacker's list holds both; the question is the share of real ones among the full names that they put together,
    against their share among all full names of the notes.

    Args:
        real: the names that were missed, `also` the names that were put in place of the others.
        ranking: of the tokens of both.
        rng: draws which names are called real, `draws` times.

    The P is of one label permutation: as many names, real or surrogate alike, called real at random; two-sided, since
    real names may lie nearer together or farther apart.

    Source: the defence that JMIR 2020;22(7):e18055 recommends in its conclusion and does not test.
    """
    surrogates = real.others
    found = np.concatenate([names_found(names, ranking, k) > 0 for names in (real, surrogates)])
    count, n = int(found[: real.n_names].sum()), int(found.sum())
    chance = real.n_names / len(found)
    detail = {"k": min(k, len(ranking)), "model": ranking.label, "metric": ranking.metric}
    detail |= {"real_names": real.n_names, "surrogate_names": surrogates.n_names, "draws": draws}
    about: dict[str, Any] = {"source": REPLACED, "unit": "full names found", "detail": detail, "chance": chance}
    if not n:
        return unmeasured("attack.names_leaked", "the list holds no full name, real or surrogate", **about)
    # How many of the names found are called real, when the label is given at random.
    null = rng.hypergeometric(n, len(found) - n, real.n_names, size=draws).astype(np.float64)
    about |= {"p": permutation_p(abs(count - n * chance), np.abs(null - n * chance))}
    about |= {"p_is": "as many names called real at random, two-sided", "control": float(null.mean() / n)}
    about |= {"chance_is": "the share of real names among all full names of the notes", "control_kind": "negative"}
    about |= {"control_is": "mean with as many names called real at random"}
    return proportion("attack.names_leaked", count, n, over="names found", **about)
