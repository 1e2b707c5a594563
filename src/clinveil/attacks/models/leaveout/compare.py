"""An audit from notes to findings: plan the models, train missing ones, and compare the finished ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.models.leaveout import pdtp
from clinveil.attacks.models.leaveout.audit import Audit, AuditModel, audit_of, load_logs, train_audits
from clinveil.attacks.models.leaveout.data import AuditData, LeaveOutSettings, load_data, pick_units, prepare
from clinveil.core.files import private_text
from clinveil.core.finding import Finding
from clinveil.core.types import Say
from clinveil.lm.model import Logs
from clinveil.lm.notes import PlainNotes
from clinveil.scale.local import Map, processes
from clinveil.scale.tasks import Store

AHEAD = 1_000  # tasks that wait for a worker


@dataclass(frozen=True)
class Compared:
    """The result of an audit."""

    findings: list[Finding]
    leave_out: pdtp.LeaveOut  # the underlying differences
    effects: pdtp.Effects | None  # across training seeds; None with one seed of a model with random training
    table: str = field(repr=False)  # one row per unit, numbers only


def compare(store: Store, audit: Audit, rng: Generator, patients: Sequence[str], *, text: bool = False) -> Compared:
    """Compare the finished models of an audit.

    Args:
        patients: the patient of each unit. text: score by n-grams of each model's synthetic notes, not by the model.
    """
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
    found = pdtp.findings(compared, rng, detail, patients=patients)
    if effects is not None:
        found.append(pdtp.effect_finding(effects, rng, detail, patients))
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
    rng, by_note = np.random.default_rng(seed), settings.unit == "note"
    units = pick_units(notes, settings.units, rng, by_note=by_note)
    data = prepare(notes, units, settings, rng)
    say(f"{len(data.encoded)} notes, {data.encoded.ids.size:,} tokens, {data.vocabulary.size:,} in the vocabulary")
    over = over or processes(settings.workers, ahead=AHEAD)
    words = data.encoded.ids.size if settings.from_text else 0
    audit = audit_of(data.save(store.root), settings, seed=seed, words=words)
    train_audits(store, [audit], over, say, workers=settings.workers, most_hours=settings.max_hours)
    owners = [notes.patients[rows[0]] if by_note else f"unit {unit}" for unit, rows in enumerate(units)]
    found: list[Finding] = []
    for text in (False, True) if settings.from_text else (False,):
        compared = compare(store, audit, np.random.default_rng(seed), owners, text=text)
        found += compared.findings
        private_text(out / f"units-{'text' if text else 'model'}.csv", compared.table)
    return found
