"""The releases under one key that new notes are added to, measured together with the new one.

Released notes next to their vaults map to source ids by the crosswalk, so measures that need no more cover all releases
of the series. Source notes are not kept. If they are passed again (`--with`), everything is measured on all; names that
occur in earlier notes are detected in the new ones too; the earlier releases are recomputed and compared with what was
released; and earlier notes that would be treated differently today are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clinveil.attacks.attack import Context, attacks
from clinveil.attacks.channel.inversion import single_names
from clinveil.channel.apply import Obfuscator, obfuscate_batches
from clinveil.channel.channel import Channel
from clinveil.channel.tally import Tally
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding, write_findings
from clinveil.core.runfolder import fingerprint
from clinveil.corpus.corpus import Corpus, MemoryCorpus, rows
from clinveil.corpus.open import open_corpus
from clinveil.corpus.uniqueness import hashes
from clinveil.releases.attack_gates import adversary_gates, patient_gates
from clinveil.releases.crosswalk import CROSSWALK, Renamer, id_maps, vault_batches
from clinveil.releases.earlier.ledger import Hashes
from clinveil.releases.earlier.parent import NewNotes, ParentRelease
from clinveil.releases.earlier.vault import vault_table
from clinveil.releases.measured import Measured, attacked, measured, useful
from clinveil.releases.outcome import NEW_ALONE
from clinveil.releases.treatment import OnIndex, Treated, joined, treat_together
from clinveil.report.record import Edition, Fact, Gate
from clinveil.scale import threads
from clinveil.vectors.count import count_words

if TYPE_CHECKING:
    from clinveil.releases.context import ReleaseContext

MOST_UNKNOWN = 0.05  # share of unknown words above which a new channel is advised


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
        measured: names of attacks, and "utility", that were measured on all releases; set by `findings`.
    """

    parts: Sequence[EarlierPart]
    given: bool = False
    otherwise: int | None = None
    measured: tuple[str, ...] = ()
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

    def treat(self, job: ReleaseContext, on_index: OnIndex | None = None) -> Treated:
        """Return the new notes with identifiers treated; names are detected across all releases."""
        *before, last = treat_together(job, [*self._sources(), job.corpus], "together", on_index)
        self._today = [part.corpus for part in before]
        return last

    def findings(self, job: ReleaseContext, alone: Context) -> list[Finding]:
        """Return findings on the release together with the earlier ones, as far as these are available.

        Args:
            alone: full input of attacks on the release itself.
        """
        whole = self.context(job, alone)
        seen = self.seen(job, whole)
        found = attacked(seen, np.random.default_rng([job.key.digest("measuring seed") % 2**31, 1]), job.say)
        if whole.original is not None:
            found += single_names(seen.context)
            found += seen.marked(useful(seen.context, job.settings.label, job.settings.model))
        names = [name for name, attack in attacks if attack.on_release and whole.has(attack.needs)]
        self.measured = (*names, *(["utility"] if whole.original is not None else []))
        return found

    def context(self, job: ReleaseContext, alone: Context) -> Context:
        """Return the input of attacks on all releases.

        Raises InputError if the given source notes do not reproduce the earlier releases.
        """
        assert alone.released is not None
        released = joined([*(past.released for past in self.parts), alone.released])
        both = Context(released=released, channel=alone.channel, known=alone.known, keep=alone.keep)
        both = replace(both, scratch=alone.scratch, workers=alone.workers)
        return self._with_sources(job, alone, both) if self.given else both

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
        everything = joined([*entered, alone.entered])
        return replace(
            released,
            original=joined([*self._sources(), alone.original]),
            entered=everything,
            counts=count_words(everything, job.folder.work),
            alignment=lambda: self._alignment(job),
        )

    def _sources(self) -> list[Corpus]:
        return [past.source for past in self.parts if past.source is not None]

    def _as_released(self, job: ReleaseContext, number: int) -> Corpus:
        """Return the notes of one release as they entered the channel."""
        sources = self._sources()
        searched = sources[: number + 1] if self.parts[number].detected_jointly else [sources[number]]
        if not job.settings.phi:
            return sources[number]
        return treat_together(job, searched, f"then {number}")[-1].corpus

    def _alignment(self, job: ReleaseContext) -> Iterator[pa.RecordBatch]:
        for past in self.parts:
            yield from vault_table(past.base.vault, "alignment")
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


def series_gates(job: ReleaseContext, shared: Sequence[Finding]) -> list[Gate]:
    """Return the gates on all releases together."""
    settings = job.settings
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


def met_lines(added: NewNotes) -> Iterator[str]:
    """Yield the counts of the first pass over the notes, as lines of text."""
    known, new = added.patients()
    out = added.skipped["released before"]
    yield f"adding to release {added.base.run}: {out:,} notes were released before and are left out"
    yield f"  {added.changed:,} notes were released with another text and get new ids"
    yield f"  {known:,} patients have released notes and keep ids, dates and surrogates; {new:,} patients are new"


def unknown_share(tally: Tally) -> float:
    """Return the share of words that the channel does not contain."""
    return tally.unknown / max(1, tally.words)


def unknown_line(added: NewNotes, tally: Tally) -> str:
    """Return the share of unknown words as text, with advice if it is large."""
    share = f"{tally.unknown:,} of {tally.words:,} words ({unknown_share(tally):.1%}) are not in the channel"
    return f"{share} ({added.base.unknown:.1%} in the release that trained it){_advice(added, tally)}"


def _advice(added: NewNotes, tally: Tally) -> str:
    if unknown_share(tally) <= max(MOST_UNKNOWN, 2 * added.base.unknown):
        return ""
    return ": release all notes under a new key to train a new channel (--again)"


def added_facts(job: ReleaseContext, tally: Tally) -> Iterator[Fact]:
    """Yield the facts for the report; none for the first release under its key."""
    if (added := job.added) is None:
        return
    known, new = added.patients()
    series = job.series or ReleaseSeries([])
    yield Fact("adds to release", added.base.run)
    yield Fact("patients with notes in it", known, "patients")
    yield Fact("new patients", new, "patients")
    yield Fact("notes released before with another text", added.changed, "notes")
    yield Fact("words not in its channel", tally.unknown)
    yield Fact("measured on both releases together", ", ".join(series.measured) or "nothing")
    if series.otherwise is not None:
        yield Fact("earlier notes that would be treated differently today", series.otherwise, "notes")


def added_warnings(job: ReleaseContext, tally: Tally) -> Iterator[str]:
    """Yield the warnings for the report; none for the first release under its key."""
    if (added := job.added) is None:
        return
    series = job.series or ReleaseSeries([])
    yield f"These notes were added to release {added.base.run}: treat both as one release. {_measured_on(series)}"
    if series.otherwise:
        yield (
            "Some earlier notes would be treated differently today, because the new notes contain names that were "
            "unknown then. They remain as released."
        )
    if advice := _advice(added, tally):
        yield f"{unknown_share(tally):.0%} of the words are not in the channel{advice}."
    if added.changed:
        yield (
            "Notes that were released before with another text occur again under new ids: their common text was drawn "
            "twice."
        )


def _measured_on(series: ReleaseSeries) -> str:
    if "utility" in series.measured:
        return "Figures cover both together. Gates were applied to both together and to these notes alone."
    if not series.measured:
        return "The earlier release was not available: all figures cover these notes alone."
    return (
        "Attacks that need only released notes were measured on both together, the others on these notes alone (--with "
        "measures all on both)."
    )


def adds_to(job: ReleaseContext, edition: Edition) -> dict[str, Any]:
    """Return the manifest entry on the release that this one adds to; empty for the first under its key."""
    if job.added is None:
        return {}
    entry = job.added.base.manifest_entry
    private = {**entry, "beside": job.added.joint}
    return {"adds_to": private if edition == "internal" else {name: entry[name] for name in ("run", "nth")}}
