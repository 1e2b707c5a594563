"""Replace every word through a channel built from word vectors (kind `obfuscated`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from numpy.random import Generator

from clinveil.attacks import (
    Context,
    CopyScan,
    Inversion,
    scan_copies,
    single_names,
)
from clinveil.channel import (
    Channel,
    TokenTally,
    WordObfuscator,
    build_channel,
    load_channel,
    read_words,
    save_channel,
    with_context,
)
from clinveil.core import Finding, InputError, Settings, UsageError, fingerprint, remove, steps
from clinveil.corpus import Accounting, Corpus, PatientSubset
from clinveil.releases.attack_gates import patient_gates
from clinveil.releases.context import ReleaseContext
from clinveil.releases.earlier.note_hashes import NoteHashes
from clinveil.releases.gates import accounting_gates, model_gates, output_gates
from clinveil.releases.measured import AttackSample
from clinveil.releases.prepared_input import CHARACTERS_PER_WORD, Preflight
from clinveil.releases.producer import MEASURE, Producer
from clinveil.releases.producers.deidentified import SourcedProduct
from clinveil.releases.samples import aligned, sources
from clinveil.releases.settings import (
    IdentifierSwitch,
    PatientFloor,
    ReleaseChannelSettings,
    ReleaseSettings,
)
from clinveil.releases.treatment import counted, treated
from clinveil.releases.writing import opened, write_notes
from clinveil.report import AlignedNote, Fact, Gate, TokenRow
from clinveil.vectors import (
    Vectors,
    VectorSettings,
    WordCounts,
    load_vectors,
    of_notes,
    save_neighbours,
    save_vectors,
    train,
    without_vector,
)

PACKED = frozenset({".gz", ".zst", ".parquet"})
FEWEST = 50  # paper A: not for small data sets
MOST_UNKNOWN = 0.05  # share of unknown words above which a new channel is advised
GIVEN = "given, not trained on these notes"
LEARNED = ("vectors", "neighbours", "channel")


class ChannelProducer(Producer):
    """A kind of release with words drawn from a channel."""

    settings = frozenset[type[Settings]](
        (
            ReleaseChannelSettings,
            PatientFloor,
            VectorSettings,
            IdentifierSwitch,
        )
    )
    learns: ClassVar[tuple[str, ...]] = LEARNED

    def refuse_early(self, settings: ReleaseSettings) -> None:
        """Raise UsageError for a setting of `contextual` with another mechanism, InputError for an
        unreadable word file.
        """
        channel = settings.channel
        default = ReleaseChannelSettings()
        is_changed = (
            channel.context_strength != default.context_strength
            or channel.ngram_patients != default.ngram_patients
        )
        if is_changed and channel.mechanism != "contextual":
            raise UsageError(
                "channel.context_strength and channel.ngram_patients have no effect with"
                f" channel.mechanism={channel.mechanism}",
                hint="pass --set channel.mechanism=contextual, or omit them",
            )
        for file in (settings.channel.keep_words, settings.channel.drop_words):
            if file:
                read_words(file)

    def refuse_notes(
        self, totals: Preflight, settings: ReleaseSettings, corpus: Corpus, *, reused: bool = False
    ) -> None:
        """Raise InputError for a channel of fewer than 50 patients (paper A: not for small data
        sets).
        """
        if totals.patients < FEWEST and not settings.channel.allow_small and not reused:
            raise InputError(
                f"{totals.patients} patients are too few: replacements would identify them",
                hint=(
                    f"use notes of at least {FEWEST} patients, or accept the risk with --set"
                    " channel.allow_small=true"
                ),
            )

    def plan(
        self, totals: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str]]:
        """Yield name and description of the stages of a run."""
        vectors = settings.vectors
        more = words_of_files(vectors.more_text) if vectors.more_text and train else 0
        learnt = vectors.words_of(totals.tokens) + more
        if settings.phi:
            yield "identifiers", f"find identifiers, policy {settings.identifiers.policy().name}"
        yield "vocabulary", "count words and the patients who use them"
        if train:
            yield (
                "vectors",
                f"{vectors.algorithm}, window {vectors.window}, {vectors.dim} dimensions,"
                f" {vectors.passes_over(learnt)} passes over {learnt:,} words",
            )
        yield "neighbours", f"the {settings.channel.n.high} nearest words of each word"
        yield "obfuscate", f"replace every word, N {settings.channel.n}"
        yield "check", "read the release back"
        yield MEASURE

    def make(self, job: ReleaseContext) -> ChannelProduct:
        """Replace identifiers, train vectors, build a channel, draw every word, and read the notes
        back.
        """
        notes = treated(job)
        hashes = job.drawn_from(notes.corpus)
        learned_from = job.held_out.without(notes.corpus)
        counts = counted(job, learned_from)
        vectors = vectors_of(job, learned_from, counts)
        with job.timer.stage("neighbours", "neighbour table and channel"):
            channel = channel_of(job, vectors, counts, learned_from)
            digests = {name: fingerprint(job.folder.vault / name) for name in LEARNED}
        tally, check, path = write_notes(job, notes.corpus, channel)
        rows = Accounting(
            job.totals.read, check.notes, job.totals.skipped + notes.skipped + tally.skipped
        )
        return ChannelProduct(
            job=job,
            path=path,
            columns=job.corpus.columns,
            rows=rows,
            check=check,
            released=opened(path, job.corpus.columns),
            tokens=tally.words,
            types=len(counts),
            patients=job.totals.patients,
            identifiers=notes.identifiers,
            entered=notes.corpus,
            counts=counts,
            name_index=notes.name_index,
            vectors=vectors,
            channel=channel,
            tally=tally,
            digests=digests,
            drawn_from=hashes,
        )


@dataclass(frozen=True, kw_only=True)
class ChannelProduct(SourcedProduct):
    """Notes with words that were drawn from a channel."""

    vectors: Vectors = field(repr=False)
    channel: Channel = field(repr=False)
    tally: TokenTally
    drawn_from: NoteHashes = field(repr=False)
    scans: list[CopyScan] = field(default_factory=list, repr=False)

    @property
    def hashes(self) -> NoteHashes:
        """Hashes of the notes, with those of the treated notes."""
        return self.drawn_from

    def accounted(self) -> list[Gate]:
        """Return the gates that every note and every token is accounted for."""
        return accounting_gates(self.rows, self.check, balanced=self.tally.balanced)

    def context(self) -> Context:
        """Return source and released notes, and the channel."""
        return replace(super().context(), channel=self.channel)

    def findings(self, seen: AttackSample, rng: Generator) -> list[Finding]:
        """Return findings on names with an output of their own, and on copies by a language model;
        with `keep_words`, the inversion without kept words.
        """
        job = self.job
        findings = single_names(seen.context)
        if self.channel.in_context:
            self.scans[:] = self._scan(seen.context, rng)
            findings += [finding for scan in self.scans for finding in scan.findings]
        if job.settings.channel.keep_words:
            base, _ = build_channel(
                self.vectors,
                job.settings.channel.but(keep_words=None, allow_small=True),
                threads=job.settings.workers,
                counts=seen.context.counts,
            )
            changed = replace(seen.context, channel=base, known=None, entered=None)
            findings += [
                replace(f, measure=f"{f.measure}_none_kept") for f in Inversion()(changed, rng)
            ]
        return findings

    def _scan(self, context: Context, rng: Generator) -> Iterator[CopyScan]:
        """Yield what the release copies of patients that the language model has read, and of
        others; nothing without test patients.
        """
        assert context.released is not None and context.entered is not None
        held_out = self.job.held_out
        training = held_out.without(context.entered)
        others = PatientSubset(context.entered, held_out.patients, inside=True)
        with suppress(InputError):  # a side without words
            yield scan_copies(context.released, training, others, rng)

    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """Return the gates on the output check, copies, and own identifiers."""
        by_chance = self.job.settings.channel.uses_model and self.channel.policy.background > 0
        gates = output_gates(self.check, self.tally, may_repeat=by_chance)
        for scan in self.scans:
            gates += model_gates(scan, self.job.settings.channel.ngram_patients)
        digits = self.job.settings.channel.numbers != "drop"
        return [*gates, *patient_gates(findings, digits=digits)]

    def accounting(self) -> tuple[TokenRow, ...]:
        """Return source tokens by class and outcome; white space is not counted."""
        tally = self.tally
        return (
            TokenRow(
                "words",
                tally.words,
                replaced=tally.replaced,
                dropped=tally.dropped,
                kept=tally.kept_words,
                unknown=tally.unknown,
                self_replaced=tally.self_replaced,
            ),
            TokenRow(
                "numbers", tally.numbers, masked=tally.masked, dropped=tally.numbers - tally.masked
            ),
            TokenRow(
                "punctuation", tally.punct, kept=tally.copied, dropped=tally.punct - tally.copied
            ),
            TokenRow("other", tally.other, dropped=tally.other),
        )

    @property
    def origin(self) -> str:
        """Origin of the word vectors."""
        how = self.job.settings.vectors
        if self.job.reused is not None:
            return self.job.reused.origin
        if self.job.imported is not None:
            return GIVEN
        more = " and more text" if how.more_text else ""
        return f"trained on these notes{more}"

    def facts(self) -> Iterator[Fact]:
        """Yield facts on outputs, vectors and kept words."""
        yield Fact("different words that can be released", int(self.channel.written.sum()))
        yield Fact("words of too few patients, never released", int((~self.channel.eligible).sum()))
        yield Fact("words without a vector", without_vector(self.vectors, self.counts)[0])
        yield Fact("word vectors", self.origin)
        if self.job.reused is not None:
            yield Fact("words that the reused channel does not know", self.tally.unknown)
        if self.job.settings.channel.keep_words:
            yield Fact("words left unchanged", len(self.channel.kept))

    def manifest_entries(self) -> dict[str, Any]:
        """Return token counts and the origin of the vectors."""
        meta = self.vectors.meta if self.job.imported is None else {}
        share = (
            {} if meta.get("patients_share") is None else {"patients_share": meta["patients_share"]}
        )
        vectors = {"from": self.origin, "passes": meta.get("epochs"), **share}
        return {"tokens": self.tally.as_dict(), "vectors": vectors}

    @property
    def about(self) -> str:
        """What the notes are where words are drawn in context."""
        if not self.job.settings.channel.uses_model:
            return ""
        return (
            "Running text in which a similar word, or a word that often follows the words written"
            " before, replaces every word; both are drawn under a secret key."
        )

    def warnings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield warnings on shared vectors, repeated draws and kept words."""
        settings = self.job.settings
        yield from self._vector_warnings()
        unknown = self.tally.unknown / max(1, self.tally.words)
        if self.job.reused is not None and unknown > MOST_UNKNOWN:
            yield (
                f"The reused channel does not know {unknown:.0%} of the words: release all notes"
                " under a new key to train a new one (--again)."
            )
        if not settings.phi:
            yield "Identifier replacement was switched off: names are part of the vocabulary."
        yield "Each occurrence of a word has a draw of its own: repeated words disclose more."
        if settings.channel.keep_words:
            yield (
                f"{self.tally.kept_words:,} words were left unchanged on request; they are not"
                " protected."
            )

    def _vector_warnings(self) -> Iterator[str]:
        """Yield warnings on vectors that others can have or approximate."""
        how = self.job.settings.vectors
        if GIVEN in self.origin:
            yield (
                "The word vectors were given, so others may have the same file. For them, read the"
                " figures of attackers with the vault's vectors."
            )
        if how.more_text:
            yield (
                "The vectors were also trained on other text. An attacker with that text can train"
                " more similar vectors."
            )

    def sampled(self, seen: Context, rng: Generator) -> list[AlignedNote]:
        """Return sampled source notes aligned with their released versions."""
        sample = sources(
            seen.original or self.job.corpus,
            rng,
            self.job.deidentifier(self.name_index),
            label=self.channel.context.label if self.channel.context else "",
        )
        return aligned(sample, WordObfuscator(self.channel, self.job.key))


def words_of_files(text: Path) -> int:
    """Return about how many words a file or folder has; compressed files count three times."""
    files = [file for file in text.rglob("*") if file.is_file()] if text.is_dir() else [text]
    sizes = (file.stat().st_size * (3 if file.suffix.lower() in PACKED else 1) for file in files)
    return round(sum(sizes) / CHARACTERS_PER_WORD)


def vectors_of(job: ReleaseContext, entered: Corpus, counts: WordCounts) -> Vectors:
    """Train word vectors, or return given ones or those of an interrupted run.

    Of given vectors, the rows of the notes' words are stored in the vault with the notes' counts.
    """
    folder = job.folder.vault / "vectors"
    learning = job.settings.vectors.said_of(counts.n_tokens)
    learning = "use the given ones" if job.imported is not None else learning
    learning = "reuse those of the earlier run" if job.reused is not None else learning
    with job.timer.stage("vectors", learning) as row, steps("passes", job.say) as on_epoch:
        if not folder.exists():
            trained = (
                of_notes(job.imported, counts)
                if job.imported is not None
                else train(
                    entered,
                    job.settings.vectors,
                    counts=counts,
                    seed=job.seeds["training"],
                    workers=job.settings.workers,
                    scratch=job.folder.work,
                    executor=job.notes_executor,
                    on_epoch=on_epoch,
                )
            )
            save_vectors(trained, folder)
        vectors = load_vectors(folder)
        if job.imported is None:
            row["determinism"] = str(vectors.meta.get("determinism", "statistical"))
    return vectors


def channel_of(
    job: ReleaseContext, vectors: Vectors, counts: WordCounts, learned_from: Corpus
) -> Channel:
    """Build the channel, or load that of an interrupted run; store it with its neighbour table.

    learned_from: notes for the language model of the mechanism `contextual`.
    """
    tables = job.folder.vault / "neighbours"
    place = job.folder.vault / "channel"
    how = job.settings.channel
    if not (tables.exists() and place.exists()):
        # `refuse_notes` has counted the patients of all notes; the channel is built from fewer.
        channel, table = build_channel(
            vectors, how.but(allow_small=True), threads=job.settings.workers, counts=counts
        )
        if how.uses_model:
            channel = with_context(
                channel,
                learned_from,
                ngram_patients=how.ngram_patients,
                label=next(iter(job.corpus.columns.labels), None),
                workers=job.settings.workers,
                scratch=job.folder.work,
            )
        remove(tables)
        save_neighbours(table, tables)
        remove(place)
        save_channel(channel, place)
    return load_channel(place, how.policy)
