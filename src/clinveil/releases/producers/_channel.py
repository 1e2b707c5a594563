"""Base of `obfuscated` and `coded`: replace every word through a channel built from word vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from numpy.random import Generator

from clinveil.attacks.attack import Context
from clinveil.attacks.channel._inputs import single_names
from clinveil.attacks.channel.inversion import Inversion
from clinveil.attacks.threats import TARGETS, Target
from clinveil.channel.build import build_channel, mechanism_of, read_words
from clinveil.channel.channel import Channel
from clinveil.channel.files import load_channel, save_channel
from clinveil.channel.tally import Tally
from clinveil.core.errors import InputError
from clinveil.core.files import remove
from clinveil.core.finding import Finding
from clinveil.core.progress import steps
from clinveil.core.runfolder import fingerprint
from clinveil.corpus.corpus import Accounting, Corpus
from clinveil.corpus.estimate import estimate
from clinveil.phi.name_index import NameIndex
from clinveil.releases.attack_gates import adversary_gates, patient_gates
from clinveil.releases.context import ReleaseContext
from clinveil.releases.crosswalk import vault_batches
from clinveil.releases.earlier.series import added_facts, added_warnings, unknown_line
from clinveil.releases.gates import accounting_gates, output_gates
from clinveil.releases.measured import Measured
from clinveil.releases.preflight import CHARACTERS_PER_WORD, Preflight
from clinveil.releases.producer import Producer, Product
from clinveil.releases.producers.deidentified import SourcedProduct
from clinveil.releases.record import singled_out
from clinveil.releases.samples import aligned, sources
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.treatment import counted, treated
from clinveil.releases.writing import opened, write_notes
from clinveil.report.record import AlignedNote, Fact, Gate, TokenRow
from clinveil.vectors.algorithm import OnEpoch
from clinveil.vectors.count import WordCounts
from clinveil.vectors.files import load_vectors, save_vectors
from clinveil.vectors.imported import of_notes, without_vector
from clinveil.vectors.neighbours import save_neighbours
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

FEWEST = 50  # paper A: not for small data sets
HEAPS = (44.0, 0.445)  # word types = 44 · words^0.445, fitted on MTSamples
GIVEN = "given, not trained on these notes"
LEARNED = ("vectors", "neighbours", "channel")
LAYOUT = "Layout was kept:", "are the only ones with theirs"


class ChannelProducer(Producer):
    """A kind of release whose words are drawn from a channel."""

    uses = frozenset({"channel", "vectors", "identifiers", "phi", "keep", "label", "order"})
    uses |= {"max_names", "max_linkage", "max_stolen", "max_kept"}
    adds = True
    learns = LEARNED

    def refuse_early(self, settings: ReleaseSettings) -> None:
        """Raise InputError for an unreadable word file."""
        for file in (settings.channel.keep_words, settings.channel.drop_words):
            if file:
                read_words(file)

    def refuse_notes(self, found: Preflight, settings: ReleaseSettings, corpus: Corpus) -> None:
        """Raise InputError for fewer than 50 patients (paper A: not for small data sets)."""
        if found.patients < FEWEST and not settings.channel.allow_small:
            raise InputError(
                f"{found.patients} patients are too few: replacements would identify them",
                hint=f"use notes of at least {FEWEST} patients, or accept the risk with --set allow_small=true",
            )

    def plan(
        self, found: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str, float]]:
        """Yield the stages of a run: name, description, estimated seconds."""
        mechanism = mechanism_of(settings.channel)
        vectors, types = settings.vectors, round(HEAPS[0] * max(found.tokens, 1) ** HEAPS[1])
        more = _words_in(vectors.more_text) if vectors.more_text and train else 0
        learnt = vectors.words_of(found.tokens) + more
        passes = vectors.passes_over(learnt)
        descriptions = {
            "read and count": "count words and the patients who use them",
            "replace PHI": f"find identifiers, policy {settings.identifiers.policy().name}",
            "train vectors": f"{vectors.algorithm}, window {vectors.window}, {vectors.dim} dimensions, {passes} passes"
            f" over {learnt:,} words",
            "find neighbours": f"the {mechanism.reach} nearest of about {types:,} words",
            "replace words": f"every word, {mechanism.description}",
            "check and report": "read the release back, attack it, measure utility",
        }
        stages = estimate(
            found.tokens,
            types,
            workers=settings.workers,
            phi=settings.phi,
            algorithm=vectors.algorithm,
            window=vectors.window,
            epochs=passes,
            dim=vectors.dim,
            train=train,
            more_words=more,
            train_words=vectors.train_words,
            measure_words=settings.measure_words,
        ).stages
        yield from ((name, descriptions[name], seconds) for name, seconds in stages.items() if seconds)

    def make(self, job: ReleaseContext) -> Product:
        """Replace identifiers, train vectors, build a channel, draw every word, and read the notes back."""
        indexes: list[NameIndex] = []
        notes = treated(job, indexes.append)
        counts = counted(job, notes.corpus)
        vectors = _learned(job, notes.corpus, counts)
        with job.timer.stage("neighbours", "neighbour table and channel"):
            channel = channel_of(job, vectors, counts)
            digests = {name: fingerprint(job.folder.vault / name) for name in LEARNED}
        tally, check, path = write_notes(job, notes.corpus, channel)
        if job.added:
            job.say(unknown_line(job.added, tally))
        rows = Accounting(job.found.read, check.notes, job.found.skipped + notes.skipped + tally.skipped)
        return ChannelProduct(
            *(job, path, job.corpus.columns, rows, check, opened(path, job.corpus.columns)),
            *(counts.n_tokens, len(counts), counts.n_patients, notes.found),
            entered=notes.corpus,
            counts=counts,
            name_indexes=tuple(indexes),
            vectors=vectors,
            drawn_from=channel,
            tally=tally,
            digests=digests,
        )


@dataclass(frozen=True, kw_only=True)
class ChannelProduct(SourcedProduct):
    """Notes whose words were drawn from a channel."""

    judged: ClassVar[Collection[Target]] = TARGETS
    vectors: Vectors = field(repr=False)
    drawn_from: Channel = field(repr=False)
    tally: Tally

    @property
    def channel(self) -> Channel:
        """The channel."""
        return self.drawn_from

    def accounted(self) -> list[Gate]:
        """Return the gates that every note and every token is accounted for."""
        return accounting_gates(self.rows, self.check, balanced=self.tally.balanced)

    def context(self) -> Context:
        """Return source and released notes, channel and alignment."""
        vault = self.job.folder.vault
        return replace(super().context(), channel=self.channel, alignment=lambda: vault_batches(vault, "alignment"))

    def findings(self, seen: Measured, rng: Generator) -> list[Finding]:
        """Return the finding on names with an output of their own."""
        return single_names(seen.context)

    def cost_of_keeping(self, context: Context, rng: Generator) -> list[Finding]:
        """Return the inversion figures of the channel without `keep_words`, if words are kept."""
        job = self.job
        if not job.settings.channel.keep_words:
            return []
        more: Any = {"threads": job.settings.workers, "counts": context.counts, "names": job.known_names}
        base, _ = build_channel(self.vectors, job.settings.channel.but(keep_words=None), key=job.key, **more)
        findings = Inversion()(replace(context, channel=base, known=None, entered=None), rng)
        return [replace(finding, measure=f"{finding.measure}_none_kept") for finding in findings]

    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """Return the gates on the output check, own identifiers, recovered words and linked notes."""
        settings = self.job.settings
        numbers, shuffled = settings.channel.numbers != "drop", settings.channel.shuffle == "note"
        return [
            *output_gates(self.check, self.tally, self.channel),
            *patient_gates(findings, digits=numbers, shuffled=shuffled),
            *adversary_gates(findings, settings.max_names, settings.max_linkage, settings.max_stolen),
        ]

    def accounting(self) -> tuple[TokenRow, ...]:
        """Return source tokens by class and outcome."""
        return token_rows(self.tally)

    def facts(self) -> Iterator[Fact]:
        """Yield facts on outputs and vectors."""
        yield Fact("different words that can be released", int(self.channel.written.sum()))
        yield Fact("words of too few patients, never released", int((~self.channel.eligible).sum()))
        yield Fact("words without a vector", without_vector(self.vectors, self.counts)[0])
        yield Fact("word vectors", origin(self.job))

    def more_facts(self) -> Iterator[Fact]:
        """Yield facts on kept words and the release that is added to."""
        kept = sorted(self.channel.kept)
        if self.job.settings.channel.keep_words:
            yield Fact("words left unchanged", len(kept))
            yield Fact("which words", ", ".join(kept), internal=True)
        yield from added_facts(self.job, self.tally)

    def manifest_entries(self) -> dict[str, Any]:
        """Return token counts and the origin of the vectors."""
        meta = self.vectors.meta if self.job.imported is None else {}
        share = {} if meta.get("patients_share") is None else {"patients_share": meta["patients_share"]}
        vectors = {"from": origin(self.job), "passes": meta.get("epochs"), **share}
        return {"tokens": self.tally.as_dict(), "vectors": vectors}

    def warnings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield warnings on shared vectors, the channel, repeated draws and kept words."""
        job, settings = self.job, self.job.settings
        yield from _vector_warnings(job)
        yield from added_warnings(job, self.tally)
        if not settings.phi:
            yield "Identifier replacement was switched off: names are part of the vocabulary."
        yield from self.channel.shortfalls
        yield from self._scope_warnings()
        if settings.channel.layout == "keep":
            yield singled_out(findings, "attack.layout_unique", *LAYOUT)
        if settings.channel.keep_words:
            yield f"{self.tally.kept_words:,} words were left unchanged on request; they are not protected."

    def _scope_warnings(self) -> Iterator[str]:
        """Yield a warning if repeated draws of a word disclose more than one."""
        how = self.job.settings.channel
        if how.scope == "corpus":
            yield "Each word has one replacement in the whole release, a code that word frequencies help to break."
        elif how.scope == "patient":
            yield (
                "Each word has one replacement in all notes of a patient. It links these notes, and shows how often "
                "the word occurs; the figures of a single draw do not use that."
            )
        elif not self.channel.settled and how.scope in ("occurrence", "rare"):
            words = f"Words that occur {how.rare_below} or more times" if how.scope == "rare" else "Words"
            yield f"{words} are replaced independently at each occurrence, so repeated words disclose more."

    def sampled(self, rng: Generator) -> list[AlignedNote]:
        """Return sampled source notes aligned with their released versions."""
        sample = sources(self.job.corpus, rng, self.job.deidentifier(*self.name_indexes))
        return aligned(sample, self.job.obfuscator(self.channel), "Sampled note")


def _words_in(place: Path) -> int:
    """Estimate the words of text files by size; compressed files count three times."""
    files = [file for file in place.rglob("*") if file.is_file()] if place.is_dir() else [place]
    packed = {".gz", ".zst", ".parquet"}
    size = sum(file.stat().st_size * (3 if file.suffix.lower() in packed else 1) for file in files)
    return round(size / CHARACTERS_PER_WORD)


def _learned(job: ReleaseContext, entered: Corpus, counts: WordCounts) -> Vectors:
    learning = job.settings.vectors.said_of(counts.n_tokens) if job.imported is None else "use the given ones"
    learning = "use those of the release that is added to" if job.added else learning
    with job.timer.stage("vectors", learning) as row:
        with steps("passes", job.say) as on_epoch:
            vectors = vectors_of(job, entered, counts, on_epoch)
        if job.imported is None:
            row["determinism"] = str(vectors.meta.get("determinism", "statistical"))
    return vectors


def vectors_of(job: ReleaseContext, entered: Corpus, counts: WordCounts, on_epoch: OnEpoch | None = None) -> Vectors:
    """Train word vectors, or return given ones or those of an interrupted run.

    Of given vectors, the rows of the notes' words are stored in the vault with the notes' counts.
    """
    place = job.folder.vault / "vectors"
    if not place.exists():
        if job.imported is None:
            how: Any = {"seed": job.seeds["training"], "workers": job.settings.workers, "scratch": job.folder.work}
            made = train(entered, job.settings.vectors, counts=counts, on_epoch=on_epoch, **how)
        else:
            made = of_notes(job.imported, counts)
        save_vectors(made, place)
    return load_vectors(place)


def channel_of(job: ReleaseContext, vectors: Vectors, counts: WordCounts) -> Channel:
    """Build the channel, or load that of an interrupted run; store it with its neighbour table."""
    tables, place, how = job.folder.vault / "neighbours", job.folder.vault / "channel", job.settings.channel
    if not (tables.exists() and place.exists()):
        more: Any = {"threads": job.settings.workers, "counts": counts, "names": job.known_names}
        channel, table = build_channel(vectors, how, key=job.key, **more)
        remove(tables)
        save_neighbours(table, tables)
        remove(place)
        save_channel(channel, place)
    return load_channel(place, how.policy)


def token_rows(tally: Tally) -> tuple[TokenRow, ...]:
    """Return the token accounting by class; white space is not counted."""
    return (
        TokenRow(
            "words",
            tally.words,
            replaced=tally.replaced,
            dropped=tally.dropped,
            kept=tally.kept_words,
            unknown=tally.unknown,
            self_replaced=tally.self_replaced,
            doubled=tally.doubled,
        ),
        TokenRow("numbers", tally.numbers, masked=tally.masked, dropped=tally.numbers - tally.masked),
        TokenRow("punctuation", tally.punct, kept=tally.copied, dropped=tally.punct - tally.copied),
        TokenRow("other", tally.other, dropped=tally.other),
    )


def origin(job: ReleaseContext) -> str:
    """Return the origin of the word vectors as text."""
    how = job.settings.vectors
    if job.added is not None:
        return job.added.base.origin
    if job.imported is not None:
        return GIVEN
    more = " and more text" if how.more_text else ""
    return f"trained on these notes{more}" + (", from vectors given" if how.start_vectors else "")


def _vector_warnings(job: ReleaseContext) -> Iterator[str]:
    if GIVEN in origin(job):
        yield (
            "The word vectors were given, so others may have the same file. For them, read the figures of attackers "
            "with the vault's vectors."
        )
    elif job.settings.vectors.start_vectors:
        yield (
            "Training started from given vectors. An attacker with that file comes closer to its vectors "
            "than the figures for shadow vectors assume."
        )
    if job.settings.vectors.more_text:
        yield "The vectors were also trained on other text. An attacker with that text can train more similar vectors."
