"""The scenario attack: for each name, the five farthest of some target diagnoses are claimed to be
the patient's.

Patients with a name vector and at least one target are included. A@1 is the share of them with a
right first guess, A@5 the share with a right guess among five. The majority baseline guesses the
most frequent target, or the five most frequent, for every patient. Targets at the same distance
from a name are in an order drawn once for all names.

Whether near or far is informative is not known beforehand: the direction is chosen on half of the
patients, as the one that exceeds the same guesses under other patients' names by more, and scored
on the other half. Chance is also that of other patients' names.

On random sets of targets, the share of sets in which the attack beats the majority baseline is
measured. Ties do not count as beaten, and are counted. The same is done with other patients' names,
because guesses without any information also beat a baseline in some draws.

Source: JMIR 2020;22(7):e18055, Experiment 3, Table 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from clinveil import Finding, Patient, Vectors
from clinveil.attacks import SWAPPED, Groups, distance_matrix, groups
from clinveil.core import Doubles, Ints, Mask, Numbers
from clinveil.stats import HitCounts, MeasureSpec, permutation_p, permuted, strata, wilson
from papers.jmir_2020.targets import PAPER_TARGETS, TOPS, target_columns

SOURCE = "JMIR 2020;22(7):e18055, Experiment 3"
SOURCE_OF_DRAWS = f"{SOURCE}, Table 4"
UNIT = "patients with a target"
UNIT_OF_DRAWS = "draws of targets"
MIN_PATIENTS = 5
REPLICATES = 39  # permutations of names for the random sets of targets
SIDES = (("farthest (the paper's)", False), ("nearest", True))
P_IS = "names permuted among similar patients, one-sided"
CHANCE_IS = (
    "the same guesses under the names of other patients with similar name frequency and number of"
    " diagnoses"
)
QUESTION = (
    "How often do the vectors name a diagnosis that the patient has, "
    "and would another patient's name do as well?"
)
QUESTION_OF_DRAWS = (
    "In how many random sets of targets is the attack right more often than always naming the most"
    " frequent ones, and in how many would it be under other patients' names?"
)
_COUNTS = (
    "patients",
    "names_without_vector",
    "no_diagnosis",
    "diagnoses_without_vector",
    "shared_names",
)
GUESSED = MeasureSpec(
    measure="attack.scenario",
    over=UNIT,
    source=SOURCE,
    p_is=P_IS,
    method="Clopper-Pearson, 95 %",
    chance_is=CHANCE_IS,
    control_is=SWAPPED,
    control_kind="negative",
    question=QUESTION,
)


@dataclass(frozen=True)
class Scenario:
    """Name target diagnoses for each name, farthest and nearest, compared with chance.

    Attributes:
        metrics: of the distances. permutations: of names, for chance and P.
        draws: random sets of targets. drawn: targets in a set. min_patients: of a diagnosis in a
            set.
        targets: descriptions or codes.
    """

    metrics: tuple[str, ...] = ("cityblock", "cosine")
    permutations: int = 999
    draws: int = 1_000
    drawn: int = 30
    min_patients: int = 10
    targets: Sequence[str] = PAPER_TARGETS

    def findings(
        self,
        vectors: Vectors,
        patients: Sequence[Patient],
        codes: Mapping[str, str],
        rng: Generator,
    ) -> list[Finding]:
        """Return all findings on one model. Raises InputError if no name or no diagnosis has a
        vector, UsageError for an unknown metric.
        """
        named = groups(vectors, patients, codes)
        targets = target_columns(self.targets, named.codes, codes)
        counts = {reason: named.left_out[reason] for reason in _COUNTS}
        findings: list[Finding] = []
        for metric in self.metrics:
            numbers = {**targets.numbers, "names": len(named), **counts}
            findings += _of_targets(named, targets.columns, metric, self.permutations, numbers, rng)
            findings += drawn_targets(named, self, metric, numbers, rng)
        return findings


@dataclass(frozen=True)
class Contest:
    """Names against targets: `distances` (n, n_targets), `has` (n, n_targets), `parts` strata of
    the patients.
    """

    distances: Doubles
    has: Mask
    parts: list[Ints]

    def guesses(self, *, nearest: bool) -> Ints:
        """Return up to 5 targets per name in the order of the guesses, (n, 5)."""
        order = np.argsort(self.distances if nearest else -self.distances, axis=1, kind="stable")
        return np.asarray(order[:, : max(TOPS)])

    def majority(self, has: Mask | None = None) -> Ints:
        """Return the most frequent targets, the same for every name, (n, 5); ties by column."""
        counts = (self.has if has is None else has).sum(axis=0)
        best = np.argsort(-counts, kind="stable")[: max(TOPS)]
        return np.tile(best, (len(self.distances), 1))

    def right(self, guesses: Ints, top: int) -> Mask:
        """Return whether one of the first `top` guesses is right, (n,)."""
        return np.asarray(np.take_along_axis(self.has, guesses[:, :top], axis=1).any(axis=1))

    def gains(self, guesses: Ints) -> tuple[float, ...]:
        """Return by how many patients the guesses exceed their mean over all permutations within
        strata: A@5, A@1.
        """
        excess = []
        for top in reversed(TOPS):
            shares = (
                self.has[part][:, guesses[part, :top]].any(axis=2).mean() * len(part)
                for part in self.parts
            )
            by_chance = sum(shares)
            excess.append(round(float(self.right(guesses, top).sum() - by_chance), 9))
        return tuple(excess)

    def only(self, rows: Ints) -> Contest:
        """Return the same for some of the patients."""
        new_index = np.full(len(self.distances), -1)
        new_index[rows] = np.arange(len(rows))
        parts = [kept[kept >= 0] for part in self.parts if (kept := new_index[part]).max() >= 0]
        return Contest(self.distances[rows], self.has[rows], parts)


def contest(
    named: Groups, columns: Sequence[int], metric: str, rng: Generator
) -> tuple[Contest, Ints]:
    """Return names against some diagnoses, for patients with at least one of them, and their rows;
    ties are drawn.
    """
    shuffled = rng.permutation(np.asarray(columns, dtype=np.int64))
    rows = np.flatnonzero(named.has[:, shuffled].any(axis=1))
    frequency = None if named.frequency is None else named.frequency[rows]
    distances = distance_matrix(named.names[rows], named.diagnoses[shuffled], metric)
    parts = strata(named.sizes[rows], frequency)
    return Contest(distances, named.has[np.ix_(rows, shuffled)], parts), rows


def _of_targets(
    named: Groups,
    columns: Sequence[int],
    metric: str,
    permutations: int,
    numbers: Numbers,
    rng: Generator,
) -> Iterator[Finding]:
    without_unit = MeasureSpec(measure="attack.scenario", source=SOURCE)
    if len(columns) < 2:
        why = f"{len(columns)} of the targets have a code and a vector; two are needed"
        yield without_unit.missing(why, labels=(metric,), numbers=numbers)
        return
    field, _ = contest(named, columns, metric, rng)
    n = len(field.distances)
    # names with two targets at the same distance, whose order was drawn
    ties = int((np.diff(np.sort(field.distances, axis=1), axis=1) == 0).any(axis=1).sum())
    numbers = {**numbers, "targets_used": len(columns), "patients_with_a_target": n, "ties": ties}
    if n < MIN_PATIENTS:
        why = f"{n} patients have a target and a name vector; {MIN_PATIENTS} are needed"
        yield without_unit.missing(why, n, labels=(metric,), numbers=numbers)
        return
    for series, nearest in SIDES:
        attempt = Attempt(
            field, field.guesses(nearest=nearest), field.majority(), series, (metric,)
        )
        yield from attempt.findings(numbers, permutations, rng)
    yield from _held_out(field, metric, permutations, numbers, rng)


def _held_out(
    field: Contest, metric: str, permutations: int, numbers: Numbers, rng: Generator
) -> Iterator[Finding]:
    """Yield findings with the direction chosen on half of the patients and scored on the other
    half.
    """
    order = rng.permutation(len(field.distances))
    first, second = (field.only(np.sort(half)) for half in np.array_split(order, 2))
    gains = {nearest: first.gains(first.guesses(nearest=nearest)) for nearest in (False, True)}
    nearest = gains[True] > gains[False]  # A@5 decides, then A@1, then the paper's direction
    attempt = Attempt(
        second,
        second.guesses(nearest=nearest),
        second.majority(first.has),
        "far or near fixed on the other half",
        (metric, "fixed: nearest" if nearest else "fixed: farthest"),
    )
    held_out = {**numbers, "fixed_on": len(first.distances)}
    yield from attempt.findings(held_out, permutations, rng)


@dataclass(frozen=True)
class Attempt:
    """Guesses for the patients, and baseline guesses that use no vectors; `series` and `labels` of
    their findings.
    """

    field: Contest
    guesses: Ints
    baseline: Ints
    series: str
    labels: tuple[str, ...]

    def findings(self, numbers: Numbers, permutations: int, rng: Generator) -> Iterator[Finding]:
        """Yield A@1 and A@5 with chance, control and P."""
        n, targets = self.field.distances.shape
        spec = replace(GUESSED, series=self.series)
        for top in TOPS:
            labels = (*self.labels, f"A@{top}")
            if top >= targets:
                why = f"{targets} targets: {top} guesses name them all"
                yield replace(spec, question="").missing(
                    why, n, labels=labels, numbers={**numbers, "top": top}
                )
                continue
            hits = int(self.field.right(self.guesses, top).sum())
            null = self.permuted_accuracies(top, permutations + 1, rng)
            majority = float(self.field.right(self.baseline, top).mean())
            guess = "most frequent target" if top == 1 else f"{top} most frequent targets"
            finding = spec.share(
                HitCounts(
                    hits=hits, tries=n, chance=float(null[1:].mean()), control=float(null[0])
                ),
                p=permutation_p(hits / n, null[1:]),
                labels=labels,
                numbers={
                    **numbers,
                    "top": top,
                    "majority": majority,
                    "beats_majority": hits / n > majority,
                    "share_of_all_names": hits / int(numbers["names"] or 0),
                },
            )
            remark = f"majority: the {guess}, guessed for every patient; share of the same patients"
            yield replace(finding, remarks=(remark,))

    def permuted_accuracies(self, top: int, times: int, rng: Generator) -> Doubles:
        """Return accuracies with names permuted within strata, (times,)."""
        orders = (permuted(self.field.parts, rng) for _ in range(times))
        return np.array([self.field.right(self.guesses[order], top).mean() for order in orders])


def drawn_targets(
    named: Groups, plan: Scenario, metric: str, numbers: Numbers, rng: Generator
) -> Iterator[Finding]:
    """Yield the share of random sets in which farthest, and nearest, beat the majority, for A@1 and
    A@5; `numbers` are those of all findings.
    """
    eligible = np.flatnonzero(named.prevalence >= plan.min_patients)
    numbers = {**numbers, "eligible": len(eligible), "targets_drawn": plan.drawn}
    if len(eligible) <= plan.drawn or plan.drawn <= max(TOPS):
        why = (
            f"{len(eligible)} diagnoses occur in {plan.min_patients} or more of these patients;"
            f" draws of {plan.drawn} need more, and more than {max(TOPS)} targets"
        )
        spec = MeasureSpec(
            measure="attack.scenario_draws", source=SOURCE_OF_DRAWS, unit=UNIT_OF_DRAWS
        )
        yield spec.missing(why, labels=(metric,), numbers=numbers)
        return
    distances = distance_matrix(named.names, named.diagnoses[eligible], metric)
    has = named.has[:, eligible]
    parts = strata(named.sizes, named.frequency)
    orders = [np.arange(len(distances))] + [permuted(parts, rng) for _ in range(REPLICATES)]
    sets = [rng.permutation(len(eligible))[: plan.drawn] for _ in range(plan.draws)]
    for series, nearest in SIDES:
        key = distances if nearest else -distances
        scores = np.array([_scores(key[:, columns], has[:, columns], orders) for columns in sets])
        for index, top in enumerate(TOPS):
            finding = _of_draws(scores[:, index], {**numbers, "top": top})
            yield replace(finding, series=series, labels=(metric, f"A@{top}"))


def _scores(key: Doubles, has: Mask, orders: list[Ints]) -> Doubles:
    """Return A@1 and A@5 of one draw under each order of names, and last those of the majority, (2,
    n_orders + 1).
    """
    rows = np.flatnonzero(has.any(axis=1))
    best = np.argpartition(key, max(TOPS), axis=1)[:, : max(TOPS)]
    first = key.argmin(axis=1)
    frequent = np.argsort(-has.sum(axis=0), kind="stable")[: max(TOPS)]
    accuracies = np.empty((2, len(orders) + 1))
    with_target = has[rows]
    patients = np.arange(len(rows))
    for index, order in enumerate(orders):
        names = order[rows]
        accuracies[0, index] = with_target[patients, first[names]].mean()
        accuracies[1, index] = with_target[patients[:, None], best[names]].any(axis=1).mean()
    accuracies[0, -1] = with_target[:, frequent[0]].mean()
    accuracies[1, -1] = with_target[:, frequent].any(axis=1).mean()
    return accuracies


def _of_draws(scores: Doubles, numbers: Numbers) -> Finding:
    """Return the finding from accuracies (draws, orders + majority)."""
    majority = scores[:, -1:]
    n = len(scores)
    beaten = (scores[:, :-1] > majority).mean(axis=0)
    count = round(float(beaten[0]) * n)
    low, high = wilson(count, n)
    return Finding(
        "attack.scenario_draws",
        count / n,
        n,
        "lower",
        low,
        high,
        chance=float(beaten[1:].mean()),
        control=float(beaten[1]),
        source=SOURCE_OF_DRAWS,
        numbers={
            **numbers,
            "tied": float((scores[:, 0] == majority[:, 0]).mean()),
            "mean_accuracy": float(scores[:, 0].mean()),
            "best_accuracy": float(scores[:, 0].max()),
            "mean_accuracy_by_chance": float(scores[:, 1:-1].mean()),
            "mean_majority": float(majority.mean()),
        },
        unit=UNIT_OF_DRAWS,
        count=count,
        p=permutation_p(float(beaten[0]), beaten[1:]),
        p_is=P_IS,
        method="Wilson over the draws of targets, 95 %; does not cover other patients",
        chance_is=(
            f"mean over {REPLICATES} permutations of names among patients similar in name frequency"
            " and diagnoses"
        ),
        control_is="one of these permutations",
        control_kind="negative",
        question=QUESTION_OF_DRAWS,
    )
