"""The study of paper C: its tasks in the order of their dependencies, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from clinveil.attacks.models.leaveout import train_audits
from clinveil.core.neural import need_torch
from clinveil.core.types import Say
from clinveil.corpus.medtext import SplitSizes
from clinveil.scale.tasks import perform, perform_all
from clinveil.study.clinicalnlp_2019.privacy import Audits, audits_of, privacy_of
from clinveil.study.clinicalnlp_2019.settings import REAL, UNIGRAM, StudySettings, label_of
from clinveil.study.clinicalnlp_2019.tables import tables
from clinveil.study.clinicalnlp_2019.tasks import (
    Casing,
    Inference,
    Leaks,
    Parts,
    Predicted,
    Similar,
    UnigramScore,
    Written,
)
from clinveil.study.engine import Bench, Results, Task, findings_of
from clinveil.study.inputs import File, Source, Train
from clinveil.study.tables import Study, Table, run
from clinveil.vectors.settings import VectorSettings


def run_study(notes: Path, out: Path, settings: StudySettings, say: Say = lambda line: None) -> Results:
    """Run the study of paper C on the user's notes; the same call again resumes it.

    Args:
        notes: a file or folder. out: the folder of the study, all of which is secret. say: receives plan and progress.

    Raises:
        InputError: invalid inputs. UsageError: the folder is in use, or the study takes too long. MissingExtra: no
            PyTorch.
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
        """The split of the notes."""
        own = self.settings
        sizes = SplitSizes(valid=own.valid, test=own.test, words=own.words)
        return Parts(self.source, sizes, own.split == "note", own.min_count, own.seed)

    def perform(self, bench: Bench) -> Results:
        """Run unfinished tasks and collect the results."""
        own, store = self.settings, bench.store
        perform(store, self.parts)
        audits = audits_of(store, self.parts, own)
        train_audits(
            store, list(audits.models.values()), bench.over, bench.say, workers=own.workers, most_hours=own.max_hours
        )
        perform_all(store, audits.unigram.models, bench.over, lambda line: None)
        corpora = self.corpora(audits)
        wanted = self.measures(corpora)
        bench.do(wanted)
        privacy = privacy_of(store, audits, own)
        others = (finding for task in wanted for finding in findings_of(store.result(task)))
        counts = store.result(self.parts)["counts"]
        by_model = next(corpus for corpus in reversed(corpora) if corpus.model is not None)
        facts = {"lead": counts["notes"], "counts": counts, "rarity": privacy.rarity}
        facts |= {"labels": tuple(corpus.label for corpus in corpora)}
        texts = sorted(by_model.load(store).texts, key=len)
        facts |= {"sample": (by_model.label, texts[len(texts) // 2])}
        return Results(own, (*privacy.findings, *others), facts, privacy.files)

    def corpora(self, audits: Audits) -> list[Written]:
        """Return the compared corpora: the real notes, and the notes of each model."""
        own = [
            Written(label_of(dropout), self.parts, audit.full)
            for (mode, dropout), audit in audits.models.items()
            if mode == self.settings.main
        ]
        return [Written(REAL, self.parts), *own, Written(UNIGRAM, self.parts)]

    def measures(self, corpora: Sequence[Written]) -> list[Task]:
        """Return the tasks that measure utility and leaks of each corpus."""
        settings, scale = self.settings, self.settings.scale
        tasks: list[Task] = [Casing(corpus, scale.casing, settings.seed) for corpus in corpora]
        tasks += [Leaks(corpus, settings.seed) for corpus in corpora]
        tasks += [Predicted(corpus) for corpus in corpora]
        tasks.append(UnigramScore(self.parts))
        how_trained = VectorSettings(algorithm="skipgram", dim=scale.dim, window=5, negative=10, min_count=5, epochs=10)
        trains = [Train(corpus, how_trained, settings.seed, sentences=True) for corpus in corpora]
        with_vectors = list(zip(corpora, trains, strict=True))
        if settings.pairs:
            lists = tuple(map(File.of, settings.pairs))
            tasks += [Similar(corpus, train, lists, settings.min_pair_count) for corpus, train in with_vectors]
        if settings.nli:
            pairs = File.of(settings.nli)
            tasks += [Inference(corpus, train, pairs, scale.nli) for corpus, train in with_vectors]
        return tasks

    def tables(self, results: Results) -> Sequence[Table]:
        """Return all tables."""
        return tables(results, self.paper)
