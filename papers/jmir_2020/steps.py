"""The steps of paper B: notes after an imperfect removal of names, word vectors, and attacks 1 to 3
on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import clinveil
from clinveil import Corpus, Finding, InputError, Key, Patient, Vectors
from clinveil.attacks import Association, Context, Names, over_models, paper_k
from clinveil.core import NotesSettings, fingerprint
from clinveil.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns, read_codes, read_patients
from clinveil.phi import Mode
from papers.jmir_2020.chain import Chain
from papers.jmir_2020.removal import EmulatedRemover, redrawn_names
from papers.jmir_2020.scenario import Scenario
from papers.jmir_2020.settings import EmbeddingModel
from papers.jmir_2020.targets import PAPER_TARGETS
from papers.running import Cache, StoredFindings, digest_of, say
from papers.tables import as_dicts, labelled

COLUMNS = Columns(TEXT, NOTE_ID, PATIENT_ID)
BEST = "attack.names_best"
CURVE_DRAWS = 19  # of a test whose result Figure 3 does not use


@dataclass(frozen=True)
class Inputs:
    """The input files, with a hash of their contents."""

    notes: Path
    patients: Path
    codes: Path
    columns: NotesSettings
    digest: str

    @classmethod
    def read(cls, notes: Path, patients: Path, codes: Path, columns: NotesSettings) -> Inputs:
        """Read and hash all files once. Raises InputError for invalid ones."""
        read_codes(codes)
        parts = [digest_of(clinveil.open_corpus(notes, columns))]
        parts += [fingerprint(patients), fingerprint(codes)]
        return cls(notes, patients, codes, columns, "-".join(parts))


@dataclass(frozen=True)
class Removal:
    """How names are removed.

    Attributes:
        mode: treatment of names that are not missed; "none" keeps all names and attacks the same
            patients.
        everyone: keep all names and attack all patients (Figure 3).
        redrawn: redraw the missed names in every note.
    """

    mode: str
    miss_rate: float
    seed: int
    redrawn: bool = False
    everyone: bool = False


@dataclass(frozen=True)
class TreatedNotes:
    """Notes after the removal, the patients whose names remain, and the surrogates of the others
    (mode replace).
    """

    table: pa.Table = field(repr=False)
    missed: list[Patient] = field(repr=False)
    surrogates: list[Patient] = field(repr=False)

    @property
    def patients(self) -> int:
        """Number of patients with notes."""
        return len(set(self.table[PATIENT_ID].to_pylist()))


def remove_names(cache: Cache, inputs: Inputs, removal: Removal) -> TreatedNotes:
    """Return the notes with most names removed."""
    keeps_all = removal.everyone or removal.mode == "none"
    say("all names left in the notes" if keeps_all else f"names: mode {removal.mode}")
    corpus: Corpus = clinveil.open_corpus(inputs.notes, inputs.columns)
    patients = read_patients(inputs.patients)
    if removal.everyone:
        return TreatedNotes(_table(corpus), list(patients.values()), [])
    key = Key.from_seed(removal.seed)
    mode: Mode = "replace" if removal.mode == "replace" else "remove"
    remover = EmulatedRemover(key, patients, removal.miss_rate, mode)
    if removal.mode != "none":
        corpus = replace(remover.over(corpus), columns=COLUMNS)
    if removal.redrawn:
        corpus = redrawn_names(corpus, remover.missed, key)
    return TreatedNotes(_table(corpus), remover.missed, remover.surrogate_patients())


def _table(corpus: Corpus) -> pa.Table:
    names = [NOTE_ID, PATIENT_ID, TEXT]
    schema = pa.schema([(name, pa.string()) for name in names])
    batches = (batch.select(names).cast(schema) for batch in corpus.batches())
    return pa.Table.from_batches(batches, schema)


def train(cache: Cache, inputs: Inputs, removal: Removal, model: EmbeddingModel) -> Vectors | str:
    """Return the word vectors of the treated notes, or the reason why there are none."""
    say(f"vectors: {model.label}")
    notes = cache.run(remove_names, inputs, removal)
    try:
        return clinveil.embed(
            notes.table,
            seed=removal.seed,
            algorithm=model.algorithm,
            window=model.window,
            dim=model.dim,
            min_count=model.min_count,
            epochs=model.epochs,
            glove_variant=model.glove_variant,
        )
    except InputError as error:
        return str(error)


@dataclass(frozen=True)
class AttackPlan:
    """Settings of attacks 2 and 3; 0 stands for the default of `patient_draws` and `k`."""

    permutations: int
    patient_draws: int
    scenario_draws: int
    k: int
    targets: tuple[str, ...]


def attack(
    cache: Cache,
    inputs: Inputs,
    removal: Removal,
    model: EmbeddingModel,
    metric: str,
    plan: AttackPlan,
) -> StoredFindings | str:
    """Return the findings of attacks 2 and 3 and of the chain, or the reason why there are none."""
    vectors = cache.run(train, inputs, removal, model)
    if isinstance(vectors, str):
        return vectors
    say(f"attack: {model.label}, {metric}")
    notes = cache.run(remove_names, inputs, removal)
    codes = read_codes(inputs.codes)
    rng = np.random.default_rng(removal.seed)
    metrics = (metric,)
    targets = plan.targets or PAPER_TARGETS
    association = Association(
        metric=metrics,
        draws=plan.patient_draws or None,
        permutations=plan.permutations,
        paper_p=True,
    )
    scenario = Scenario(metrics=metrics, draws=plan.scenario_draws, targets=targets)
    chain = Chain(everyone=notes.patients, k=plan.k or None, metrics=metrics, targets=targets)
    try:
        findings = association.on(vectors, _context(notes.missed, codes), rng)
        findings += scenario.findings(vectors, notes.missed, codes, rng)
        findings += chain.findings(vectors, notes.missed, codes, rng)
    except InputError as error:
        return str(error)
    return as_dicts(_of_model(findings, model.label))


def frequency_curve(
    cache: Cache, inputs: Inputs, removal: Removal, model: EmbeddingModel, permutations: int
) -> StoredFindings:
    """Return the points of Figure 3, or none if the model could not be attacked."""
    vectors = cache.run(train, inputs, removal, model)
    if isinstance(vectors, str):
        return []
    say("Figure 3")
    everybody = cache.run(remove_names, inputs, removal).missed
    association = Association(metric=("cityblock",), draws=CURVE_DRAWS, permutations=permutations)
    context = _context(everybody, read_codes(inputs.codes))
    rng = np.random.default_rng(removal.seed)
    try:
        findings = association.on(vectors, context, rng)
    except InputError:
        return []
    curve = [f for f in findings if f.measure == "attack.association_by_frequency"]
    return as_dicts(_of_model(curve, model.label))


def _context(people: list[Patient], codes: dict[str, str]) -> Context:
    known = {patient.patient_id: patient for patient in people}
    return Context(known=known, codes=codes, workers=1)


def _of_model(findings: list[Finding], label: str) -> list[Finding]:
    return [labelled(finding, label) for finding in findings]


@dataclass(frozen=True)
class NamesResult:
    """Attack 1 on all models: its findings, the number of pairs guessed, and reasons for missing
    models.
    """

    findings: StoredFindings = field(repr=False)
    k: int
    missing: dict[str, str]


def attack_names(
    cache: Cache,
    inputs: Inputs,
    removal: Removal,
    models: tuple[EmbeddingModel, ...],
    metrics: tuple[str, ...],
    k: int,
    draws: int,
) -> NamesResult:
    """Return attack 1 on all models and metrics with the same re-pairings, with P values adjusted
    for selecting the best model; `k` of 0 is the paper's 600 or the number of true pairs.
    """
    say("attack on names in all models")
    notes = cache.run(remove_names, inputs, removal)
    people = [patient.name for patient in notes.missed]
    k = k or paper_k(people)
    missing: dict[str, str] = {}

    def trained() -> Iterator[tuple[str, Vectors]]:
        for model in models:
            vectors = cache.run(train, inputs, removal, model)
            if isinstance(vectors, str):
                missing[model.label] = vectors
            else:
                yield model.label, vectors

    def skip(label: str, error: InputError) -> None:
        missing[label] = str(error)

    findings = Names(metric=metrics, k=k, draws=draws).on(
        trained(),
        people,
        np.random.default_rng(removal.seed),
        surrogates=[patient.name for patient in notes.surrogates],
        skip=skip,
    )
    best = [finding for finding in findings if finding.measure == BEST]  # its P is adjusted
    others = over_models([finding for finding in findings if finding.measure != BEST])
    return NamesResult(as_dicts([*others, *best]), k, missing)
