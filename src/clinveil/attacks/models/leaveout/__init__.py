"""S-PDTP of language models (paper C, section 3.2): models with and without single units, and their differences.

`exact`: one fixed plan of batches, in which a left-out unit has weight 0. Nothing else of the plan changes; but as
gradients are clipped by their norm over the batch, a batch without the unit may be scaled differently for the others.
`compat`: as paper C's code; the notes are removed and the text is cut again, so every batch changes. A unigram model
needs no training: `closed_form`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.models.leaveout import pdtp
from clinveil.attacks.models.leaveout.audit import Audit, AuditModel, audit_of, load_logs, train_audits
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
from clinveil.core.errors import UsageError
from clinveil.core.files import private_text
from clinveil.core.finding import Finding, write_findings
from clinveil.core.settings import flag, group
from clinveil.core.types import Say
from clinveil.lm.model import Logs
from clinveil.lm.notes import PlainNotes
from clinveil.scale.local import Map, processes
from clinveil.scale.tasks import Store

AHEAD = 1_000  # tasks that wait for a worker


@attacks.register("leaveout")
class LeaveOneOut(Attack):
    """Train models with and without each of some patients and compare their probabilities (S-PDTP, paper C)."""

    needs = frozenset({"training"})
    settings: LeaveOutSettings = group(LeaveOutSettings)
    out: Path | None = flag(None, "Secret folder for the models; the same folder resumes a run.")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the audit on `PlainNotes`; except in closed form, writes models, tables of units and findings to `out`.

        Without a seed in the settings, the training seed is drawn here. Raises UsageError without `out`.
        """
        settings, notes = self.settings, context.training
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
        context.say(f"SECRET: everything in {self.out.name}; {self.out.name}/units-*.csv has one row per unit")
        return found


@dataclass(frozen=True)
class Compared:
    """The result of an audit."""

    findings: list[Finding]
    leave_out: pdtp.LeaveOut  # the underlying differences
    effects: pdtp.Effects | None  # across training seeds; None with one seed of a model with random training
    table: str = field(repr=False)  # one row per unit, numbers only


def compare(store: Store, audit: Audit, rng: Generator, *, text: bool = False) -> Compared:
    """Compare the finished models of an audit; with `text`, by n-grams of each model's synthetic notes."""
    data, name = load_data(audit.data), "text-logs.npy" if text else "logs.npy"

    def read(model: AuditModel) -> list[Logs]:
        logs = load_logs(store, model, data, name)
        return _without_first(logs, data) if model.mode == "compat" else logs

    full, left_out = read(audit.full), [read(model) for model in audit.left_out]
    compared = pdtp.leave_out(full, left_out, [read(model) for model in audit.reseeded])
    recipe = audit.full.recipe
    effects = None
    if audit.other_seeds or (recipe is None and not text):
        effects = pdtp.cross_fit([left_out, *([read(model) for model in models] for models in audit.other_seeds)])
    detail: dict[str, Any] = {"mode": audit.full.mode, "model": audit.full.kind}
    detail |= {"from": "released notes" if text else "the model", "first_weights": audit.name or "random"}
    if recipe is not None:
        detail["dropout"] = recipe.dropout
    found = pdtp.findings(compared, rng, detail)
    if effects is not None:
        found.append(pdtp.effect_finding(effects, rng, detail))
    if len(compared.reseeded):
        found.append(pdtp.reseed_floor(compared, detail))
    return Compared(found, compared, effects, _table(data, compared, effects))


def _without_first(logs: Sequence[Logs], data: AuditData) -> list[Logs]:
    """Set the difference of the first token of each note to 0: paper C's code scores from the second token."""
    firsts = [np.cumsum([0, *data.encoded.lengths[unit][:-1]]) for unit in data.units]
    return [np.where(np.isin(np.arange(own.size), at), 0.0, own) for own, at in zip(logs, firsts, strict=True)]


def _table(data: AuditData, compared: pdtp.LeaveOut, effects: pdtp.Effects | None) -> str:
    """Return one row per unit: score and floors, where its largest difference is, and the count of that token."""
    counts = np.bincount(data.encoded.ids, minlength=data.vocabulary.size)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = ["unit", "notes", "tokens", "score", "placebo", "effect", "reseed", "gap", "sign", "place", "share_of_note"]
    writer.writerow([*heads, "occurrences_of_token"])
    nothing = np.full(len(data.units), np.nan)
    reseed = compared.reseeded.mean(axis=0) if len(compared.reseeded) else nothing
    own = nothing if effects is None else effects.own
    columns = np.stack([compared.scores, compared.placebos, own, reseed, compared.own_gaps], axis=1)
    for unit, rows in enumerate(data.units):
        tokens = np.concatenate(data.notes_of(unit))
        place = int(compared.places[unit])
        numbers = [f"{number:.4f}" for number in columns[unit]] + ["+" if compared.signed[unit] > 0 else "-"]
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
    over: Map | None = None,
) -> list[Finding]:
    """Select units, train missing models, compare; writes `units-*.csv` (numbers only) to `out`.

    Args:
        over: how tasks are distributed (default: one process per worker).

    Raises:
        InputError, UsageError: as in the steps; completed steps are kept.
    """
    rng = np.random.default_rng(seed)
    units = pick_units(notes, settings.units, rng)
    data = prepare(notes, units, settings, rng)
    say(f"{len(data.encoded)} notes, {data.encoded.ids.size:,} tokens, {data.vocabulary.size:,} in the vocabulary")
    over = over or processes(settings.workers, ahead=AHEAD)
    words = data.encoded.ids.size if settings.from_text else 0
    audit = audit_of(data.save(store.root), settings, seed=seed, words=words)
    train_audits(store, [audit], over, say, workers=settings.workers, most_hours=settings.max_hours)
    found: list[Finding] = []
    for text in (False, True) if settings.from_text else (False,):
        compared = compare(store, audit, np.random.default_rng(seed), text=text)
        found += compared.findings
        private_text(out / f"units-{'text' if text else 'model'}.csv", compared.table)
    return found
