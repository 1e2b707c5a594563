"""What `obfuscated` and `coded` share: every word goes through a channel learned from word vectors of the notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.random import Generator

from clinveil.attacks.attack import Context
from clinveil.attacks.channel.channel_figures import single_names
from clinveil.attacks.channel.inversion import Inversion
from clinveil.channel.apply import obfuscate_batches
from clinveil.channel.build import build_channel, mechanism_of, read_words
from clinveil.channel.channel import Channel
from clinveil.channel.files import load_channel, save_channel
from clinveil.channel.tally import Tally
from clinveil.core.errors import InputError
from clinveil.core.files import remove
from clinveil.core.finding import Finding
from clinveil.core.progress import shown, steps, track
from clinveil.core.runfolder import fingerprint
from clinveil.corpus.corpus import Accounting, Corpus
from clinveil.corpus.estimate import estimate
from clinveil.phi.name_index import NameIndex
from clinveil.releases.added import added_facts, added_warnings, unknown_line
from clinveil.releases.attack_gates import adversary_gates
from clinveil.releases.check import OutputCheck, check_output
from clinveil.releases.crosswalk import ledger_batches
from clinveil.releases.gates import accounting_gates, output_gates, patient_gates
from clinveil.releases.measured import Measured, measured
from clinveil.releases.parts import draw_parts, opened
from clinveil.releases.producer import Producer, Product
from clinveil.releases.protect import counted, protected
from clinveil.releases.record import singled_out
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.side_by_side import aligned, sources
from clinveil.releases.stages import (
    CHARACTERS_PER_WORD,
    HEAPS,
    SMALL,
    Making,
    Preflight,
    ReleaseContext,
    Target,
    released_in_order,
)
from clinveil.report.record import AlignedNote, Fact, Gate, TokenRow
from clinveil.scale.executor import opened_for
from clinveil.vectors.algorithm import OnEpoch
from clinveil.vectors.count import WordCounts
from clinveil.vectors.files import load_vectors, save_vectors
from clinveil.vectors.imported import of_notes, without_vector
from clinveil.vectors.neighbours import save_neighbours
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

GIVEN = "given, not trained on these notes"
LEARNED = ("vectors", "neighbours", "channel")
LAYOUT = "Layout was kept:", "are the only ones with theirs"


class ChannelProducer(Producer):
    """A release whose words are drawn from a channel."""

    uses = frozenset({"channel", "vectors", "identifiers", "phi", "keep", "label", "order"})
    uses |= {"max_names", "max_linkage", "max_stolen"}
    adds = True
    learns = LEARNED

    def refuse_early(self, settings: ReleaseSettings) -> None:
        """Raise InputError for a file of words that cannot be read."""
        for file in (settings.channel.keep_words, settings.channel.drop_words):
            if file:
                read_words(file)

    def refuse_notes(self, found: Preflight, settings: ReleaseSettings) -> None:
        """Refuse notes of fewer than 50 patients (paper A: not for small data sets). Raises InputError."""
        if found.patients < SMALL and not settings.channel.allow_small:
            raise InputError(
                f"{found.patients} patients are too few: with so few, a replacement says whose note it is",
                hint=f"bring at least {SMALL}, or take the risk with --allow-small",
            )

    def plan(
        self, found: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str, float]]:
        """The stages of a run: name, what is done, estimated seconds."""
        mechanism = mechanism_of(settings.channel)
        vectors, types = settings.vectors, round(HEAPS[0] * max(found.tokens, 1) ** HEAPS[1])
        more = _words_in(vectors.more_text) if vectors.more_text and train else 0
        learnt = vectors.words_of(found.tokens) + more
        passes = vectors.passes_over(learnt)
        said = {
            "read and count": "count words and the patients who use them",
            "replace PHI": f"find PHI, and treat it by {settings.identifiers.policy().name}",
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
        yield from ((name, said[name], seconds) for name, seconds in stages.items() if seconds)

    def make(self, making: Making) -> Product:
        """Replace identifiers, learn vectors and a channel, draw every word, and read the notes back."""
        job, found, clock = making.job, making.found, making.clock
        heard: list[NameIndex] = []
        entered, identifiers, left_out = protected(making, heard.append)
        with clock.stage("vocabulary", "words and the patients who use them"):
            counts = counted(job, found, entered)
        learning = job.settings.vectors.said_of(counts.n_tokens) if job.imported is None else "take those given"
        learning = "take those of the release that is added to" if job.added else learning
        with clock.stage("vectors", learning) as row:
            with steps("passes", clock.say) as on_epoch:
                vectors = vectors_of(job, entered, counts, making.seeds["training"], on_epoch)
            if job.imported is None:
                row["determinism"] = str(vectors.meta.get("determinism", "statistical"))
        with clock.stage("neighbours", "neighbour table and channel"):
            channel = channel_of(job, vectors, counts)
            digests = {name: fingerprint(job.folder.vault / name) for name in LEARNED}
        tally, check, path = _written(making, entered, channel)
        rows = Accounting(found.read, check.notes, found.skipped + left_out + tally.skipped)
        released = opened(path, job.corpus.columns)
        sizes = counts.n_tokens, len(counts), counts.n_patients
        shared = job, path, job.corpus.columns, rows, check, released, *sizes, identifiers
        return ChannelProduct(
            *shared,
            making=making,
            entered=entered,
            counts=counts,
            vectors=vectors,
            drawn_from=channel,
            tally=tally,
            heard=tuple(heard),
            digests=digests,
        )


@dataclass(frozen=True, kw_only=True)
class ChannelProduct(Product):
    """Notes whose words were drawn from a channel.

    Attributes:
        entered: the notes as they entered the channel. heard: what their names were found by.
    """

    making: Making
    entered: Corpus = field(repr=False)
    counts: WordCounts = field(repr=False)
    vectors: Vectors = field(repr=False)
    drawn_from: Channel = field(repr=False)
    tally: Tally
    heard: tuple[NameIndex, ...] = field(repr=False)

    @property
    def channel(self) -> Channel:
        """The mechanism."""
        return self.drawn_from

    def accounted(self) -> list[Gate]:
        """The gates that every note, and every token, is accounted for."""
        return accounting_gates(self.rows, self.check, balanced=self.tally.balanced)

    def context(self) -> Context:
        """Both sides of the release, and what made it."""
        vault = self.job.folder.vault
        return Context(
            channel=self.channel,
            counts=self.counts,
            original=self.job.corpus,
            released=self.released,
            entered=self.entered,
            alignment=lambda: ledger_batches(vault, "alignment"),
            known=self.job.known,
            keep=self.released.columns.keep,
            scratch=self.job.folder.work,
            workers=self.job.settings.workers,
        )

    def findings(self, seen: Measured, rng: Generator) -> list[Finding]:
        """Names with an output of their own."""
        return single_names(seen.context)

    def cost_of_keeping(self, context: Context, rng: Generator) -> list[Finding]:
        """With `--keep-words`, the inversion figures of the same channel with none kept."""
        job = self.job
        if not job.settings.channel.keep_words:
            return []
        more: Any = {"threads": job.settings.workers, "counts": context.counts, "names": job.names}
        base, _ = build_channel(self.vectors, job.settings.channel.but(keep_words=None), key=job.key, **more)
        findings = Inversion()(replace(context, channel=base, known=None, entered=None), rng)
        return [replace(finding, measure=f"{finding.measure}_none_kept") for finding in findings]

    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """What reading back shows, own identifiers, words read back, notes linked."""
        settings = self.job.settings
        numbers, shuffled = settings.channel.numbers != "drop", settings.channel.shuffle == "note"
        return [
            *output_gates(self.check, self.tally, self.channel),
            *patient_gates(findings, digits=numbers, shuffled=shuffled),
            *adversary_gates(findings, settings.max_names, settings.max_linkage, settings.max_stolen),
        ]

    def accounting(self) -> tuple[TokenRow, ...]:
        """What became of the tokens of the source, by class."""
        return token_rows(self.tally)

    def facts(self) -> Iterator[Fact]:
        """Words that may come out, vectors, kept words."""
        yield Fact("different words that may come out", int(self.channel.written.sum()))
        yield Fact("words seen in too few patients to come out", int((~self.channel.eligible).sum()))
        yield Fact("words without a vector", without_vector(self.vectors, self.counts)[0])
        yield Fact("word vectors", origin(self.job))

    def more_facts(self) -> Iterator[Fact]:
        """Kept words, and what the release adds to."""
        kept = sorted(self.channel.kept)
        if self.job.settings.channel.keep_words:
            yield Fact("words kept as they are", len(kept))
            yield Fact("which words", ", ".join(kept), internal=True)
        if self.job.added:
            yield from added_facts(self.job.added, self.tally, self.making.on_both)

    def told(self) -> dict[str, Any]:
        """Tokens, and where the vectors come from."""
        meta = self.vectors.meta if self.job.imported is None else {}
        share = {} if meta.get("patients_share") is None else {"patients_share": meta["patients_share"]}
        vectors = {"from": origin(self.job), "passes": meta.get("epochs"), **share}
        return {"tokens": self.tally.as_dict(), "vectors": vectors}

    def warnings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Vectors that others have, shortfalls of the channel, repeated draws, kept words."""
        job, settings = self.job, self.job.settings
        yield from _vector_warnings(job)
        yield from added_warnings(job.added, self.tally, self.making.on_both) if job.added else ()
        if not settings.phi:
            yield "PHI replacement was switched off: names entered the vocabulary."
        yield from self.channel.shortfalls
        yield from self._scope_warnings()
        if settings.channel.layout == "keep":
            yield singled_out(findings, "attack.layout_unique", *LAYOUT)
        if settings.channel.keep_words:
            yield f"{self.tally.kept_words:,} words were left as they are on request; they are not protected."

    def _scope_warnings(self) -> Iterator[str]:
        """What repeats disclose; nothing where one draw tells as much as many."""
        how = self.job.settings.channel
        if how.scope == "corpus":
            yield "Each word has one replacement in the whole release: a code, that word frequencies help to break."
        elif not self.channel.settled and how.scope in ("occurrence", "rare"):
            often = f" that occur {how.rare_below} times or more" if how.scope == "rare" else ""
            yield f"Draws of words{often} are fresh for each occurrence: repeats add up (figures for several draws)."

    def measured(self, whole: Context) -> Measured:
        """All notes, or patients drawn by the key."""
        job = self.job
        how = job.settings.measure_words, job.key.subkey("measured patients"), job.folder.work / "measured"
        return measured(whole, partial(ledger_batches, job.folder.vault, "crosswalk"), *how)

    def sampled(self, rng: Generator) -> list[AlignedNote]:
        """Sampled notes of the source next to their released ones."""
        sample = sources(self.job.corpus, rng, self.job.deidentifier(*self.heard))
        return aligned(sample, self.job.obfuscator(self.channel), "Sampled note")


def _words_in(place: Path) -> int:
    """Roughly, the words of text files by their size; packed ones are taken to be three times as long."""
    files = [file for file in place.rglob("*") if file.is_file()] if place.is_dir() else [place]
    packed = {".gz", ".zst", ".parquet"}
    size = sum(file.stat().st_size * (3 if file.suffix.lower() in packed else 1) for file in files)
    return round(size / CHARACTERS_PER_WORD)


def vectors_of(
    job: ReleaseContext, protected: Corpus, counts: WordCounts, seed: int, on_epoch: OnEpoch | None = None
) -> Vectors:
    """Train word vectors, or take those that are given or that an interrupted run of the same settings left.

    Of given ones the rows of the notes' words, with the notes' counts, go to the vault.
    """
    place = job.folder.vault / "vectors"
    if not place.exists():
        how, scratch = job.settings, job.folder.work
        if job.imported is None:
            more: Any = {"seed": seed, "workers": how.workers, "scratch": scratch, "on_epoch": on_epoch}
            made = train(protected, how.vectors, counts=counts, **more)
        else:
            made = of_notes(job.imported, counts)
        save_vectors(made, place)
    return load_vectors(place)


def channel_of(job: ReleaseContext, vectors: Vectors, counts: WordCounts) -> Channel:
    """The channel; it and the neighbour table that it was made from are kept for a resumed run."""
    tables, place, how = job.folder.vault / "neighbours", job.folder.vault / "channel", job.settings.channel
    if not (tables.exists() and place.exists()):
        more: Any = {"threads": job.settings.workers, "counts": counts, "names": job.names}
        channel, table = build_channel(vectors, how, key=job.key, **more)
        remove(tables)
        save_neighbours(table, tables)
        remove(place)
        save_channel(channel, place)
    return load_channel(place, how.policy)


def write_notes(job: ReleaseContext, protected: Corpus, channel: Channel) -> tuple[Tally, Path]:
    """Obfuscate every note and write it under new ids, with crosswalk and alignment beside it in the vault."""
    path = job.folder.staging / f"notes{job.corpus.suffix}"
    target = Target.of(job, path)
    with opened_for(job.settings, threaded=True) as over:
        results = obfuscate_batches(protected.batches(), job.obfuscator(channel), over)
        return target.write(track(results, "notes", job.say, size=lambda one: one.batch.num_rows), job.key), path


def _written(making: Making, entered: Corpus, channel: Channel) -> tuple[Tally, OutputCheck, Path]:
    """Write the release, in staging, and read it back: of part files each where it is written."""
    job, found, clock = making.job, making.found, making.clock
    what = f"replace every word, {mechanism_of(job.settings.channel).description}"
    if job.facts:
        with clock.stage("obfuscate", f"{what}; read each part back", "keyed"):
            return draw_parts(job, entered, channel)
    with clock.stage("obfuscate", what, "keyed"):
        tally, path = write_notes(job, entered, channel)
    if job.added:
        clock.say(unknown_line(job.added, tally))
    with clock.stage("check", "read the release back"):
        over = shown(found.over(job.settings.workers), "notes read back", clock.say, found.rows, lambda one: one.notes)
        released = released_in_order(job, path, opened(path, job.corpus.columns))
        walk, places = (ledger_batches(job.folder.vault, name) for name in ("crosswalk", "alignment"))
        return tally, check_output(entered.batches(), walk, released, channel, places, over), path


def token_rows(tally: Tally) -> tuple[TokenRow, ...]:
    """The token accounting, by class; the denominator is everything but white space."""
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
    """Where the word vectors come from, in words."""
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
            "The word vectors were given: whoever else has their file has them. Figures of attackers without the "
            "vectors say nothing of such people; read those of attackers who have them."
        )
    elif job.settings.vectors.start_vectors:
        yield (
            "The vectors were trained on from given ones: an attacker with that file begins where this release began, "
            "and comes closer to its vectors than those who train their own, whom the figures are of."
        )
    if job.settings.vectors.more_text:
        yield "Vectors were trained on more text than the notes: an attacker who has it can train closer ones."
