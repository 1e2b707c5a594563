"""The last task: attack 1 on all models and metrics, under the same re-pairings, so that the best is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.jmir_2020.train import VECTORS, Train
from clinveil.study.jmir_2020.treat import MISSED, SURROGATES, Treat

if TYPE_CHECKING:
    from clinveil.attacks.vectors.distances import Metric
    from clinveil.attacks.vectors.name_ranking import NameRanking
    from clinveil.attacks.vectors.name_tokens import NameTokens

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
        from clinveil.attacks.vectors.name_tokens import NameTokens
        from clinveil.attacks.vectors.names import attack_names
        from clinveil.corpus.people import read_patients

        made = store.folder(self.treat)
        people = [patient.name for patient in read_patients(made / MISSED).values()]
        decoys = _decoys(made / SURROGATES)
        names = NameTokens(people, also=decoys)
        k = self.k or min(PAPER_K, max(1, len(names.true_pairs)))
        rng = np.random.default_rng(self.treat.seed)
        rankings, missing = self._rankings(names, k, store)
        if not rankings:
            return {"k": k, "findings": [], "missing": missing}
        found: list[Finding] = attack_names(names, rankings, rng, k=k, draws=self.draws)
        if decoys:
            found += self._leaked(people, decoys, rankings, k, rng)
        best = [finding for finding in found if finding.measure == BEST]  # its P pays for the choice already
        others = over_models([finding for finding in found if finding.measure != BEST])
        return {"k": k, "findings": [finding.as_dict() for finding in [*others, *best]], "missing": missing}

    def _rankings(self, names: NameTokens, k: int, store: Store) -> tuple[list[NameRanking], dict[str, str]]:
        from clinveil.attacks.vectors.name_ranking import rank_names
        from clinveil.attacks.vectors.names import Lengths
        from clinveil.vectors.files import load_vectors

        most, missing = Lengths.of(names, k).most, {}
        rankings = []
        for train in self.trains:
            label = train.model.label
            try:
                if why := store.result(train).get("why"):
                    raise InputError(why)
                vectors = load_vectors(store.folder(train) / VECTORS)
                for metric in self.metrics:
                    rankings.append(rank_names(vectors, names, metric, most, threads=1, label=label))
            except InputError as error:
                missing[label] = str(error)
        return rankings, missing

    def _leaked(
        self,
        people: Sequence[tuple[str, ...]],
        decoys: Sequence[tuple[str, ...]],
        rankings: Sequence[NameRanking],
        k: int,
        rng: np.random.Generator,
    ) -> Iterator[Finding]:
        """Of the names found, how many are real and not surrogates."""
        from clinveil.attacks.vectors.leaked_names import leaked_names
        from clinveil.attacks.vectors.name_tokens import NameTokens

        real, surrogates = NameTokens(people, also=decoys), NameTokens(decoys, also=people)
        for ranking in rankings:
            yield leaked_names(real, surrogates, ranking, k, rng, draws=self.draws)


def _decoys(path: Path) -> list[tuple[str, ...]]:
    from clinveil.corpus.people import read_patients

    return [patient.name for patient in read_patients(path).values()] if path.exists() else []
