"""The frontier of some notes: its grid as tasks, and what they found on one half of the patients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from clinveil.core.errors import UsageError
from clinveil.core.neural import need_torch
from clinveil.core.types import Say
from clinveil.report.draw import Figure
from clinveil.scale.tasks import Store
from clinveil.study.engine import Bench, Plan, Results, findings_of
from clinveil.study.frontier.grid import CONTROL, OLD, PAPER_7, VECTORS, Cell, grid
from clinveil.study.frontier.measures import Compare, Guess, Known, Link, Read, Similar, strongest, strongest_readers
from clinveil.study.frontier.settings import HALVES, StudySettings
from clinveil.study.frontier.tables import figures, tables
from clinveil.study.frontier.tasks import Prepare, Treat
from clinveil.study.inputs import File, Source, Train
from clinveil.study.outputs import Study, run
from clinveil.study.tables import Table
from clinveil.utility.classifiers import any_neural, classifier
from clinveil.utility.pairs import read_pairs


def run_study(
    notes: Path,
    out: Path,
    settings: StudySettings,
    *,
    patients: Path | None = None,
    known: Path | None = None,
    pairs: tuple[Path, ...] = (),
    say: Say = lambda line: None,
) -> Results:
    """Do the study on notes of one's own; the same call again goes on where an earlier one stopped.

    Args:
        notes: a file or folder. out: the folder of the study, secret as a whole.
        patients: known patients (patients.parquet): their names are among those that are looked for.
        known: what is publicly known of the people, paired by `settings.match`.
        pairs: word-pair lists, for `settings.order_tasks`.

    Raises:
        InputError: what does not fit. UsageError: nothing to measure by, no such setting, or a plan of more than two
            hours without `yes`. MissingExtra: a network without PyTorch.
    """
    _refuse(settings, known, pairs)
    columns = (*settings.label, *((settings.match,) if settings.match else ()))
    source = Source.of(notes, settings.notes, tuple(dict.fromkeys(columns)))
    public = None
    if known and settings.match:
        public = Known(File.of(known), settings.match, settings.known_text, settings.notes)
    lists = tuple(map(File.of, pairs))
    for file in lists:
        read_pairs(file.path, any_size=settings.any_size)
    return run(Frontier(settings, source, File.of(patients) if patients else None, public, lists), out, say)


def _refuse(settings: StudySettings, known: Path | None, pairs: tuple[Path, ...]) -> None:
    """Raise UsageError for what cannot be asked together."""
    if len(settings.label) > 1:
        raise UsageError("one label a study", remedy="run it once for each --label")
    if not settings.label and not known:
        raise UsageError("nothing to measure by", remedy="--label COLUMN, --known TEXTS with --match COLUMN, or both")
    if bool(known) != bool(settings.match):
        raise UsageError("--known TEXTS and --match COLUMN go together")
    if pairs and not settings.order_tasks:
        raise UsageError("--pairs are of --order-tasks")
    grid(settings.size, settings.setting)
    if settings.label and any_neural(settings.models):
        need_torch()


@dataclass(frozen=True)
class Frontier(Study):
    """What settings keep and give away, on some notes."""

    settings: StudySettings
    source: Source
    patients: File | None = None
    known: Known | None = None
    lists: tuple[File, ...] = ()
    command: ClassVar[str] = "study frontier"

    def perform(self, bench: Bench) -> Results:
        """Do what is not done, and gather what was found. Raises UsageError for a long plan without `yes`."""
        bench.do_if_short(self.plan, self.settings)
        return self._collected(bench.store)

    @cached_property
    def plan(self) -> Plan:
        """All tasks."""
        wanted = (*self.treats, *self.reads, *self.links, *self.compares, *self.similars)
        return Plan(wanted, self.source.words // len(HALVES))

    @cached_property
    def seed(self) -> int:
        """Of draws, training, canaries and splits: another one for each half."""
        half = HALVES.index(self.settings.half)
        return int(np.random.SeedSequence([self.settings.seed, half]).generate_state(1)[0])

    @cached_property
    def prepare(self) -> Prepare:
        """The notes of the half; the halves themselves are by the study's seed."""
        told = self.settings
        label = told.label[0] if told.label else None
        how = (told.max_documents, told.min_class, told.match, told.seed)
        return Prepare(self.source, label, told.half, *how)

    @cached_property
    def treats(self) -> list[Treat]:
        """The notes under every setting."""
        return [self._treat(cell) for cell in grid(self.settings.size, self.settings.setting)]

    @cached_property
    def reads(self) -> list[Read]:
        """The strongest readers before every setting."""
        told = self.settings
        how = (strongest_readers(), told.tokens, told.canaries, self.seed)
        return [Read(treat, *how) for treat in self.treats]

    @cached_property
    def links(self) -> list[Link]:
        """Linkage with the notes themselves and fragments of them, and with what is publicly known."""
        told = self.settings
        against = [None, self.known] if self.known else [None]
        return [Link(t, told.most, told.fragment, known, self.seed) for t in self.treats for known in against]

    @cached_property
    def compares(self) -> list[Compare]:
        """Every classifier on every setting, against the original and the papers' settings."""
        models = self.settings.models if self.settings.label else ()
        return [self._compare(treat, model) for model in models for treat in self.treats]

    @cached_property
    def similars(self) -> list[Similar]:
        """Word pairs by vectors of every setting's text."""
        found, told = [], self.settings
        for treat in self.treats if self.lists else ():
            lists = (self._train(self.prepare), self.lists, told.any_size, self.seed)
            found.append(Similar(treat.cell.name, treat.cell.vectors, self._train(treat), *lists))
        return found

    def _compare(self, treat: Treat, model: str) -> Compare:
        papers = [one for one in self.treats if one.cell.name in (OLD, PAPER_7) and one != treat]
        others = tuple(self._guess(one, model) for one in papers if treat.cell.name != CONTROL)
        return Compare(self._guess(None, model), self._guess(treat, model), others, self.seed)

    def _guess(self, treat: Treat | None, model: str) -> Guess:
        """Networks start from vectors of the text that they learn from."""
        train = self._train(treat or self.prepare) if classifier(model).neural else None
        return Guess(self.prepare, treat, model, train, self.seed)

    def _treat(self, cell: Cell) -> Treat:
        return Treat(self.prepare, cell, self._train(self.prepare, cell.vectors), self.patients, self.seed)

    def _train(self, notes: Prepare | Treat, vectors: str = "default") -> Train:
        how, passes = VECTORS[vectors], self.settings.passes
        return Train(notes, how.but(epochs=passes) if passes else how, self.seed)

    def _collected(self, store: Store) -> Results:
        tasks = (*self.treats, *self.reads, *self.links, *self.compares, *self.similars)
        found = [finding for task in tasks for finding in findings_of(store.result(task))]
        said = store.result(self.prepare)
        lead = {"notes": said["notes"], "patients": said["patients"], "half": self.settings.half}
        cells = tuple(treat.cell for treat in self.treats)
        return Results(self.settings, (*strongest(found), *found), {"lead": lead, "cells": cells})

    def tables(self, results: Results) -> Sequence[Table]:
        """All tables that have numbers."""
        return tables(results, self.paper)

    def figures(self, results: Results) -> Mapping[str, Sequence[Figure]]:
        """The frontier, where utility was measured."""
        return figures(results)
