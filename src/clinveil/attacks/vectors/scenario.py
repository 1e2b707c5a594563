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

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.vectors._chain import Chain
from clinveil.attacks.vectors._groups import (
    PAPER_TARGETS,
    SWAPPED,
    TOPS,
    Groups,
    distance_matrix,
    each_model,
    groups,
    read_targets,
    target_columns,
)
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.stats.findings import proportion, unmeasured
from clinveil.stats.hypotheses import permutation_p
from clinveil.stats.intervals import wilson
from clinveil.stats.strata import permuted, strata
from clinveil.vectors.table import Vectors

SOURCE = "JMIR 2020;22(7):e18055, Experiment 3"
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


@attacks.register("scenario")
class Scenario(Attack):
    """Name target diagnoses for each name, farthest and nearest, compared with chance (paper B,
    experiment 3).
    """

    needs = frozenset({"vectors", "known", "codes"})
    optional = frozenset({"counts"})
    targets: Path | None = flag(
        None, "File with target diagnoses or codes, one per line (default: the paper's 11)."
    )
    metric: tuple[str, ...] = flag(
        ("cityblock", "cosine"), "cityblock, cosine or euclidean; repeatable."
    )
    permutations: int = flag(999, "Permutations of names, for chance and P.", ge=19)
    draws: int = flag(1_000, "Random sets of targets.", ge=1)
    drawn: int = flag(30, "Targets in a random set.", ge=6)
    min_patients: int = flag(10, "Minimum patients of a diagnosis in random sets.", ge=1)
    everyone: int | None = flag(
        None, "Patients of the entire corpus: also measure the complete chain."
    )
    k: int | None = flag(
        None, "Names that the attacker reconstructs in the chain (default: true pairs).", ge=1
    )

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack on each model with the same draws; `context.counts` is used for models
        without counts.
        """
        targets = read_targets(self.targets) if self.targets else PAPER_TARGETS

        def attack(model: Vectors, context: Context, own: Generator) -> list[Finding]:
            again = deepcopy(own)
            found = self.on(model, context, own, targets=targets)
            if self.everyone is None:
                return found
            chain = Chain(everyone=self.everyone, metric=self.metric, k=self.k)
            return found + chain.on(model, context, again, targets=targets)

        return each_model(context, rng, attack)

    def on(
        self,
        vectors: Vectors,
        context: Context,
        rng: Generator,
        *,
        targets: Sequence[str] = PAPER_TARGETS,
    ) -> list[Finding]:
        """Return all findings on one model, without the chain; `targets` are descriptions or codes.

        Raises InputError if no name or no diagnosis has a vector; UsageError for an unknown metric.
        """
        codes = context.codes or {}
        found = groups(vectors, (context.known or {}).values(), codes, counts=context.occurrences)
        columns, chosen = target_columns(targets, found.codes, codes)
        counts = {reason: found.left_out[reason] for reason in _COUNTS}
        findings: list[Finding] = []
        for metric in self.metric:
            detail = {"metric": metric, **chosen, "names": len(found), **counts}
            findings += _of_targets(found, columns, self.permutations, detail, rng)
            findings += drawn_targets(found, self, detail, rng)
        return findings


class Contest(NamedTuple):
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
    found: Groups, columns: Sequence[int], metric: str, rng: Generator
) -> tuple[Contest, Ints]:
    """Return names against some diagnoses, for patients with at least one of them, and their rows;
    ties are drawn.
    """
    shuffled = rng.permutation(np.asarray(columns, dtype=np.int64))
    rows = np.flatnonzero(found.has[:, shuffled].any(axis=1))
    frequency = None if found.frequency is None else found.frequency[rows]
    distances = distance_matrix(found.names[rows], found.diagnoses[shuffled], metric)
    return (
        Contest(distances, found.has[np.ix_(rows, shuffled)], strata(found.sizes[rows], frequency)),
        rows,
    )


def _of_targets(
    found: Groups, columns: Sequence[int], permutations: int, detail: dict[str, Any], rng: Generator
) -> Iterator[Finding]:
    if len(columns) < 2:
        why = f"{len(columns)} of the targets have a code and a vector; two are needed"
        yield unmeasured("attack.scenario", why, detail=detail, source=SOURCE)
        return
    field, _ = contest(found, columns, detail["metric"], rng)
    n = len(field.distances)
    # names with two targets at the same distance, whose order was drawn
    ties = int((np.diff(np.sort(field.distances, axis=1), axis=1) == 0).any(axis=1).sum())
    detail = {**detail, "targets_used": len(columns), "patients_with_a_target": n, "ties": ties}
    if n < MIN_PATIENTS:
        why = f"{n} patients have a target and a name vector; {MIN_PATIENTS} are needed"
        yield unmeasured("attack.scenario", why, n, detail=detail, source=SOURCE)
        return
    for series, nearest in SIDES:
        scored = Scored(field, field.guesses(nearest=nearest), field.majority())
        yield from scored.findings({**detail, "series": series}, permutations, rng)
    yield from _held_out(field, permutations, detail, rng)


def _held_out(
    field: Contest, permutations: int, detail: dict[str, Any], rng: Generator
) -> Iterator[Finding]:
    """Yield findings with the direction chosen on half of the patients and scored on the other
    half.
    """
    order = rng.permutation(len(field.distances))
    first, second = (field.only(np.sort(half)) for half in np.array_split(order, 2))
    gains = {nearest: first.gains(first.guesses(nearest=nearest)) for nearest in (False, True)}
    nearest = gains[True] > gains[False]  # A@5 decides, then A@1, then the paper's direction
    fixed = {"direction": "nearest" if nearest else "farthest", "fixed_on": len(first.distances)}
    scored = Scored(second, second.guesses(nearest=nearest), second.majority(first.has))
    yield from scored.findings(
        {**detail, "series": "far or near fixed on the other half", **fixed}, permutations, rng
    )


@dataclass(frozen=True)
class Scored:
    """Guesses for the patients, and baseline guesses that use no vectors."""

    field: Contest
    guesses: Ints
    baseline: Ints

    def findings(
        self, detail: dict[str, Any], permutations: int, rng: Generator
    ) -> Iterator[Finding]:
        """Yield A@1 and A@5 with chance, control and P."""
        n, targets = self.field.distances.shape
        for top in TOPS:
            detail = {**detail, "label": f"A@{top}", "top": top}
            if top >= targets:
                why = f"{targets} targets: {top} guesses name them all"
                yield unmeasured("attack.scenario", why, n, detail=detail, source=SOURCE, unit=UNIT)
                continue
            hits = int(self.field.right(self.guesses, top).sum())
            null = self._permuted(top, permutations + 1, rng)
            reference: dict[str, Any] = {
                "chance": float(null[1:].mean()),
                "control": float(null[0]),
            }
            reference |= {
                "p": permutation_p(hits / n, null[1:]),
                "p_is": P_IS,
                "method": "Clopper-Pearson, 95 %",
            }
            reference |= {
                "chance_is": CHANCE_IS,
                "control_is": SWAPPED,
                "control_kind": "negative",
                "question": QUESTION,
            }
            full_detail = {
                **detail,
                **self._majority(top, hits),
                "share_of_all_names": hits / detail["names"],
            }
            yield proportion(
                "attack.scenario",
                hits,
                n,
                over=UNIT,
                source=SOURCE,
                detail=full_detail,
                **reference,
            )

    def _majority(self, top: int, hits: int) -> dict[str, Any]:
        majority = float(self.field.right(self.baseline, top).mean())
        often = "most frequent target" if top == 1 else f"{top} most frequent targets"
        description = f"the {often}, guessed for every patient; share of the same patients"
        beats = hits / len(self.field.distances) > majority
        return {"majority": majority, "beats_majority": beats, "majority_is": description}

    def _permuted(self, top: int, times: int, rng: Generator) -> Doubles:
        """Return accuracies with names permuted within strata, (times,)."""
        orders = (permuted(self.field.parts, rng) for _ in range(times))
        return np.array([self.field.right(self.guesses[order], top).mean() for order in orders])


def drawn_targets(
    found: Groups, plan: Scenario, detail: dict[str, Any], rng: Generator
) -> Iterator[Finding]:
    """Yield the share of random sets in which farthest, and nearest, beat the majority, for A@1 and
    A@5.

    `detail` is that of all findings; its `metric` is used.
    """
    eligible = np.flatnonzero(found.prevalence >= plan.min_patients)
    detail = {**detail, "eligible": len(eligible), "targets_drawn": plan.drawn}
    if len(eligible) <= plan.drawn or plan.drawn <= max(TOPS):
        why = (
            f"{len(eligible)} diagnoses occur in {plan.min_patients} or more of these patients;"
            f" draws of {plan.drawn}"
        )
        why += f" need more, and more than {max(TOPS)} targets"
        source = f"{SOURCE}, Table 4"
        yield unmeasured(
            "attack.scenario_draws", why, detail=detail, source=source, unit=UNIT_OF_DRAWS
        )
        return
    distances = distance_matrix(found.names, found.diagnoses[eligible], detail["metric"])
    has = found.has[:, eligible]
    parts = strata(found.sizes, found.frequency)
    orders = [np.arange(len(distances))] + [permuted(parts, rng) for _ in range(REPLICATES)]
    sets = [rng.permutation(len(eligible))[: plan.drawn] for _ in range(plan.draws)]
    for series, nearest in SIDES:
        key = distances if nearest else -distances
        scores = np.array([_scores(key[:, columns], has[:, columns], orders) for columns in sets])
        for index, top in enumerate(TOPS):
            yield _of_draws(
                scores[:, index], {**detail, "series": series, "label": f"A@{top}", "top": top}
            )


def _scores(key: Doubles, has: Mask, orders: list[Ints]) -> Doubles:
    """Return A@1 and A@5 of one draw under each order of names, and last those of the majority, (2,
    n_orders + 1).
    """
    rows = np.flatnonzero(has.any(axis=1))
    best = np.argpartition(key, max(TOPS), axis=1)[:, : max(TOPS)]
    first = key.argmin(axis=1)
    frequent = np.argsort(-has.sum(axis=0), kind="stable")[: max(TOPS)]
    accuracies = np.empty((2, len(orders) + 1))
    own = has[rows]
    patients = np.arange(len(rows))
    for index, order in enumerate(orders):
        names = order[rows]
        accuracies[0, index] = own[patients, first[names]].mean()
        accuracies[1, index] = own[patients[:, None], best[names]].any(axis=1).mean()
    accuracies[0, -1] = own[:, frequent[0]].mean()
    accuracies[1, -1] = own[:, frequent].any(axis=1).mean()
    return accuracies


def _of_draws(scores: Doubles, detail: dict[str, Any]) -> Finding:
    """Return the finding from accuracies (draws, orders + majority)."""
    majority = scores[:, -1:]
    n = len(scores)
    beaten = (scores[:, :-1] > majority).mean(axis=0)
    count = round(float(beaten[0]) * n)
    detail = {
        **detail,
        "tied": float((scores[:, 0] == majority[:, 0]).mean()),
        "mean_accuracy": float(scores[:, 0].mean()),
        "best_accuracy": float(scores[:, 0].max()),
        "mean_accuracy_by_chance": float(scores[:, 1:-1].mean()),
        "mean_majority": float(majority.mean()),
    }
    low, high = wilson(count, n)
    method = "Wilson over the draws of targets, 95 %; does not cover other patients"
    by_chance = (
        f"mean over {REPLICATES} permutations of names among patients similar in name frequency and"
        " diagnoses"
    )
    more: dict[str, Any] = {
        "p": permutation_p(float(beaten[0]), beaten[1:]),
        "p_is": P_IS,
        "method": method,
    }
    more |= {
        "chance": float(beaten[1:].mean()),
        "chance_is": by_chance,
        "control": float(beaten[1]),
    }
    more |= {
        "control_is": "one of these permutations",
        "control_kind": "negative",
        "question": QUESTION_OF_DRAWS,
    }
    more |= {
        "source": f"{SOURCE}, Table 4",
        "detail": detail,
        "unit": UNIT_OF_DRAWS,
        "count": count,
    }
    return Finding("attack.scenario_draws", count / n, n, "lower", low, high, **more)
