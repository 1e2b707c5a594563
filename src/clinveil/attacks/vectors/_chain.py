"""The complete attack per patient: name missed by removal, name reconstructed, diagnosis right.

The attacker has only the vectors. They pair the nearest name words (Attack 1), treat the mean of
each pair as a person, and name diagnoses for it (Attack 3). A patient's name is reconstructed if a
pair on the list consists of two of its words; of several such pairs the nearest counts. Pairs that
are not names also yield claims, which are false.

Source: JMIR 2020;22(7):e18055, Introduction (0.6 % of patients; 0.02 to 0.15 %).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Context
from clinveil.attacks.vectors._groups import (
    COUNTED,
    TOPS,
    distance_matrix,
    groups,
    name_forms,
    target_columns,
)
from clinveil.attacks.vectors._name_pairs import NameTokens, rank_names
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.stats.findings import proportion, unmeasured
from clinveil.vectors.table import Vectors

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

SOURCE = "JMIR 2020;22(7):e18055, Introduction and Experiment 3"
MISSED = "missed by removal"
NAMED = "name reconstructed"
RIGHT = "diagnosis right"
ALL = "all three"
_QUESTIONS = {
    MISSED: "For how many patients did the removal miss the name in the notes?",
    NAMED: "For how many of these does the attacker combine two words of the name?",
    RIGHT: "For how many of these does the attacker then name a true diagnosis?",
    ALL: "For how many of all patients does the attacker obtain name and diagnosis?",
}


@dataclass(frozen=True)
class Chain:
    """Reconstruct names, name diagnoses for them, and count the patients for whom both are right.

    Attributes:
        everyone: patients of the entire corpus. metric: of the distances of names to diagnoses.
        k: names that the attacker reconstructs; None for the number of true pairs.
    """

    everyone: int
    metric: tuple[str, ...] = ("cityblock", "cosine")
    k: int | None = None

    def on(
        self, vectors: Vectors, context: Context, rng: Generator, *, targets: Sequence[str]
    ) -> list[Finding]:
        """Run the chain on the names that Attack 1 reconstructs; `targets` are descriptions or
        codes.
        """
        missed = list((context.known or {}).values())
        names, pairs = reconstruct(vectors, missed, self.k)
        return self.of_names(vectors, context, names, rng, targets=targets, pairs=pairs)

    def of_names(
        self,
        vectors: Vectors,
        context: Context,
        names: Sequence[tuple[str, ...]],
        rng: Generator,
        *,
        targets: Sequence[str],
        pairs: int | None = None,
    ) -> list[Finding]:
        """Return the share of patients at each step, and at the end.

        Args:
            names: as the attacker reconstructed them, most likely first: at least two lookup forms
                each.
            pairs: number of unordered pairs of name words, for the chance of a pair; None if
                unknown.

        Raises InputError for more missed patients than patients, or if no diagnosis has a vector.
        """
        missed = list((context.known or {}).values())
        codes = context.codes or {}
        if self.everyone < len(missed):
            why = f"{len(missed)} patients were missed, but there are only {self.everyone} patients"
            raise InputError(why, hint="pass the number of all patients")
        found = groups(vectors, missed, codes)
        chosen, detail = target_columns(targets, found.codes, codes)
        if len(chosen) <= max(TOPS):
            why = f"{len(chosen)} targets have a vector; more than {max(TOPS)} are needed"
            return [unmeasured("attack.chain", why, detail=detail, source=SOURCE)]
        columns = rng.permutation(np.array(chosen))
        usable = [
            name
            for name in dict.fromkeys(map(tuple, names))
            if all(form in vectors.ids for form in name)
        ]
        has = np.zeros((len(missed), len(columns)), dtype=np.bool_)
        has[found.patients] = found.has[:, columns]
        steps = _Steps(self.everyone, _owners(missed, usable), has)
        step_detail: dict[str, Any] = {**detail, "names_claimed": len(usable)}
        step_detail["names_claimed_without_vector"] = len(set(names)) - len(usable)
        findings = list(steps.names(step_detail, _chance_of_a_pair(missed, vectors, usable, pairs)))
        for metric in self.metric:
            distances = _distances(vectors, usable, found.diagnoses[columns], metric)
            for direction, sign in (("farthest", -1.0), ("nearest", 1.0)):
                guesses = np.argsort(sign * distances, axis=1, kind="stable")[:, : max(TOPS)]
                findings += steps.diagnoses(
                    guesses, {**step_detail, "metric": metric, "direction": direction}, rng
                )
        return findings


def reconstruct(
    vectors: Vectors, missed: Sequence[Patient], k: int | None = None
) -> tuple[list[tuple[str, ...]], int]:
    """Return the names that Attack 1 reconstructs by cosine, nearest first, and the number of
    possible pairs.

    `k` is the number of names that the attacker expects; None for the number of true pairs.
    Raises InputError if fewer than two name words have a vector.
    """
    names = NameTokens([patient.name for patient in missed])
    ranking = rank_names(vectors, names, "cosine", k or max(1, len(names.true_pairs)))
    first, second = np.divmod(ranking.codes, len(names.forms))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return [(names.forms[a], names.forms[b]) for a, b in pairs], ranking.n_pairs


def _distances(
    vectors: Vectors, names: Sequence[tuple[str, ...]], targets: Doubles, metric: str
) -> Doubles:
    """Return the distance of each reconstructed name to each target, (n_names, n_targets)."""
    rows = [[vectors.ids[form] for form in name] for name in names]
    points = [vectors.matrix[row].mean(axis=0, dtype=np.float64) for row in rows]
    return distance_matrix(np.array(points).reshape(len(points), vectors.dim), targets, metric)


def _owners(missed: Sequence[Patient], names: Sequence[tuple[str, ...]]) -> Ints:
    """Return the first reconstructed name that consists of words of each patient's name,
    (n_missed,), or -1.
    """
    patients_with: dict[str, set[int]] = {}
    for index, patient in enumerate(missed):
        for form in name_forms(patient.name):
            patients_with.setdefault(form, set()).add(index)
    name_of = np.full(len(missed), -1, dtype=np.int64)
    for number, name in enumerate(names):
        if len(set(name)) > 1:
            for index in set.intersection(*(patients_with.get(form, set()) for form in name)):
                name_of[index] = number if name_of[index] < 0 else name_of[index]
    return name_of


def _chance_of_a_pair(
    missed: Sequence[Patient], vectors: Vectors, names: Sequence[tuple[str, ...]], pairs: int | None
) -> float | None:
    """Return the mean chance that one of a patient's pairs is among the same number of random
    pairs.
    """
    if pairs is None:
        return None
    own = [
        comb(sum(form in vectors.ids for form in set(name_forms(patient.name))), 2)
        for patient in missed
    ]
    k = min(len(names), pairs)
    chance_of_none = {
        m: float(np.prod([(pairs - k - i) / (pairs - i) for i in range(m)])) for m in set(own)
    }
    return float(np.mean([1 - chance_of_none[m] for m in own])) if own else None


@dataclass(frozen=True)
class _Steps:
    """The steps reached: number of patients, each missed patient's reconstructed name or -1,
    (n_missed, n_targets).
    """

    everyone: int
    name_of: Ints
    has: Mask

    @property
    def named(self) -> Ints:
        """Return the patients with a reconstructed name."""
        return np.flatnonzero(self.name_of >= 0)

    def names(self, detail: dict[str, Any], chance_of_pair: float | None) -> Iterator[Finding]:
        """Yield the first two steps, which do not depend on diagnoses."""
        missed = len(self.name_of)
        yield _share(MISSED, missed, self.everyone, {**detail, "why": COUNTED})
        words = (
            {}
            if chance_of_pair is None
            else {"chance_is": "the same number of random pairs of name words"}
        )
        why = "the control of this step is that of clinveil attack names"
        yield _share(
            NAMED, len(self.named), missed, {**detail, "why": why}, chance=chance_of_pair, **words
        )

    def diagnoses(self, guesses: Ints, detail: dict[str, Any], rng: Generator) -> Iterator[Finding]:
        """Yield the last step and the complete chain, for A@1 and A@5; `guesses` (n_names, 5)."""
        named = self.named
        words = {"chance_is": "the guesses for other reconstructed patients"}
        words |= {
            "control_is": "the guesses of reconstructed patients, permuted once",
            "control_kind": "negative",
        }
        for top in TOPS:
            # (n_named, n_named): whether the guesses for the column's patient are right for the
            # row's patient.
            table = np.asarray(self.has[named][:, guesses[self.name_of[named], :top]].any(axis=2))
            right = int(np.trace(table))
            by_chance = float(table.mean()) if table.size else 0.0
            swapped = (
                float(table[np.arange(len(named)), rng.permutation(len(named))].mean())
                if table.size
                else 0.0
            )
            step_detail = {
                **detail,
                "label": f"{detail['direction']}, A@{top}",
                "top": top,
                "claims": len(guesses),
            }
            step_detail["claims_right"] = right / len(guesses) if len(guesses) else 0.0
            yield _share(
                RIGHT, right, len(named), step_detail, chance=by_chance, control=swapped, **words
            )
            scale = len(named) / self.everyone
            step_detail |= {"paper_low": 0.0002, "paper_high": 0.0015}
            yield _share(
                ALL,
                right,
                self.everyone,
                step_detail,
                chance=by_chance * scale,
                control=swapped * scale,
                **words,
            )


def _share(series: str, count: int, n: int, detail: dict[str, Any], **reference: Any) -> Finding:
    about: dict[str, Any] = {
        "detail": {**detail, "series": series},
        "source": SOURCE,
        "question": _QUESTIONS[series],
    }
    if not n:
        return unmeasured("attack.chain", "no patient reached this step", unit="patients", **about)
    method = "Clopper-Pearson over patients, 95 %"
    return proportion(
        "attack.chain", count, n, over="patients", method=method, **about, **reference
    )
