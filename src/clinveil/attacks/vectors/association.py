"""Association of names and diagnoses by the distance of their vectors: paper B's tests, each with a
stricter null.

The paper tests whether a name is as far from its own diagnoses as from others'. The distances can
differ without
disclosing anything about a person: a common diagnosis, or one with a long description, has another
distance than a rare one for every name. Each of the paper's tests is therefore accompanied by one
that keeps prevalence, and each finding states the question it answers.

`PatientTests` tests each patient: with random diagnoses (the paper's), a patient can be
"significant" for having common diagnoses. Other patients' names in place of their own exclude
everything that a set of diagnoses has in common with all names, such as prevalence and length of
description.

Source: JMIR 2020;22(7):e18055, Experiments 2a and 2b, Tables 2 and 3, Figure 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, comb

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.vectors._groups import (
    COUNTED,
    SWAPPED,
    Groups,
    distance_matrix,
    each_model,
    groups,
)
from clinveil.core import NO_NUMBERS, Doubles, Finding, Ints, Numbers, setting
from clinveil.stats import (
    HitCounts,
    Interval,
    MeasureSpec,
    NamePermutations,
    benjamini_hochberg,
    bootstrap_clusters,
    differences,
    holm,
    name_ranks,
    permute_names,
    permuted,
    rank_biserial,
    strata,
    wilcoxon_p,
)
from clinveil.vectors import Vectors

WILCOXON_CONTROLS = 99
MIN_PATIENTS = 5  # minimum patients for a test
THRESHOLDS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
BOOTSTRAP = (
    "percentile bootstrap over patients, 95 %; patients share the diagnosis vectors, so it is too"
    " narrow"
)
EXPECTED = (
    "the mean over all permutations of names within strata of name frequency and number of"
    " diagnoses"
)
SHARED = (
    "patients share the diagnosis vectors, so this test (paper B, 2a) rejects without any link"
    " between name and diagnosis; compare its rejection rate with names permuted"
    " (rejected_with_names_permuted)"
)
_QUESTION = (
    "Are names at another distance from their patients' diagnoses than names of similar frequency,"
    " of patients with the same number of diagnoses?"
)
PAPER = "JMIR 2020;22(7):e18055"
LEVEL = 0.05
PAPER_DRAWS = 1_000
RANDOM = "random diagnoses"
PAPERS = "random diagnoses, the paper's 1,000 draws and count/n"
NAMES = "other patients' names"
_ANY = (
    "Is the patient's name at another distance from their own diagnoses than from equally many"
    " random diagnoses?"
)
_QUESTIONS = {
    RANDOM: _ANY,
    PAPERS: _ANY,
    NAMES: (
        "Is the patient's own name at a more unusual distance from their diagnoses than other"
        " patients' names?"
    ),
}


class Association(Attack):
    """Compare the distances of names to their patients' diagnoses with those to others' (paper B,
    experiment 2).
    """

    needs = frozenset({"vectors", "known", "codes"})
    optional = frozenset({"counts"})
    metric: tuple[str, ...] = setting(
        ("cityblock", "cosine", "euclidean"),
        "cityblock, cosine or euclidean; repeatable (default: all). The first is used for the"
        " frequency curve.",
    )
    draws: int | None = setting(
        None, "Random groups of diagnoses per patient (default: patients / 0.05).", ge=1
    )
    permutations: int = setting(
        9_999, "Permutations of names for the tests over all patients.", ge=99
    )
    paper_p: bool = setting(
        False, "Also the paper's 1,000 draws with P = count/n, with their error rate."
    )

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack on each model with the same draws; `context.counts` is used for models
        without counts.
        """
        return each_model(context, rng, self.on)

    def on(self, vectors: Vectors, context: Context, rng: Generator) -> list[Finding]:
        """Return all findings on one model.

        Raises InputError if no name or no diagnosis has a vector; UsageError for an unknown metric.
        """
        found = groups(
            vectors, (context.known or {}).values(), context.codes or {}, counts=context.occurrences
        )
        tested = found.only(found.testable)
        findings = [_coverage(found, tested)]
        if len(tested) < MIN_PATIENTS:
            why = (
                f"{len(tested)} patients have a name vector and some of the diagnoses;"
                f" {MIN_PATIENTS} are needed"
            )
            return [*findings, _not_measured("attack.association_difference", len(tested), why)]
        parts = strata(tested.sizes, tested.frequency)
        swap = permuted(parts, rng)
        for metric in self.metric:
            model = _ModelDistances(
                tested, distance_matrix(tested.names, tested.diagnoses, metric), parts, swap, metric
            )
            swapped = permute_names(model.distances, tested.has, parts, self.permutations, rng)
            findings += [_wilcoxon(model, rng), *_means(model, swapped, rng)]
            each = PatientTests(
                model.distances, tested, swap, metric, draws=self.draws, threads=context.workers
            )
            findings += each.findings(rng, paper_p=self.paper_p)
            if metric == self.metric[0]:
                findings += _curve(model, swapped, rng)
        return findings


@dataclass(frozen=True)
class _ModelDistances:
    """Distances of the tested patients' names under one metric, strata, and one permutation as the
    control.
    """

    groups: Groups
    distances: Doubles
    parts: list[Ints]
    swap: Ints
    metric: str

    @cached_property
    def own(self) -> Doubles:
        """Return in - out of each patient, (n_patients,)."""
        return differences(self.distances, self.groups.has)

    @cached_property
    def control(self) -> Doubles:
        """Return the same with names permuted once, (n_patients,)."""
        return differences(self.distances[self.swap], self.groups.has)

    def finding(
        self,
        measure: str,
        own: Doubles,
        ends: Interval,
        numbers: Numbers,
        *,
        chance: float,
        control: float,
        source: str,
        question: str,
        value: float | None = None,
        p: float | None = None,
        p_is: str = "",
        chance_is: str = EXPECTED,
    ) -> Finding:
        """Return a finding over patients: the mean of `own` unless `value` is given."""
        kept = (
            "name frequency and number of diagnoses"
            if self.groups.frequency is not None
            else "number of diagnoses"
        )
        return Finding(
            measure,
            float(own.mean()) if value is None else value,
            len(own),
            low=ends.low,
            high=ends.high,
            chance=chance,
            chance_is=chance_is,
            control=control,
            control_is=SWAPPED,
            control_kind="negative",
            source=source,
            labels=(self.metric,),
            numbers={"strata": len(self.parts), **numbers},
            unit="patients",
            p=p,
            p_is=p_is,
            method=BOOTSTRAP,
            question=question,
            remarks=(f"strata of similar {kept}",),
        )


def _not_measured(measure: str, n: int, why: str) -> Finding:
    spec = MeasureSpec(measure=measure, better=None, source=PAPER, unit="patients")
    return spec.missing(why, n)


def _coverage(found: Groups, tested: Groups) -> Finding:
    n_patients = found.left_out["patients"]
    share = len(tested) / n_patients
    given = {"diagnoses": len(found.codes), "never_given": int((tested.prevalence == 0).sum())}
    return Finding(
        "attack.association_coverage",
        share,
        n_patients,
        low=share,
        high=share,
        source=PAPER,
        numbers={**given, **found.left_out},
        why=COUNTED,
        unit="patients",
        count=len(tested),
        method="exact, no sampling",
        question=(
            "How many of these patients can be tested with these vectors, and who was left out?"
        ),
    )


def _means(model: _ModelDistances, swapped: NamePermutations, rng: Generator) -> Iterable[Finding]:
    signed = (model.own, model.control, swapped.means, swapped.expected)
    absolute = (
        np.abs(model.own),
        np.abs(model.control),
        swapped.absolute,
        swapped.expected_absolute,
    )
    for name, (own, control, null, expected) in (("difference", signed), ("absolute", absolute)):
        centre = float(expected.mean())
        yield model.finding(
            f"attack.association_{name}",
            own,
            _mean_interval(own, rng),
            {"permutations": len(null), "mean_distance": float(model.distances.mean())},
            chance=centre,
            control=float(control.mean()),
            source=f"{PAPER}, Table 2",
            p=_two_sided(float(own.mean()), null, centre),
            p_is=(
                "names permuted among patients with similar name frequency and number of diagnoses,"
                " two-sided"
            ),
            question=_QUESTION,
        )


def _mean_interval(values: Doubles, rng: Generator) -> Interval:
    return bootstrap_clusters(values, lambda drawn: float(drawn.mean()), rng)


def _two_sided(observed: float, null: Doubles, centre: float) -> float:
    """Return P that a permutation is as far from the mean of all permutations as the observed
    order.
    """
    limit = abs(observed - centre) * (1 - 1e-12)
    return float((np.count_nonzero(np.abs(null - centre) >= limit) + 1) / (null.size + 1))


def _wilcoxon(model: _ModelDistances, rng: Generator) -> Finding:
    orders = [permuted(model.parts, rng) for _ in range(WILCOXON_CONTROLS)]
    others = [differences(model.distances[order], model.groups.has) for order in orders]
    rejection_rate = float(np.mean([wilcoxon_p(other) <= LEVEL for other in others]))
    finding = model.finding(
        "attack.association_wilcoxon",
        model.own,
        bootstrap_clusters(model.own, rank_biserial, rng),
        {
            "in_minus_out": float(model.own.mean()),
            "rejected_with_names_permuted": rejection_rate,
        },
        value=rank_biserial(model.own),
        chance=float(np.mean([rank_biserial(other) for other in others])),
        control=rank_biserial(model.control),
        source=f"{PAPER}, Experiment 2a; effect size: Kerby 2014, Compr. Psychol. 3:1",
        p=wilcoxon_p(model.own),
        p_is="signed ranks, assuming independent patients",
        question=(
            "Are names farther from own diagnoses than from others', assuming independent patients?"
        ),
        chance_is=f"{EXPECTED}, {WILCOXON_CONTROLS} of them",
    )
    return replace(finding, warning=SHARED)


def _curve(model: _ModelDistances, swapped: NamePermutations, rng: Generator) -> list[Finding]:
    """Return in - out of the names below each frequency threshold (Figure 3); the last point is all
    names.
    """
    frequency = model.groups.frequency
    n = len(model.own)
    measure = "attack.association_by_frequency"
    if frequency is None:
        return [
            _not_measured(measure, n, "these vectors have no word counts: pass the notes (--notes)")
        ]
    question = (
        "Are rarer names at other distances from their patients' diagnoses than frequent ones?"
    )
    points = []
    previous = 0
    for threshold in (*THRESHOLDS, None):
        below = np.ones(n, np.bool_) if threshold is None else frequency < threshold
        if below.sum() < MIN_PATIENTS or below.sum() == previous or (threshold and below.all()):
            continue
        previous = int(below.sum())
        own = model.own[below]
        ends = _mean_interval(model.own[below], rng)
        label = f"names seen fewer than {threshold:,} times" if threshold else "all names"
        point = model.finding(
            measure,
            own,
            ends,
            {"below": threshold},
            chance=float(swapped.expected[below].mean()),
            control=float(model.control[below].mean()),
            source=f"{PAPER}, Figure 3",
            question=question,
        )
        points.append(replace(point, labels=(label, *point.labels)))
    return points


def family_wise_error(n_patients: int, draws: int) -> float:
    """Return P of a false alarm under the complete null with P = count / n and Holm, for
    independent patients, no ties.

    Holm's first step rejects a count of at most level * draws / patients, and under the null each
    count from 0 to `draws` is equally likely.
    """
    most = int(LEVEL * draws / n_patients * (1 + 1e-12))
    return float(1 - (1 - (most + 1) / (draws + 1)) ** n_patients)


def default_draws(n_patients: int) -> int:
    """Return the number of draws for which Holm's first step can reject: patients / 0.05, minus
    one.

    1 / (n + 1) <= 0.05 / patients; for 638 patients n is 12,759.
    """
    return ceil(n_patients / LEVEL - 1e-9) - 1


@dataclass(frozen=True)
class PatientTests:
    """The tests of each patient under one metric.

    Attributes:
        distances: (n_patients, n_codes) of names to diagnoses. groups: who has which diagnosis.
        swap: (n_patients,) the row whose name each patient gets in the control.
        draws: of random groups; None for `default_draws`. threads: number of threads; no effect on
            results.
    """

    distances: Doubles
    groups: Groups
    swap: Ints
    metric: str
    draws: int | None = None
    threads: int = 2

    def findings(self, rng: Generator, *, paper_p: bool = False) -> Iterator[Finding]:
        """Yield the findings of all tests; with `paper_p` also that of the paper's draws, P = count
        / n.
        """
        from clinveil.stats import uniform_counts

        n = len(self.distances)
        draws = self.draws or default_draws(len(self.distances))

        def uniform(distances: Doubles, draws: int) -> Ints:
            return uniform_counts(distances, self.groups.has, draws, rng, threads=self.threads)

        yield self._finding(RANDOM, lambda d: (uniform(d, draws) + 1) / (draws + 1), holm, draws)
        if paper_p:
            yield self._finding(
                PAPERS, lambda d: uniform(d, PAPER_DRAWS) / PAPER_DRAWS, holm, PAPER_DRAWS
            )
        yield self._finding(NAMES, self._names, benjamini_hochberg, n)

    def _names(self, distances: Doubles) -> Doubles:
        frequency = self.groups.frequency
        if frequency is not None and distances is not self.distances:
            frequency = frequency[self.swap]  # the frequency of the swapped name
        return name_ranks(distances, self.groups.has, frequency)

    def _finding(
        self,
        series: str,
        test: Callable[[Doubles], Doubles],
        adjust: Callable[[Doubles], Doubles],
        draws: int,
    ) -> Finding:
        n = len(self.distances)
        p = test(self.distances)
        control_p = test(self.distances[self.swap])
        count = int((adjust(p) <= LEVEL).sum())
        control = int((adjust(control_p) <= LEVEL).sum())
        correction = "Benjamini-Hochberg" if adjust is benjamini_hochberg else "Holm-Bonferroni"
        warning, further = self._caveats(series, draws)
        numbers = {
            "draws": draws,
            "unadjusted": float((p <= LEVEL).mean()),
            "unadjusted_control": float((control_p <= LEVEL).mean()),
            "smallest_p": float(p.min()),
            **further,
        }
        # P = count / n rejects a count of 0, for which it gives P = 0.
        chance = {PAPERS: 1 / (PAPER_DRAWS + 1), NAMES: LEVEL}.get(series, LEVEL / n)
        source = (
            f"{PAPER}, Experiment 2b, Table 3" if series != NAMES else "Benjamini & Hochberg 1995"
        )
        spec = MeasureSpec(
            measure="attack.association_patients",
            series=series,
            over="patients",
            chance_is="the largest mean share that the correction allows without any association",
            control_is=f"the same test with {SWAPPED}",
            control_kind="negative",
            source=source,
            method="Clopper-Pearson, 95 %, as if patients were independent",
            question=_QUESTIONS[series],
        )
        finding = spec.share(
            HitCounts(hits=count, tries=n, chance=chance, control=control / n),
            labels=(self.metric,),
            numbers=numbers,
        )
        return replace(finding, warning=warning, remarks=(f"P corrected by {correction}",))

    def _caveats(self, series: str, draws: int) -> tuple[str, Numbers]:
        """Return a warning about a test, and further numbers."""
        n = len(self.distances)
        if series == NAMES:
            message = (
                f"no P can be below 1/{n}, so Holm could never reject; adjusted for name frequency"
            )
            return message, NO_NUMBERS
        if series == PAPERS:
            error = family_wise_error(n, draws)
            can_reject = "could never reject" if 1 / (draws + 1) > LEVEL / n else "can reject"
            message = (
                f"with count/n and {draws} draws the probability of any false alarm without an"
                " association is "
            )
            message += f"{error:.0%}; with (count+1)/(n+1) Holm over {n} patients {can_reject}"
            return message, {"family_wise_error": error}
        message = (
            "common diagnoses and long descriptions are at other distances from every name, so this"
            " rejects "
        )
        message += "without any link between this name and these diagnoses"
        return message, {"could_reject": self._could_reject(n)}

    def _could_reject(self, n: int) -> int:
        """Return the number of patients with enough groups of their size for Holm's first step to
        reject.
        """
        m = len(self.groups.codes)
        smallest_p = {size: 1 / comb(m, size) for size in set(self.groups.sizes.tolist())}
        return sum(smallest_p[size] <= LEVEL / n for size in self.groups.sizes.tolist())
