"""Replace identifiers in the notes of a release, and count the words of the result.

One file is treated batch by batch. Part files are treated by one task per part, whose detected spans are kept in the
vault's `tasks`, so that an interrupted run can resume; treated text is recomputed. Notes of several releases are
treated as one corpus, so that a name in one of them is detected in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

import pyarrow as pa

from clinveil.core.files import private_folder
from clinveil.core.keys import Key
from clinveil.core.progress import shown, track
from clinveil.core.runfolder import KEY
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus, MemoryCorpus
from clinveil.corpus.open import PartedCorpus, open_corpus
from clinveil.corpus.people import read_patients
from clinveil.phi.name_index import NameIndex
from clinveil.phi.settings import PhiSettings
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.part_passes import Recipe, TreatPart, detect_parts, load_name_index
from clinveil.phi.treatment.passes import deidentify_corpus, pieces
from clinveil.releases.context import ReleaseContext
from clinveil.releases.crosswalk import TableWriter
from clinveil.scale.executor import opened_for
from clinveil.scale.pieces import each
from clinveil.scale.tasks import Store
from clinveil.vectors.count import WordCounts, count_parts, count_words

TASKS = "tasks"
OnIndex = Callable[[NameIndex], None]
"""Receives the index of names found in the notes."""


@dataclass
class Treated:
    """Notes with identifiers treated.

    Attributes:
        found: detected spans by label; None without detection. skipped: notes left out, by reason.
    """

    corpus: Corpus
    found: Counter[str] | None = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def treated(job: ReleaseContext, on_index: OnIndex | None = None) -> Treated:
    """Return the notes with identifiers treated; unchanged with `phi=false`."""
    settings = job.settings
    removal = f"find identifiers, policy {settings.identifiers.policy().name}" if settings.phi else "left out"
    with job.timer.stage("identifiers", removal, "keyed"):
        if job.series and job.series.given:
            return job.series.treat(job, on_index)
        if isinstance(job.corpus, PartedCorpus) and job.facts:
            return _treat_parts(job, job.corpus, on_index)
        return treat_together(job, [job.corpus], "protected", on_index)[0]


def treat_together(
    job: ReleaseContext, corpora: Sequence[Corpus], scratch: str, on_index: OnIndex | None = None
) -> list[Treated]:
    """Treat corpora with names detected across all of them; text is stored in a scratch folder of this name."""
    deidentifier = job.deidentifier()
    if deidentifier is None:
        return [Treated(corpus, None) for corpus in corpora]
    several = len(corpora) > 1
    owners = [at for at, corpus in enumerate(corpora) for _ in pieces(corpus)] if several else repeat(0)
    place, parts = private_folder(job.folder.work / scratch), [Treated(corpus) for corpus in corpora]
    with ExitStack() as stack:
        over = stack.enter_context(opened_for(job.settings.executor, job.settings.workers))
        paths = [place / f"{at}.parquet" for at in range(len(corpora))]
        writers = [stack.enter_context(TableWriter(path)) for path in paths]
        results = deidentify_corpus(joined(corpora), deidentifier, over, on_index=on_index, say=job.say)
        for result, at in zip(track(results, "notes", job.say, size=lambda one: one.batch.num_rows), owners):  # noqa: B905
            parts[at].found = (parts[at].found or Counter()) + result.counts
            parts[at].skipped += result.skipped
            writers[at].write(result.batch)
    for part, path in zip(parts, paths, strict=True):
        part.corpus = _opened(job, path)
    return parts


def joined(corpora: Sequence[Corpus]) -> Corpus:
    """Concatenate corpora; columns and format are those of the last."""
    if len(corpora) == 1:
        return corpora[0]

    def batches() -> Iterator[pa.RecordBatch]:
        for corpus in corpora:
            yield from corpus.batches()

    return MemoryCorpus(batches, corpora[-1].columns, corpora[-1].suffix)


def _opened(job: ReleaseContext, place: Path) -> Corpus:
    roles = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")
    return open_corpus(place, roles, keep=job.corpus.columns.keep)


def recipe(job: ReleaseContext) -> Recipe:
    """Return what detection in part files depends on."""
    return Recipe.of(_deidentifier, job.settings.identifiers, job.folder.vault / KEY)


def _deidentifier(settings: PhiSettings, key: Key) -> Deidentifier:
    feed = settings.patients
    return Deidentifier.of(settings, key, patients=read_patients(feed) if feed else {})


def _treat_parts(job: ReleaseContext, corpus: PartedCorpus, on_index: OnIndex | None) -> Treated:
    deidentifier = job.deidentifier()
    if deidentifier is None:
        job.broken.refuse()
        return Treated(corpus, None)
    parts = [(part, one.digest) for part, one in zip(corpus.parts, job.facts, strict=True)]
    store, scratch = Store(job.folder.vault / TASKS), job.folder.work / "names"
    works = detect_parts(parts, recipe(job), store, scratch, job.over, job.say, deidentifier.finder.uses_other_notes)
    job.broken.refuse()  # only now, after the longest work on the other parts
    place = private_folder(job.folder.work / "protected")
    items = [(work, place / f"part-{number:05d}.parquet") for number, work in enumerate(works)]
    found, skipped = Counter[str](), Counter[str]()
    results = each(job.over, _treat_part, items)
    for labels, left_out, _ in track(results, "notes", job.say, size=lambda one: one[2]):
        found += labels
        skipped += left_out
    if works and works[0].names and on_index:
        on_index(load_name_index(works[0].names))
    return Treated(_opened(job, place), found, skipped)


def _treat_part(item: tuple[TreatPart, Path]) -> tuple[Counter[str], Counter[str], int]:
    work, path = item
    found, skipped, rows = Counter[str](), Counter[str](), 0
    with TableWriter(path) as table:
        for done in work.treated():
            found += done.counts
            skipped += done.skipped
            rows += done.batch.num_rows
            table.write(done.batch)
    return found, skipped, rows


def counted(job: ReleaseContext, entered: Corpus) -> WordCounts:
    """Count the words of notes and the patients who use them; part files are counted where they are read."""
    with job.timer.stage("vocabulary", "words and the patients who use them"):
        if job.facts and isinstance(entered, PartedCorpus):
            return count_parts(entered.parts, job.folder.work, job.over, job.say)
        over = job.found.over(job.settings.workers)
        over = shown(over, "notes counted", job.say, job.found.rows, lambda part: part.n_notes)
        return count_words(entered, job.folder.work, over=over)
