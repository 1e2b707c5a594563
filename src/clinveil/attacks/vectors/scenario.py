"""The scenario attack: of some target diagnoses, the five farthest from a name are said to be its bearer's.

Who counts: patients whose name has a vector and who have at least one of the targets. A@1 is the share of them whose
first guess is right, A@5 that of those with a right one among five. The majority baseline guesses the most frequent
target, or the five most frequent, for everybody; of the same patients it counts the same. Targets at one distance
from a name stand in an order drawn once for all names.

Whether far or near tells anything is not known beforehand: it is fixed on half of the patients, as what beats the same
guesses under other patients' names by more, and scored on the other half. Chance is that of these other names too.

Source: JMIR 2020;22(7):e18055, Experiment 3, Table 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.vectors._groups import (
    PAPER_TARGETS,
    Groups,
    distance_matrix,
    groups,
    read_targets,
    target_columns,
)
from clinveil.attacks.vectors._models import each_model
from clinveil.attacks.vectors._target_draws import REPLICATES, TOPS, drawn_targets
from clinveil.attacks.vectors.chain import chain_of
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.core.words import words_beside
from clinveil.stats import permutation_p
from clinveil.stats.findings import proportion, unmeasured
from clinveil.stats.strata import permuted, strata
from clinveil.vectors.table import Vectors

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

SOURCE = "JMIR 2020;22(7):e18055, Experiment 3"
UNIT = "patients with a target"
METRICS = ("cityblock", "cosine")
PERMUTATIONS = 999
FEWEST = 5
SWAPPED = "names permuted once over patients of like name frequency and number of diagnoses"
EXPECTED = "the same guesses under the names of other patients of like name frequency and number of diagnoses"
QUESTION = (
    "How often do the vectors name a diagnosis that the patient has, and would another patient's name do as well?"
)


@attacks.register("scenario")
class Scenario(Attack):
    """Name target diagnoses for each name, farthest and nearest, beside chance (paper B, experiment 3)."""

    needs = frozenset({"vectors", "known", "codes"})
    words = words_beside(__file__)
    targets: Path | None = flag(None, "Target diagnoses or codes, one a line (default: the paper's 11).")
    metric: tuple[str, ...] = flag(METRICS, "cityblock, cosine or euclidean; repeatable.")
    permutations: int = flag(PERMUTATIONS, "Permutations of names, for chance and P.", ge=19)
    draws: int = flag(1_000, "Random sets of targets.", ge=1)
    drawn: int = flag(30, "Targets of a random set.", ge=6)
    min_patients: int = flag(10, "Patients that a diagnosis must have to be drawn.", ge=1)
    everyone: int | None = flag(None, "Patients of the whole corpus: also measure the chain that ends in a diagnosis.")
    k: int | None = flag(None, "Names that the attacker puts together for the chain (default: the true pairs).", ge=1)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Of each model, under the same draws; `context.counts` serve models that carry none."""
        known, codes = list((context.known or {}).values()), context.codes or {}
        targets: Sequence[str] = read_targets(self.targets) if self.targets else PAPER_TARGETS
        how: dict[str, Any] = {"targets": targets, "metrics": self.metric}

        def attack(model: Vectors, own: Generator) -> list[Finding]:
            again = deepcopy(own)
            sizes = {name: getattr(self, name) for name in ("permutations", "draws", "drawn", "min_patients")}
            found = scenario(model, known, codes, own, counts=context.occurrences, **how, **sizes)
            if self.everyone is None:
                return found
            more: dict[str, Any] = {"everyone": self.everyone, "k": self.k, "threads": context.workers}
            return found + chain_of(model, known, codes, again, **how, **more)

        return each_model(context.vectors or (), rng, attack)


class Contest(NamedTuple):
    """Names against targets: `distances` (n, n_targets), `has` (n, n_targets), `parts` strata of the patients."""

    distances: Doubles
    has: Mask
    parts: list[Ints]

    def guesses(self, *, nearest: bool) -> Ints:
        """(n, up to 5) targets in the order of the guesses."""
        order = np.argsort(self.distances if nearest else -self.distances, axis=1, kind="stable")
        return np.asarray(order[:, : max(TOPS)])

    def majority(self, has: Mask | None = None) -> Ints:
        """(n, up to 5) the most frequent targets, the same for everybody; ties by column."""
        counts = (self.has if has is None else has).sum(axis=0)
        best = np.argsort(-counts, kind="stable")[: max(TOPS)]
        return np.tile(best, (len(self.distances), 1))

    def right(self, guesses: Ints, top: int) -> Mask:
        """(n,) whether one of the first `top` guesses is true."""
        return np.asarray(np.take_along_axis(self.has, guesses[:, :top], axis=1).any(axis=1))

    def gains(self, guesses: Ints) -> tuple[float, ...]:
        """By how many patients the guesses beat their mean under all permutations of names within strata: A@5, A@1."""
        gained = []
        for top in reversed(TOPS):
            by_chance = sum(
                self.has[part][:, guesses[part, :top]].any(axis=2).mean() * len(part) for part in self.parts
            )
            gained.append(round(float(self.right(guesses, top).sum() - by_chance), 9))
        return tuple(gained)

    def only(self, rows: Ints) -> Contest:
        """The same for some of the patients."""
        mark = np.full(len(self.distances), -1)
        mark[rows] = np.arange(len(rows))
        parts = [kept[kept >= 0] for part in self.parts if (kept := mark[part]).max() >= 0]
        return Contest(self.distances[rows], self.has[rows], parts)


def contest(found: Groups, columns: Sequence[int], metric: str, rng: Generator) -> tuple[Contest, Ints]:
    """The contest over some diagnoses, of those who have one of them, and their rows; the order of ties is drawn."""
    shuffled = rng.permutation(np.asarray(columns, dtype=np.int64))
    rows = np.flatnonzero(found.has[:, shuffled].any(axis=1))
    frequency = None if found.frequency is None else found.frequency[rows]
    distances = distance_matrix(found.names[rows], found.diagnoses[shuffled], metric)
    return Contest(distances, found.has[np.ix_(rows, shuffled)], strata(found.sizes[rows], frequency)), rows


def scenario(
    vectors: Vectors,
    patients: Iterable[Patient],
    codes: Mapping[str, str],
    rng: Generator,
    *,
    targets: Sequence[str] = PAPER_TARGETS,
    metrics: Sequence[str] = METRICS,
    permutations: int = PERMUTATIONS,
    draws: int = 1_000,
    drawn: int = 30,
    min_patients: int = 10,
    counts: Mapping[str, int] | None = None,
) -> list[Finding]:
    """All findings of the attack on one model.

    Args:
        vectors, patients, codes, counts: as for `association`.
        targets: descriptions or codes.
        metrics: distances.
        permutations: of names.
        draws, drawn, min_patients: random target sets, how many targets each has, and in how many patients a diagnosis
            must occur to be drawn (paper: 1,000 of 30, 10).

    Raises:
        InputError: no name or no diagnosis has a vector. UsageError: an unknown metric.
    """
    found = groups(vectors, patients, codes, counts=counts)
    chosen = target_columns(targets, found.codes, codes)
    given = {reason: found.left_out[reason] for reason in _GIVEN}
    findings: list[Finding] = []
    for metric in metrics:
        detail = {"metric": metric, **chosen.detail, "names": len(found), **given}
        findings += _of_targets(found, chosen.columns, permutations, detail, rng)
        findings += drawn_targets(found, draws, drawn, detail, rng, min_patients=min_patients)
    return findings


_GIVEN = ("patients", "names_without_vector", "no_diagnosis", "diagnoses_without_vector", "shared_names")


def _of_targets(
    found: Groups, columns: Sequence[int], permutations: int, detail: dict[str, Any], rng: Generator
) -> Iterator[Finding]:
    if len(columns) < 2:
        why = f"{len(columns)} of the targets stand in the codes and have a vector; two are needed"
        yield unmeasured("attack.scenario", why, detail=detail, source=SOURCE)
        return
    field, _ = contest(found, columns, detail["metric"], rng)
    n = len(field.distances)
    detail = {**detail, "targets_used": len(columns), "patients_with_a_target": n, "ties": _ties(field)}
    if n < FEWEST:
        why = f"{n} patients have a target and a name vector; {FEWEST} are needed"
        yield unmeasured("attack.scenario", why, n, detail=detail, source=SOURCE)
        return
    for series, nearest in (("farthest (the paper's)", False), ("nearest", True)):
        scored = Scored(field, field.guesses(nearest=nearest), field.majority())
        yield from scored.findings({**detail, "series": series}, permutations, rng)
    yield from _held_out(field, permutations, detail, rng)


def _ties(field: Contest) -> int:
    """Names for which two targets lie equally distances, so that their order was drawn."""
    ordered = np.sort(field.distances, axis=1)
    return int((np.diff(ordered, axis=1) == 0).any(axis=1).sum())


def _held_out(field: Contest, permutations: int, detail: dict[str, Any], rng: Generator) -> Iterator[Finding]:
    """The direction fixed on half of the patients, scored on the other half."""
    order = rng.permutation(len(field.distances))
    first, second = (field.only(np.sort(half)) for half in np.array_split(order, 2))
    gains = {nearest: first.gains(first.guesses(nearest=nearest)) for nearest in (False, True)}
    nearest = gains[True] > gains[False]  # A@5 decides, then A@1, then the paper's direction
    guesses = second.guesses(nearest=nearest)
    baseline = second.majority(first.has)
    series = "far or near fixed on the other half"
    detail = {
        **detail,
        "series": series,
        "direction": "nearest" if nearest else "farthest",
        "fixed_on": len(first.distances),
    }
    yield from Scored(second, guesses, baseline).findings(detail, permutations, rng)


@dataclass(frozen=True)
class Scored:
    """Guesses for the patients of a contest, beside guesses that need no vectors."""

    field: Contest
    guesses: Ints
    baseline: Ints

    def findings(self, detail: dict[str, Any], permutations: int, rng: Generator) -> Iterator[Finding]:
        """A@1 and A@5 with chance, control and P."""
        n, targets = self.field.distances.shape
        for top in TOPS:
            detail = {**detail, "label": f"A@{top}", "top": top}
            if top >= targets:
                why = f"{targets} targets: {top} guesses name them all"
                yield unmeasured("attack.scenario", why, n, detail=detail, source=SOURCE, unit=UNIT)
                continue
            hits = int(self.field.right(self.guesses, top).sum())
            null = self._permuted(top, permutations + 1, rng)
            majority = float(self.field.right(self.baseline, top).mean())
            shown = {
                **detail,
                "majority": majority,
                "beats_majority": hits / n > majority,
                "majority_is": f"the {'most frequent target' if top == 1 else f'{top} most frequent targets'}, guessed "
                "for everybody; share of the same patients",
                "share_of_all_names": hits / detail["names"],
            }
            yield proportion(
                "attack.scenario",
                hits,
                n,
                over=UNIT,
                chance=float(null[1:].mean()),
                control=float(null[0]),
                source=SOURCE,
                detail=shown,
                p=permutation_p(hits / n, null[1:]),
                p_is="names permuted over like patients, one-sided",
                method="Clopper-Pearson, 95 %",
                chance_is=EXPECTED,
                control_is=SWAPPED,
                control_kind="negative",
                question=QUESTION,
            )

    def _permuted(self, top: int, times: int, rng: Generator) -> Doubles:
        """Accuracies with names permuted within strata, shape (times,)."""
        orders = (permuted(self.field.parts, rng) for _ in range(times))
        return np.array([self.field.right(self.guesses[order], top).mean() for order in orders])


__all__ = ["PAPER_TARGETS", "REPLICATES", "Scenario", "scenario"]
