"""The study of paper C: its tasks, in the order in which they need one another, and what they found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from clinveil.attacks.models.leaveout.audit import train_audits
from clinveil.core.neural import need_torch
from clinveil.core.types import Say
from clinveil.corpus.medtext import SplitSizes
from clinveil.scale.tasks import perform, perform_all
from clinveil.study.chart import Figure
from clinveil.study.clinicalnlp_2019.corpora import Parts, Written
from clinveil.study.clinicalnlp_2019.privacy import Audits, audits_of, privacy_of
from clinveil.study.clinicalnlp_2019.settings import REAL, UNIGRAM, StudySettings, label_of
from clinveil.study.clinicalnlp_2019.tables import figures, tables
from clinveil.study.clinicalnlp_2019.tasks import Canaries, Casing, Inference, Looked, Predicted, Similar, UnigramScore
from clinveil.study.engine import Bench, Plan, Results, Task, findings_of
from clinveil.study.inputs import File, Source, Train
from clinveil.study.outputs import Study, run
from clinveil.study.tables import Table
from clinveil.vectors.settings import VectorSettings


def run_study(notes: Path, out: Path, settings: StudySettings, say: Say = lambda line: None) -> Results:
    """Do the study of paper C on notes of one's own; the same call again goes on where an earlier one stopped.

    Args:
        notes: a file or folder. out: the folder of the study, secret as a whole. say: is told plan and progress.

    Raises:
        InputError: what does not fit. UsageError: the folder is something else's, or it would take too long.
        MissingExtra: no PyTorch.
    """
    need_torch()
    return run(ClinicalNlp2019(settings, Source.of(notes, settings.notes)), out, say)


@dataclass(frozen=True)
class ClinicalNlp2019(Study):
    """Paper C on some notes."""

    settings: StudySettings
    source: Source
    command: ClassVar[str] = "study clinicalnlp-2019"

    @cached_property
    def parts(self) -> Parts:
        """The notes, split."""
        told = self.settings
        sizes = SplitSizes(valid=told.valid, test=told.test, words=told.words)
        general = File.of(told.general) if told.general else None
        return Parts(self.source, general, sizes, told.split == "note", told.min_count, told.seed)

    def perform(self, bench: Bench) -> Results:
        """Do what is not done, and gather what was found."""
        told, store = self.settings, bench.store
        perform(store, self.parts)
        audits = audits_of(store, self.parts, told)
        train_audits(store, audits.trained, bench.over, bench.say, workers=told.workers, most_hours=told.max_hours)
        perform_all(store, audits.unigram.models, bench.over, lambda line: None)
        corpora = self.corpora(audits)
        wanted = self.measures(corpora)
        bench.do(Plan(tuple(wanted), self.source.words))
        privacy = privacy_of(store, audits, told)
        others = (finding for task in wanted for finding in findings_of(store.result(task)))
        counts = store.result(self.parts)["counts"]
        by_model = next(corpus for corpus in reversed(corpora) if corpus.model is not None)
        facts = {"lead": counts["notes"], "counts": counts, "rarity": privacy.rarity}
        facts |= {"labels": tuple(corpus.label for corpus in corpora)}
        facts |= {"sample": (by_model.label, sorted(by_model.load(store).texts, key=len))}
        return Results(told, (*privacy.findings, *others), facts, privacy.files)

    def corpora(self, audits: Audits) -> list[Written]:
        """The training corpora that are compared: the real notes, and those that each model wrote."""
        own = [
            Written(label_of(dropout), self.parts, audit.full)
            for (mode, dropout), audit in audits.models.items()
            if mode == self.settings.main
        ]
        return [Written(REAL, self.parts), *own, Written(UNIGRAM, self.parts)]

    def measures(self, corpora: Sequence[Written]) -> list[Task]:
        """What each corpus is good for, and what it gives away."""
        told, scale = self.settings, self.settings.scale
        tasks: list[Task] = [Casing(corpus, scale.casing, told.seed) for corpus in corpora]
        for dropout in told.dropout:
            how = told.leave_out(dropout, "exact").lm
            tasks.append(Canaries(self.parts, label_of(dropout), how, scale.canaries, told.seed))
        tasks += [Looked(corpus, told.seed) for corpus in corpora]
        tasks += [Predicted(corpus) for corpus in corpora]
        tasks.append(UnigramScore(self.parts))
        how_trained = VectorSettings(algorithm="skipgram", dim=scale.dim, window=5, negative=10, min_count=5, epochs=10)
        trains = [Train(corpus, how_trained, told.seed, sentences=True) for corpus in corpora]
        if told.pairs:
            lists = tuple(map(File.of, told.pairs))
            own = zip(corpora, trains, strict=True)
            tasks += [Similar(corpus, train, lists, told.min_pair_count) for corpus, train in own]
        if told.nli:
            pairs, own = File.of(told.nli), zip(corpora, trains, strict=True)
            tasks += [Inference(corpus, train, pairs, scale.nli) for corpus, train in own]
        return tasks

    def tables(self, results: Results) -> Sequence[Table]:
        """All tables."""
        return tables(results, self.paper)

    def figures(self, results: Results) -> Mapping[str, Sequence[Figure]]:
        """The figures that have numbers."""
        return figures(results)
