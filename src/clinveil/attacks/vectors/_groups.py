"""Names and diagnoses as vectors, who has which diagnosis, how far they lie apart, and which diagnoses are targets.

A name is the mean of its words' vectors, a diagnosis the mean of its description's. Words without a vector are left out
of the mean, and so are single letters of names (initials, which are letters of every text); a name or a diagnosis of
which no word has a vector is left out whole. All of that is counted.

Source: JMIR 2020;22(7):e18055, Methods, Experiment 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clinveil.attacks.vectors._closest_pairs import METRICS
from clinveil.core.errors import InputError, UsageError
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.vectors.table import Vectors

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient

PAPER_TARGETS = (
    "constipation",
    "diarrhea",
    "vaginitis",
    "sexual dysfunction",
    "urinary infection",
    "herpes genitalis",
    "dementia",
    "anorexia",
    "alcoholism",
    "threatened abortion",
    "AIDS",
)


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
        return replace(
            self,
            patients=self.patients[rows],
            names=self.names[rows],
            has=self.has[rows],
            frequency=None if self.frequency is None else self.frequency[rows],
        )


def groups(
    vectors: Vectors,
    patients: Iterable[Patient],
    codes: Mapping[str, str],
    *,
    counts: Mapping[str, int] | None = None,
) -> Groups:
    """Names and diagnoses as vectors.

    Args:
        vectors: what is to be released.
        patients: those whose names are known; two of one name stay two.
        codes: code -> description.
        counts: occurrences of words in the training notes, for vectors that carry none.

    Raises:
        InputError: no patients, or no name or no diagnosis that has a vector.
    """
    everyone = list(patients)
    table, tally = _Table(vectors, counts), Counter[str]()
    names = [name_forms(patient.name) for patient in everyone]
    places, points, frequency = _names(names, table, tally)
    known, diagnoses, lengths = _diagnoses(codes, table, tally)
    if not places or not known:
        what = "name" if not places else "diagnosis"
        raise InputError(f"no {what} has a vector", remedy="are these the vectors of these notes?")
    has = _membership([everyone[place] for place in places], known, codes, tally)
    peculiar = {"no_diagnosis": int((~has.any(axis=1)).sum()), "all_diagnoses": int(has.all(axis=1).sum())}
    return Groups(
        np.array(places, dtype=np.int64),
        np.array(points),
        tuple(known),
        np.array(diagnoses),
        has,
        np.array(lengths, dtype=np.int64),
        np.array(frequency) if table.counts is not None else None,
        {"patients": len(everyone), **_REASONS, **tally, **peculiar},
    )


def name_forms(name: Sequence[str]) -> tuple[str, ...]:
    """The lookup forms of a full name's words, single letters left out."""
    return tuple(form for form in words(" ".join(name)) if len(form) > 1)


_REASONS = dict.fromkeys(
    (
        "names_without_vector",
        "names_in_part",
        "names_of_one_word",
        "shared_names",
        "diagnoses_without_vector",
        "diagnoses_in_part",
        "diagnoses_alike",
        "codes_without_description",
    ),
    0,
)


class _Table:
    """Vectors and counts by word."""

    def __init__(self, vectors: Vectors, counts: Mapping[str, int] | None) -> None:
        self.ids, self.matrix = vectors.ids, vectors.matrix
        self.counts = vectors.counts
        if self.counts is None and counts is not None:
            self.counts = np.array([counts.get(word, 0) for word in vectors.words], dtype=np.int64)

    def rows(self, forms: Sequence[str]) -> list[int]:
        """The rows of the words that have a vector; a repeated word is repeated."""
        return [self.ids[form] for form in forms if form in self.ids]

    def mean(self, rows: list[int]) -> Doubles:
        """The mean vector."""
        return np.asarray(self.matrix[rows].mean(axis=0, dtype=np.float64))


def _names(
    names: list[tuple[str, ...]], table: _Table, tally: Counter[str]
) -> tuple[list[int], list[Doubles], list[float]]:
    bearers = Counter(names)
    places: list[int] = []
    points: list[Doubles] = []
    frequency: list[float] = []
    for place, forms in enumerate(names):
        rows = table.rows(forms)
        tally["names_without_vector"] += not rows
        if not rows:
            continue
        tally["names_in_part"] += len(rows) < len(forms)
        tally["names_of_one_word"] += len(forms) == 1
        tally["shared_names"] += bearers[forms] > 1
        places.append(place)
        points.append(table.mean(rows))
        frequency.append(float(table.counts[rows].mean()) if table.counts is not None else 0.0)
    return places, points, frequency


def _diagnoses(
    codes: Mapping[str, str], table: _Table, tally: Counter[str]
) -> tuple[list[str], list[Doubles], list[int]]:
    known: list[str] = []
    points: list[Doubles] = []
    lengths: list[int] = []
    seen: set[tuple[int, ...]] = set()
    for code, description in codes.items():
        forms = words(description)
        rows = table.rows(forms)
        tally["diagnoses_without_vector"] += not rows
        if rows:
            tally["diagnoses_in_part"] += len(rows) < len(forms)
            tally["diagnoses_alike"] += tuple(sorted(rows)) in seen
            seen.add(tuple(sorted(rows)))
            known.append(code)
            points.append(table.mean(rows))
            lengths.append(len(forms))
    return known, points, lengths


def _membership(
    patients: Sequence[Patient], known: Sequence[str], codes: Mapping[str, str], tally: Counter[str]
) -> Mask:
    columns = {code: column for column, code in enumerate(known)}
    has = np.zeros((len(patients), len(known)), dtype=np.bool_)
    for row, patient in enumerate(patients):
        has[row, [columns[code] for code in patient.codes if code in columns]] = True
    tally["codes_without_description"] = len({code for p in patients for code in p.codes} - codes.keys())
    return has


def distance_matrix(names: Doubles, diagnoses: Doubles, metric: str) -> Doubles:
    """How far each name lies from each diagnosis, shape (n_names, n_diagnoses) float64.

    A zero vector has cosine distance 1 to all. Raises UsageError for an unknown metric.
    """
    from scipy.spatial.distance import cdist

    if metric not in METRICS:
        raise UsageError(f"unknown metric {metric!r}", remedy="one of " + ", ".join(METRICS))
    if metric == "cosine":
        return np.asarray(1.0 - _unit(names) @ _unit(diagnoses).T)
    return np.asarray(cdist(names, diagnoses, metric))


def _unit(points: Doubles) -> Doubles:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0))


@dataclass(frozen=True)
class Targets:
    """Columns of the target diagnoses, and how many targets there are not.

    Attributes:
        columns: places in the codes that have a vector, ascending.
        wanted: how many targets were named. unknown: how many no code stands for. without_vector: how many codes that
            stand for one have no vector.
    """

    columns: tuple[int, ...]
    wanted: int
    unknown: int
    without_vector: int

    @property
    def detail(self) -> dict[str, int]:
        """For a finding."""
        return {
            "targets_wanted": self.wanted,
            "targets_unknown": self.unknown,
            "targets_without_vector": self.without_vector,
        }


def target_columns(wanted: Sequence[str], known: Sequence[str], codes: Mapping[str, str]) -> Targets:
    """The codes that are targets: whose code, or the words of whose description, are a target's.

    Args:
        wanted: descriptions or codes. known: codes that have a vector. codes: code -> description.
    """
    forms = {tuple(words(target)) for target in wanted if words(target)}
    exact = {target.strip() for target in wanted}
    meant = [code for code, said in codes.items() if code in exact or tuple(words(said)) in forms]
    said = {tuple(words(codes[code])) for code in meant}
    unknown = sum(t.strip() not in meant and tuple(words(t)) not in said for t in dict.fromkeys(wanted))
    place = {code: column for column, code in enumerate(known)}
    columns = sorted(place[code] for code in meant if code in place)
    return Targets(tuple(columns), len(set(wanted)), unknown, len(meant) - len(columns))


def read_targets(path: Path) -> list[str]:
    """Target diagnoses or codes, one a line, of a text file. Raises InputError if it is empty or not UTF-8."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError("it cannot be read as UTF-8 text", where=path.name, remedy="one diagnosis a line") from None
    wanted = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not wanted:
        raise InputError("it holds no diagnoses", where=path.name, remedy="one diagnosis a line")
    return wanted
