"""Kind `synthetic`: notes written by a language model that was trained on the notes (paper C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clinveil.attacks import Context, remembered
from clinveil.core import (
    Finding,
    InputError,
    Key,
    UsageError,
    device_named,
    fingerprint,
    need_torch,
    remove,
    words,
)
from clinveil.corpus import Accounting, Corpus, read_patients, write_corpus
from clinveil.lm import (
    PRETRAINED,
    SMOLLM2,
    LabelSequences,
    PlainNotes,
    PublicModel,
    SamplingConfig,
    Steering,
    batch_size_for,
    encode,
    files_of,
    fit_of,
    read_notes,
)
from clinveil.releases.check import OutputCheck
from clinveil.releases.context import ReleaseContext
from clinveil.releases.gates import Examined, examine, memory_gate
from clinveil.releases.prepared_input import Preflight
from clinveil.releases.producer import MEASURE, Producer, Product
from clinveil.releases.producers._private import (
    PrivateInput,
    WrittenProduct,
    make_private,
    private_stages,
    refuse_private,
)
from clinveil.releases.settings import (
    IdentifierSwitch,
    PatientFloor,
    ReleaseSettings,
    WriterSettings,
    WritingSettings,
)
from clinveil.releases.synthesis_model import (
    MODEL,
    STATE,
    Checked,
    Trained,
    WrittenCounts,
    draw_notes,
    encoded_training,
    load_trained,
    refuse_few,
    sides_of,
    train_new,
)
from clinveil.releases.synthesis_rows import LabelColumns
from clinveil.releases.treatment import treated
from clinveil.releases.writing import opened
from clinveil.report import Fact
from clinveil.stats import MeasureSpec, wilson
from clinveil.utility import perplexity_findings

FEWEST_SHARING = 5
PATIENTS_PER_SHARING = 60
# of a model that counts each label; at 0 contexts of several labels blur what a note is about
BIAS = 0.5


class Synthetic(Producer):
    """Notes that describe no real person, searched for copies of real notes."""

    settings = frozenset({WriterSettings, WritingSettings, PatientFloor, IdentifierSwitch})
    learns = (MODEL, STATE)

    def floor(self, patients: int) -> int:
        """Return the patient floor of words and word sequences: one patient in 60, at least 5.

        Source: measured (benchmarks/synthetic.md): with 5, released notes disclose who was in the
        training.
        """
        return max(FEWEST_SHARING, ceil(patients / PATIENTS_PER_SHARING))

    def refuse_early(self, settings: ReleaseSettings) -> None:
        """Raise MissingExtra without PyTorch, UsageError for an unsuitable model or device."""
        how = settings.lm
        written = settings.synthetic
        refuse_init(settings)
        if written.tags and (written.epsilon is not None or not settings.phi):
            raise UsageError(
                "synthetic.tags requires phi=true, without synthetic.epsilon",
                hint="identifiers are kept",
            )
        private = refuse_private(settings)
        if private:
            _refuse_unused(settings)
        elif how.neural:
            need_torch()
            how.recipe()
            if how.device != "cpu":
                device_named(how.device)

    def refuse_notes(
        self, totals: Preflight, settings: ReleaseSettings, corpus: Corpus, *, reused: bool = False
    ) -> None:
        """Raise InputError for too few patients to split, or for a private release that would be
        noise.
        """
        refuse_few(totals.patients)
        _refuse_named(settings, corpus)
        if settings.synthetic.epsilon is not None:
            PrivateInput.read(corpus, totals, settings)
        else:
            LabelColumns.read(corpus, settings.channel.label_floor)

    def label_floor(self, settings: ReleaseSettings) -> int:
        """Return how many training patients a label needs, so that notes are written for it."""
        return settings.channel.label_floor

    def plan(
        self, totals: Preflight, settings: ReleaseSettings, *, train: bool = True
    ) -> Iterator[tuple[str, str]]:
        """Yield name and description of the stages of a run."""
        how = settings.lm
        if settings.synthetic.epsilon is not None:
            yield from private_stages()
            return
        if settings.phi:
            yield "identifiers", f"find identifiers, policy {settings.identifiers.policy().name}"
        passes = how.recipe().epochs if how.neural else 1
        if train:
            yield "language model", f"{how.model}, {passes} passes"
        yield "held-out notes", "perplexity"
        yield "write", "draw notes word by word"
        yield "copies", "search for copies of training notes"
        yield MEASURE

    def seconds(self, totals: Preflight, settings: ReleaseSettings) -> float | None:
        """Return a rough duration on two cores; None for networks and private releases."""
        if settings.lm.neural or settings.synthetic.epsilon is not None:
            return None
        return super().seconds(totals, settings)

    def make(self, job: ReleaseContext) -> Product:
        """Replace identifiers, train or load a language model, write notes, and read them back."""
        if job.settings.synthetic.epsilon is not None:
            return make_private(job)
        labels = LabelColumns.read(
            job.corpus, job.settings.channel.label_floor, apart=job.held_out.patients
        )
        entered = treated(job, placeholders=True)
        notes = labels.notes(entered.corpus, placeholders=job.settings.phi)
        seed = training_seed(job)
        with job.timer.stage("language model", job.settings.lm.model, "statistical"):
            trained, public_findings = _model(job, notes, seed, labels)
        with job.timer.stage("held-out notes", "perplexity"):
            perplexity, memory = _held_out_fit(job, trained)
        path = job.folder.staging / f"notes{job.corpus.suffix}"
        with job.timer.stage("write", "draw notes word by word", "keyed"):
            counts, checked = _written(job, trained, path, labels)
        remove(job.folder.vault / STATE)
        job.say(counts.description)
        released = opened(path, job.corpus.columns)
        written = read_notes(released, layout=True)
        with job.timer.stage("copies", "search for copies of training notes"):
            examined = _examined(job, trained, written, counts.notes, seed, checked)
        outputs = Counter(word for text in written.texts for word in words(text))
        findings = [*public_findings, *perplexity, *([memory] if memory else [])]
        findings += [_truncated(counts), *examined.findings]
        model = job.folder.vault / MODEL
        return SyntheticProduct(
            job=job,
            path=path,
            columns=job.corpus.columns,
            rows=Accounting(counts.notes, counts.notes),
            check=OutputCheck.of({"notes": len(written), "words": outputs.total()}, outputs),
            released=released,
            tokens=outputs.total(),
            types=len(outputs),
            patients=len(set(written.patients)),
            identifiers=entered.identifiers,
            left_out=entered.skipped,
            trained=trained,
            counts=counts,
            sides=trained.sides,
            examined=Examined([*examined.gates, memory_gate(memory)], findings),
            digests={MODEL: fingerprint(model)} if model.exists() else {},
        )


def _examined(
    job: ReleaseContext,
    trained: Trained,
    written: PlainNotes,
    expected: int,
    seed: int,
    checked: Checked,
) -> Examined:
    """Return gates and findings on the written notes: copies, and names of known patients."""
    return examine(
        written,
        expected,
        trained.sides,
        trained.model.vocabulary,
        np.random.default_rng([seed, 1]),
        span=job.settings.synthetic.span,
        feed=job.settings.identifiers.patients,
        checked=checked,
    )


def _model(
    job: ReleaseContext, notes: PlainNotes, seed: int, labels: LabelColumns
) -> tuple[Trained, list[Finding]]:
    """Return the model, and findings on the public model that it starts from, if there is one."""
    init = job.settings.synthetic.init
    feed = job.settings.identifiers.patients
    public = PublicModel.open(init) if init is not None else None
    findings = list[Finding]()
    if public is not None and feed is not None:
        findings.append(public_names(public, feed, np.random.default_rng([seed, 2])))
    return _trained(job, notes, seed, public, labels), findings


def _held_out_fit(job: ReleaseContext, trained: Trained) -> tuple[list[Finding], Finding | None]:
    """Return the perplexity on notes of test patients, and what the model remembers of others.

    Models of counts have shared sequences only, so they are not asked what they remember.
    """
    training = trained.sides.training
    held_out = trained.sides.held_out
    with trained.model.ready(threads=job.settings.synthetic.threads):
        fit = fit_of(trained.model, encode(held_out.texts, trained.model.vocabulary))
        memory = None
        if trained.recipe is not None:
            encoded = encoded_training(training, trained.model.vocabulary, job.settings)
            memory = remembered(trained.model, encoded, training, held_out)
    return perplexity_findings(trained.model, fit, held_out, "held out"), memory


def _refuse_unused(settings: ReleaseSettings) -> None:
    """Raise UsageError for a changed setting of training or of drawing from a trained model, which
    has no effect with `synthetic.epsilon`.
    """
    values = settings.named_values()
    changed = [
        name
        for name, one in settings.declared().items()
        if (name.startswith("lm.") and name != "lm.model")
        or name in ("synthetic.temperature", "synthetic.exact")
        if values[name] != one.field.default
    ]
    if changed:
        raise UsageError(
            f"{', '.join(changed)} cannot be used with synthetic.epsilon and lm.model"
            f" {settings.lm.model}",
            hint="omit it; it has no effect",
        )


def _refuse_named(settings: ReleaseSettings, corpus: Corpus) -> None:
    """Raise InputError for a kept column with the full name of a known patient."""
    feed = settings.identifiers.patients
    keep = corpus.columns.keep
    if feed is None or not keep:
        return
    names = [
        own
        for person in read_patients(feed).values()
        if len(own := {*words(" ".join(person.name))}) > 1
    ]
    for column in keep:
        values = {
            str(value)
            for batch in corpus.batches()
            for value in batch.column(column).unique().to_pylist()
        }
        if any(
            name <= forms
            for forms in map(set, map(words, values))
            if len(forms) > 1
            for name in names
        ):
            raise InputError(
                "contains the full name of a known patient",
                where=column,
                hint="do not keep this column",
            )


def training_seed(job: ReleaseContext) -> int:
    """Return the seed of split and training: the public test seed, or one derived from the key."""
    return job.seeds["training"] if job.key.test_seed is None else job.key.test_seed


def refuse_init(settings: ReleaseSettings) -> None:
    """Raise UsageError or InputError for a public model that cannot be used."""
    init = settings.synthetic.init
    model = settings.lm.model
    if (init is not None) != (model == PRETRAINED):
        hint = (
            f"pass both --set lm.model={PRETRAINED} and --set synthetic.init=FOLDER (or {SMOLLM2})"
        )
        raise UsageError(f"synthetic.init and lm.model {PRETRAINED} require each other", hint=hint)
    if init is not None:
        files_of(init)


MOST_NAMES = 200


def public_names(public: PublicModel, feed: Path, rng: np.random.Generator) -> Finding:
    """Return `release.public_names`: the share of full names likelier than with the last name of
    another patient.
    """
    full = sorted({person.name for person in read_patients(feed).values() if len(person.name) > 1})
    names = [full[row] for row in rng.permutation(len(full))[:MOST_NAMES]]
    pairs = [
        (name, (*name[:-1], other[-1]))
        for name, other in zip(names, [*names[1:], *names[:1]], strict=True)
    ]
    both = [[f"Name: {' '.join(name)}" for name in pair] for pair in pairs if pair[0] != pair[1]]
    measure = "release.public_names"
    unit = "known full names"
    if not both:
        spec = MeasureSpec(measure=measure, unit=unit)
        return spec.missing("fewer than two known full names")
    bits = public.log_likelihoods([text for pair in both for text in pair]).reshape(-1, 2) / np.log(
        2
    )
    likelier = int((bits[:, 0] > bits[:, 1]).sum())
    low, high = wilson(likelier, len(both))
    numbers = {"bits": float(-bits[:, 0].mean()), "bits_invented": float(-bits[:, 1].mean())}
    return Finding(
        measure,
        likelier / len(both),
        len(both),
        "lower",
        low,
        high,
        chance=0.5,
        numbers=numbers,
        unit=unit,
        count=likelier,
        method="Wilson, 95 %",
        chance_is="a model that knows no patient",
    )


def _trained(
    job: ReleaseContext,
    notes: PlainNotes,
    seed: int,
    public: PublicModel | None,
    labels: LabelColumns,
) -> Trained:
    """Return the model of a reused or interrupted run, or a new one."""
    folder = job.folder.vault / MODEL
    if (folder / "model.json").exists():
        before = job.reused is not None
        return load_trained(folder, notes, job.settings, labels, before=before)
    sides = sides_of(notes, job.held_out, seed, validate=job.settings.lm.neural)
    return train_new(sides, job.settings, seed, job.folder.vault, job.say, labels, public)


def _written(
    job: ReleaseContext, trained: Trained, path: Path, labels: LabelColumns
) -> tuple[WrittenCounts, Checked]:
    """Write the notes; return their counts, and what the gates need.

    A further release under the same key has other draws.
    """
    how = job.settings.synthetic
    key = job.key if job.nth == 1 else Key(job.key.subkey(f"release {job.nth}"))
    counts = WrittenCounts()
    training = trained.sides.training
    size = batch_size_for(how.count or len(training), how.batch)
    vocabulary = trained.model.vocabulary
    bias = BIAS if getattr(trained.model, "labelled", False) else 1.0
    steering = Steering.of(encoded_training(training, vocabulary, job.settings), vocabulary, bias)
    drawing = SamplingConfig(size, how.longest, how.temperature, steering)
    training_words = training.words

    def enough() -> bool:
        return counts.words >= training_words if how.count is None else counts.notes >= how.count

    plan = LabelSequences.of(
        training.patients, training.labels, job.settings.channel.label_floor
    ).plan(key)
    checked = Checked()
    notes = draw_notes(
        trained.model,
        key,
        drawing,
        enough,
        counts,
        plan,
        labels.named,
        checked,
        marked=how.tags,
    )

    def announced() -> Iterator[pa.RecordBatch]:
        for batch in labels.batches(notes):
            yield batch
            job.say(f"{counts.notes:,} notes written, {counts.words:,} words")

    with trained.model.ready(double=how.doubles(trained.model.kind), threads=how.threads):
        write_corpus(announced(), path, job.corpus.columns, job.corpus.suffix)
    return counts, checked


def _truncated(counts: WrittenCounts) -> Finding:
    """Return `release.truncated_notes`: the share of notes truncated at the maximum length."""
    low, high = wilson(counts.truncated, counts.notes)
    share = counts.truncated / max(1, counts.notes)
    return Finding(
        "release.truncated_notes",
        share,
        counts.notes,
        "lower",
        low,
        high,
        numbers={"without_a_word": counts.empty},
        unit="notes",
        count=counts.truncated,
        method="Wilson, 95 %",
    )


@dataclass(frozen=True, kw_only=True)
class SyntheticProduct(WrittenProduct):
    """Notes written by a language model.

    left_out: notes not used for training, by reason.
    """

    left_out: Counter[str]
    trained: Trained = field(repr=False)
    counts: WrittenCounts

    def context(self) -> Context:
        """Return the written notes, the model and its split; notes have no source."""
        return replace(super().context(), model=self.trained.model)

    def facts(self) -> Iterator[Fact]:
        """Yield facts on the model and its training notes."""
        sides = self.trained.sides
        yield Fact("language model", self.trained.model.kind)
        yield Fact("training notes", len(sides.training), "notes")
        yield Fact("notes of test patients", len(sides.held_out), "notes")
        yield from (
            Fact(f"notes left out: {why}", n, "notes") for why, n in sorted(self.left_out.items())
        )
        yield Fact("notes truncated at the maximum length", self.counts.truncated, "notes")

    def manifest_entries(self) -> dict[str, Any]:
        """Return model and counts."""
        trained = self.trained
        model = {
            "kind": trained.model.kind,
            "trained": "before" if trained.before else "in this run",
            "vocabulary": trained.model.vocabulary.kind,
            "recipe": trained.recipe,
        }
        return {
            "model": model,
            "public_seeds": list(self.public_seeds()),
            "counts": vars(self.counts),
        }

    def public_seeds(self) -> tuple[str, ...]:
        """Return `notes` (the draws) and `model` (split and training) if derived from a public
        seed.
        """
        model = ("model",) if self.trained.public_seed else ()
        return (*super().public_seeds(), *model)

    def warnings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield warnings on the meaning of synthetic notes."""
        yield "The notes describe no real person. Do not compute figures about patients from them."
        if not self.job.settings.phi:
            yield "Identifier replacement was switched off: the model learned names."
        if not self.job.settings.identifiers.patients:
            yield (
                "No known-patient list was given, so the notes were not searched for their names"
                " (--patients)."
            )


SYNTHETIC = Synthetic()
