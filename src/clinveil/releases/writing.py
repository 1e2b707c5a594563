"""Write the notes of a release under new ids, drawn through a channel or unchanged, and read them
back.

A single file is written in this process. Of part files, one task per part writes and checks;
finished parts are kept in the vault's `tasks` until the release is finished. A released part is
named by a keyed hash of its source name, so the order of parts is independent of the source.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from shutil import copyfile
from typing import Any, TypeVar

import pyarrow as pa

from clinveil.channel import (
    PLAIN,
    Channel,
    ObfuscatedBatch,
    TokenTally,
    WordObfuscator,
    WritingPolicy,
    channel_digest,
    load_channel,
    tally_from,
)
from clinveil.core import KEY, Key, NotesSettings, private_folder, remove, track
from clinveil.corpus import (
    Columns,
    Corpus,
    NotesCorpus,
    PartedCorpus,
    Writer,
    digest_of,
    memory_corpus,
    open_corpus,
)
from clinveil.releases.check import NOTHING, OutputCheck, check_output
from clinveil.releases.context import ReleaseContext
from clinveil.releases.crosswalk import (
    Renamer,
    TableWriter,
    VaultTable,
    by_new_id,
    by_source,
    reordered,
)
from clinveil.releases.treatment import TASKS, recipe
from clinveil.scale import Map, Store, each, name_of, opened_for, perform, serial

T = TypeVar("T")
NOTES = "notes"
CROSSWALK = "crosswalk.parquet"


@dataclass(frozen=True)
class Target:
    """Output location of released notes and crosswalk.

    Attributes:
        path: of the notes. vault: folder of the crosswalk. work: scratch folder.
        columns, suffix: of source and release.
    """

    path: Path
    vault: Path
    work: Path
    columns: Columns
    suffix: str

    def write(self, results: Iterator[ObfuscatedBatch], key: Key) -> TokenTally:
        """Write the notes with new ids; return the token counts."""
        rename = Renamer(key, patients=self.columns.patient_id is not None)
        tally = TokenTally()
        with ExitStack() as stack:
            table = stack.enter_context(TableWriter(self.vault / CROSSWALK))

            def renamed() -> Iterator[pa.RecordBatch]:
                nonlocal tally
                for result in results:
                    tally += result.tally
                    batch, crosswalk = rename(result.batch)
                    table.write(crosswalk)
                    yield batch

            notes = stack.enter_context(Writer(self.path, self.columns, self.suffix))
            for batch in (
                reordered(renamed(), by_new_id, self.work / "order") if self.suffix else renamed()
            ):
                notes.write(batch)  # files of a folder need no sorting
        return tally

    def check(
        self, entered: Corpus, channel: Channel | None, executor: Map = serial
    ) -> OutputCheck:
        """Read the written notes back and compare them with the notes that entered the channel, if
        there is one.
        """
        crosswalk = VaultTable(self.vault / CROSSWALK)
        if self.path.is_dir():
            released = self._by_name()
        else:
            ranks = by_source(crosswalk.batches())
            notes = opened(self.path, self.columns)
            released = reordered(notes.batches(), ranks, self.work / "read back")
        return check_output(entered.batches(), crosswalk.batches(), released, channel, executor)

    def _by_name(self) -> Iterator[pa.RecordBatch]:
        """Yield the notes of a .txt folder in source order."""
        left = {file.stem for file in self.path.iterdir()}
        for batch in VaultTable(self.vault / CROSSWALK).batches():
            ids = [i for i in batch.column("note_id").to_pylist() if i in left]
            left.difference_update(ids)
            texts = [(self.path / f"{i}.txt").read_bytes().decode("utf-8") for i in ids]
            yield from memory_corpus(
                [(i, i, text) for i, text in zip(ids, texts, strict=True)]
            ).batches()
        yield from memory_corpus([(i, i, "") for i in sorted(left)]).batches()


def opened(path: Path, columns: Columns) -> Corpus:
    """Open released notes with the columns of their source."""
    roles = NotesSettings(
        text=columns.text, id=columns.note_id, patient=columns.patient_id, preset="none"
    )
    return open_corpus(path, roles, label=columns.labels, keep=columns.keep)


def write_notes(
    job: ReleaseContext, entered: Corpus, channel: Channel | None
) -> tuple[TokenTally, OutputCheck, Path]:
    """Write every note into staging, drawn through the channel if there is one, and read the notes
    back.
    """
    what = f"replace every word, N {job.settings.channel.n}"
    stage = ("write", "new ids, keyed order") if channel is None else ("obfuscate", what)
    with job.timer.stage(*stage, "keyed"):
        if job.facts:
            return _write_parts(job, entered, channel)
        folder = job.folder
        columns = job.corpus.columns
        suffix = job.corpus.suffix
        path = folder.staging / f"{NOTES}{suffix}"
        target = Target(path, folder.vault, folder.work, columns, suffix)
        obfuscator = None if channel is None else WordObfuscator(channel, job.key)
        with opened_for(job.settings.executor, job.settings.workers, threaded=True) as over:
            results = track(
                _results(entered, obfuscator, over),
                "notes",
                job.say,
                size=lambda one: one.batch.num_rows,
            )
            tally = target.write(results, job.key)
        if channel is None:
            return tally, target.check(entered, None), path
    with job.timer.stage("check", "read the release back"):

        def over(function: Callable[[T], Any], items: Iterable[T], /) -> Iterator[Any]:
            results = job.notes_executor(function, items)
            return track(
                results, "notes read back", job.say, job.totals.rows, lambda one: one.notes
            )

        return tally, target.check(entered, channel, over), path


def _results(
    entered: Corpus, obfuscator: WordObfuscator | None, executor: Map = serial
) -> Iterator[ObfuscatedBatch]:
    """Yield the notes as they are released; unchanged without an obfuscator."""
    if obfuscator is None:
        return (
            ObfuscatedBatch(batch, TokenTally(notes=batch.num_rows)) for batch in entered.batches()
        )
    return executor(obfuscator, entered.batches())


@dataclass(frozen=True)
class WritePart:
    """Write one part with new ids, through the channel if its digest is not empty, and read it
    back.

    Attributes:
        part: the part as it is released or enters the channel. entered: hash of everything that it
            depends on.
        vault: folder of key and channel. channel: digest of the channel. commitment: of the key.
        scratch: folder in the vault. columns, suffix: of source and release. order: keyed or
            source.
    """

    part: NotesCorpus = field(repr=False)
    entered: str
    vault: Path
    channel: str
    policy: WritingPolicy
    commitment: str
    scratch: Path
    columns: Columns
    suffix: str

    @property
    def title(self) -> str:
        """Description for progress messages."""
        return f"{self.part.name} written"

    def identity(self) -> Mapping[str, Any]:
        """Return hashes of part, channel, key and output options."""
        drawn = {
            "part": self.entered,
            "channel": self.channel,
            "policy": asdict(self.policy),
            "key": self.commitment,
        }
        return {**drawn, "columns": asdict(self.columns), "suffix": self.suffix}

    def __call__(self, folder: Path, store: Store) -> dict[str, Any]:
        """Write notes and crosswalk; return token counts and the output check."""
        drawn_from = self.vault, self.policy, self.channel, self.commitment
        obfuscator = _obfuscator(*drawn_from) if self.channel else None
        work = private_folder(self.scratch / name_of(self))
        target = Target(folder / f"{NOTES}{self.suffix}", folder, work, self.columns, self.suffix)
        tally = target.write(_results(self.part, obfuscator), Key.load(self.vault / KEY))
        check = (
            target.check(self.part, obfuscator.channel if obfuscator else None)
            if tally.notes
            else NOTHING
        )
        remove(work)
        return {"tally": tally.as_dict(), "check": check.as_dict()}


@lru_cache(maxsize=1)
def _obfuscator(
    vault: Path, policy: WritingPolicy, channel: str, commitment: str
) -> WordObfuscator:
    """Load the obfuscator once per process; the digests are part of the cache key."""
    return WordObfuscator(load_channel(vault / "channel", policy), Key.load(vault / KEY))


def _write_parts(
    job: ReleaseContext, entered: Corpus, channel: Channel | None
) -> tuple[TokenTally, OutputCheck, Path]:
    """Write every part: notes to staging, the crosswalk to the vault, one file per
    part.
    """
    assert isinstance(entered, PartedCorpus)
    # A task depends on the part, on the detection in all parts, and on the key.
    of = (
        digest_of(job.facts)
        + job.key.commitment
        + (recipe(job).dependencies if job.settings.phi else "")
    )
    drawn_from, policy = (
        ("", PLAIN) if channel is None else (channel_digest(channel), channel.policy)
    )
    how = job.folder.vault, drawn_from, policy, job.key.commitment, job.folder.work
    works = list[WritePart]()
    tally = TokenTally()
    check = NOTHING
    for part, facts in zip(entered.parts, job.facts, strict=True):
        digest = hashlib.sha256((facts.digest + of).encode()).hexdigest()
        works.append(WritePart(part, digest, *how, job.corpus.columns, job.corpus.suffix))
    store = Store(job.folder.vault / TASKS)
    results = each(job.executor, partial(perform, store), works)
    for result in track(results, "notes", job.say, size=lambda one: one["tally"]["notes"]):
        tally += tally_from(result["tally"])
        check += OutputCheck.of(result["check"], result["check"]["outputs"])
    place = private_folder(job.folder.staging / NOTES)
    vault = job.folder.vault
    for number, (work, facts) in enumerate(zip(works, job.facts, strict=True)):
        written = store.folder(work)
        name = f"part-{number:05d}"
        if (file := written / CROSSWALK).exists():
            _link(file, private_folder(vault / CROSSWALK) / f"{name}.parquet")
        # Hides source name and order.
        hidden = job.key.digest("part name", facts.name, facts.digest)
        _link(written / f"{NOTES}{work.suffix}", place / f"part-{hidden:016x}{work.suffix}")
    return tally, check, place


def _link(source: Path, target: Path) -> None:
    """Create a hard link, or a copy if the file system does not support hard links; replace the
    target.
    """
    remove(target)
    try:
        os.link(source, target)
    except OSError:
        copyfile(source, target)
