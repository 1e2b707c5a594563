"""The third kind of task: attacks 2 and 3 on one embedding under one metric, and the same with names permuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from clinveil.core.errors import InputError
from clinveil.core.files import sha256
from clinveil.core.finding import Finding
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.jmir_2020.train import VECTORS, Train
from clinveil.study.jmir_2020.treat import MISSED

if TYPE_CHECKING:
    from clinveil.corpus.people import Patient
    from clinveil.vectors.table import Vectors

SMALLEST = 20  # patients of a stratum of like note count


@dataclass(frozen=True)
class Codes:
    """The file of diagnoses, and its hash."""

    path: Path
    hash: str

    @classmethod
    def of(cls, path: Path) -> Codes:
        """Of a file. Raises InputError if it is no codes.csv."""
        from clinveil.corpus.people import read_codes

        read_codes(path)
        return cls(path, sha256(path))


@dataclass(frozen=True)
class Attack:
    """Name and diagnosis (experiments 2a, 2b and 3) on one model under one metric.

    Attributes:
        permutations, patient_draws, scenario_draws, k: as in the settings.
        curve_only: only the curve of Figure 3.
        targets: descriptions or codes of attack 3; none for the paper's eleven.
    """

    train: Train
    codes: Codes
    metric: str
    permutations: int
    patient_draws: int | None
    scenario_draws: int
    curve_only: bool = False
    k: int | None = None
    targets: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it does."""
        return f"attack {self.train.model.label}, {self.metric}"

    def identity(self) -> dict[str, Any]:
        """The model, the codes and the draws; the seed is the treatment's."""
        draws = {name: getattr(self, name) for name in ("permutations", "patient_draws", "scenario_draws", "k")}
        said = {"train": name_of(self.train), "codes": self.codes.hash, "metric": self.metric, **draws}
        return {**said, "curve_only": self.curve_only, "targets": list(self.targets), "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Findings under the true names, and under names permuted over patients of like note count."""
        from clinveil.corpus.people import read_codes, read_patients
        from clinveil.vectors.files import load_vectors

        why = store.result(self.train).get("why")
        if why:
            return {"why": why}
        treat = self.train.treat
        vectors = load_vectors(store.folder(self.train) / VECTORS)
        missed = list(read_patients(store.folder(treat) / MISSED).values())
        codes = read_codes(self.codes.path)
        rng = np.random.default_rng(treat.seed)
        try:
            found = self._findings(vectors, missed, codes, rng)
            if self.curve_only:
                return {"findings": found}
            treated = store.result(treat)
            found += self._chain(vectors, missed, codes, treated["patients"], rng)
            others = permuted_names(missed, treated["notes_of_missed"], rng)
            return {"findings": found, "permuted": self._findings(vectors, others, codes, rng)}
        except InputError as error:
            return {"why": str(error)}

    def _findings(
        self, vectors: Vectors, missed: Sequence[Patient], codes: dict[str, str], rng: Generator
    ) -> list[dict[str, Any]]:
        from clinveil.attacks.vectors.association import association
        from clinveil.attacks.vectors.scenario import PAPER_TARGETS, scenario

        draws = 19 if self.curve_only else self.patient_draws
        how: dict[str, Any] = {"draws": draws, "permutations": self.permutations, "paper_p": not self.curve_only}
        found = association(vectors, missed, codes, rng, metrics=(self.metric,), threads=1, **how)
        if not self.curve_only:
            what: dict[str, Any] = {"targets": self.targets or PAPER_TARGETS, "metrics": (self.metric,)}
            found += scenario(vectors, missed, codes, rng, draws=self.scenario_draws, **what)
        return self._labelled(found)

    def _chain(
        self, vectors: Vectors, missed: Sequence[Patient], codes: dict[str, str], everyone: int, rng: Generator
    ) -> list[dict[str, Any]]:
        """Attack 3 on the names that attack 1 put together."""
        from clinveil.attacks.vectors.chain import chain_of
        from clinveil.attacks.vectors.scenario import PAPER_TARGETS

        what: dict[str, Any] = {"targets": self.targets or PAPER_TARGETS, "metrics": (self.metric,)}
        found = chain_of(vectors, missed, codes, rng, everyone=everyone, k=self.k, threads=1, **what)
        return self._labelled(found)

    def _labelled(self, found: Sequence[Finding]) -> list[dict[str, Any]]:
        """Ready for JSON, each with the model's name in its detail."""
        label = {"model": self.train.model.label}
        return [replace(finding, detail={**finding.detail, **label}).as_dict() for finding in found]


def permuted_names(missed: Sequence[Patient], notes: Sequence[int], rng: Generator) -> list[Patient]:
    """The patients with their whole names dealt out among those with as many notes: a control of attacks 2, 3.

    Args:
        missed: the patients whose names were left. notes: how many notes each has.
    """
    order = np.lexsort((rng.random(len(missed)), np.asarray(notes)))
    out = list(missed)
    for rows in np.array_split(order, max(1, len(missed) // SMALLEST)):
        for row, other in zip(rows.tolist(), rng.permutation(rows).tolist(), strict=True):
            out[row] = replace(missed[row], name=missed[other].name)
    return out
