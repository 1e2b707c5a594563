"""Name and diagnosis: does the distance of their vectors tell who has what? Paper B's tests, and nulls beside them.

The paper asks whether a name lies as far from its own diagnoses as from others'. That can differ for reasons that give
nobody away: a frequent diagnosis, or one of long description, lies elsewhere than a rare one, for every name alike. So
each of its tests stands beside one that keeps prevalence, and each finding says in words which question it answers.

Source: JMIR 2020;22(7):e18055, Experiments 2a and 2b, Tables 2 and 3, Figure 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.vectors.distances import METRICS
from clinveil.attacks.vectors.groups import Groups, differences, distances, groups
from clinveil.attacks.vectors.nulls import NamePermutations, permute_names, permuted, strata
from clinveil.attacks.vectors.patient_tests import PatientTests
from clinveil.core.finding import Finding
from clinveil.stats import bootstrap_clusters, holm
from clinveil.stats.signed_rank import rank_biserial, wilcoxon_p
from clinveil.vectors.table import Vectors

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
PAPER = "JMIR 2020;22(7):e18055"
LEVEL = 0.05
PERMUTATIONS = 9_999
WILCOXON_CONTROLS = 99
FEWEST = 5  # patients under which nothing is tested
THRESHOLDS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
BOOTSTRAP = "percentile bootstrap over patients, 95 %; patients share the diagnosis vectors, so it is too narrow"
SWAPPED = "names permuted once over patients of like name frequency and number of diagnoses"
EXPECTED = "the mean over all permutations of names within strata of name frequency and number of diagnoses"


@dataclass(frozen=True)
class AssociationPlan:
    """What is measured, and how often is drawn.

    Attributes:
        metrics: distances; the frequency curve is drawn for the first.
        draws: of each patient's random groups; None for patients / 0.05, so that Holm's first step can reject.
        permutations: of names, for the tests over all patients.
        paper_draws: also the paper's 1,000 draws with P = count / n, and a warning.
        threads: how many; nothing depends on it.
    """

    metrics: Sequence[str] = ("cityblock", "cosine", "euclidean")
    draws: int | None = None
    permutations: int = PERMUTATIONS
    paper_draws: bool = False
    threads: int = 2


def association(
    vectors: Vectors,
    patients: Iterable[Patient],
    codes: Mapping[str, str],
    rng: Generator,
    plan: AssociationPlan | None = None,
    *,
    counts: Mapping[str, int] | None = None,
) -> list[Finding]:
    """All findings of the attack on one model.

    Args:
        vectors: what is to be released.
        patients: those whose names the remover missed, with their codes.
        codes: code -> description of 1 to 3 words.
        counts: occurrences of words, for vectors that carry none.

    Raises:
        InputError: no name or no diagnosis has a vector. UsageError: an unknown metric.
    Source: as the module; nulls: `attack.nulls`, `attack.draws`.
    """
    plan = plan or AssociationPlan()
    found = groups(vectors, patients, codes, counts=counts)
    tested = found.only(found.both)
    findings = [_coverage(found, tested)]
    if len(tested) < FEWEST:
        why = f"{len(tested)} patients have a name vector, some of the diagnoses and not all; {FEWEST} are needed"
        return [*findings, _nothing("attack.association_difference", len(tested), why)]
    parts = strata(tested.sizes, tested.frequency)
    swap = permuted(parts, rng)
    for metric in plan.metrics:
        model = _Model(tested, distances(tested.names, tested.diagnoses, metric), parts, swap, metric)
        swapped = permute_names(model.far, tested.has, parts, plan.permutations, rng)
        findings += [*_population(model, swapped, rng), *PatientTests(model.far, tested, swap, metric)(plan, rng)]
        if metric == plan.metrics[0]:
            findings += _curve(model, swapped, rng)
    return findings


@dataclass(frozen=True)
class _Model:
    """Distances of the tested patients' names under one metric, strata, and one permutation as the control."""

    groups: Groups
    far: Doubles
    parts: list[Ints]
    swap: Ints
    metric: str

    @property
    def detail(self) -> dict[str, Any]:
        kept = "name frequency and number of diagnoses" if self.groups.frequency is not None else "number of diagnoses"
        return {"metric": self.metric, "strata": len(self.parts), "strata_of": kept}


# What the mean distances and the signed ranks are of, and what stands beside them.
_BESIDE: dict[str, Any] = {
    "unit": "patients",
    "method": BOOTSTRAP,
    "chance_is": EXPECTED,
    "control_is": SWAPPED,
    "control_kind": "negative",
}


def _nothing(measure: str, n: int, why: str, **detail: Any) -> Finding:
    return Finding(measure, None, n, source=PAPER, unit="patients", detail={**detail, "why": why})


def _coverage(found: Groups, tested: Groups) -> Finding:
    everyone = found.left_out["patients"]
    detail: dict[str, Any] = {
        "why": "a count: nothing is guessed here, so there is no chance and no control",
        "diagnoses": len(found.codes),
        "never_given": int((tested.has.sum(axis=0) == 0).sum()),
        **found.left_out,
    }
    share = len(tested) / everyone
    return Finding(
        "attack.association_coverage",
        share,
        everyone,
        low=share,
        high=share,
        source=PAPER,
        detail=detail,
        unit="patients",
        count=len(tested),
        method="exact, no sampling",
        question="For how many of these patients can the vectors be tested at all, and what was left out?",
    )


def _population(model: _Model, swapped: NamePermutations, rng: Generator) -> list[Finding]:
    own = differences(model.far, model.groups.has)
    control = differences(model.far[model.swap], model.groups.has)
    return [_wilcoxon(model, own, control, rng), *_means(model, own, control, swapped, rng)]


def _means(
    model: _Model, own: Doubles, control: Doubles, swapped: NamePermutations, rng: Generator
) -> Iterable[Finding]:
    for absolute in (False, True):
        values, other = (np.abs(own), np.abs(control)) if absolute else (own, control)
        null = swapped.absolute if absolute else swapped.means
        centre = float((swapped.expected_absolute if absolute else swapped.expected).mean())
        detail: dict[str, Any] = {
            **model.detail,
            "permutations": len(null),
            "mean_distance": float(model.far.mean()),
        }
        name = "attack.association_absolute" if absolute else "attack.association_difference"
        ends = _mean_interval(values, rng)
        yield Finding(
            name,
            values.mean(),
            len(values),
            None,
            *ends,
            centre,
            other.mean(),
            f"{PAPER}, Table 2",
            detail,
            p=_two_sided(float(values.mean()), null, centre),
            p_is="names permuted over patients alike in name frequency and diagnoses, two-sided",
            question="Do names lie otherwise to their own bearers' diagnoses than names of like frequency do, of "
            "patients with as many diagnoses?",
            **_BESIDE,
        )


def _mean_interval(values: Doubles, rng: Generator) -> tuple[float, float]:
    return bootstrap_clusters(values, lambda drawn: float(drawn.mean()), rng)


def _two_sided(observed: float, null: Doubles, centre: float) -> float:
    """P that a permutation lies as far from the mean of all permutations as the observed order does."""
    bar = abs(observed - centre) * (1 - 1e-12)
    return float((np.count_nonzero(np.abs(null - centre) >= bar) + 1) / (null.size + 1))


def _wilcoxon(model: _Model, own: Doubles, control: Doubles, rng: Generator) -> Finding:
    orders = [permuted(model.parts, rng) for _ in range(WILCOXON_CONTROLS)]
    others = [differences(model.far[order], model.groups.has) for order in orders]
    detail = {
        **model.detail,
        "in_minus_out": float(own.mean()),
        "rejected_with_names_permuted": float(np.mean([wilcoxon_p(other) <= LEVEL for other in others])),
        "warning": "patients share the diagnosis vectors, so this test (paper B, 2a) rejects without any link between "
        "name and diagnosis; see how often it does so with names permuted (rejected_with_names_permuted)",
    }
    return Finding(
        "attack.association_wilcoxon",
        rank_biserial(own),
        len(own),
        None,
        *bootstrap_clusters(own, rank_biserial, rng),
        float(np.mean([rank_biserial(other) for other in others])),
        rank_biserial(control),
        f"{PAPER}, Experiment 2a; effect size: Kerby 2014, Compr. Psychol. 3:1",
        detail,
        p=wilcoxon_p(own),
        p_is="signed ranks, as if patients were independent",
        question="Do names lie farther from own diagnoses than from others', if patients were independent?",
        **{**_BESIDE, "chance_is": f"{EXPECTED}, {WILCOXON_CONTROLS} of them"},
    )


def _curve(model: _Model, swapped: NamePermutations, rng: Generator) -> list[Finding]:
    """in - out of the names below each frequency threshold (Figure 3); the last point is all names."""
    frequency = model.groups.frequency
    measure = "attack.association_by_frequency"
    if frequency is None:
        return [_nothing(measure, len(model.far), "these vectors carry no counts: give the notes (--notes)")]
    own = differences(model.far, model.groups.has)
    control = differences(model.far[model.swap], model.groups.has)
    points, seen = [], 0
    for threshold in (*THRESHOLDS, None):
        below = np.ones(len(own), np.bool_) if threshold is None else frequency < threshold
        if below.sum() < FEWEST or below.sum() == seen or (threshold and below.all()):
            continue
        seen = int(below.sum())
        ends = _mean_interval(own[below], rng)
        detail = {
            **model.detail,
            "below": threshold,
            "label": f"names seen fewer than {threshold:,} times" if threshold else "all names",
        }
        value, chance, other = (float(x[below].mean()) for x in (own, swapped.expected, control))
        point = Finding(
            measure, value, seen, None, *ends, chance, other, f"{PAPER}, Figure 3", detail, question=_RARER, **_BESIDE
        )
        points.append(point)
    return points


_RARER = "Do rarer names lie otherwise to their bearers' diagnoses than frequent ones do?"


def over_models(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of several models, each P also adjusted by Holm over all models and metrics of its measure.

    The detail `p_over_models` is added where a finding has a `p`, and `models` says over how many.
    """
    families: dict[tuple[str, object], list[int]] = {}
    for place, finding in enumerate(findings):
        if finding.p is not None:
            families.setdefault((finding.measure, finding.detail.get("series")), []).append(place)
    adjusted = list(findings)
    for places in families.values():
        values = holm([findings[place].p or 0.0 for place in places])
        for place, value in zip(places, values.tolist(), strict=True):
            detail = {**findings[place].detail, "p_over_models": value, "models": len(places)}
            adjusted[place] = replace(findings[place], detail=detail)
    return adjusted


__all__ = ["METRICS", "AssociationPlan", "association", "over_models"]
