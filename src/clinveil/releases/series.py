"""Measure a release together with the releases that it adds to.

Released notes next to their vaults map to source ids by the crosswalk, so measures that need no more cover all releases
of the series. Source notes are not kept. If they are passed again (`--with`), everything is measured on all; names that
occur in earlier notes are detected in the new ones too; the earlier releases are recomputed and compared with what was
released; and earlier notes that would be treated differently today are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.attacks.attack import Context, attacks
from clinveil.attacks.channel._inputs import single_names
from clinveil.channel.apply import Obfuscator, obfuscate_batches
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.files import private_folder
from clinveil.core.finding import Finding, write_findings
from clinveil.core.runfolder import fingerprint
from clinveil.core.settings import NotesSettings
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus, MemoryCorpus, rows
from clinveil.corpus.open import open_corpus
from clinveil.corpus.uniqueness import hashes
from clinveil.phi.name_index import NameIndex
from clinveil.phi.treatment.passes import deidentify_corpus
from clinveil.releases.added import ALONE, SeriesCoverage
from clinveil.releases.attack_gates import adversary_gates
from clinveil.releases.crosswalk import CROSSWALK, Renamer, id_maps, vault_batches
from clinveil.releases.finish import NEW_ALONE
from clinveil.releases.gates import patient_gates
from clinveil.releases.ledger import Hashes
from clinveil.releases.measured import Measured, attacked, measured, useful
from clinveil.releases.new_notes import NewNotes
from clinveil.releases.parent import ParentRelease
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.stages import ReleaseContext
from clinveil.report.record import Gate
from clinveil.scale import threads
from clinveil.scale.executor import opened_for
from clinveil.vectors.count import count_words

Protected = tuple[Corpus, Counter[str] | None, Counter[str]]


@dataclass(frozen=True)
class EarlierPart:
    """One earlier release: its vault, its released notes, and its source notes if given."""

    base: ParentRelease
    released: Corpus
    source: Corpus | None = None

    @property
    def detected_jointly(self) -> bool:
        """Whether its identifiers were detected together with those of earlier notes."""
        return bool((self.base.manifest["private"].get("adds_to") or {}).get("beside"))


@dataclass
class ReleaseSeries:
    """The earlier releases, first one first.

    Attributes:
        given: whether their source notes are available. otherwise: how many of these would be treated differently.
    """

    parts: Sequence[EarlierPart]
    given: bool = False
    otherwise: int | None = None
    _today: list[Corpus] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, base: ParentRelease, before: Sequence[Path], keep: Sequence[str]) -> ReleaseSeries | None:
        """Return the series, or None if released notes are no longer next to their vaults.

        Args:
            before: source notes of all releases. keep: kept columns.

        Raises InputError if source notes are given and do not match all releases.
        """
        bases = _chain(base)
        released = [_released(one, keep) for one in bases]
        available = [corpus for corpus in released if corpus is not None]
        if len(bases) < base.nth or len(available) < len(bases):
            if before:
                hint = "restore them next to their vaults, or omit --with"
                raise InputError("some of the earlier releases are missing", hint=hint)
            return None
        sources: Sequence[Corpus | None] = _sources(bases, before) if before else [None] * len(bases)
        return cls([EarlierPart(*each) for each in zip(bases, available, sources, strict=True)], bool(before))

    def protect(self, job: ReleaseContext, on_index: Callable[[NameIndex], None] | None = None) -> Protected:
        """Do the same as `stages.protect`, with names detected across all releases."""
        everything = [*self._sources(), job.corpus]
        *before, last = _protected(job, everything, job.folder.work / "together", on_index)
        self._today = [part.corpus for part in before]
        return last.corpus, last.found, last.skipped

    def context(self, job: ReleaseContext, alone: Context) -> Context:
        """Return the input of attacks on all releases.

        Raises InputError if the given source notes do not reproduce the earlier releases.
        """
        assert alone.released is not None
        released = _joined([*(past.released for past in self.parts), alone.released])
        joined = Context(released=released, channel=alone.channel, known=alone.known, keep=alone.keep)
        joined = replace(joined, scratch=alone.scratch, workers=alone.workers)
        return self._with_sources(job, alone, joined) if self.given else joined

    def seen(self, job: ReleaseContext, whole: Context) -> Measured:
        """Return the input of attacks on all releases, or a sample of patients if the sources are available."""
        if self.given:
            drawn_by = job.settings.measure_words, job.key.subkey("measured patients"), job.folder.work / "measured all"
            return measured(whole, partial(self._crosswalk, job), *drawn_by)
        notes, patients = id_maps(self._crosswalk(job))
        mapped = replace(whole, notes=notes, patients=patients)
        return Measured(mapped, mapped)

    def _crosswalk(self, job: ReleaseContext) -> Iterator[pa.RecordBatch]:
        for batch in self.parts[-1].base.crosswalk():
            yield batch.select(CROSSWALK.names)
        yield from vault_batches(job.folder.vault, "crosswalk")

    def _with_sources(self, job: ReleaseContext, alone: Context, released: Context) -> Context:
        assert alone.original is not None and alone.entered is not None and alone.channel is not None
        entered = [self._as_released(job, at) for at in range(len(self.parts))]
        for past, then in zip(self.parts, entered, strict=True):
            _refuse_others(job, past, then, alone.channel)
        pairs = zip(entered, self._today, strict=True)
        self.otherwise = sum(_differ(_texts(then), _texts(now)) for then, now in pairs)
        joined = _joined([*entered, alone.entered])
        return replace(
            released,
            original=_joined([*self._sources(), alone.original]),
            entered=joined,
            counts=count_words(joined, job.folder.work),
            alignment=lambda: self._alignment(job),
            earlier=alone.earlier,
        )

    def coverage(self, context: Context) -> SeriesCoverage:
        """Return what was measured, for the report."""
        names = [name for name, attack in attacks if attack.on_release and context.has(attack.needs)]
        return SeriesCoverage((*names, *(["utility"] if context.original is not None else [])), self.otherwise)

    def _sources(self) -> list[Corpus]:
        return [past.source for past in self.parts if past.source is not None]

    def _as_released(self, job: ReleaseContext, number: int) -> Corpus:
        """Return the notes of one release as they entered the channel."""
        sources = self._sources()
        searched = sources[: number + 1] if self.parts[number].detected_jointly else [sources[number]]
        if not job.settings.phi:
            return sources[number]
        return _protected(job, searched, job.folder.work / f"then {number}")[-1].corpus

    def _alignment(self, job: ReleaseContext) -> Iterator[pa.RecordBatch]:
        for past in self.parts:
            yield from past.base.rows("alignment")
        yield from vault_batches(job.folder.vault, "alignment")


def _chain(base: ParentRelease) -> list[ParentRelease]:
    """Return the releases under one key up to this one, first one first, as far as their vaults exist."""
    chain = [base]
    with suppress(InputError):
        while (before := chain[0].previous()) is not None:
            chain.insert(0, before)
    return chain


def _released(base: ParentRelease, keep: Sequence[str]) -> Corpus | None:
    notes = base.released()
    return None if notes is None else open_corpus(*notes, keep=tuple(keep))


def _sources(bases: Sequence[ParentRelease], before: Sequence[Path]) -> list[Corpus]:
    """Return the source of each release. Raises InputError for missing and for foreign files."""
    given = {fingerprint(path): path for path in before}
    sources: list[Corpus] = []
    for number, base in enumerate(bases):
        place = given.pop(str(base.manifest["private"]["source_sha256"]), None)
        if place is None:
            hint = "pass the unchanged notes of all releases, one --with each, or omit --with"
            raise InputError(f"the notes of release {base.run} are missing", where="--with", hint=hint)
        how = base.settings
        source = open_corpus(place, how.notes, label=how.label, keep=how.keep)
        sources.append(NewNotes(source, bases[number - 1]) if number else source)
    if given:
        what = "does not contain the notes of an earlier release"
        raise InputError(what, where=f"--with {next(iter(given.values())).name}", hint="omit this file")
    return sources


def _joined(parts: Sequence[Corpus]) -> MemoryCorpus:
    """Concatenate corpora; columns and format are those of the last."""

    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield from part.batches()

    return MemoryCorpus(batches, parts[-1].columns, parts[-1].suffix)


@dataclass
class _Part:
    """One of several corpora that were treated together."""

    corpus: Corpus
    found: Counter[str] | None = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def _protected(
    job: ReleaseContext, corpora: Sequence[Corpus], scratch: Path, on_index: Callable[[NameIndex], None] | None = None
) -> list[_Part]:
    """Treat corpora with names detected across all of them; text is stored in the scratch folder."""
    deidentifier = job.deidentifier()
    if deidentifier is None:
        return [_Part(corpus, None) for corpus in corpora]
    batches = [sum(1 for _ in corpus.batches()) for corpus in corpora]
    owners = (number for number, count in enumerate(batches) for _ in range(count))
    paths = [private_folder(scratch) / f"{number}.parquet" for number in range(len(corpora))]
    treated = [_Part(corpus) for corpus in corpora]
    with ExitStack() as stack:
        over = stack.enter_context(opened_for(job.settings))
        everything = deidentify_corpus(_joined(corpora), deidentifier, over, on_index=on_index)
        writers: dict[int, pq.ParquetWriter] = {}
        for number, result in zip(owners, everything, strict=True):
            part = treated[number]
            part.found = (part.found or Counter()) + result.counts
            part.skipped += result.skipped
            if number not in writers:
                writer = pq.ParquetWriter(paths[number], result.batch.schema, compression="zstd")
                writers[number] = stack.enter_context(writer)
            writers[number].write_batch(result.batch)
    roles = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")
    for part, path in zip(treated, paths, strict=True):
        part.corpus = open_corpus(path, roles, keep=job.corpus.columns.keep)
    return treated


def _texts(corpus: Corpus) -> Hashes:
    """Return sorted hashes of id and text of each note."""
    return np.sort(hashes((note.note_id, note.text) for note in rows(corpus)))


def _differ(one: Hashes, other: Hashes) -> int:
    """Count hashes of the first that are not in the second."""
    return int((~np.isin(one, other)).sum())


def _refuse_others(job: ReleaseContext, past: EarlierPart, entered: Corpus, channel: Channel) -> None:
    """Raise InputError if an earlier release is not reproduced exactly: its figures would be wrong."""
    rename = Renamer(job.key, patients=job.corpus.columns.patient_id is not None)
    results = obfuscate_batches(entered.batches(), Obfuscator(channel, job.key), threads(job.settings.workers))
    recomputed = MemoryCorpus(lambda: (rename(result.batch)[0] for result in results))
    released = _texts(past.released)
    if other := max(_differ(released, _texts(recomputed)), abs(released.size - past.base.manifest["notes"]["rows"])):
        what = f"{other} notes of release {past.base.run} are not reproduced as released"
        hint = "pass the patients and files that it was made with, or omit --with"
        raise InputError(what, where="--with", hint=hint)


def series_findings(
    job: ReleaseContext, series: ReleaseSeries | None, alone: Context, say: Say
) -> tuple[list[Finding], SeriesCoverage]:
    """Return findings on the release together with the earlier ones, as far as these are available.

    Args:
        alone: full input of attacks on the release itself.
    """
    if series is None:
        return [], ALONE
    whole = series.context(job, alone)
    seen = series.seen(job, whole)
    found = attacked(seen, np.random.default_rng([job.key.digest("measuring seed") % 2**31, 1]), say)
    if whole.original is not None:
        found += single_names(seen.context)
        found += seen.marked(useful(seen.context, job.settings.label, job.settings.model))
    return found, series.coverage(whole)


def series_gates(settings: ReleaseSettings, shared: Sequence[Finding]) -> list[Gate]:
    """Return the gates on all releases together."""
    gates = [
        *patient_gates(shared, digits=settings.channel.numbers != "drop", shuffled=settings.channel.shuffle == "note"),
        *adversary_gates(shared, settings.max_names, settings.max_linkage, settings.max_stolen),
    ]
    return [replace(gate, name=f"{gate.name}, with the earlier releases") for gate in gates]


def together(job: ReleaseContext, alone: Sequence[Finding], shared: Sequence[Finding], seed: int) -> list[Finding]:
    """Return each measure on all releases if available, else on the new one; store the latter in the vault."""
    if shared:
        write_findings(job.folder.vault / NEW_ALONE, "release", list(alone), seed=seed)
    measured_jointly = {finding.measure for finding in shared}
    return [*shared, *(finding for finding in alone if finding.measure not in measured_jointly)]
