"""The tasks of paper B: notes after an imperfect removal of names, and attacks 1 to 3 on their word
vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from clinveil.attacks.attack import Context
from clinveil.attacks.vectors._chain import Chain
from clinveil.attacks.vectors._groups import PAPER_TARGETS, over_models
from clinveil.attacks.vectors.association import Association
from clinveil.attacks.vectors.names import Names, paper_k
from clinveil.attacks.vectors.scenario import Scenario
from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.corpus.corpus import PATIENT_ID, Corpus
from clinveil.corpus.people import Patient, read_codes, read_patients, write_patients
from clinveil.phi.treatment.partial_removal import EmulatedRemover, redrawn_names
from clinveil.scale.tasks import Result, Store
from clinveil.study.engine import Task, found
from clinveil.study.inputs import COLUMNS, NOTES, File, NotesTask, Source, Train, write_notes
from clinveil.vectors.table import Vectors

MISSED = "missed.parquet"
SURROGATES = "surrogates.parquet"
BEST = "attack.names_best"


@dataclass(frozen=True)
class RemoveNames(NotesTask):
    """Emulate an imperfect removal of names; write the notes, the missed patients and their
    surrogates.

    Attributes:
        mode: treatment of names that are not missed; "none" keeps all names and attacks the same
            patients.
        everyone: keep all names and attack all patients (Figure 3).
        redrawn: redraw the missed names in every note.
    """

    source: Source
    patients: File
    mode: str
    miss_rate: float
    seed: int
    redrawn: bool = False
    everyone: bool = False

    stage = "remove names"

    @property
    def title(self) -> str:
        """Description for messages."""
        return (
            "names left in all notes"
            if self.everyone or self.mode == "none"
            else f"names, mode {self.mode}"
        )

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes, `missed.parquet` and, in mode replace, `surrogates.parquet`."""
        treated, missed, surrogates = self._treated()
        patients: set[str] = set()

        def counted() -> Iterator[pa.RecordBatch]:
            for batch in treated.batches():
                patients.update(batch.column(PATIENT_ID).to_pylist())
                yield batch

        rows = write_notes(counted(), folder / NOTES)
        write_patients(missed, folder / MISSED)
        if surrogates:
            write_patients(surrogates, folder / SURROGATES)
        return {"notes": rows, "patients": len(patients), "missed": len(missed)}

    def _treated(self) -> tuple[Corpus, list[Patient], list[Patient]]:
        corpus = self.source.corpus()
        patients = read_patients(self.patients.path)
        key = Key.from_seed(self.seed)
        if self.everyone:
            return corpus, list(patients.values()), []
        remover = EmulatedRemover(
            key, patients, self.miss_rate, "replace" if self.mode == "replace" else "remove"
        )
        if self.mode != "none":
            corpus = replace(remover.over(corpus), columns=COLUMNS)
        if self.redrawn:
            corpus = redrawn_names(corpus, remover.missed, key)
        return (
            corpus,
            remover.missed,
            remover.surrogate_patients() if self.mode == "replace" else [],
        )

    def people(self, store: Store, name: str = MISSED) -> list[Patient]:
        """Return the missed patients, or their surrogates."""
        path = store.folder(self) / name
        return list(read_patients(path).values()) if path.exists() else []


@dataclass(frozen=True)
class Attack(Task):
    """Attacks on names and diagnoses (experiments 2a, 2b and 3) with one model and metric.

    Attributes:
        label: name of the model. permutations, patient_draws, scenario_draws, k: as in the
            settings.
        targets: descriptions or codes of attack 3; empty for the paper's eleven.
        curve_only: compute only the curve of Figure 3.
    """

    treat: RemoveNames
    train: Train
    label: str
    codes: File
    metric: str
    permutations: int
    patient_draws: int | None = None
    scenario_draws: int = 0
    k: int | None = None
    targets: tuple[str, ...] = ()
    curve_only: bool = False

    stage = "attack"
    template = "attack {label}, {metric}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the findings of experiments 2 and 3 and of the chain, or the reason why there are
        none.
        """
        missed = self.treat.people(store)
        codes = read_codes(self.codes.path)
        context = Context(
            known={patient.patient_id: patient for patient in missed}, codes=codes, workers=1
        )
        rng = np.random.default_rng(self.treat.seed)
        metric = (self.metric,)
        targets = self.targets or PAPER_TARGETS
        draws = 19 if self.curve_only else self.patient_draws
        tests = Association(
            metric=metric, draws=draws, permutations=self.permutations, paper_p=not self.curve_only
        )
        try:
            vectors = self.train.load(store)
            findings = tests.on(vectors, context, rng)
            if not self.curve_only:
                guesses = Scenario(metric=metric, draws=self.scenario_draws)
                chain = Chain(
                    everyone=store.result(self.treat)["patients"], k=self.k, metric=metric
                )
                findings += [
                    step
                    for attack in (guesses, chain)
                    for step in attack.on(vectors, context, rng, targets=targets)
                ]
        except InputError as error:
            return {"why": str(error)}
        return found(findings, model=self.label)


@dataclass(frozen=True)
class AttackNames(Task):
    """Attack 1 on all models and metrics with the same re-pairings, to adjust for selecting the
    best model.

    Attributes:
        labels: names of the models. draws: re-pairings.
        k: pairs that are guessed; None for the paper's 600, or the number of true pairs if this is
            smaller.
    """

    treat: RemoveNames
    trains: tuple[Train, ...]
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    k: int | None
    draws: int

    stage = "attack"
    template = "attack names in all models"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the findings with P values adjusted over all models and metrics."""
        people, decoys = (
            [person.name for person in self.treat.people(store, k)] for k in (MISSED, SURROGATES)
        )
        k = self.k or paper_k(people)
        missing = dict[str, str]()
        findings = Names(metric=self.metrics, k=k, draws=self.draws).on(
            self._models(store, missing),
            people,
            np.random.default_rng(self.treat.seed),
            surrogates=decoys,
            skip=lambda label, error: missing.update({label: str(error)}),
        )
        # Its P is already adjusted.
        best = [finding for finding in findings if finding.measure == BEST]
        others = over_models([finding for finding in findings if finding.measure != BEST])
        return {"k": k, **found([*others, *best]), "missing": missing}

    def _models(self, store: Store, missing: dict[str, str]) -> Iterator[tuple[str, Vectors]]:
        """Yield the trained models; reasons for others go to `missing`."""
        for train, label in zip(self.trains, self.labels, strict=True):
            try:
                vectors = train.load(store)
            except InputError as error:
                missing[label] = str(error)
                continue
            yield label, vectors
