"""Stages of a release of part files, with one task per part; `stages.py` contains those of a single file.

Detected spans and released parts are kept in the vault's `tasks` until the release is finished, so that an interrupted
run can resume; de-identified text is recomputed. A released part is named by a keyed hash of its source name, so the
order of parts is independent of the source.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from clinveil.channel.apply import Obfuscator, obfuscate_batches
from clinveil.channel.channel import Channel
from clinveil.channel.files import channel_digest, load_channel
from clinveil.channel.policy import Policy
from clinveil.channel.tally import Tally, tally_from
from clinveil.core.files import private_folder, private_text, read_json, remove
from clinveil.core.keys import Key
from clinveil.core.progress import track
from clinveil.core.runfolder import KEY
from clinveil.core.settings import NotesSettings
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns, Corpus
from clinveil.corpus.open import NotesCorpus, PartedCorpus, open_corpus
from clinveil.corpus.part_facts import PartFacts, digest_of, id_hashes, part_facts, refuse_repeats_over
from clinveil.corpus.people import read_patients
from clinveil.corpus.uniqueness import Hashes, n_distinct
from clinveil.phi.name_index import NameIndex
from clinveil.phi.settings import PhiSettings
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.part_passes import TreatPart, detect_parts, load_name_index
from clinveil.phi.treatment.remover import Recipe
from clinveil.releases.check import NOTHING, OutputCheck, check_copies, check_output
from clinveil.releases.crosswalk import vault_batches
from clinveil.releases.finish import Places
from clinveil.releases.stages import CorpusStats, Preflight, ReleaseContext, Target, as_written
from clinveil.scale import Map
from clinveil.scale.pieces import Broken, each
from clinveil.scale.tasks import Store, name_of, performed

TASKS, LEARNT = "tasks", "learnt.json"
NOTES = "notes"  # the folder of the released parts
TABLES = ("crosswalk", "alignment")


def preflight_parts(
    corpus: PartedCorpus, over: Map, say: Say, broken: Broken
) -> tuple[PartedCorpus, Preflight, tuple[PartFacts, ...]]:
    """Run `preflight` on the readable parts with rows; return these parts, the totals, and facts per part.

    Args:
        broken: collects unreadable parts.

    Raises:
        Incomplete: the readable parts contain no notes. InputError: an id occurs in two parts.
    """
    stats, skipped, facts, patients = CorpusStats(), Counter[str](), list[PartFacts](), list[Hashes]()
    for seen in track(each(over, _scan, corpus.parts, broken), "notes read", say, size=lambda one: one.facts.rows):
        stats.add(seen.stats)
        skipped += seen.skipped
        facts.append(seen.facts)
        patients.append(seen.patients)
    sound = replace(corpus, parts=broken.left(corpus.parts))
    refuse_repeats_over(sound, facts)
    if not stats.rows:
        broken.refuse()
    held = [i for i, one in enumerate(facts) if one.rows]  # Spark writes empty parts
    with_rows = replace(sound, parts=tuple(sound.parts[i] for i in held))
    return with_rows, stats.preflight(n_distinct(patients), skipped), tuple(facts[i] for i in held)


@dataclass(frozen=True)
class _PartStats:
    """Statistics of one part, with hashes of its distinct patients."""

    stats: CorpusStats
    facts: PartFacts
    patients: Hashes = field(repr=False)
    skipped: Counter[str]


def _scan(part: NotesCorpus) -> _PartStats:
    stats, patients = CorpusStats(), [np.zeros(0, dtype=np.uint64)]

    def take(batch: Any) -> None:
        stats.take(batch)
        patients.append(id_hashes(str(one) for one in batch.column(PATIENT_ID).unique().to_pylist()))

    facts = part_facts(part, take)
    return _PartStats(stats, facts, np.unique(np.concatenate(patients)), Counter(part.skipped))


def forget_others(folder: Places, facts: Sequence[PartFacts], made: Sequence[str]) -> None:
    """Remove what an interrupted run learned if the parts have changed since, for example by a correction."""
    of = digest_of(facts)
    if read_json(folder.vault / LEARNT) != {"of": of}:
        for name in made:
            remove(folder.vault / name)
        private_text(folder.vault / LEARNT, f'{{"of": "{of}"}}')


def _deidentifier(settings: PhiSettings, key: Key) -> Deidentifier:
    feed = settings.patients
    return Deidentifier.of(settings, key, patients=read_patients(feed) if feed else {})


def _recipe(job: ReleaseContext) -> Recipe:
    return Recipe.of(_deidentifier, job.settings.identifiers, job.folder.vault / KEY)


def _store(job: ReleaseContext) -> Store:
    return Store(job.folder.vault / TASKS)


def protect_parts(
    job: ReleaseContext, on_index: Callable[[NameIndex], None]
) -> tuple[Corpus, Counter[str] | None, Counter[str]]:
    """Do the same as `stages.protect`, with one scratch file per part."""
    assert isinstance(job.corpus, PartedCorpus)
    deidentifier = job.deidentifier()
    if deidentifier is None:
        job.broken.refuse()
        return job.corpus, None, Counter()
    uses_other_notes = deidentifier.finder.uses_other_notes
    parts = [(part, one.digest) for part, one in zip(job.corpus.parts, job.facts, strict=True)]
    scratch = job.folder.work / "heard"
    works = detect_parts(parts, _recipe(job), _store(job), scratch, job.over, job.say, lambda: uses_other_notes)
    job.broken.refuse()  # only now, after the longest work on the other parts
    place = private_folder(job.folder.work / "protected")
    items = [(work, place / f"part-{number:05d}.parquet") for number, work in enumerate(works)]
    found, skipped = Counter[str](), Counter[str]()
    results = each(job.over, _protect, items)
    for labels, left_out, _ in track(results, "notes", job.say, size=lambda one: one[2]):
        found += labels
        skipped += left_out
    if works and works[0].names:
        on_index(load_name_index(works[0].names))
    roles = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")
    return open_corpus(place, roles, keep=job.corpus.columns.keep), found, skipped


def _protect(item: tuple[TreatPart, Path]) -> tuple[Counter[str], Counter[str], int]:
    work, path = item
    found, skipped, rows = Counter[str](), Counter[str](), 0
    writer: pq.ParquetWriter | None = None
    try:
        for done in work.treated():
            found += done.counts
            skipped += done.skipped
            rows += done.batch.num_rows
            writer = writer or pq.ParquetWriter(path, done.batch.schema, compression="zstd")
            writer.write_batch(done.batch)
    finally:
        if writer:
            writer.close()
    return found, skipped, rows


@dataclass(frozen=True)
class Draw:
    """Write one part through the channel with new ids, and read it back.

    Attributes:
        part: the part as it enters the channel. entered: hash of everything that it depends on.
        vault: folder of key and channel. channel: digest of the channel. commitment: of the key.
        scratch: folder in the vault. columns, suffix: of source and release. order: keyed or source.
    """

    part: NotesCorpus = field(repr=False)
    entered: str
    vault: Path
    channel: str
    policy: Policy
    commitment: str
    scratch: Path
    columns: Columns
    suffix: str
    order: str

    @property
    def title(self) -> str:
        """Description for progress messages."""
        return f"{self.part.name} written"

    @property
    def file(self) -> str:
        """Name of the notes file."""
        return f"notes{self.suffix}"

    def identity(self) -> Mapping[str, Any]:
        """Return hashes of part, channel, key and output options."""
        drawn = {"part": self.entered, "channel": self.channel, "policy": asdict(self.policy), "key": self.commitment}
        return {**drawn, "order": self.order, "columns": asdict(self.columns), "suffix": self.suffix}

    def __call__(self, folder: Path, store: Store) -> dict[str, Any]:
        """Write notes, crosswalk and alignment; return token counts and the output check."""
        obfuscator, key = _obfuscator(self.vault, self.policy, self.channel, self.commitment)
        work = private_folder(self.scratch / name_of(self))
        target = Target(folder / self.file, folder, work, self.columns, self.suffix, self.order)
        tally = target.write(obfuscate_batches(self.part.batches(), obfuscator), key)
        check = self._check(target, folder, obfuscator.channel) if tally.notes else NOTHING
        remove(work)
        return {"tally": tally.as_dict(), "check": check.as_dict()}

    def _check(self, target: Target, folder: Path, channel: Channel) -> OutputCheck:
        crosswalk, alignment = (vault_batches(folder, name) for name in TABLES)
        released = target.in_source_order(opened(target.path, self.columns))
        return check_output(self.part.batches(), crosswalk, released, channel, alignment)


@lru_cache(maxsize=1)
def _obfuscator(vault: Path, policy: Policy, channel: str, commitment: str) -> tuple[Obfuscator, Key]:
    """Load obfuscator and key once per process; the digests are part of the cache key."""
    key = Key.load(vault / KEY)
    return Obfuscator(load_channel(vault / "channel", policy), key, align=True), key


def opened(path: Path, columns: Columns) -> Corpus:
    """Open released notes with the columns of their source."""
    roles = NotesSettings(text=columns.text, id=columns.note_id, patient=columns.patient_id, preset="none")
    return open_corpus(path, roles, label=columns.labels, keep=columns.keep)


@dataclass(frozen=True)
class Copy:
    """Write one part with new ids and unchanged text, and read it back.

    Attributes: as in `Draw`; `entered` is a hash of everything that it depends on.
    """

    part: NotesCorpus = field(repr=False)
    entered: str
    vault: Path
    scratch: Path
    columns: Columns
    suffix: str
    order: str

    @property
    def title(self) -> str:
        """Description for progress messages."""
        return f"{self.part.name} written"

    @property
    def file(self) -> str:
        """Name of the notes file."""
        return f"notes{self.suffix}"

    def identity(self) -> Mapping[str, Any]:
        """Return hashes of part, key and output options."""
        return {"copy": self.entered, "order": self.order, "columns": asdict(self.columns), "suffix": self.suffix}

    def __call__(self, folder: Path, store: Store) -> dict[str, Any]:
        """Write notes and crosswalk; return token counts and the output check."""
        work = private_folder(self.scratch / name_of(self))
        target = Target(folder / self.file, folder, work, self.columns, self.suffix, self.order)
        tally, check = target.write(as_written(self.part), Key.load(self.vault / KEY)), NOTHING
        if tally.notes:
            released = target.in_source_order(opened(target.path, self.columns))
            check = check_copies(self.part.batches(), vault_batches(folder, "crosswalk"), released)
        remove(work)
        return {"tally": tally.as_dict(), "check": check.as_dict()}


def copy_parts(job: ReleaseContext, entered: Corpus) -> tuple[OutputCheck, Path]:
    """Write every part with new ids and unchanged text; return the output check and the folder."""
    assert isinstance(entered, PartedCorpus)
    places = job.folder.vault, job.folder.work, job.corpus.columns, job.corpus.suffix, job.settings.order
    works = [Copy(part, digest, *places) for part, digest in zip(entered.parts, _entered(job), strict=True)]
    _, check, place = _collected(job, works)
    return check, place


def draw_parts(job: ReleaseContext, protected: Corpus, channel: Channel) -> tuple[Tally, OutputCheck, Path]:
    """Write every part: notes to staging, crosswalk and alignment to the vault, one file per part."""
    assert isinstance(job.corpus, PartedCorpus) and isinstance(protected, PartedCorpus)
    return _collected(job, list(_draws(job, protected, channel)))


def _collected(job: ReleaseContext, works: Sequence[Draw | Copy]) -> tuple[Tally, OutputCheck, Path]:
    store, tally, checks = _store(job), Tally(), list[OutputCheck]()
    results = each(job.over, partial(performed, store), works)
    for result in track(results, "notes", job.say, size=lambda one: one["tally"]["notes"]):
        tally += tally_from(result["tally"])
        checks.append(OutputCheck.of(result["check"], result["check"]["outputs"]))
    place = private_folder(job.folder.staging / NOTES)
    for number, work in enumerate(works):
        made = store.folder(work)
        link(made / work.file, place / f"{_released_name(job, number)}{work.suffix}")
        for name in TABLES:
            if (made / f"{name}.parquet").exists():
                folder = private_folder(job.folder.vault / f"{name}.parquet")
                remove(folder / f"part-{number:05d}.parquet")
                link(made / f"{name}.parquet", folder / f"part-{number:05d}.parquet")
    return tally, sum(checks, NOTHING), place


def link(source: Path, target: Path) -> None:
    """Create a hard link, or a copy if the file system does not support hard links."""
    try:
        os.link(source, target)
    except OSError:
        copyfile(source, target)


def _entered(job: ReleaseContext) -> Iterator[str]:
    """Yield per part a hash of the part, of the detection in all parts, and of the key."""
    found = _recipe(job).dependencies if job.settings.phi else ""
    of = digest_of(job.facts) + job.key.commitment + found
    return (hashlib.sha256((one.digest + of).encode()).hexdigest() for one in job.facts)


def _draws(job: ReleaseContext, protected: PartedCorpus, channel: Channel) -> Iterator[Draw]:
    assert isinstance(job.corpus, PartedCorpus)
    drawn = job.folder.vault, channel_digest(channel), channel.policy, job.key.commitment
    written = job.folder.work, job.corpus.columns, job.corpus.suffix, job.settings.order
    return (Draw(part, digest, *drawn, *written) for part, digest in zip(protected.parts, _entered(job), strict=True))


def _released_name(job: ReleaseContext, number: int) -> str:
    """Return a keyed name that hides source name and order; with `--order source` the order is kept."""
    if job.settings.order == "source":
        return f"part-{number:05d}"
    facts = job.facts[number]
    return f"part-{job.key.digest('part name', facts.name, facts.digest):016x}"
