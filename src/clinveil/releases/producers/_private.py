"""Synthetic notes with patient-level differential privacy (`synthetic.epsilon`).

One noisy table of label and word cells is released; everything after it uses the table and public
text only. Identifiers are not replaced first, because names found in one patient's notes would
change those of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np

from clinveil.attacks import Context, membership_of_release
from clinveil.core import Finding, InputError, Ints, UsageError, remove, words
from clinveil.corpus import PATIENT_ID, Accounting, Corpus, open_text, rows, write_corpus
from clinveil.lm import (
    GRID,
    Audit,
    BagWriter,
    LabelledNote,
    Layout,
    NoisyTable,
    PlainNotes,
    PrivatePlan,
    PublicText,
    SteeredWriter,
    SyntheticNote,
    audited_table,
    mixed,
    noisy,
    notes_per_label,
    read_notes,
    refuse_parameters,
    refuse_private_text,
    summed,
    word_shares,
)
from clinveil.releases.check import OutputCheck
from clinveil.releases.context import ReleaseContext
from clinveil.releases.earlier.spending import Spending, spend
from clinveil.releases.gates import Examined, audit_gate, examine, sound
from clinveil.releases.measured import AttackSample
from clinveil.releases.prepared_input import Preflight
from clinveil.releases.producer import MEASURE, Product
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.synthesis_model import STATE, TrainHoldoutSplit, sides_of
from clinveil.releases.synthesis_rows import LabelColumns
from clinveil.releases.writing import opened
from clinveil.report import Fact, Gate

LONGEST = 400  # pieces of a note, unless synthetic.longest is given


def refuse_private(settings: ReleaseSettings) -> bool:
    """Return whether a private release is asked for. Raises UsageError or InputError for unsuitable
    settings.
    """
    how = settings.synthetic
    if how.epsilon is None:
        if how.public is not None or how.delta is not None:
            raise UsageError(
                "synthetic.public and synthetic.delta apply with synthetic.epsilon only"
            )
        return False
    channel = settings.channel
    if channel.min_patients != "auto":
        message = (
            "channel.min_patients does not apply with synthetic.epsilon: words are public, and"
            " labels are not protected"
        )
        raise UsageError(message, hint="omit it")
    refuse_parameters(how.epsilon, 0.5 if how.delta is None else how.delta)
    if settings.lm.neural:
        raise UsageError(
            f"synthetic.epsilon does not apply with lm.model {settings.lm.model}",
            hint="use lm.model ngram or unigram",
        )
    if not settings.label:
        raise UsageError(
            "synthetic.epsilon requires --label", hint="pass the column that the notes depend on"
        )
    if how.public is None:
        raise UsageError(
            "synthetic.epsilon requires synthetic.public", hint="pass a file of public text"
        )
    open_text(how.public)
    return True


def private_stages() -> Iterator[tuple[str, str]]:
    """Yield name and description of the stages of a run."""
    yield "private table", "count words by label, add noise"
    yield "write", "draw notes"
    yield "copies", "search for copies of private notes"
    yield MEASURE


@dataclass(frozen=True)
class PrivateRelease:
    """The spending, entries for the manifest, the notes, their number, and the audit."""

    spending: Spending
    about: dict[str, Any]
    notes: Iterator[SyntheticNote] = field(repr=False)
    count: int
    audit: Audit


@dataclass(frozen=True)
class PrivateInput:
    """Validated input: label columns, public text, training and held-out notes, and the plan of the
    noise.
    """

    labels: LabelColumns = field(repr=False)
    public: PublicText = field(repr=False)
    notes: PlainNotes = field(repr=False)
    plan: PrivatePlan

    @classmethod
    def read(cls, corpus: Corpus, totals: Preflight, settings: ReleaseSettings) -> PrivateInput:
        """Read notes and public text. Raises InputError for everything that makes a private release
        impossible.
        """
        how = settings.synthetic
        assert how.epsilon is not None and how.public is not None
        if corpus.columns.patient_id is None:  # the guarantee is per patient
            raise InputError("synthetic.epsilon needs patient ids", hint="pass --patient COLUMN")
        if missing := sum(batch.column(PATIENT_ID).null_count for batch in corpus.batches()):
            raise InputError(
                f"{missing:,} notes have no patient id",
                hint="synthetic.epsilon needs one for every note",
            )
        labels = LabelColumns.read(corpus, 1)
        plan = PrivatePlan.of(totals.patients, len(labels.labels), how.epsilon, how.delta)
        plan.refuse_hopeless()
        public = PublicText.of(note.text for note in rows(open_text(how.public)))
        some = [row for row in rows(corpus) if row.text.strip()]
        texts = tuple(row.text for row in some)
        patients = tuple(row.patient_id for row in some)
        refuse_private_text(public, texts, patients)
        numbers = tuple(labels.of_note[row.note_id] for row in some)
        return cls(
            labels,
            public,
            PlainNotes(texts, tuple(row.note_id for row in some), patients, numbers),
            plan,
        )

    @property
    def layout(self) -> Layout:
        """The cells of the table."""
        return Layout(len(self.labels.labels), len(self.public.ids))

    def released(self, job: ReleaseContext, training: PlainNotes) -> PrivateRelease:
        """Enter the spending in the ledger, then release a noisy table and draw notes from it."""
        rows = zip(training.patients, training.labels, training.texts, strict=True)
        notes = (LabelledNote(patient, label, text) for patient, label, text in rows)
        cells = summed(notes, self.public, self.layout)
        sigma = self.plan.sigma
        question = sha256(repr((self.layout, sigma)).encode() + cells.tobytes()).hexdigest()
        spending = spend(job, sigma, self.plan.delta, question)
        table = noisy(cells, self.layout, sigma, job.key, question)
        named = zip(self.labels.labels, table.patients.tolist(), strict=True)
        about: dict[str, Any] = {
            "noise": sigma,
            "grid": GRID,
            "noisy_patients": [
                {"labels": list(labels), "patients": round(n, 3)} for labels, n in named
            ],
        }
        counts = notes_per_label(table, job.settings.synthetic.count)
        audit = audited_table(self.public, self.layout, sigma, self.plan.delta, job.key)
        return PrivateRelease(
            spending=spending,
            about=about,
            notes=_written(job, self, table, counts),
            count=int(counts.sum()),
            audit=audit,
        )


def make_private(job: ReleaseContext) -> Product:
    """Release the noisy table, write notes from it, and read them back."""
    timer = job.timer
    ready = PrivateInput.read(job.corpus, job.totals, job.settings)
    job.say(ready.plan.description)
    sides = sides_of(ready.notes, job.held_out)
    with timer.stage("private table", f"epsilon {ready.plan.epsilon:g}", "keyed"):
        made = ready.released(job, sides.training)
    columns = job.corpus.columns
    path = job.folder.staging / f"notes{job.corpus.suffix}"
    with timer.stage("write", "draw notes", "keyed"):
        write_corpus(ready.labels.batches(made.notes), path, columns, job.corpus.suffix)
    remove(job.folder.vault / STATE)
    released = opened(path, columns)
    written = read_notes(released)
    texts = [row.text for row in rows(released)]
    outputs = Counter(word for text in texts for word in words(text))
    with timer.stage("copies", "search for copies of private notes"):
        medtext = _as_medtext(sides)
        examined = _examined(job, written, made.count, medtext)
    gates = [
        *examined.gates,
        sound("public_words", _not_public(ready, outputs)),
        audit_gate(made.audit, ready.plan.epsilon),
    ]
    return PrivateProduct(
        job=job,
        path=path,
        columns=columns,
        rows=Accounting(len(texts), len(texts)),
        check=OutputCheck.of({"notes": len(texts), "words": outputs.total()}, outputs),
        released=released,
        tokens=outputs.total(),
        types=len(outputs),
        patients=len(set(written.patients)),
        ready=ready,
        sides=medtext,
        release=made,
        examined=Examined(gates, examined.findings),
    )


def _as_medtext(sides: TrainHoldoutSplit) -> TrainHoldoutSplit:
    """Return the real notes in the form of the written ones."""
    return TrainHoldoutSplit(
        training=read_notes(sides.training.as_corpus()),
        held_out=read_notes(sides.held_out.as_corpus()),
    )


def _examined(
    job: ReleaseContext, written: PlainNotes, expected: int, sides: TrainHoldoutSplit
) -> Examined:
    """Return gates and findings on the written notes: copies, and names of known patients."""
    return examine(
        written,
        expected,
        sides,
        None,
        np.random.default_rng(job.seeds["training"]),
        span=job.settings.synthetic.span,
        feed=job.settings.identifiers.patients,
    )


def _not_public(ready: PrivateInput, outputs: Counter[str]) -> int:
    """Return how many written words do not occur in the public text or in labels."""
    texts = (*ready.public.texts, *ready.labels.prefixes)
    known = {word for text in texts for word in words(text)}
    return sum(n for word, n in outputs.items() if word not in known)


def _written(
    job: ReleaseContext, ready: PrivateInput, table: NoisyTable, counts: Ints
) -> Iterator[SyntheticNote]:
    """Yield notes, label after label in turn; each is a patient of its own."""
    probabilities = mixed(word_shares(table), ready.public.frequencies)
    how = job.settings.synthetic
    model = job.settings.lm.model
    writer = (BagWriter if model == "unigram" else SteeredWriter)(ready.public, probabilities)
    longest = how.longest if "longest" in how.model_fields_set else LONGEST
    turns = sorted((turn, label) for label, n in enumerate(counts.tolist()) for turn in range(n))
    for number, (_, label) in enumerate(turns):
        stream = job.key.stream("private note", str(number))
        text = ""
        while not words(text):
            text = writer.write(label, stream, longest)
        yield SyntheticNote(number, 0, ready.labels.named(label), text)


@dataclass(frozen=True, kw_only=True)
class WrittenProduct(Product):
    """Notes that no source note became.

    Attributes:
        sides: real notes, by side. examined: all gates and findings of this kind.
    """

    sides: TrainHoldoutSplit = field(repr=False)
    examined: Examined = field(repr=False)

    def context(self) -> Context:
        """Return the written notes, and the real notes by side."""
        return Context(
            released=self.released,
            training=self.sides.training.as_corpus(),
            held_out=self.sides.held_out.as_corpus(),
            scratch=self.job.folder.work,
            workers=self.job.settings.workers,
            executor=self.job.notes_executor,
        )

    def sample_case(self, whole: Context) -> AttackSample:
        """Return all notes."""
        return AttackSample(whole, whole)

    def for_utility(self, seen: Context) -> Context:
        """Return written and real notes, without a crosswalk."""
        job = self.job
        split = job.held_out
        return replace(
            seen,
            original=job.corpus,
            entered=job.corpus,
            test_patients=split.patients,
            unread=split.unread,
        )

    def findings(self, seen: AttackSample, rng: np.random.Generator) -> list[Finding]:
        """Return the findings on copies, known names, membership, and the model if there is one."""
        membership = membership_of_release(
            read_notes(self.released, layout=True),
            self.sides.training,
            self.sides.held_out,
            rng,
            model=seen.context.model,
        )
        return [*self.examined.findings, *membership]

    def gates(self, findings: Sequence[Finding]) -> list[Gate]:
        """Return the gates on the words, copies and known names, and on the mechanism or the
        model.
        """
        return self.examined.gates

    def accounted(self) -> list[Gate]:
        """Return nothing: `synthetic_accounted` is among the gates of this kind."""
        return []


@dataclass(frozen=True, kw_only=True)
class PrivateProduct(WrittenProduct):
    """Notes drawn from a noisy table and public text."""

    ready: PrivateInput = field(repr=False)
    release: PrivateRelease = field(repr=False)

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence."""
        plan = self.ready.plan
        return (
            "The file of notes, and nothing else in this folder, was computed with differential"
            f" privacy (epsilon {plan.epsilon:g}, delta {plan.delta:.2g}) for adding or removing"
            " all notes of one patient, given the public text, the set of labels and the number of"
            " patients."
        )

    @property
    def about(self) -> str:
        """What the notes are, with the guarantee."""
        return f"Notes drawn from a noisy table of words and from public text. {self.guarantee}"

    def facts(self) -> Iterator[Fact]:
        """Yield the guarantee and its parameters."""
        plan = self.ready.plan
        spending = self.release.spending
        yield Fact("guarantee", self.guarantee)
        yield Fact("epsilon, delta", f"{plan.epsilon:g}, {plan.delta:.3g}")
        yield Fact("noise per cell, for one patient's norm of 1", round(plan.sigma, 4))
        together = f"{spending.epsilon:.4g} for the same delta, {len(spending.releases)} in all"
        yield Fact("epsilon of all private releases of these notes in the ledger", together)
        yield Fact("words of the public vocabulary", len(self.ready.public.ids))
        yield Fact("training notes", len(self.sides.training), "notes")
        yield Fact("notes of test patients", len(self.sides.held_out), "notes")

    def manifest_entries(self) -> dict[str, Any]:
        """Return the guarantee, its parameters, and the noisy numbers of patients per label."""
        plan = self.ready.plan
        spending = self.release.spending
        privacy = {
            "guarantee": self.guarantee,
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "unit": "patient",
            "neighbours": "add or remove one patient",
            "epsilon_of_all": spending.epsilon,
            "releases": len(spending.releases),
            **self.release.about,
        }
        return {"privacy": privacy, "public_seeds": list(self.public_seeds())}

    def warnings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield what the guarantee means and does not mean."""
        yield self.guarantee
        yield (
            "Gates, findings and counts of this report were computed from the notes without noise."
        )
        yield (
            "The public text is not protected. A name or a fact that it contains can occur in the"
            " notes."
        )
        yield (
            "Identifiers were not replaced before counting: only words of the public text can occur"
            " in the notes."
        )
        if self.job.key.test_seed is not None:
            yield "The noise has a public seed, so there is no guarantee."
        if len(self.release.spending.releases) > 1:
            yield (
                "Together, the private releases of these notes have epsilon"
                f" {self.release.spending.epsilon:.3g}."
            )
        yield "The notes describe no real person. Do not compute figures about patients from them."
