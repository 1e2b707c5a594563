"""S-PDTP of language models (paper C, section 3.2): models with and without single units, and their
differences.

`exact`: one fixed plan of batches, in which a left-out unit has weight 0. Nothing else of the plan
changes; but as gradients are clipped by their norm over the batch, a batch without the unit may be
scaled differently for the others. `compat`: as paper C's code; the notes are removed and the text
is cut again, so every batch changes. A unigram model
needs no training: `closed_form`.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context
from clinveil.attacks.models.leaveout import pdtp
from clinveil.attacks.models.leaveout.data import (
    FINDINGS,
    AuditData,
    LeaveOutSettings,
    audit_folder,
    load_data,
    pick_units,
    prepare,
    run_spec,
)
from clinveil.attacks.models.leaveout.pdtp import closed_form
from clinveil.attacks.models.membership import written
from clinveil.core import (
    Finding,
    InputError,
    Say,
    UsageError,
    group,
    private_text,
    save_array,
    setting,
    write_findings,
)
from clinveil.lm import (
    CountedKind,
    LanguageModel,
    Logs,
    NeuralTask,
    PlainNotes,
    Plan,
    Recipe,
    SamplingConfig,
    batch_size_for,
    kind_of,
    notes_plan,
    plan_of,
    refuse_too_large,
    train_ngram,
)
from clinveil.scale import Map, Result, Store, perform_all, processes

TIMED_STEPS = 6
OTHER_SEEDS = 1_000  # offset of the seeds of further trainings
History = dict[str, Any]  # JSON-serializable training history


@dataclass(frozen=True, kw_only=True)
class AuditModel:
    """One model, and its log-probabilities of the audited units in `logs.npy`, unit by unit."""

    data: Path  # the folder of the audit's data, named by its digest
    kind: str
    mode: str  # `exact` or `compat`
    seed: int
    left_out: int | None = None  # index of the unit
    # words of synthetic notes to generate; their n-grams also score the units (`text-logs.npy`)
    write: int = 0
    recipe: Recipe | None = (
        None  # of a network; None for a count model, whose training is deterministic
    )
    keep: bool = False  # keep a network's weights as a checkpoint in the task's folder
    device: str = "cpu"

    @property
    def title(self) -> str:
        """Return a title for progress lines."""
        name = (
            f"{self.kind}, dropout {self.recipe.dropout:g}, {self.mode}"
            if self.recipe
            else self.kind
        )
        which = "of all units" if self.left_out is None else f"without unit {self.left_out + 1}"
        return f"{name}, {which}, seed {self.seed}"

    def identity(self) -> Mapping[str, Any]:
        """Return what the result depends on."""
        names = ("kind", "mode", "seed", "left_out", "write", "keep", "device")
        recipe = self.recipe.as_dict() if self.recipe else None
        return {
            "data": self.data.name,
            "recipe": recipe,
            **{name: getattr(self, name) for name in names},
        }

    def __call__(self, folder: Path, store: Store) -> Result:
        """Train, score the units, and write the requested output."""
        data = load_data(self.data)
        model, history = self.train(data, folder)
        with model.ready():
            save_array(folder / "logs.npy", _units_logs(model, data))
            # What synthetic notes disclose without their model (paper C, footnote 6).
            if self.write:
                how = SamplingConfig(
                    batch_size_for(len(data.encoded)), int(data.encoded.lengths.max())
                )
                notes = written(model, self.write, self.seed, how)
                save_array(folder / "text-ids.npy", notes.ids)
                save_array(
                    folder / "text-logs.npy", _units_logs(train_ngram(notes, data.vocabulary), data)
                )
        return history

    def train(self, data: AuditData, folder: Path) -> tuple[LanguageModel, History]:
        """Return the model and its training history; `keep` writes a network to the folder."""
        kind = kind_of(self.kind)
        if isinstance(kind, CountedKind):
            return kind.count(data.without(self.left_out), data.vocabulary), {}
        from clinveil.core import seeded
        from clinveil.lm import NeuralModel, save_model

        assert self.recipe is not None
        task = NeuralTask(
            data.encoded,
            data.vocabulary,
            self.recipe,
            self.seed,
            self.device,
            validation=data.validation,
        )
        with seeded(self.seed):
            training = task.training(self.plan(data, self.recipe))
            training.fit()
            model = NeuralModel(data.vocabulary, training.finish())
        if self.keep:
            save_model(model, folder / "model", {"seed": self.seed, **training.history})
        return model, training.history

    def plan(self, data: AuditData, recipe: Recipe) -> Plan:
        """Return the training plan of a network. `exact`: the unit is masked. `compat`: its notes
        are removed.
        """
        if self.mode == "compat":
            return plan_of(data.without(self.left_out), recipe, self.seed)
        rows = notes_plan(data.encoded, recipe, self.seed)
        return rows if self.left_out is None else rows.without(data.units[self.left_out])


def _units_logs(model: LanguageModel, data: AuditData) -> Logs:
    """Return log P of all tokens of the units' notes, unit by unit."""
    return np.concatenate(
        list(model.score([note for unit in range(len(data.units)) for note in data.notes_of(unit)]))
    )


def load_logs(
    store: Store, model: AuditModel, data: AuditData, name: str = "logs.npy"
) -> list[Logs]:
    """Return a finished model's log-probabilities of each unit. Raises InputError if they are not
    readable.
    """
    lengths = [int(data.encoded.lengths[rows].sum()) for rows in data.units]
    folder = store.folder(model)
    try:
        flat = np.load(folder / name, allow_pickle=False)
        if flat.shape != (sum(lengths),):
            raise ValueError
    except (OSError, ValueError, EOFError):
        hint = f"remove tasks/{folder.name}, and run the same command again"
        raise InputError(f"contains no readable {name}", where=folder.name, hint=hint) from None
    return list(np.split(flat, np.cumsum(lengths)[:-1]))


@dataclass(frozen=True)
class LeaveOutAudit:
    """All models of one audit."""

    data: Path
    full: AuditModel  # of all units
    reseeded: tuple[AuditModel, ...]
    left_out: tuple[AuditModel, ...]
    name: str = ""  # of an audit that differs from the others of a study
    other_seeds: tuple[
        tuple[AuditModel, ...], ...
    ] = ()  # `left_out` under each further training seed

    @property
    def models(self) -> tuple[AuditModel, ...]:
        """Return all models, the full model first."""
        others = (one for models in self.other_seeds for one in models)
        return (self.full, *self.reseeded, *self.left_out, *others)


def audit_of(
    folder: Path,
    settings: LeaveOutSettings,
    *,
    seed: int,
    words: int = 0,
    name: str = "",
    keep: bool = False,
) -> LeaveOutAudit:
    """Return the models that an audit needs.

    Args:
        folder: of the data. words: tokens of synthetic notes per model, 0 for none.
        keep: keep the model of all units as a checkpoint.
    """
    recipe = settings.audit_recipe()
    units = range(len(load_data(folder).units))
    full = AuditModel(
        data=folder,
        kind=settings.lm.model,
        mode=settings.mode,
        write=words,
        seed=seed,
        recipe=recipe,
        device=settings.lm.device,
    )
    left_out = tuple(replace(full, left_out=unit) for unit in units)
    if recipe is None:
        return LeaveOutAudit(folder, full, (), left_out, name)
    reseeded = tuple(replace(full, seed=seed + OTHER_SEEDS + i) for i in range(settings.reseeds))
    others = (seed + OTHER_SEEDS + i for i in range(settings.seeds - 1))
    other_seeds = tuple(tuple(replace(one, seed=other) for one in left_out) for other in others)
    return LeaveOutAudit(folder, replace(full, keep=keep), reseeded, left_out, name, other_seeds)


def train_audits(
    store: Store,
    audits: Sequence[LeaveOutAudit],
    executor: Map,
    say: Say,
    *,
    workers: int,
    most_hours: float,
) -> None:
    """Train all models not yet trained; reports the estimated hours. Raises UsageError if they
    exceed the limit.
    """
    models = [one for audit in audits for one in audit.models]
    networks = [
        (one, one.recipe) for one in models if one.recipe is not None and not store.done(one)
    ]
    if networks:
        model, recipe = next(
            ((one.full, one.full.recipe) for one in audits[:1] if one.full.recipe), networks[0]
        )
        data = load_data(model.data)
        epochs = recipe.epochs
        seconds = seconds_of_one(data, recipe, model.device)
        passes = sum(own.epochs for _, own in networks) / epochs
        tokens = data.encoded.ids.size * epochs / seconds
        hours = seconds * max(1.0, passes / workers) / 3600
        each = f"{tokens:,.0f} tokens a second and {seconds:,.0f} s each"
        say(f"{len(networks)} models of {each}: about {hours:.2g} hours")
        refuse_too_long(hours, most_hours)
    perform_all(store, models, executor, say)


def seconds_of_one(data: AuditData, recipe: Recipe, device: str) -> float:
    """Estimate the seconds of one model's training from a few steps of the real network on this
    machine.
    """
    from clinveil.core import device_named, seeded
    from clinveil.lm import Training

    refuse_too_large(data.vocabulary.size, recipe, device)
    plan = plan_of(data.encoded, recipe, 0)
    with seeded(0):
        place = device_named(device)
        training = Training(
            data.vocabulary.size, recipe, plan, seed=0, device=place, validate=lambda network: 1.0
        )
        training.fit(2)
        began = time.monotonic()
        before = training.progress.step
        training.fit(before + TIMED_STEPS)
        made = max(1, training.progress.step - before)
        return (time.monotonic() - began) / made * plan.steps


def refuse_too_long(hours: float, most: float) -> None:
    """Raise UsageError if the plan cannot finish in time."""
    if hours > most:
        hint = f"use fewer units, a smaller lm.size, or max_hours={max(0.1, hours * 1.5):.1f}"
        raise UsageError(
            f"this would take about {hours:.2g} hours, more than max_hours {most:g}", hint=hint
        )


AHEAD = 1_000  # tasks that wait for a worker


class LeaveOneOut(Attack):
    """Train models with and without each of some patients and compare their probabilities (S-PDTP,
    paper C).
    """

    needs = frozenset({"training"})
    settings: LeaveOutSettings = group(LeaveOutSettings)
    out: Path | None = setting(
        None, "Secret folder for the models; the same folder resumes a run.", affects="call"
    )

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the audit on `PlainNotes`; except in closed form, writes models, tables of units and
        findings to `out`.

        Without a seed in the settings, the training seed is drawn here. Raises UsageError without
        `out`.
        """
        settings = self.settings
        notes = context.training
        if settings.mode == "unigram":
            return closed_form(notes, rng)
        if self.out is None:
            raise UsageError(
                "an output folder for the models is required",
                hint="pass -o DIR; the same folder resumes an interrupted run",
            )
        seed = int(rng.integers(2**31)) if settings.seed is None else settings.seed
        with audit_folder(self.out, run_spec(notes, settings, seed), force=settings.force) as store:
            found = audit_notes(notes, settings, seed, store, self.out, context.say)
            write_findings(self.out / FINDINGS, "attack leaveout", found, seed=seed)
        context.say(
            f"SECRET: everything in {self.out.name}; {self.out.name}/units-*.csv has one row per"
            " unit"
        )
        return found


@dataclass(frozen=True)
class Compared:
    """The result of an audit."""

    findings: list[Finding]
    leave_out: pdtp.LeaveOut  # the underlying differences
    # Across training seeds; None with one seed of a model with random training.
    effects: pdtp.Effects | None
    table: str = field(repr=False)  # one row per unit, numbers only


def compare(store: Store, audit: LeaveOutAudit, rng: Generator, *, text: bool = False) -> Compared:
    """Compare the finished models of an audit; with `text`, by n-grams of each model's synthetic
    notes.
    """
    data = load_data(audit.data)
    name = "text-logs.npy" if text else "logs.npy"

    def read(model: AuditModel) -> list[Logs]:
        logs = load_logs(store, model, data, name)
        return _without_first(logs, data) if model.mode == "compat" else logs

    full = read(audit.full)
    left_out = [read(model) for model in audit.left_out]
    compared = pdtp.leave_out(full, left_out, [read(model) for model in audit.reseeded])
    recipe = audit.full.recipe
    effects = None
    if audit.other_seeds or (recipe is None and not text):
        effects = pdtp.cross_fit(
            [left_out, *([read(model) for model in models] for models in audit.other_seeds)]
        )
    labels = (
        audit.full.mode,
        audit.full.kind,
        "released notes" if text else "the model",
        f"first weights: {audit.name or 'random'}",
    )
    numbers = {} if recipe is None else {"dropout": recipe.dropout}
    found = pdtp.findings(compared, rng, labels, numbers)
    if effects is not None:
        found.append(pdtp.effect_finding(effects, rng, labels, numbers))
    if len(compared.reseeded):
        found.append(pdtp.reseed_floor(compared, labels, numbers))
    return Compared(found, compared, effects, _table(data, compared, effects))


def _without_first(logs: Sequence[Logs], data: AuditData) -> list[Logs]:
    """Set the difference of the first token of each note to 0: paper C's code scores from the
    second token.
    """
    firsts = [np.cumsum([0, *data.encoded.lengths[unit][:-1]]) for unit in data.units]
    return [
        np.where(np.isin(np.arange(own.size), at), 0.0, own)
        for own, at in zip(logs, firsts, strict=True)
    ]


def _table(data: AuditData, compared: pdtp.LeaveOut, effects: pdtp.Effects | None) -> str:
    """Return one row per unit: score and floors, where its largest difference is, and the count of
    that token.
    """
    counts = np.bincount(data.encoded.ids, minlength=data.vocabulary.size)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [
        "unit",
        "notes",
        "tokens",
        "score",
        "placebo",
        "effect",
        "reseed",
        "gap",
        "sign",
        "place",
        "share_of_note",
    ]
    writer.writerow([*heads, "occurrences_of_token"])
    nothing = np.full(len(data.units), np.nan)
    reseed = compared.reseeded.mean(axis=0) if len(compared.reseeded) else nothing
    own = nothing if effects is None else effects.own
    columns = np.stack([compared.scores, compared.placebos, own, reseed, compared.own_gaps], axis=1)
    for unit, rows in enumerate(data.units):
        tokens = np.concatenate(data.notes_of(unit))
        place = int(compared.places[unit])
        numbers = [f"{number:.4f}" for number in columns[unit]] + [
            "+" if compared.signed[unit] > 0 else "-"
        ]
        rarity = [place, f"{place / tokens.size:.3f}", int(counts[tokens[place]])]
        writer.writerow([unit + 1, rows.size, tokens.size, *numbers, *rarity])
    return out.getvalue()


def audit_notes(
    notes: PlainNotes,
    settings: LeaveOutSettings,
    seed: int,
    store: Store,
    out: Path,
    say: Say,
    *,
    executor: Map | None = None,
) -> list[Finding]:
    """Select units, train missing models, compare; writes `units-*.csv` (numbers only) to `out`.

    Args:
        executor: how tasks are distributed (default: one process per worker).

    Raises:
        InputError, UsageError: as in the steps; completed steps are kept.
    """
    rng = np.random.default_rng(seed)
    units = pick_units(notes, settings.units, rng)
    data = prepare(notes, units, settings, rng)
    say(
        f"{len(data.encoded)} notes, {data.encoded.ids.size:,} tokens, {data.vocabulary.size:,} in"
        " the vocabulary"
    )
    executor = executor or processes(settings.workers, ahead=AHEAD)
    words = data.encoded.ids.size if settings.from_text else 0
    audit = audit_of(data.save(store.root), settings, seed=seed, words=words)
    train_audits(
        store, [audit], executor, say, workers=settings.workers, most_hours=settings.max_hours
    )
    found: list[Finding] = []
    for text in (False, True) if settings.from_text else (False,):
        compared = compare(store, audit, np.random.default_rng(seed), text=text)
        found += compared.findings
        private_text(out / f"units-{'text' if text else 'model'}.csv", compared.table)
    return found
