"""The whole chain, patient by patient: missed by removal, name reconstructed, diagnosis right.

The attacker holds the vectors only. They pair the name words that lie nearest (Attack 1), take the mean of each pair
for a person, and name diagnoses for it (Attack 3). A patient's name is reconstructed where a pair on the list is made
of two words of it; of several such pairs the nearest counts. Pairs that are no name make claims too, false ones.

Source: JMIR 2020;22(7):e18055, Introduction (0.6 % of patients; 0.02 to 0.15 %).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.vectors._groups import (
    PAPER_TARGETS,
    distance_matrix,
    groups,
    name_forms,
    read_targets,
    target_columns,
)
from clinveil.attacks.vectors._models import each_model
from clinveil.attacks.vectors._name_pairs import NameTokens, rank_names
from clinveil.attacks.vectors._target_draws import TOPS
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.core.words import words_beside
from clinveil.stats.findings import proportion, unmeasured
from clinveil.vectors.table import Vectors

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

SOURCE = "JMIR 2020;22(7):e18055, Introduction and Experiment 3"
MISSED, NAMED, RIGHT, ALL = "missed by removal", "name reconstructed", "diagnosis right", "all three"


METRICS = ("cityblock", "cosine")


@attacks.register("chain")
class Chain(Attack):
    """Put names together, name diagnoses for them, and count the patients of whom both are right (paper B)."""

    needs = frozenset({"vectors", "known", "codes"})
    words = words_beside(__file__)
    everyone: int | None = flag(None, "Patients of the whole corpus (default: those whose names were missed).")
    targets: Path | None = flag(None, "Target diagnoses or codes, one a line (default: the paper's 11).")
    metric: tuple[str, ...] = flag(METRICS, "cityblock, cosine or euclidean; repeatable.")
    k: int | None = flag(None, "Names that the attacker puts together (default: the true pairs).", ge=1)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Of each model, under the same draws."""
        known, codes = list((context.known or {}).values()), context.codes or {}
        how: dict[str, Any] = {"everyone": len(known) if self.everyone is None else self.everyone, "k": self.k}
        how |= {"metrics": self.metric, "threads": context.workers}
        how |= {"targets": read_targets(self.targets)} if self.targets else {}
        return each_model(context.vectors or (), rng, lambda model, own: chain_of(model, known, codes, own, **how))


def chain_of(
    vectors: Vectors,
    missed: Sequence[Patient],
    codes: Mapping[str, str],
    rng: Generator,
    *,
    everyone: int,
    k: int | None = None,
    targets: Sequence[str] = PAPER_TARGETS,
    metrics: Sequence[str] = METRICS,
    threads: int = 2,
) -> list[Finding]:
    """The chain on the names that Attack 1 puts together; arguments as for `reconstruct` and `chain`."""
    names, pairs = reconstruct(vectors, missed, k, threads=threads)
    return chain(vectors, missed, codes, names, rng, everyone=everyone, targets=targets, metrics=metrics, pairs=pairs)


def chain(
    vectors: Vectors,
    missed: Sequence[Patient],
    codes: Mapping[str, str],
    reconstructed: Sequence[tuple[str, ...]],
    rng: Generator,
    *,
    everyone: int,
    targets: Sequence[str] = PAPER_TARGETS,
    metrics: Sequence[str] = METRICS,
    pairs: int | None = None,
) -> list[Finding]:
    """The share of patients at each step, and at the end, with intervals.

    Args:
        vectors: what is to be released.
        missed: the patients whose names the remover missed.
        codes: code -> description.
        reconstructed: names as the attacker put them together, likeliest first: lookup forms, two or more each.
        everyone: patients of the whole corpus, removed and missed.
        targets: descriptions or codes.
        metrics: distances; for each the farthest diagnoses are guessed (as in the paper), and the nearest.
        pairs: unordered pairs of name words that the attacker chose from, for the chance of a pair; None if unknown.

    Raises:
        InputError: more missed patients than patients, no diagnosis with a vector. UsageError: an unknown metric.
    """
    if everyone < len(missed):
        raise InputError(f"{len(missed)} patients were missed, of {everyone} altogether", remedy="name all patients")
    found = groups(vectors, missed, codes)
    chosen = target_columns(targets, found.codes, codes)
    if len(chosen.columns) <= max(TOPS):
        why = f"{len(chosen.columns)} targets have a vector; more than {max(TOPS)} are needed"
        return [unmeasured("attack.chain", why, detail=chosen.detail, source=SOURCE)]
    columns = rng.permutation(np.array(chosen.columns))
    usable = [name for name in dict.fromkeys(map(tuple, reconstructed)) if all(form in vectors.ids for form in name)]
    owned = _owners(missed, usable)
    has = np.zeros((len(missed), len(columns)), dtype=np.bool_)
    has[found.patients] = found.has[:, columns]
    steps = _Steps(everyone, owned, has)
    detail: dict[str, Any] = {
        **chosen.detail,
        "names_claimed": len(usable),
        "names_claimed_without_vector": len(set(reconstructed)) - len(usable),
    }
    findings = list(steps.names(detail, _chance_of_a_pair(missed, vectors, usable, pairs)))
    for metric in metrics:
        distances = _distances(vectors, usable, found.diagnoses[columns], metric)
        for direction, sign in (("farthest", -1.0), ("nearest", 1.0)):
            guesses = np.argsort(sign * distances, axis=1, kind="stable")[:, : max(TOPS)]
            findings += steps.diagnoses(guesses, {**detail, "metric": metric, "direction": direction}, rng)
    return findings


def reconstruct(
    vectors: Vectors, missed: Sequence[Patient], k: int | None = None, *, threads: int = 2
) -> tuple[list[tuple[str, ...]], int]:
    """The names that Attack 1 puts together by cosine, nearest first, and how many pairs there were to choose from.

    `k` is how many names the attacker expects; None for as many as there are true pairs.
    Raises InputError if fewer than two name words have a vector.
    """
    names = NameTokens([patient.name for patient in missed])
    ranking = rank_names(vectors, names, "cosine", k or max(1, len(names.true_pairs)), threads=threads)
    first, second = np.divmod(ranking.codes, len(names.forms))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return [(names.forms[a], names.forms[b]) for a, b in pairs], ranking.n_pairs


def _distances(vectors: Vectors, names: Sequence[tuple[str, ...]], targets: Doubles, metric: str) -> Doubles:
    """(n_names, n_targets) how far each reconstructed name lies from each target."""
    rows = [[vectors.ids[form] for form in name] for name in names]
    points = [vectors.matrix[row].mean(axis=0, dtype=np.float64) for row in rows]
    return distance_matrix(np.array(points).reshape(len(points), vectors.dim), targets, metric)


def _owners(missed: Sequence[Patient], names: Sequence[tuple[str, ...]]) -> Ints:
    """(n_missed,) the first reconstructed name made of each patient's own name's words, or -1."""
    bearers: dict[str, set[int]] = {}
    for place, patient in enumerate(missed):
        for form in name_forms(patient.name):
            bearers.setdefault(form, set()).add(place)
    owned = np.full(len(missed), -1, dtype=np.int64)
    for number, name in enumerate(names):
        if len(set(name)) < 2:
            continue
        for place in set.intersection(*(bearers.get(form, set()) for form in name)):
            if owned[place] < 0:
                owned[place] = number
    return owned


def _chance_of_a_pair(
    missed: Sequence[Patient], vectors: Vectors, names: Sequence[tuple[str, ...]], pairs: int | None
) -> float | None:
    """The mean chance that one of a patient's pairs is among as many pairs drawn at random."""
    if pairs is None:
        return None
    own = [comb(sum(form in vectors.ids for form in set(name_forms(patient.name))), 2) for patient in missed]
    k = min(len(names), pairs)
    spared = {m: float(np.prod([(pairs - k - i) / (pairs - i) for i in range(m)])) for m in set(own)}
    return float(np.mean([1 - spared[m] for m in own])) if own else None


@dataclass(frozen=True)
class _Steps:
    """Who came how far.

    Attributes:
        everyone: patients of the corpus. owned: (n_missed,) each patient's reconstructed name, or -1.
        has: (n_missed, n_targets).
    """

    everyone: int
    owned: Ints
    has: Mask

    @property
    def named(self) -> Ints:
        """The patients whose name was reconstructed."""
        return np.flatnonzero(self.owned >= 0)

    def names(self, detail: dict[str, Any], chance_of_pair: float | None) -> Iterator[Finding]:
        """The first two steps, which no diagnosis touches."""
        missed = len(self.owned)
        counted = {"why": "a count: nothing is guessed here, so there is no chance and no control"}
        yield self._share(MISSED, missed, self.everyone, None, None, {**detail, **counted})
        own = {"why": "the control of this step is that of clinveil attack names"}
        yield self._share(NAMED, len(self.named), missed, chance_of_pair, None, {**detail, **own})

    def diagnoses(self, guesses: Ints, detail: dict[str, Any], rng: Generator) -> Iterator[Finding]:
        """The last step and the whole chain, for A@1 and A@5; `guesses` (n_names, 5)."""
        named = self.named
        for top in TOPS:
            table = self._right(guesses[:, :top])
            right = int(np.trace(table))
            by_chance = float(table.mean()) if table.size else 0.0
            swapped = float(table[np.arange(len(named)), rng.permutation(len(named))].mean()) if table.size else 0.0
            said = {
                **detail,
                "label": f"{detail['direction']}, A@{top}",
                "top": top,
                "claims": len(guesses),
                "claims_right": right / len(guesses) if len(guesses) else 0.0,
            }
            yield self._share(RIGHT, right, len(named), by_chance, swapped, said)
            scale = len(named) / self.everyone
            paper = {"paper_low": 0.0002, "paper_high": 0.0015}
            yield self._share(ALL, right, self.everyone, by_chance * scale, swapped * scale, {**said, **paper})

    def _right(self, guesses: Ints) -> Mask:
        """(n_named, n_named): whether the guesses for the name of the column's patient are true of the row's."""
        return np.asarray(self.has[self.named][:, guesses[self.owned[self.named]]].any(axis=2))

    def _share(
        self,
        series: str,
        count: int,
        n: int,
        chance: float | None,
        control: float | None,
        detail: dict[str, Any],
    ) -> Finding:
        detail = {**detail, "series": series}
        words: dict[str, Any] = {"unit": "patients", "question": _ASKED[series]}
        if not n:
            return unmeasured("attack.chain", "nobody came so far", detail=detail, source=SOURCE, **words)
        if control is not None:
            words |= {"chance_is": GUESSED, "control_is": PERMUTED, "control_kind": "negative"}
        elif chance is not None:
            words["chance_is"] = "as many pairs of name words drawn at random"
        words |= {"method": "Clopper-Pearson over patients, 95 %", "chance": chance, "control": control}
        return proportion("attack.chain", count, n, over="patients", source=SOURCE, detail=detail, **words)


GUESSED = "the guesses for other reconstructed patients"
PERMUTED = "the guesses of reconstructed patients, permuted once"
_ASKED = {
    MISSED: "Of how many patients did the remover leave the name in the notes?",
    NAMED: "Of how many of these does the attacker put two words of the name together?",
    RIGHT: "Of how many of these do they then name a true diagnosis?",
    ALL: "Of how many of all patients do they hold name and diagnosis?",
}
