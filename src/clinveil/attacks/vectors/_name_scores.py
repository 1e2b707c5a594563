"""Scores of lists of token pairs against the true names: precision, patients named, and the best of
several models.

Each score has two references: the precision of a random list (chance), and the mean under
re-pairings of the true names (control), whose P is decisive: pairs share tokens, so a
hypergeometric tail would assume too much.

Source: JMIR 2020;22(7):e18055, experiment 1 and Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from clinveil.attacks.vectors._name_pairs import (
    DRAWS,
    NamePermutationTest,
    NameRanking,
    NameTokens,
    name_permutation_test,
)
from clinveil.core import Doubles, Finding, InputError
from clinveil.stats import (
    HitCounts,
    Interval,
    MeasureSpec,
    bootstrap_weights,
    permutation_p,
    share_by_patient,
    share_method,
    weighted_poisson,
)

K = 600  # as in the paper
SOURCE = "JMIR 2020;22(7):e18055, Table 1"
REPLACED = "JMIR 2020;22(7):e18055, conclusion: PHI replacement"
# hits; with fewer than this, and than a tenth of the true pairs, the interval is that of rare
# events
RARE_BELOW = 20
_RARE = "exact for rare events by name (Poisson; Fay and Feuer), 95 %; vectors fixed"
_INTERVAL = "bootstrap over names, 95 %; vectors fixed"
CONTROL_IS = "mean of the same list against names re-paired within position"
NAMED_PATIENTS = MeasureSpec(
    measure="attack.names_patients",
    over="patients",
    source=SOURCE,
    method="Clopper-Pearson over patients, 95 %",
    control_is=CONTROL_IS,
    control_kind="negative",
)
LEAKED_NAMES = MeasureSpec(
    measure="attack.names_leaked",
    over="names found",
    unit="full names found",
    source=REPLACED,
    chance_is="the share of real names among all full names of the notes",
    control_is="mean if the same number of names is labelled real at random",
    control_kind="negative",
    p_is="the same number of names labelled real at random, two-sided",
)


def attack_names(
    names: NameTokens,
    rankings: Sequence[NameRanking],
    rng: Generator,
    *,
    k: int = K,
    draws: int = DRAWS,
) -> list[Finding]:
    """Return, per model, the precision of the first k pairs and the share of patients named; also
    the best model.

    Args:
        names: the true names, which are secret.
        rankings: one per model, of at least k pairs, or of all.
        rng: for `draws` re-pairings, and the bootstrap of the best, whose P corrects for the
            choice.
        k: length of the list (the paper: 600).

    Raises InputError without a true pair or a ranking.
    """
    if not len(names.true_pairs) or not rankings:
        raise InputError(
            "there is no name of two or more tokens to search for",
            hint="provide full names, first name first",
        )
    test = name_permutation_test(names, rankings, k, rng, draws=draws)
    found = []
    for model, ranking in enumerate(rankings):
        scored = _Scored(names, ranking, test, model, k)
        found += [scored.precision(), scored.patients()]
    return found + ([_best(names, rankings, test, k, rng)] if len(rankings) > 1 else [])


def names_found(names: NameTokens, ranking: NameRanking, k: int) -> Doubles:
    """Return the number of each name's pairs among the first k, (n_names,); a pair shared by m
    namesakes counts 1/m.

    The sum is the number of hits; a name above 0 is reconstructed (input of attack 3).
    """
    pair_counts = np.zeros(names.n_names)
    ranks = [ranking.ranks(names.codes(group.tokens)) for group in names.groups]
    flat = np.concatenate([np.empty(0, np.int64), *(r.ravel() for r in ranks)])
    sharing = np.bincount(flat, minlength=len(ranking) + 1).astype(np.float64)
    for group, r in zip(names.groups, ranks, strict=True):
        shares = np.divide(1.0, sharing[r], out=np.zeros(r.shape), where=r < min(k, len(ranking)))
        pair_counts[group.rows] = shares.sum(axis=1)
    return pair_counts


@dataclass(frozen=True)
class _Scored:
    """Findings of one model."""

    names: NameTokens
    ranking: NameRanking
    test: NamePermutationTest
    model: int
    requested: int

    def precision(self) -> Finding:
        """Return the precision of the first K pairs."""
        true = _true_pairs(self.names, self.ranking)
        pairs = self.ranking.n_pairs
        k = min(self.requested, pairs)
        hits = int(self.test.hits[self.model])
        null = self.test.null_hits[:, self.model]
        (low, high), method = _interval(self.names, names_found(self.names, self.ranking, k), k)
        numbers = {
            **self._numbers(),
            "k": k,
            "hits_by_chance": k * true / pairs,
            "ceiling": min(1.0, true / k),
            "hits_repaired_most": int(null.max()),
        }
        if self.requested > pairs:
            numbers["k_asked"] = self.requested
        return Finding(
            "attack.names",
            hits / k,
            k,
            "lower",
            low,
            high,
            chance=true / pairs,
            control=float(null.mean() / k),
            control_is=CONTROL_IS,
            control_kind="negative",
            source=SOURCE,
            labels=_labels(self.ranking, k),
            numbers=numbers,
            unit="pairs",
            count=hits,
            p=float(self.test.p[self.model]),
            p_is=self._p_is(),
            method=method,
        )

    def patients(self) -> Finding:
        """Return the share of patients with a pair of their name among the first K."""
        k = min(self.requested, self.ranking.n_pairs)
        n = self.names.n_names
        finding = NAMED_PATIENTS.share(
            HitCounts(
                hits=int(self.test.names[self.model]),
                tries=n,
                chance=_chance_of_a_pair(self.names, self.ranking, k),
                control=float(self.test.null_names[:, self.model].mean() / n),
            ),
            p=float(self.test.names_p[self.model]),
            labels=_labels(self.ranking, k),
            numbers={**self._numbers(), "k": k},
        )
        return replace(finding, p_is=self._p_is())

    def _p_is(self) -> str:
        return (
            "re-pairing, all of them"
            if self.test.exact
            else "re-pairing, (count + 1) / (draws + 1)"
        )

    def _numbers(self) -> dict[str, float]:
        """Return how much was attacked and how much was left out."""
        names = self.names
        ranking = self.ranking
        return {
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


def _labels(ranking: NameRanking, k: int) -> tuple[str, ...]:
    return (*([ranking.label] if ranking.label else []), ranking.metric, f"K {k}")


def _true_pairs(names: NameTokens, ranking: NameRanking) -> int:
    """Return the number of true pairs with two ranked tokens."""
    return int(names.rankable(names.true_pairs, ranking.ranked).sum())


def _interval(names: NameTokens, found: Doubles, k: int) -> tuple[Interval, str]:
    """Return the interval of hits / k over names and its method: for rare events if hits are few,
    else of a share.
    """
    if _rare(names, found):
        low, high = weighted_poisson(found[found > 0])
        return Interval(low / k, min(1.0, high / k)), _RARE
    true = np.zeros(names.n_names)  # each name's pairs; pairs of namesakes count for each of them
    for group in names.groups:
        true[group.rows] = names.codes(group.tokens).shape[1]
    shares = np.stack([np.minimum(found, true), true], axis=1)
    low, high = share_by_patient(shares)
    scale = true.sum() / k
    method = share_method(shares, "names") + "; vectors fixed"
    return Interval(min(1.0, low * scale), min(1.0, high * scale)), method


def _rare(names: NameTokens, found: Doubles) -> bool:
    """Return whether hits are few, in absolute number and relative to the true pairs."""
    return float(found.sum()) < min(RARE_BELOW, len(names.true_pairs) / 10)


def _chance_of_a_pair(names: NameTokens, ranking: NameRanking, k: int) -> float:
    """Return the mean share of names with a pair among k random pairs."""
    from scipy.special import gammaln  # slow import

    total = ranking.n_pairs
    n = np.zeros(names.n_names)
    for group in names.groups:
        codes = names.codes(group.tokens)
        n[group.rows] = ((codes >= 0) & names.rankable(np.maximum(codes, 0), ranking.ranked)).sum(
            axis=1
        )
    rest = np.maximum(total - n, 0)
    none = (
        gammaln(rest + 1)
        + gammaln(total - k + 1)
        - gammaln(np.maximum(rest - k, 0) + 1)
        - gammaln(total + 1)
    )
    return float(np.where(rest >= k, -np.expm1(none), n > 0).mean())


def _best(
    names: NameTokens,
    rankings: Sequence[NameRanking],
    test: NamePermutationTest,
    k: int,
    rng: Generator,
) -> Finding:
    """Return the best of several models at the requested K, corrected by the maximum under each
    re-pairing.
    """
    k = min(k, *(ranking.n_pairs for ranking in rankings))
    best = int(test.hits.argmax())
    hits = int(test.hits[best])
    found = np.stack([names_found(names, ranking, k) for ranking in rankings], axis=1)
    (low, high), method = _interval(names, found[:, best], k)
    if not _rare(names, found[:, best]):
        low, high = bootstrap_weights(
            names.n_names, lambda weights: float((weights @ found).max()) / k, rng
        )
        method = _INTERVAL
    most = test.null_hits.max(axis=1)
    numbers = {
        "k": k,
        "models": len(rankings),
        "models_over_chance": int((test.adjusted_p <= 0.05).sum()),
        "repairings": len(test.null_hits),
    }
    return Finding(
        "attack.names_best",
        hits / k,
        k,
        "lower",
        min(low, hits / k),
        min(1.0, max(high, hits / k)),
        chance=max(_true_pairs(names, ranking) / ranking.n_pairs for ranking in rankings),
        control=float(most.mean() / k),
        control_is="mean of the best of the same models against names re-paired within position",
        control_kind="negative",
        source=f"{SOURCE}; maximum: Westfall & Young 1993",
        labels=_labels(rankings[best], k),
        numbers=numbers,
        unit="pairs",
        count=hits,
        p=float(test.adjusted_p[best]),
        p_is="the largest number of hits of any model under the same re-pairings",
        method=f"{method}; best model",
    )


def leaked_names(
    real: NameTokens, ranking: NameRanking, k: int, rng: Generator, *, draws: int = DRAWS
) -> Finding:
    """Return the share of real names among the full names found in the first k pairs.

    Under removal every remaining name is real. Under replacement the missed names occur among
    surrogates, so the list contains both. The share of real names in the list is compared with
    their share among all full names of the notes.

    Args:
        real: the names that were missed; `also`: the names that replaced the others.
        ranking: of the tokens of both.
        rng: for `draws` random labellings of the names.

    P is a permutation of labels: the same number of names, real or surrogate, is labelled real at
    random; two-sided, because real names may be closer together or farther apart.

    Source: the defence that JMIR 2020;22(7):e18055 recommends in its conclusion and does not test.
    """
    surrogates = real.others
    found = np.concatenate([names_found(names, ranking, k) > 0 for names in (real, surrogates)])
    count = int(found[: real.n_names].sum())
    n = int(found.sum())
    chance = real.n_names / len(found)
    k = min(k, len(ranking))
    labels = _labels(ranking, k)
    numbers = {
        "k": k,
        "real_names": real.n_names,
        "surrogate_names": surrogates.n_names,
        "draws": draws,
    }
    if not n:
        why = "the list contains no full name, real or surrogate"
        return LEAKED_NAMES.missing(why, chance=chance, labels=labels, numbers=numbers)
    # Number of found names labelled real if labels are random.
    null = rng.hypergeometric(n, len(found) - n, real.n_names, size=draws).astype(np.float64)
    return LEAKED_NAMES.share(
        HitCounts(hits=count, tries=n, chance=chance, control=float(null.mean() / n)),
        p=permutation_p(abs(count - n * chance), np.abs(null - n * chance)),
        labels=labels,
        numbers=numbers,
    )
