"""Names and diagnoses as vectors, who has which diagnosis, how far they lie apart, and which diagnoses are targets.

A name is the mean of its words' vectors, a diagnosis the mean of its description's. Words without a vector are left out
of the mean, and so are single letters of names (initials, which are letters of every text); a name or a diagnosis of
which no word has a vector is left out whole. All of that is counted.

Source: JMIR 2020;22(7):e18055, Methods, Experiment 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Context
from clinveil.attacks.vectors._closest_pairs import METRICS
from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import Finding
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.stats import holm
from clinveil.vectors.table import Vectors

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

TOPS = (1, 5)  # how many diagnoses are guessed: A@1 and A@5
SWAPPED = "names permuted once over patients of like name frequency and number of diagnoses"
COUNTED = "a count: nothing is guessed here, so there is no chance and no control"
PAPER_TARGETS = (
    *("constipation", "diarrhea", "vaginitis", "sexual dysfunction", "urinary infection", "herpes genitalis"),
    *("dementia", "anorexia", "alcoholism", "threatened abortion", "AIDS"),
)


def each_model(
    context: Context, rng: Generator, attack: Callable[[Vectors, Context, Generator], list[Finding]]
) -> list[Finding]:
    """The findings on each model from a copy of one generator; of several, each finding's detail names the model."""
    models, found = context.vectors or (), list[Finding]()
    for number, vectors in enumerate(models, 1):
        label = {"model": _label(number, vectors)} if len(models) > 1 else {}
        found += [replace(f, detail={**f.detail, **label}) for f in attack(vectors, context, deepcopy(rng))]
    return over_models(found)


def _label(number: int, vectors: Vectors) -> str:
    """Which model it is, without its path."""
    meta = vectors.meta
    window = [f"window {meta['window']}"] if "window" in meta else []
    return f"{number}: " + " ".join([str(meta.get("algorithm", "imported")), *window, f"{vectors.dim}d"])


def over_models(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of several models, each P also adjusted by Holm over all models and metrics of its measure.

    The detail `p_over_models` is added where a finding has a `p`, and `models` says over how many.
    """
    families: dict[tuple[str, object], list[int]] = {}
    for place, finding in enumerate(findings):
        if finding.p is not None:
            families.setdefault((finding.measure, finding.detail.get("series")), []).append(place)
    adjusted = list(findings)
    for places in families.values():
        values = holm([findings[place].p or 0.0 for place in places])
        for place, value in zip(places, values.tolist(), strict=True):
            detail = {**findings[place].detail, "p_over_models": value, "models": len(places)}
            adjusted[place] = replace(findings[place], detail=detail)
    return adjusted


@dataclass(frozen=True)
class Groups:
    """The patients whose name has a vector, the diagnoses whose description has one, and who has which.

    Attributes:
        patients: places of these patients in the order they were given.
        names: (n_patients, dim) float64.
        codes: the diagnoses' codes.
        diagnoses: (n_codes, dim) float64.
        has: (n_patients, n_codes) bool.
        lengths: (n_codes,) words of each description.
        frequency: (n_patients,) mean corpus count of each name's words that have a vector; None without counts.
        left_out: what could not be used, and what is peculiar, by reason; numbers only.
    """

    patients: Ints
    names: Doubles = field(repr=False)
    codes: tuple[str, ...] = field(repr=False)
    diagnoses: Doubles = field(repr=False)
    has: Mask = field(repr=False)
    lengths: Ints = field(repr=False)
    frequency: Doubles | None = field(repr=False)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Ints:
        """(n_patients,) how many of the diagnoses each patient has."""
        return np.asarray(self.has.sum(axis=1), dtype=np.int64)

    @property
    def prevalence(self) -> Ints:
        """(n_codes,) how many of the patients have each diagnosis."""
        return np.asarray(self.has.sum(axis=0), dtype=np.int64)

    @property
    def both(self) -> Mask:
        """(n_patients,) who has an in-group and an out-group: some of the diagnoses, and not all."""
        return np.asarray((self.sizes > 0) & (self.sizes < len(self.codes)))

    def only(self, rows: Mask) -> Groups:
        """The same for some of the patients; diagnoses stay all."""
        frequency = None if self.frequency is None else self.frequency[rows]
        kept = replace(self, patients=self.patients[rows], names=self.names[rows], has=self.has[rows])
        return replace(kept, frequency=frequency)


def groups(
    vectors: Vectors, patients: Iterable[Patient], codes: Mapping[str, str], *, counts: Mapping[str, int] | None = None
) -> Groups:
    """Names and diagnoses as vectors.

    Args:
        patients: those whose names are known; two of one name stay two. codes: code -> description.
        counts: occurrences of words in the training notes, for vectors that carry none.

    Raises InputError for no patients, or no name or no diagnosis that has a vector.
    """
    everyone = list(patients)
    names = [name_forms(patient.name) for patient in everyone]
    rows = [_rows(vectors, name) for name in names]
    places = [place for place, own in enumerate(rows) if own]
    described = {code: own for code, said in codes.items() if (own := _rows(vectors, words(said)))}
    if not places or not described:
        what = "name" if not places else "diagnosis"
        raise InputError(f"no {what} has a vector", hint="are these the vectors of these notes?")
    often = vectors.counts
    if often is None and counts is not None:
        often = np.array([counts.get(word, 0) for word in vectors.words], dtype=np.int64)
    having = [everyone[place] for place in places]
    has = np.array([[code in own for code in described] for own in (set(p.codes) for p in having)], dtype=np.bool_)
    return Groups(
        np.array(places, dtype=np.int64),
        np.array([_mean(vectors, rows[place]) for place in places]),
        tuple(described),
        np.array([_mean(vectors, own) for own in described.values()]),
        has,
        np.array([len(words(codes[code])) for code in described], dtype=np.int64),
        None if often is None else np.array([float(often[rows[place]].mean()) for place in places]),
        {
            "patients": len(everyone),
            **_names_left_out(names, rows),
            **_diagnoses_left_out(codes, described),
            "codes_without_description": len({code for patient in having for code in patient.codes} - codes.keys()),
            "no_diagnosis": int((~has.any(axis=1)).sum()),
            "all_diagnoses": int(has.all(axis=1).sum()),
        },
    )


def name_forms(name: Sequence[str]) -> tuple[str, ...]:
    """The lookup forms of a full name's words, single letters left out."""
    return tuple(form for form in words(" ".join(name)) if len(form) > 1)


def _rows(vectors: Vectors, forms: Sequence[str]) -> list[int]:
    """The rows of the words that have a vector; a repeated word is repeated."""
    return [vectors.ids[form] for form in forms if form in vectors.ids]


def _mean(vectors: Vectors, rows: list[int]) -> Doubles:
    return np.asarray(vectors.matrix[rows].mean(axis=0, dtype=np.float64))


def _names_left_out(names: list[tuple[str, ...]], rows: list[list[int]]) -> dict[str, int]:
    bearers = Counter(names)
    kept = [(name, own) for name, own in zip(names, rows, strict=True) if own]
    return {
        "names_without_vector": len(names) - len(kept),
        "names_in_part": sum(len(own) < len(name) for name, own in kept),
        "names_of_one_word": sum(len(name) == 1 for name, _ in kept),
        "shared_names": sum(bearers[name] > 1 for name, _ in kept),
    }


def _diagnoses_left_out(codes: Mapping[str, str], described: Mapping[str, list[int]]) -> dict[str, int]:
    return {
        "diagnoses_without_vector": len(codes) - len(described),
        "diagnoses_in_part": sum(len(own) < len(words(codes[code])) for code, own in described.items()),
        "diagnoses_alike": len(described) - len({tuple(sorted(own)) for own in described.values()}),
    }


def distance_matrix(names: Doubles, diagnoses: Doubles, metric: str) -> Doubles:
    """How far each name lies from each diagnosis, shape (n_names, n_diagnoses) float64.

    A zero vector has cosine distance 1 to all. Raises UsageError for an unknown metric.
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


def target_columns(
    wanted: Sequence[str], known: Sequence[str], codes: Mapping[str, str]
) -> tuple[list[int], dict[str, int]]:
    """The codes that are targets: whose code, or the words of whose description, are a target's.

    Args:
        wanted: descriptions or codes. known: codes that have a vector. codes: code -> description.

    Returns: their places in `known`, ascending; and for a finding how many targets were named, how many no code stands
        for, and how many codes that stand for one have no vector.
    """
    forms = {tuple(words(target)) for target in wanted if words(target)}
    exact = {target.strip() for target in wanted}
    meant = [code for code, said in codes.items() if code in exact or tuple(words(said)) in forms]
    said = {tuple(words(codes[code])) for code in meant}
    unknown = sum(t.strip() not in meant and tuple(words(t)) not in said for t in dict.fromkeys(wanted))
    place = {code: column for column, code in enumerate(known)}
    columns = sorted(place[code] for code in meant if code in place)
    without = {"targets_unknown": unknown, "targets_without_vector": len(meant) - len(columns)}
    return columns, {"targets_wanted": len(set(wanted)), **without}


def read_targets(path: Path) -> list[str]:
    """Target diagnoses or codes, one a line, of a text file. Raises InputError if it is empty or not UTF-8."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError("it cannot be read as UTF-8 text", where=path.name, hint="one diagnosis a line") from None
    wanted = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not wanted:
        raise InputError("it holds no diagnoses", where=path.name, hint="one diagnosis a line")
    return wanted
