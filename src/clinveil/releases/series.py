"""A release and what it was added to, as one: what attackers and users of both parts look at.

Released notes lie beside their vaults, and lead back by the crosswalk: what needs no more is measured on both parts.
Source notes are not kept. Where they are given once more (`--with`), everything is measured on both; names that the
earlier notes say of a patient are found in the new ones too; and two things are counted that nobody sees otherwise:
whether the earlier parts can be made again as they left, and how many of their notes would be treated otherwise now
that the new ones have been heard.
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
from clinveil.attacks.channel.channel_figures import single_names
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
from clinveil.phi.passes import deidentify_corpus
from clinveil.releases.added import ALONE, OnBoth
from clinveil.releases.attack_gates import adversary_gates
from clinveil.releases.crosswalk import CROSSWALK, Renamer, id_maps, ledger_batches
from clinveil.releases.gates import patient_gates
from clinveil.releases.ledger import Hashes
from clinveil.releases.measured import Measured, attacked, measured, useful
from clinveil.releases.new_notes import NewNotes
from clinveil.releases.parent import ParentRelease
from clinveil.releases.publish import NEW_ALONE
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.stages import ReleaseContext
from clinveil.report.record import Gate
from clinveil.scale import threads
from clinveil.scale.executor import opened_for
from clinveil.vectors.count import count_words

Protected = tuple[Corpus, Counter[str] | None, Counter[str]]


@dataclass(frozen=True)
class Past:
    """One earlier part: its vault, its released notes, and its source where that is given."""

    base: ParentRelease
    released: Corpus
    source: Corpus | None = None

    @property
    def heard_before(self) -> bool:
        """Whether it was itself made beside the notes before it."""
        return bool((self.base.manifest["private"].get("adds_to") or {}).get("beside"))


@dataclass
class ReleaseSeries:
    """The earlier parts, the first one first.

    Attributes:
        given: whether their source notes are at hand. otherwise: of these, how many would be treated otherwise today.
    """

    pasts: Sequence[Past]
    given: bool = False
    otherwise: int | None = None
    _today: list[Corpus] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, base: ParentRelease, before: Sequence[Path], keep: Sequence[str]) -> ReleaseSeries | None:
        """What is there of the earlier parts; None where some released notes are not beside their vaults any more.

        Args:
            before: the source notes of all of them. keep: the kept columns.

        Raises InputError where the source notes are given, and are not those, or not all of them.
        """
        bases = _chain(base)
        released = [_released(one, keep) for one in bases]
        there = [one for one in released if one is not None]
        if len(bases) < base.nth or len(there) < len(bases):
            if before:
                hint = "put them back beside their vaults, or leave --with out"
                raise InputError("some of the releases that are added to are not there any more", hint=hint)
            return None
        sources: Sequence[Corpus | None] = _sources(bases, before) if before else [None] * len(bases)
        return cls([Past(*each) for each in zip(bases, there, sources, strict=True)], bool(before))

    def protect(self, job: ReleaseContext, heard: Callable[[NameIndex], None] | None = None) -> Protected:
        """As `stages.protect`, where all parts are heard together."""
        everything = [*self._sources(), job.corpus]
        *before, last = _protected(job, everything, job.folder.work / "together", heard)
        self._today = [part.corpus for part in before]
        return last.corpus, last.found, last.skipped

    def context(self, job: ReleaseContext, alone: Context) -> Context:
        """What is at hand of both parts.

        Raises InputError where the earlier parts cannot be made again, from the notes that were given, as they left.
        """
        assert alone.released is not None
        released = _joined([*(past.released for past in self.pasts), alone.released])
        made = Context(released=released, channel=alone.channel, known=alone.known, keep=alone.keep)
        made = replace(made, scratch=alone.scratch, workers=alone.workers)
        return self._with_sources(job, alone, made) if self.given else made

    def seen(self, job: ReleaseContext, whole: Context) -> Measured:
        """What attacks look at of all parts: of many words, drawn patients, where their source is at hand."""
        if self.given:
            drawn_by = job.settings.measure_words, job.key.subkey("measured patients"), job.folder.work / "measured all"
            return measured(whole, partial(self._crosswalk, job), *drawn_by)
        notes, patients = id_maps(self._crosswalk(job))
        there = replace(whole, notes=notes, patients=patients)
        return Measured(there, there)

    def _crosswalk(self, job: ReleaseContext) -> Iterator[pa.RecordBatch]:
        for batch in self.pasts[-1].base.crosswalk():
            yield batch.select(CROSSWALK.names)
        yield from ledger_batches(job.folder.vault, "crosswalk")

    def _with_sources(self, job: ReleaseContext, alone: Context, made: Context) -> Context:
        assert alone.original is not None and alone.entered is not None and alone.channel is not None
        entered = [self._as_then(job, at) for at in range(len(self.pasts))]
        for past, then in zip(self.pasts, entered, strict=True):
            _refuse_others(job, past, then, alone.channel)
        pairs = zip(entered, self._today, strict=True)
        self.otherwise = sum(_differ(_texts(then), _texts(now)) for then, now in pairs)
        joined = _joined([*entered, alone.entered])
        return replace(
            made,
            original=_joined([*self._sources(), alone.original]),
            entered=joined,
            counts=count_words(joined, job.folder.work),
            alignment=lambda: self._alignment(job),
            earlier=alone.earlier,
        )

    def said(self, context: Context) -> OnBoth:
        """What the report says of it."""
        names = [name for name, attack in attacks if attack.on_release and context.has(attack.needs)]
        return OnBoth((*names, *(["utility"] if context.original is not None else [])), self.otherwise)

    def _sources(self) -> list[Corpus]:
        return [past.source for past in self.pasts if past.source is not None]

    def _as_then(self, job: ReleaseContext, at: int) -> Corpus:
        """The notes of one part as they entered the channel when it was made."""
        sources = self._sources()
        heard = sources[: at + 1] if self.pasts[at].heard_before else [sources[at]]
        if not job.settings.phi:
            return sources[at]
        return _protected(job, heard, job.folder.work / f"then {at}")[-1].corpus

    def _alignment(self, job: ReleaseContext) -> Iterator[pa.RecordBatch]:
        for past in self.pasts:
            yield from past.base.rows("alignment")
        yield from ledger_batches(job.folder.vault, "alignment")


def _chain(base: ParentRelease) -> list[ParentRelease]:
    """The releases under one key up to this one, the first one first, as far as their vaults are there."""
    found = [base]
    with suppress(InputError):
        while (before := found[0].previous()) is not None:
            found.insert(0, before)
    return found


def _released(base: ParentRelease, keep: Sequence[str]) -> Corpus | None:
    there = base.released()
    return None if there is None else open_corpus(*there, keep=tuple(keep))


def _sources(bases: Sequence[ParentRelease], before: Sequence[Path]) -> list[Corpus]:
    """The source of each release. Raises InputError for a file of none of them, and for a release without one."""
    given = {fingerprint(path): path for path in before}
    found: list[Corpus] = []
    for at, base in enumerate(bases):
        place = given.pop(str(base.manifest["private"]["source_sha256"]), None)
        if place is None:
            hint = "give the notes of all of them, unchanged, each by a --with; or leave it out"
            raise InputError(f"the notes of release {base.run} are not among those given", where="--with", hint=hint)
        how = base.settings
        source = open_corpus(place, how.notes, label=how.label, keep=how.keep)
        found.append(NewNotes(source, bases[at - 1]) if at else source)
    if given:
        what = "holds other notes than those of the releases that are added to"
        raise InputError(what, where=f"--with {next(iter(given.values())).name}", hint="leave it out")
    return found


def _joined(parts: Sequence[Corpus]) -> MemoryCorpus:
    """Several corpora as one; columns and format are those of the last."""

    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield from part.batches()

    return MemoryCorpus(batches, parts[-1].columns, parts[-1].suffix)


@dataclass
class _Part:
    """One corpus of several that were treated together."""

    corpus: Corpus
    found: Counter[str] | None = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def _protected(
    job: ReleaseContext, corpora: Sequence[Corpus], scratch: Path, heard: Callable[[NameIndex], None] | None = None
) -> list[_Part]:
    """Each corpus as it enters the channel, where all of them are heard together; text lies in the scratch folder."""
    deidentifier = job.deidentifier()
    if deidentifier is None:
        return [_Part(corpus, None) for corpus in corpora]
    batches = [sum(1 for _ in corpus.batches()) for corpus in corpora]
    whose = (at for at, count in enumerate(batches) for _ in range(count))
    places = [private_folder(scratch) / f"{at}.parquet" for at in range(len(corpora))]
    made = [_Part(corpus) for corpus in corpora]
    with ExitStack() as stack:
        over = stack.enter_context(opened_for(job.settings))
        everything = deidentify_corpus(_joined(corpora), deidentifier, over, on_index=heard)
        writers: dict[int, pq.ParquetWriter] = {}
        for at, result in zip(whose, everything, strict=True):
            made[at].found = (made[at].found or Counter()) + result.counts
            made[at].skipped += result.skipped
            if at not in writers:
                writers[at] = stack.enter_context(pq.ParquetWriter(places[at], result.batch.schema, compression="zstd"))
            writers[at].write_batch(result.batch)
    roles = NotesSettings(text=TEXT, id=NOTE_ID, patient=PATIENT_ID, preset="none")
    for part, place in zip(made, places, strict=True):
        part.corpus = open_corpus(place, roles, keep=job.corpus.columns.keep)
    return made


def _texts(corpus: Corpus) -> Hashes:
    """A hash of id and text of each note, in order."""
    return np.sort(hashes((note.note_id, note.text) for note in rows(corpus)))


def _differ(one: Hashes, other: Hashes) -> int:
    """How many of the first are not among the second."""
    return int((~np.isin(one, other)).sum())


def _refuse_others(job: ReleaseContext, past: Past, entered: Corpus, channel: Channel) -> None:
    """Raise InputError where a part does not come out as it left: figures of other notes would be wrong ones."""
    rename = Renamer(job.key, patients=job.corpus.columns.patient_id is not None)
    results = obfuscate_batches(entered.batches(), Obfuscator(channel, job.key), threads(job.settings.workers))
    made = MemoryCorpus(lambda: (rename(result.batch)[0] for result in results))
    released = _texts(past.released)
    if other := max(_differ(released, _texts(made)), abs(released.size - past.base.manifest["notes"]["rows"])):
        what = f"{other} notes of release {past.base.run} do not come out as they left"
        hint = "give the patients and files that it was made with, or leave --with out"
        raise InputError(what, where="--with", hint=hint)


def of_both(job: ReleaseContext, both: ReleaseSeries | None, alone: Context, say: Say) -> tuple[list[Finding], OnBoth]:
    """What is found in the release and what it was added to together, as far as that is at hand.

    Args:
        alone: what is at hand of the release itself, all of it.
    """
    if both is None:
        return [], ALONE
    whole = both.context(job, alone)
    seen = both.seen(job, whole)
    found = attacked(seen, np.random.default_rng([job.key.digest("measuring seed") % 2**31, 1]), say)
    if whole.original is not None:
        found += single_names(seen.context)
        found += seen.marked(useful(seen.context, job.settings.label, job.settings.model))
    return found, both.said(whole)


def gates_of_both(settings: ReleaseSettings, shared: Sequence[Finding]) -> list[Gate]:
    """What is held against all parts together, beside what is held against the new one."""
    made = [
        *patient_gates(shared, digits=settings.channel.numbers != "drop", shuffled=settings.channel.shuffle == "note"),
        *adversary_gates(shared, settings.max_names, settings.max_linkage, settings.max_stolen),
    ]
    return [replace(gate, name=f"{gate.name}, with what it adds to") for gate in made]


def together(job: ReleaseContext, alone: Sequence[Finding], shared: Sequence[Finding], seed: int) -> list[Finding]:
    """Of each measure the findings on all parts, where it was taken on all; those of the new one go to the vault."""
    if shared:
        write_findings(job.folder.vault / NEW_ALONE, "release", list(alone), seed=seed)
    on_both = {finding.measure for finding in shared}
    return [*shared, *(finding for finding in alone if finding.measure not in on_both)]
