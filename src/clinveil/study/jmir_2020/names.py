"""The last task: attack 1 on all models and metrics, under the same re-pairings, so that the best is paid for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.core.errors import InputError
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.jmir_2020.train import VECTORS, Train
from clinveil.study.jmir_2020.treat import MISSED, SURROGATES, Treat

if TYPE_CHECKING:
    from clinveil.attacks.vectors._distances import Metric
    from clinveil.vectors.table import Vectors

PAPER_K = 600
BEST = "attack.names_best"


@dataclass(frozen=True)
class AttackNames:
    """Attack 1 on some models.

    Attributes:
        k: pairs taken for names; None for the paper's 600, or as many as are true if these are fewer.
        draws: re-pairings.
    """

    trains: tuple[Train, ...]
    metrics: tuple[Metric, ...]
    k: int | None
    draws: int

    @property
    def title(self) -> str:
        """What it does."""
        return f"attack names in {len(self.trains)} models"

    @property
    def treat(self) -> Treat:
        """The treatment behind all models."""
        return self.trains[0].treat

    def identity(self) -> dict[str, Any]:
        """The models, the metrics and the draws; the seed is the treatment's."""
        trains = [name_of(train) for train in self.trains]
        return {"trains": trains, "metrics": list(self.metrics), "k": self.k, "draws": self.draws, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """The findings, each P also adjusted over all models and metrics."""
        from clinveil.attacks.vectors.association import over_models
        from clinveil.attacks.vectors.names import names, paper_k
        from clinveil.corpus.people import read_patients

        made, missing = store.folder(self.treat), dict[str, str]()
        people = [patient.name for patient in read_patients(made / MISSED).values()]
        k = self.k or paper_k(people)
        found = names(
            self._models(store, missing),
            people,
            np.random.default_rng(self.treat.seed),
            metrics=self.metrics,
            k=k,
            draws=self.draws,
            surrogates=_decoys(made / SURROGATES),
            threads=1,
            skip=lambda label, error: missing.update({label: str(error)}),
        )
        best = [finding for finding in found if finding.measure == BEST]  # its P pays for the choice already
        others = over_models([finding for finding in found if finding.measure != BEST])
        return {"k": k, "findings": [finding.as_dict() for finding in [*others, *best]], "missing": missing}

    def _models(self, store: Store, missing: dict[str, str]) -> Iterator[tuple[str, Vectors]]:
        """The models that were trained; why there are others not goes to `missing`."""
        from clinveil.vectors.files import load_vectors

        for train in self.trains:
            label = train.model.label
            try:
                if why := store.result(train).get("why"):
                    raise InputError(why)
                vectors = load_vectors(store.folder(train) / VECTORS)
            except InputError as error:
                missing[label] = str(error)
                continue
            yield label, vectors


def _decoys(path: Path) -> list[tuple[str, ...]]:
    from clinveil.corpus.people import read_patients

    return [patient.name for patient in read_patients(path).values()] if path.exists() else []
