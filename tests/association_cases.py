"""Patients, codes and vectors made by hand, for the tests of association, scenario and chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinveil.attacks import Context
from clinveil.corpus import Patient
from clinveil.vectors import Vectors

# Four people and four diagnoses on a plane. Names are the mean of two words, diagnoses one word
# each.
PLACES = {
    "ann": (0, 0), "arne": (0, 2), "bob": (4, 0), "berg": (4, 2), "cat": (0, 8), "cole": (2, 8),
    "dan": (6, 6), "dorn": (8, 6), "flu": (0, 0), "gout": (4, 1), "acne": (1, 9), "gas": (9, 6),
}  # fmt: skip
NAMES = {"ann arne": (0, 1), "bob berg": (4, 1), "cat cole": (1, 8), "dan dorn": (7, 6)}
CODES = {"1": "flu", "2": "gout", "3": "acne", "4": "gas"}


def vectors(places=PLACES, counts=None) -> Vectors:
    words = list(places)
    matrix = np.array([places[word] for word in words], dtype=np.float32)
    counts = np.arange(len(words), 0, -1) if counts is None else counts
    return Vectors(words, matrix, counts, np.minimum(counts, 9), 9)


def context(patients, codes, **more) -> Context:
    return Context(known=dict(enumerate(patients)), codes=codes, **more)


def four(codes=(("1",), ("2",), ("3",), ("4",))) -> list[Patient]:
    return [
        Patient(f"p{i}", tuple(name.split()), own)
        for i, (name, own) in enumerate(zip(NAMES, codes, strict=True))
    ]


@dataclass(frozen=True)
class World:
    """An invented clinic: patients with names of their own, diagnoses, and vectors in which names
    may know them.
    """

    vectors: Vectors
    patients: list[Patient]
    codes: dict[str, str]


def world(rng, n=120, m=30, *, link=0.0, prevalence=1.0) -> World:
    """Names lie `link` times towards (or, below 0, away from) their bearers' diagnoses; frequent
    diagnoses are longer.

    Every diagnosis has a direction of its own and a length that grows with its prevalence, so that
    all names lie
    farther from frequent diagnoses: what paper B's tests find with `link=0`.
    """
    odds = np.exp(rng.normal(0, prevalence, m))
    sizes = 1 + rng.binomial(4, 0.4, n)
    keys = np.log(odds) + rng.gumbel(
        size=(n, m)
    )  # the largest of these: a draw in proportion to the odds
    has = np.argsort(np.argsort(-keys, axis=1), axis=1) < sizes[:, None]
    dim = m + 4
    diagnoses = np.eye(m, dim) * (2 + np.log(odds))[:, None]
    names = link * (has / sizes[:, None]) @ np.eye(m, dim) + rng.normal(0, 0.2, (n, dim))
    firsts = names + (spread := rng.normal(0, 0.1, (n, dim)))
    words = [f"{part}{letters(i)}" for i in range(n) for part in ("first", "last")]
    words += [f"illness{letters(j)}" for j in range(m)]
    matrix = np.empty((len(words), dim), dtype=np.float32)
    matrix[0 : 2 * n : 2] = firsts
    matrix[1 : 2 * n : 2] = names - spread
    matrix[2 * n :] = diagnoses
    counts = np.concatenate([rng.integers(2, 60, 2 * n), 50 * np.ones(m)]).astype(np.int64)
    codes = {f"c{j}": f"illness{letters(j)}" for j in range(m)}
    people = [
        Patient(
            f"p{i}",
            (f"first{letters(i)}", f"last{letters(i)}"),
            tuple(f"c{j}" for j in np.flatnonzero(has[i])),
        )
        for i in range(n)
    ]
    return World(Vectors(words, matrix, counts, counts, n), people, codes)


def letters(number: int) -> str:
    """A number in letters, for digits would split a word."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def swapped(patients: list[Patient], order) -> list[Patient]:
    """The same patients under each other's whole names."""
    return [
        Patient(p.patient_id, patients[int(o)].name, p.codes)
        for p, o in zip(patients, order, strict=True)
    ]


def one(findings, measure, *words):
    """The only finding of a measure with these words."""
    fit = [f for f in findings if f.measure == measure and {*words} <= {*f.labels, f.series}]
    assert len(fit) == 1, [f.labels for f in fit]
    return fit[0]
