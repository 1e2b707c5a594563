"""Replace identifiers in the notes of a release, and count the words of the result.

One file is treated batch by batch. Part files are treated by one task per part, whose detected
spans are kept in the vault's `tasks`, so that an interrupted run can resume; treated text is
recomputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
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
    TreatedBatch,
    deidentify_corpus,
    detect_parts,
    write_residues,
)
from clinveil.releases.context import ReleaseContext
from clinveil.releases.crosswalk import TableWriter
from clinveil.scale import Store, each, opened_for
from clinveil.vectors import WordCounts, count_words

TASKS = "tasks"
QUICK_WORDS = 1_000_000


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
        counts = RunCounts(deidentifier.policy, deidentifier.patients.keys())
        folder = private_folder(job.folder.work / "protected")
        if isinstance(job.corpus, PartedCorpus) and job.facts:
            path = folder
            index = _treat_parts(job, folder, deidentifier, counts, placeholders=placeholders)
        else:
            path = folder / "0.parquet"
            engine = deidentifier.with_placeholders() if placeholders else deidentifier
            index = _treat_file(job, path, engine, counts)
        _collect_residues(folder, job.folder.vault / RESIDUES)
    _report(job, counts)
    corpus = open_corpus(path, AS_BATCHES, keep=job.corpus.columns.keep)
    return TreatedNotes(corpus, counts.labels, counts.skipped, index)


def _treat_file(
    job: ReleaseContext, path: Path, deidentifier: NoteDeidentifier, counts: RunCounts
) -> NameIndex | None:
    """Write the treated notes of one file and add their counts; return the names of all notes."""
    indexes = list[NameIndex]()
    memory = job.shared.spans_of(job.settings.identifiers) if job.shared else None
    # The start of worker processes takes longer than a treatment without detection.
    is_quick = bool(memory) and job.totals.tokens < QUICK_WORDS
    with opened_for(job.settings.executor, 1 if is_quick else job.settings.workers) as task_map:
        results = deidentify_corpus(
            job.corpus,
            deidentifier,
            task_map,
            on_index=indexes.append,
            say=job.say,
            apart=job.held_out.patients,
            memory=memory,
        )
        shown = track(results, "notes", job.say, size=lambda result: result.batch.num_rows)
        _write_treated(shown, path, counts)
    return indexes[0] if indexes else None


def _write_treated(results: Iterable[TreatedBatch], path: Path, counts: RunCounts) -> None:
    """Write treated notes, and next to them their residues; add their counts."""
    with TableWriter(path) as table, _residues_of(path).open("w", encoding="utf-8") as residues:
        for result in results:
            counts.add(result)
            table.write(result.batch)
            write_residues(residues, result.residues)


def _collect_residues(folder: Path, target: Path) -> None:
    """Move the residues of all files of treated notes to one file."""
    with target.open("w", encoding="utf-8") as residues:
        for path in sorted(folder.glob("*.parquet")):
            residues.write(_residues_of(path).read_text(encoding="utf-8"))
            remove(_residues_of(path))


def recipe(job: ReleaseContext) -> DeidentifierRecipe:
    """Return what detection in part files depends on."""
    return DeidentifierRecipe.of(
        NoteDeidentifier.of,
        job.settings.identifiers,
        job.settings.identifiers.policy().files[1:],
        job.folder.vault / KEY,
    )


def _with_placeholders(
    settings: PhiSettings, key: Key, *, patients: Mapping[str, Patient] | None
) -> NoteDeidentifier:
    return NoteDeidentifier.of(settings, key, patients=patients).with_placeholders()


def _treat_parts(
    job: ReleaseContext,
    folder: Path,
    deidentifier: NoteDeidentifier,
    total: RunCounts,
    *,
    placeholders: bool,
) -> NameIndex | None:
    """Write the treated notes of each part and add their counts; return the names of all notes."""
    assert isinstance(job.corpus, PartedCorpus)
    parts = [(part, fact.digest) for part, fact in zip(job.corpus.parts, job.facts, strict=True)]
    scratch = job.folder.work / "names"
    detection = replace(recipe(job), make=_with_placeholders) if placeholders else recipe(job)
    tasks = detect_parts(
        parts,
        detection.sharing(job.known, scratch),
        Store(job.folder.vault / TASKS),
        scratch,
        job.executor,
        job.say,
        deidentifier.finder.uses_other_notes,
        apart=job.held_out.patients,
    )
    job.broken.refuse()  # only now, after the longest work on the other parts
    items = [(task, folder / f"part-{number:05d}.parquet") for number, task in enumerate(tasks)]
    results = each(job.executor, _treat_part, items)
    for counts in track(results, "notes", job.say, size=lambda counts: counts.written):
        total.add_counts(counts)
    return tasks[0].index


def _treat_part(item: tuple[PartTask, Path]) -> RunCounts:
    task, path = item
    deidentifier = task.recipe()
    counts = RunCounts(deidentifier.policy, deidentifier.patients.keys())
    _write_treated(task.treated(), path, counts)
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
