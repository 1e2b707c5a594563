"""The study of paper B: its plan, and its results with P values adjusted over models and the
permuted control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from clinveil.attacks.vectors._groups import over_models
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding
from clinveil.core.types import Say
from clinveil.corpus.people import read_codes
from clinveil.scale.tasks import Store
from clinveil.study.engine import Bench, Results, findings_of, labelled
from clinveil.study.inputs import File, Source, Train
from clinveil.study.jmir_2020.settings import FIGURE_3, StudySettings, label_of, models
from clinveil.study.jmir_2020.tables import ALL_NAMES, tables
from clinveil.study.jmir_2020.tasks import Attack, AttackNames, RemoveNames
from clinveil.study.tables import Study, Table, run


def run_study(
    notes: Path,
    patients: Path,
    codes: Path,
    out: Path,
    settings: StudySettings,
    say: Say = lambda line: None,
) -> Results:
    """Run the study of paper B on the user's notes; the same call again resumes it.

    `notes`: a file or folder; `patients`: patients.parquet; `codes`: codes.csv. Raises as
    `tables.run` does.
    """
    read_codes(codes)
    source = Source.of(notes, settings.notes)
    return run(Jmir2020(settings, source, File.of(patients), File.of(codes)), out, say)


@dataclass(frozen=True)
class Jmir2020(Study):
    """Paper B on some notes, known patients and diagnoses."""

    settings: StudySettings
    source: Source
    patients: File
    codes: File
    command: ClassVar[str] = "study jmir-2020"

    def perform(self, bench: Bench) -> Results:
        """Run unfinished tasks and collect the results. Raises UsageError if no model could be
        attacked.
        """
        bench.do((self.names, *filter(None, [self.figure_3]), *self.attacks))
        results = self._collected(bench.store)
        if all(finding.detail.get("series") == ALL_NAMES for finding in results.findings):
            raise UsageError(
                "no model could be attacked", hint=next(iter(results.facts["missing"].values()), "")
            )
        return results

    @cached_property
    def treat(self) -> RemoveNames:
        """The task that removes names, except for missed ones."""
        own = self.settings
        return RemoveNames(
            self.source, self.patients, own.mode, own.miss_rate, own.seed, own.redrawn
        )

    @cached_property
    def names(self) -> AttackNames:
        """Attack 1 on all models."""
        own = self.settings
        treat = self.treat
        grid = models(self.settings)
        trains = tuple(Train(treat, model, treat.seed) for model in grid)
        return AttackNames(treat, trains, tuple(map(label_of, grid)), own.metric, own.k, own.draws)

    @cached_property
    def attacks(self) -> list[Attack]:
        """Attacks 2 and 3 on each model under each metric."""
        own = self.settings
        treat = self.treat
        draws = (own.permutations, own.patient_draws, own.scenario_draws, own.k, own.target)
        return [
            Attack(
                treat, Train(treat, model, treat.seed), label_of(model), self.codes, metric, *draws
            )
            for model in models(own)
            for metric in own.metric
        ]

    @cached_property
    def figure_3(self) -> Attack | None:
        """The curve of Figure 3 on notes with all names."""
        own = self.settings
        everyone = RemoveNames(self.source, self.patients, "none", 1.0, own.seed, everyone=True)
        train = Train(everyone, FIGURE_3, own.seed)
        label = label_of(FIGURE_3)
        model = (train, label, self.codes, "cityblock", own.permutations)
        return Attack(everyone, *model, curve_only=True) if own.figure_3 else None

    def _collected(self, store: Store) -> Results:
        named = store.result(self.names)
        others = list[Finding]()
        missing = dict(named["missing"])
        for attack in self.attacks:
            result = store.result(attack)
            if "why" in result:
                missing[f"{attack.label}, {attack.metric}"] = str(result["why"])
            else:
                others += findings_of(result)
        curve = findings_of(store.result(self.figure_3)) if self.figure_3 else []
        curve = [
            labelled(f, series=ALL_NAMES)
            for f in curve
            if f.measure == "attack.association_by_frequency"
        ]
        control = "; control: names redrawn in every note" if self.settings.redrawn else ""
        treated = store.result(self.treat)
        lead = {**treated, "mode": self.settings.mode, "redrawn": control}
        facts: Mapping[str, Any] = {"lead": lead, "k": int(named["k"]), "missing": missing}
        return Results(self.settings, (*findings_of(named), *over_models(others), *curve), facts)

    def tables(self, results: Results) -> Sequence[Table]:
        """Return all tables."""
        return tables(results, self.paper)
