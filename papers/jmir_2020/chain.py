"""The complete attack per patient: name missed by removal, name reconstructed, diagnosis right.

The attacker has only the vectors. They pair the nearest name words (Attack 1), treat the mean of
each pair as a person, and name diagnoses for it (Attack 3). A patient's name is reconstructed if a
pair on the list consists of two of its words; of several such pairs the nearest counts. Pairs that
are not names also yield claims, which are false.

Source: JMIR 2020;22(7):e18055, Introduction (0.6 % of patients; 0.02 to 0.15 %).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from numpy.random import Generator

from clinveil import Finding, InputError, Patient, Vectors
from clinveil.attacks import COUNTED, NameTokens, distance_matrix, groups, name_forms, rank_names
from clinveil.core import Doubles, Ints, Mask, Numbers
from clinveil.stats import HitCounts, MeasureSpec
from papers.jmir_2020.targets import PAPER_TARGETS, TOPS, target_columns

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
CHANCE_OF_PAIRS = "the same number of random pairs of name words"
CHANCE_OF_GUESSES = "the guesses for other reconstructed patients"
NamePair = tuple[str, ...]


@dataclass(frozen=True)
class NameClaims:
    """Names that the attacker reconstructed, most likely first: at least two lookup forms each.

    Attributes:
        pairs: number of unordered pairs of name words, for the chance of a pair; None if unknown.
    """

    names: Sequence[NamePair]
    pairs: int | None = None


@dataclass(frozen=True)
class Chain:
    """Reconstruct names, name diagnoses for them, and count the patients for whom both are right.

    Attributes:
        everyone: patients of the entire corpus. metrics: of the distances of names to diagnoses.
        k: names that the attacker reconstructs; None for the number of true pairs.
        targets: descriptions or codes.
    """

    everyone: int
    metrics: tuple[str, ...] = ("cityblock", "cosine")
    k: int | None = None
    targets: Sequence[str] = PAPER_TARGETS

    def findings(
        self,
        vectors: Vectors,
        missed: Sequence[Patient],
        codes: Mapping[str, str],
        rng: Generator,
        claims: NameClaims | None = None,
    ) -> list[Finding]:
        """Return the share of patients at each step, and at the end.

        Args:
            claims: the reconstructed names, if not those of Attack 1.

        Raises InputError for more missed patients than patients, or if no diagnosis has a vector.
        """
        if claims is None:
            claims = reconstruct(vectors, missed, self.k)
        if self.everyone < len(missed):
            why = f"{len(missed)} patients were missed, but there are only {self.everyone} patients"
            raise InputError(why, hint="pass the number of all patients")
        named = groups(vectors, missed, codes)
        targets = target_columns(self.targets, named.codes, codes)
        if len(targets.columns) <= max(TOPS):
            why = f"{len(targets.columns)} targets have a vector; more than {max(TOPS)} are needed"
            spec = MeasureSpec(measure="attack.chain", source=SOURCE)
            return [spec.missing(why, numbers=targets.numbers)]
        columns = rng.permutation(np.array(targets.columns))
        usable = [
            name
            for name in dict.fromkeys(map(tuple, claims.names))
            if all(form in vectors.ids for form in name)
        ]
        has = np.zeros((len(missed), len(columns)), dtype=np.bool_)
        has[named.patients] = named.has[:, columns]
        steps = ChainSteps(self.everyone, _owners(missed, usable), has)
        numbers = {
            **targets.numbers,
            "names_claimed": len(usable),
            "names_claimed_without_vector": len(set(claims.names)) - len(usable),
        }
        chance_of_pair = _chance_of_a_pair(missed, vectors, usable, claims.pairs)
        findings = list(steps.of_names(numbers, chance_of_pair))
        for metric in self.metrics:
            distances = _distances(vectors, usable, named.diagnoses[columns], metric)
            for direction, sign in (("farthest", -1.0), ("nearest", 1.0)):
                guesses = np.argsort(sign * distances, axis=1, kind="stable")[:, : max(TOPS)]
                findings += steps.of_diagnoses(guesses, direction, metric, numbers, rng)
        return findings


def reconstruct(vectors: Vectors, missed: Sequence[Patient], k: int | None = None) -> NameClaims:
    """Return the names that Attack 1 reconstructs by cosine, nearest first.

    `k` is the number of names that the attacker expects; None for the number of true pairs.
    Raises InputError if fewer than two name words have a vector.
    """
    names = NameTokens([patient.name for patient in missed])
    ranking = rank_names(vectors, names, "cosine", k or max(1, len(names.true_pairs)))
    first, second = np.divmod(ranking.codes, len(names.forms))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return NameClaims([(names.forms[a], names.forms[b]) for a, b in pairs], ranking.n_pairs)


def _distances(
    vectors: Vectors, names: Sequence[NamePair], targets: Doubles, metric: str
) -> Doubles:
    """Return the distance of each reconstructed name to each target, (n_names, n_targets)."""
    rows = [[vectors.ids[form] for form in name] for name in names]
    points = [vectors.matrix[row].mean(axis=0, dtype=np.float64) for row in rows]
    return distance_matrix(np.array(points).reshape(len(points), vectors.dim), targets, metric)


def _owners(missed: Sequence[Patient], names: Sequence[NamePair]) -> Ints:
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
    missed: Sequence[Patient], vectors: Vectors, names: Sequence[NamePair], pairs: int | None
) -> float | None:
    """Return the mean chance that one of a patient's pairs is among the same number of random
    pairs.
    """
    if pairs is None:
        return None
    pairs_of_patient = [
        comb(sum(form in vectors.ids for form in set(name_forms(patient.name))), 2)
        for patient in missed
    ]
    k = min(len(names), pairs)
    chance_of_none = {
        m: float(np.prod([(pairs - k - i) / (pairs - i) for i in range(m)]))
        for m in set(pairs_of_patient)
    }
    if not pairs_of_patient:
        return None
    return float(np.mean([1 - chance_of_none[m] for m in pairs_of_patient]))


@dataclass(frozen=True)
class ChainSteps:
    """The steps reached: number of patients, each missed patient's reconstructed name or -1,
    (n_missed,), and who has which target, (n_missed, n_targets).
    """

    everyone: int
    name_of: Ints
    has: Mask

    @property
    def named(self) -> Ints:
        """Return the patients with a reconstructed name."""
        return np.flatnonzero(self.name_of >= 0)

    def of_names(self, numbers: Numbers, chance_of_pair: float | None) -> Iterator[Finding]:
        """Yield the first two steps, which do not depend on diagnoses."""
        missed = len(self.name_of)
        every_name = HitCounts(hits=missed, tries=self.everyone)
        yield replace(_share(MISSED, every_name, numbers), why=COUNTED)
        named = HitCounts(hits=len(self.named), tries=missed, chance=chance_of_pair)
        finding = _share(NAMED, named, numbers)
        why = "the control of this step is that of clinveil attack names"
        yield finding if finding.value is None else replace(finding, why=why)

    def of_diagnoses(
        self, guesses: Ints, direction: str, metric: str, numbers: Numbers, rng: Generator
    ) -> Iterator[Finding]:
        """Yield the last step and the complete chain, for A@1 and A@5; `guesses` (n_names, 5)."""
        named = self.named
        scale = len(named) / self.everyone
        for top in TOPS:
            # (n_named, n_named): whether the guesses for the column's patient are right for the
            # row's patient.
            table = np.asarray(self.has[named][:, guesses[self.name_of[named], :top]].any(axis=2))
            right = int(np.trace(table))
            by_chance = 0.0
            swapped = 0.0
            if table.size:
                by_chance = float(table.mean())
                swapped = float(table[np.arange(len(named)), rng.permutation(len(named))].mean())
            step_numbers = {
                **numbers,
                "top": top,
                "claims": len(guesses),
                "claims_right": right / len(guesses) if len(guesses) else 0.0,
            }
            labels = (f"{direction}, A@{top}", metric)
            of_named = HitCounts(hits=right, tries=len(named), chance=by_chance, control=swapped)
            yield _share(RIGHT, of_named, step_numbers, labels)
            of_everyone = HitCounts(
                hits=right,
                tries=self.everyone,
                chance=by_chance * scale,
                control=swapped * scale,
            )
            paper = {"paper_low": 0.0002, "paper_high": 0.0015}
            yield _share(ALL, of_everyone, {**step_numbers, **paper}, labels)


def _share(
    series: str, counts: HitCounts, numbers: Numbers, labels: tuple[str, ...] = ()
) -> Finding:
    of_pairs = series == NAMED
    spec = MeasureSpec(
        measure="attack.chain",
        series=series,
        over="patients",
        method="Clopper-Pearson over patients, 95 %",
        source=SOURCE,
        question=_QUESTIONS[series],
        chance_is=CHANCE_OF_PAIRS if of_pairs else CHANCE_OF_GUESSES,
        control_is="the guesses of reconstructed patients, permuted once",
        control_kind="negative",
    )
    if not counts.tries:
        return spec.missing("no patient reached this step", labels=labels, numbers=numbers)
    return spec.share(counts, labels=labels, numbers=numbers)
