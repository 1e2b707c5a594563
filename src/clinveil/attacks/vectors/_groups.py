"""Names and diagnoses as vectors: who has which diagnosis, and their distances.

A name is the mean of its words' vectors, a diagnosis the mean of its description's. Words without a
vector are left out of the mean, and so are single letters of names (initials). A name or diagnosis
without any vector is left out. All of this is counted.

Source: JMIR 2020;22(7):e18055, Methods, Experiment 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Context
from clinveil.attacks.vectors._name_pairs import METRICS
from clinveil.core import Doubles, Finding, InputError, Ints, Mask, UsageError, words
from clinveil.stats import holm
from clinveil.vectors import Vectors

if TYPE_CHECKING:
    from clinveil.corpus import Patient

SWAPPED = "names permuted once among patients with similar name frequency and number of diagnoses"
COUNTED = "a count: nothing is guessed, so there is no chance level and no control"


def each_model(
    context: Context, rng: Generator, attack: Callable[[Vectors, Context, Generator], list[Finding]]
) -> list[Finding]:
    """Return the findings on each model, from copies of one generator; a label names the model."""
    models = context.vectors or ()
    found = list[Finding]()
    for number, vectors in enumerate(models, 1):
        of_model = (_label(number, vectors),) if len(models) > 1 else ()
        found += [
            replace(finding, labels=(*of_model, *finding.labels))
            for finding in attack(vectors, context, deepcopy(rng))
        ]
    return over_models(found)


def _label(number: int, vectors: Vectors) -> str:
    """Return the label of a model, without its path."""
    meta = vectors.meta
    window = [f"window {meta['window']}"] if "window" in meta else []
    return f"{number}: " + " ".join(
        [str(meta.get("algorithm", "imported")), *window, f"{vectors.dim}d"]
    )


def over_models(findings: Sequence[Finding]) -> list[Finding]:
    """Adjust the P values of several models by Holm over all models and metrics of a measure.

    A finding with `p` gets the number `p_over_models`, and `models`, the number of models.
    """
    families: dict[tuple[str, str], list[int]] = {}
    for index, finding in enumerate(findings):
        if finding.p is not None:
            families.setdefault((finding.measure, finding.series), []).append(index)
    adjusted = list(findings)
    for indices in families.values():
        values = holm([findings[index].p or 0.0 for index in indices])
        for index, value in zip(indices, values.tolist(), strict=True):
            finding = findings[index]
            numbers = {**finding.numbers, "p_over_models": value, "models": len(indices)}
            adjusted[index] = replace(finding, numbers=numbers)
    return adjusted


@dataclass(frozen=True)
class Groups:
    """Patients and diagnoses with a vector, and who has which diagnosis.

    Attributes:
        patients: indices of these patients in the given order.
        names: (n_patients, dim) float64.
        codes: the diagnoses' codes.
        diagnoses: (n_codes, dim) float64.
        has: (n_patients, n_codes) bool.
        frequency: (n_patients,) mean corpus count of each name's words with a vector; None without
            counts.
        left_out: counts of unused patients and diagnoses and of special cases, by reason.
    """

    patients: Ints
    names: Doubles = field(repr=False)
    codes: tuple[str, ...] = field(repr=False)
    diagnoses: Doubles = field(repr=False)
    has: Mask = field(repr=False)
    frequency: Doubles | None = field(repr=False)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Ints:
        """Return the number of diagnoses of each patient, (n_patients,)."""
        return np.asarray(self.has.sum(axis=1), dtype=np.int64)

    @property
    def prevalence(self) -> Ints:
        """Return the number of patients with each diagnosis, (n_codes,)."""
        return np.asarray(self.has.sum(axis=0), dtype=np.int64)

    @property
    def testable(self) -> Mask:
        """Return which patients have some of the diagnoses, and not all, (n_patients,)."""
        return np.asarray((self.sizes > 0) & (self.sizes < len(self.codes)))

    def only(self, rows: Mask) -> Groups:
        """Return the same for some of the patients, with all diagnoses."""
        frequency = None if self.frequency is None else self.frequency[rows]
        kept = replace(
            self, patients=self.patients[rows], names=self.names[rows], has=self.has[rows]
        )
        return replace(kept, frequency=frequency)


def groups(
    vectors: Vectors,
    patients: Iterable[Patient],
    codes: Mapping[str, str],
    *,
    counts: Mapping[str, int] | None = None,
) -> Groups:
    """Compute the vectors of names and diagnoses.

    Args:
        patients: those with known names; two patients with the same name stay separate. codes: code
            -> description.
        counts: occurrences of words in the training notes, for vectors that have none.

    Raises InputError for no patients, or if no name or no diagnosis has a vector.
    """
    all_patients = list(patients)
    names = [name_forms(patient.name) for patient in all_patients]
    rows = [_rows(vectors, name) for name in names]
    indices = [index for index, word_rows in enumerate(rows) if word_rows]
    described = {
        code: word_rows
        for code, description in codes.items()
        if (word_rows := _rows(vectors, words(description)))
    }
    if not indices or not described:
        what = "name" if not indices else "diagnosis"
        raise InputError(
            f"no {what} has a vector", hint="check that these vectors were trained on these notes"
        )
    word_counts = vectors.counts
    if word_counts is None and counts is not None:
        word_counts = np.array([counts.get(word, 0) for word in vectors.words], dtype=np.int64)
    kept_patients = [all_patients[index] for index in indices]
    has = np.array(
        [
            [code in word_rows for code in described]
            for word_rows in (set(p.codes) for p in kept_patients)
        ],
        dtype=np.bool_,
    )
    return Groups(
        np.array(indices, dtype=np.int64),
        np.array([_mean(vectors, rows[index]) for index in indices]),
        tuple(described),
        np.array([_mean(vectors, word_rows) for word_rows in described.values()]),
        has,
        None
        if word_counts is None
        else np.array([float(word_counts[rows[index]].mean()) for index in indices]),
        {
            "patients": len(all_patients),
            **_names_left_out(names, rows),
            **_diagnoses_left_out(codes, described),
            "codes_without_description": len(
                {code for patient in kept_patients for code in patient.codes} - codes.keys()
            ),
            "no_diagnosis": int((~has.any(axis=1)).sum()),
            "all_diagnoses": int(has.all(axis=1).sum()),
        },
    )


def name_forms(name: Sequence[str]) -> tuple[str, ...]:
    """Return the lookup forms of a full name's words, without single letters."""
    return tuple(form for form in words(" ".join(name)) if len(form) > 1)


def _rows(vectors: Vectors, forms: Sequence[str]) -> list[int]:
    """Return the rows of the words with a vector, with repetitions."""
    return [vectors.ids[form] for form in forms if form in vectors.ids]


def _mean(vectors: Vectors, rows: list[int]) -> Doubles:
    return np.asarray(vectors.matrix[rows].mean(axis=0, dtype=np.float64))


def _names_left_out(names: list[tuple[str, ...]], rows: list[list[int]]) -> dict[str, int]:
    name_counts = Counter(names)
    kept = [(name, word_rows) for name, word_rows in zip(names, rows, strict=True) if word_rows]
    return {
        "names_without_vector": len(names) - len(kept),
        "names_in_part": sum(len(word_rows) < len(name) for name, word_rows in kept),
        "names_of_one_word": sum(len(name) == 1 for name, _ in kept),
        "shared_names": sum(name_counts[name] > 1 for name, _ in kept),
    }


def _diagnoses_left_out(
    codes: Mapping[str, str], described: Mapping[str, list[int]]
) -> dict[str, int]:
    return {
        "diagnoses_without_vector": len(codes) - len(described),
        "diagnoses_in_part": sum(
            len(word_rows) < len(words(codes[code])) for code, word_rows in described.items()
        ),
        "diagnoses_alike": len(described)
        - len({tuple(sorted(word_rows)) for word_rows in described.values()}),
    }


def distance_matrix(names: Doubles, diagnoses: Doubles, metric: str) -> Doubles:
    """Return the distance of each name to each diagnosis, (n_names, n_diagnoses) float64.

    A zero vector has cosine distance 1 to all others. Raises UsageError for an unknown metric.
    """
    from scipy.spatial.distance import cdist

    if metric not in METRICS:
        raise UsageError(f"unknown metric {metric!r}", hint="one of " + ", ".join(METRICS))
    if metric == "cosine":
        return np.asarray(1.0 - _unit(names) @ _unit(diagnoses).T)
    return np.asarray(cdist(names, diagnoses, metric))


def _unit(points: Doubles) -> Doubles:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0))
