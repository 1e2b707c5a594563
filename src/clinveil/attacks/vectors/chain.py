"""The whole chain, patient by patient: missed by removal, name reconstructed, diagnosis right.

The attacker holds the vectors only. They pair the name words that lie nearest (Attack 1), take the mean of each pair
for a person, and name diagnoses for it (Attack 3). A patient's name is reconstructed where a pair on the list is made
of two words of it; of several such pairs the nearest counts. Pairs that are no name make claims too, false ones.

Source: JMIR 2020;22(7):e18055, Introduction (0.6 % of patients; 0.02 to 0.15 %).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.vectors._groups import (
    COUNTED,
    PAPER_TARGETS,
    TOPS,
    distance_matrix,
    each_model,
    groups,
    name_forms,
    read_targets,
    target_columns,
)
from clinveil.attacks.vectors._name_pairs import NameTokens, rank_names
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
_ASKED = {
    MISSED: "Of how many patients did the remover leave the name in the notes?",
    NAMED: "Of how many of these does the attacker put two words of the name together?",
    RIGHT: "Of how many of these do they then name a true diagnosis?",
    ALL: "Of how many of all patients do they hold name and diagnosis?",
}


@attacks.register("chain")
class Chain(Attack):
    """Put names together, name diagnoses for them, and count the patients of whom both are right (paper B)."""

    needs = frozenset({"vectors", "known", "codes"})
    words = words_beside(__file__)
    everyone: int | None = flag(None, "Patients of the whole corpus (default: those whose names were missed).")
    targets: Path | None = flag(None, "Target diagnoses or codes, one a line (default: the paper's 11).")
    metric: tuple[str, ...] = flag(("cityblock", "cosine"), "cityblock, cosine or euclidean; repeatable.")
    k: int | None = flag(None, "Names that the attacker puts together (default: the true pairs).", ge=1)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Of each model, under the same draws."""
        targets = read_targets(self.targets) if self.targets else PAPER_TARGETS
        return each_model(context, rng, lambda *given: self.on(*given, targets=targets))

    def on(
        self, vectors: Vectors, context: Context, rng: Generator, *, targets: Sequence[str] = PAPER_TARGETS
    ) -> list[Finding]:
        """The chain on the names that Attack 1 puts together; `targets` are descriptions or codes."""
        missed = list((context.known or {}).values())
        names, pairs = reconstruct(vectors, missed, self.k, threads=context.workers)
        return self.of_names(vectors, context, names, rng, targets=targets, pairs=pairs)

    def of_names(
        self,
        vectors: Vectors,
        context: Context,
        names: Sequence[tuple[str, ...]],
        rng: Generator,
        *,
        targets: Sequence[str] = PAPER_TARGETS,
        pairs: int | None = None,
    ) -> list[Finding]:
        """The share of patients at each step, and at the end.

        Args:
            names: as the attacker put them together, likeliest first: lookup forms, two or more each.
            pairs: unordered pairs of name words to choose from, for the chance of a pair; None if unknown.

        Raises InputError for more missed patients than patients, or no diagnosis with a vector.
        """
        missed, codes = list((context.known or {}).values()), context.codes or {}
        everyone = len(missed) if self.everyone is None else self.everyone
        if everyone < len(missed):
            why = f"{len(missed)} patients were missed, of {everyone} altogether"
            raise InputError(why, hint="name all patients")
        found = groups(vectors, missed, codes)
        chosen, detail = target_columns(targets, found.codes, codes)
        if len(chosen) <= max(TOPS):
            why = f"{len(chosen)} targets have a vector; more than {max(TOPS)} are needed"
            return [unmeasured("attack.chain", why, detail=detail, source=SOURCE)]
        columns = rng.permutation(np.array(chosen))
        usable = [name for name in dict.fromkeys(map(tuple, names)) if all(form in vectors.ids for form in name)]
        has = np.zeros((len(missed), len(columns)), dtype=np.bool_)
        has[found.patients] = found.has[:, columns]
        steps = _Steps(everyone, _owners(missed, usable), has)
        said: dict[str, Any] = {**detail, "names_claimed": len(usable)}
        said["names_claimed_without_vector"] = len(set(names)) - len(usable)
        findings = list(steps.names(said, _chance_of_a_pair(missed, vectors, usable, pairs)))
        for metric in self.metric:
            distances = _distances(vectors, usable, found.diagnoses[columns], metric)
            for direction, sign in (("farthest", -1.0), ("nearest", 1.0)):
                guesses = np.argsort(sign * distances, axis=1, kind="stable")[:, : max(TOPS)]
                findings += steps.diagnoses(guesses, {**said, "metric": metric, "direction": direction}, rng)
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
        if len(set(name)) > 1:
            for place in set.intersection(*(bearers.get(form, set()) for form in name)):
                owned[place] = number if owned[place] < 0 else owned[place]
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
    """Who came how far: patients of the corpus, each missed one's reconstructed name or -1, (n_missed, n_targets)."""

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
        yield _share(MISSED, missed, self.everyone, {**detail, "why": COUNTED})
        words = {} if chance_of_pair is None else {"chance_is": "as many pairs of name words drawn at random"}
        why = "the control of this step is that of clinveil attack names"
        yield _share(NAMED, len(self.named), missed, {**detail, "why": why}, chance=chance_of_pair, **words)

    def diagnoses(self, guesses: Ints, detail: dict[str, Any], rng: Generator) -> Iterator[Finding]:
        """The last step and the whole chain, for A@1 and A@5; `guesses` (n_names, 5)."""
        named, words = self.named, {"chance_is": "the guesses for other reconstructed patients"}
        words |= {"control_is": "the guesses of reconstructed patients, permuted once", "control_kind": "negative"}
        for top in TOPS:
            # (n_named, n_named): whether the guesses for the name of the column's patient are true of the row's.
            table = np.asarray(self.has[named][:, guesses[self.owned[named], :top]].any(axis=2))
            right = int(np.trace(table))
            by_chance = float(table.mean()) if table.size else 0.0
            swapped = float(table[np.arange(len(named)), rng.permutation(len(named))].mean()) if table.size else 0.0
            said = {**detail, "label": f"{detail['direction']}, A@{top}", "top": top, "claims": len(guesses)}
            said["claims_right"] = right / len(guesses) if len(guesses) else 0.0
            yield _share(RIGHT, right, len(named), said, chance=by_chance, control=swapped, **words)
            scale = len(named) / self.everyone
            said |= {"paper_low": 0.0002, "paper_high": 0.0015}
            yield _share(ALL, right, self.everyone, said, chance=by_chance * scale, control=swapped * scale, **words)


def _share(series: str, count: int, n: int, detail: dict[str, Any], **beside: Any) -> Finding:
    told: dict[str, Any] = {"detail": {**detail, "series": series}, "source": SOURCE, "question": _ASKED[series]}
    if not n:
        return unmeasured("attack.chain", "nobody came so far", unit="patients", **told)
    method = "Clopper-Pearson over patients, 95 %"
    return proportion("attack.chain", count, n, over="patients", method=method, **told, **beside)
