"""Replace identifiers in the notes of a release, and count the words of the result.

One file is treated batch by batch. Part files are treated by one task per part, whose detected
spans are kept in the vault's `tasks`, so that an interrupted run can resume; treated text is
recomputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from clinveil.core import KEY, Key, private_folder, remove, track
from clinveil.corpus import AS_BATCHES, Corpus, PartedCorpus, Patient, open_corpus
from clinveil.phi import (
    NO_PATIENT_LIST,
    RESIDUES,
    DeidentifierRecipe,
    NameIndex,
    NoteDeidentifier,
    PartTask,
    PhiSettings,
    RunCounts,
    deidentify_corpus,
    detect_parts,
    write_residues,
)
from clinveil.releases.context import ReleaseContext
from clinveil.releases.crosswalk import TableWriter
from clinveil.scale import Store, each, opened_for
from clinveil.vectors import WordCounts, count_words

TASKS = "tasks"


@dataclass
class TreatedNotes:
    """Notes with identifiers treated.

    Attributes:
        identifiers: detected spans by label; None without detection. skipped: notes left out, by
            reason.
        name_index: names found across notes; None if notes were treated independently.
    """

    corpus: Corpus
    identifiers: Counter[str] | None = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    name_index: NameIndex | None = field(default=None, repr=False)


def treated(job: ReleaseContext, *, placeholders: bool = False) -> TreatedNotes:
    """Return the notes with identifiers treated, or with placeholders; unchanged with
    `phi=false`.
    """
    settings = job.settings
    removal = (
        f"find identifiers, policy {settings.identifiers.policy().name}"
        if settings.phi
        else "left out"
    )
    with job.timer.stage("identifiers", removal, "keyed"):
        deidentifier = job.deidentifier()
        if deidentifier is None:
            job.broken.refuse()
            return TreatedNotes(job.corpus, None)
        if isinstance(job.corpus, PartedCorpus) and job.facts:
            return _treat_parts(job, job.corpus, deidentifier, placeholders=placeholders)
        return _treat(job, deidentifier.with_placeholders() if placeholders else deidentifier)


def _treat(job: ReleaseContext, deidentifier: NoteDeidentifier) -> TreatedNotes:
    counts = RunCounts(deidentifier.policy, deidentifier.patients.keys())
    indexes = list[NameIndex]()
    path = private_folder(job.folder.work / "protected") / "0.parquet"
    with (
        opened_for(job.settings.executor, job.settings.workers) as over,
        TableWriter(path) as table,
        (job.folder.vault / RESIDUES).open("w", encoding="utf-8") as residues,
    ):
        results = deidentify_corpus(
            job.corpus,
            deidentifier,
            over,
            on_index=indexes.append,
            say=job.say,
            apart=job.held_out.patients,
        )
        for result in track(results, "notes", job.say, size=lambda one: one.batch.num_rows):
            counts.add(result)
            table.write(result.batch)
            write_residues(residues, result.residues)
    _report(job, counts)
    return TreatedNotes(
        open_corpus(path, AS_BATCHES, keep=job.corpus.columns.keep),
        counts.labels,
        counts.skipped,
        indexes[0] if indexes else None,
    )


def recipe(job: ReleaseContext) -> DeidentifierRecipe:
    """Return what detection in part files depends on."""
    return DeidentifierRecipe.of(
        NoteDeidentifier.of, job.settings.identifiers, job.folder.vault / KEY
    )


def _with_placeholders(
    settings: PhiSettings, key: Key, *, patients: Mapping[str, Patient] | None
) -> NoteDeidentifier:
    return NoteDeidentifier.of(settings, key, patients=patients).with_placeholders()


def _treat_parts(
    job: ReleaseContext, corpus: PartedCorpus, deidentifier: NoteDeidentifier, *, placeholders: bool
) -> TreatedNotes:
    parts = [(part, one.digest) for part, one in zip(corpus.parts, job.facts, strict=True)]
    store = Store(job.folder.vault / TASKS)
    scratch = job.folder.work / "names"
    how = replace(recipe(job), make=_with_placeholders) if placeholders else recipe(job)
    how = how.sharing(job.known, scratch)
    works = detect_parts(
        parts,
        how,
        store,
        scratch,
        job.executor,
        job.say,
        deidentifier.finder.uses_other_notes,
        apart=job.held_out.patients,
    )
    job.broken.refuse()  # only now, after the longest work on the other parts
    place = private_folder(job.folder.work / "protected")
    items = [(work, place / f"part-{number:05d}.parquet") for number, work in enumerate(works)]
    total = RunCounts(deidentifier.policy, deidentifier.patients.keys())
    with (job.folder.vault / RESIDUES).open("w", encoding="utf-8") as residues:
        parts_done = zip(items, each(job.executor, _treat_part, items), strict=True)
        for (_, path), counts in track(
            parts_done, "notes", job.say, size=lambda done: done[1].written
        ):
            total.add_counts(counts)
            residues.write(_residues_of(path).read_text(encoding="utf-8"))
            remove(_residues_of(path))
    _report(job, total)
    return TreatedNotes(
        open_corpus(place, AS_BATCHES, keep=job.corpus.columns.keep),
        total.labels,
        total.skipped,
        works[0].index,
    )


def _treat_part(item: tuple[PartTask, Path]) -> RunCounts:
    work, path = item
    counts = RunCounts(work.recipe().policy, work.recipe().patients.keys())
    with TableWriter(path) as table, _residues_of(path).open("w", encoding="utf-8") as residues:
        for done in work.treated():
            counts.add(done)
            table.write(done.batch)
            write_residues(residues, done.residues)
    return replace(counts, known=frozenset())


def _residues_of(part: Path) -> Path:
    """Return the file with the residues of one part, in the work folder."""
    return part.with_name(f".{part.name}.{RESIDUES}")


def _report(job: ReleaseContext, counts: RunCounts) -> None:
    """Keep counts for gate and report, and print what the patient list and the second check leave
    open.
    """
    job.residues.add_counts(counts.residues)
    job.date_orders.update(counts.date_orders)
    job.say(counts.residues.line())
    if line := counts.coverage() if job.known else NO_PATIENT_LIST:
        job.say(line)


def counted(job: ReleaseContext, entered: Corpus) -> WordCounts:
    """Count the words of notes and the patients who use them; part files are counted where they are
    read.
    """
    with job.timer.stage("vocabulary", "words and the patients who use them"):
        return count_words(
            entered,
            job.folder.work,
            executor=job.notes_executor,
            say=job.say,
            total=job.totals.rows,
        )
