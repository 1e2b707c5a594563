"""An audit from notes to findings: plan the models, train missing ones, and compare the finished ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.models.leaveout import pdtp
from clinveil.attacks.models.leaveout.audit import Audit, AuditModel, NetworkModel, audit_of, load_logs, train_audits
from clinveil.attacks.models.leaveout.data import AuditData, load_data, pick_units, prepare
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.files import private_text
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Say
from clinveil.lm.model import Logs
from clinveil.lm.notes import PlainNotes
from clinveil.scale.local import Map, processes
from clinveil.scale.tasks import Store
from clinveil.stats import permutation_p
from clinveil.stats.findings import proportion

AHEAD = 1_000  # tasks that wait for a worker
PERMUTATIONS = 9_999
FEW_NAMES = "an interval for the effect of names needs two units with a name and two without, with different scores"
NAMES_METHOD = "Welch's t, units with a name compared with those without, 95 %"
NAMES_SOURCE = "paper C, section 4.4, asks whether names raise it; the experiment is ours"


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
    network = audit.full if isinstance(audit.full, NetworkModel) else None
    effects = None
    if audit.other_seeds or (network is None and not text):
        effects = pdtp.cross_fit([left_out, *([read(model) for model in models] for models in audit.other_seeds)])
    detail: dict[str, Any] = {"mode": audit.full.mode, "model": audit.full.kind}
    detail |= {"from": "released notes" if text else "the model", "first_weights": audit.name or "random"}
    if network is not None:
        detail["dropout"] = network.recipe.dropout
    found = pdtp.findings(compared, rng, detail, patients=patients)
    if effects is not None:
        found.append(pdtp.effect_finding(effects, rng, detail, patients))
    if len(compared.reseeded):
        found.append(pdtp.reseed_floor(compared, detail))
    found += name_findings(data, compared, rng, detail)
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
    writer.writerow([*heads, "occurrences_of_token", "planted", "on_name"])
    nothing = np.full(len(data.units), np.nan)
    reseed = compared.reseeded.mean(axis=0) if len(compared.reseeded) else nothing
    own = nothing if effects is None else effects.own
    columns = np.stack([compared.scores, compared.placebos, own, reseed, compared.own_gaps], axis=1)
    for unit, rows in enumerate(data.units):
        tokens = np.concatenate(data.notes_of(unit))
        place = int(compared.places[unit])
        span = data.planted[unit] if data.planted else ()
        numbers = [f"{number:.4f}" for number in columns[unit]] + ["+" if compared.signed[unit] > 0 else "-"]
        rarity = [place, f"{place / tokens.size:.3f}", int(counts[tokens[place]])]
        on_name = bool(span) and span[0] <= place < span[1]
        writer.writerow([unit + 1, rows.size, tokens.size, *numbers, *rarity, bool(span), on_name])
    return out.getvalue()


def name_findings(data: AuditData, compared: pdtp.LeaveOut, rng: Generator, detail: Mapping[str, Any]) -> list[Finding]:
    """Return the effect of planted names on the score; empty without planted names.

    `attack.pdtp_planted`: the mean score of units with a name minus that of those without, P by permuting which units
    have one. `attack.pdtp_on_name`: the share of units with the largest difference on the name.
    """
    planted = np.array([bool(span) for span in data.planted])
    if not planted.any() or planted.all():
        return []
    return [_rise(compared.scores, planted, rng, detail), _on_name(data, compared, detail)]


def _rise(scores: Doubles, planted: Any, rng: Generator, detail: Mapping[str, Any]) -> Finding:
    def gap(with_name: Any) -> float:
        return float(scores[with_name].mean() - scores[~with_name].mean())

    null = np.array([gap(planted[rng.permutation(planted.size)]) for _ in range(PERMUTATIONS)])
    ends, value = names_interval(scores[planted], scores[~planted]), gap(planted)
    more = {**detail, "planted": int(planted.sum()), "scale": "nats"}
    more |= {"with_name": float(scores[planted].mean()), "without": float(scores[~planted].mean())}
    about: dict[str, Any] = {"source": NAMES_SOURCE, "unit": "audited units", "p": permutation_p(value, null)}
    about |= {"p_is": "units with a name permuted, one-sided"}
    if ends is None:
        about["detail"] = {**more, "why": FEW_NAMES}
    else:
        about |= {"detail": more, "low": ends[0], "high": ends[1], "method": NAMES_METHOD}
    about |= {"chance": 0.0, "chance_is": "no effect of a name"}
    return Finding("attack.pdtp_planted", value, planted.size, "lower", **about)


def names_interval(one: Doubles, other: Doubles) -> tuple[float, float] | None:
    """Return the interval of the difference of two means (Welch 1947); a bootstrap of few units is too narrow."""
    from scipy.stats import ttest_ind

    if min(one.size, other.size) < 2 or one.var() + other.var() == 0:
        return None
    ends = ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    return float(ends.low), float(ends.high)


def _on_name(data: AuditData, compared: pdtp.LeaveOut, detail: Mapping[str, Any]) -> Finding:
    spans = [(unit, *span) for unit, span in enumerate(data.planted) if span]
    hits = sum(first <= int(compared.places[unit]) < end for unit, first, end in spans)
    shares = [(end - first) / int(data.encoded.lengths[data.units[unit]].sum()) for unit, first, end in spans]
    more = {**detail, "hits": hits, "scale": "share of units"}
    about: dict[str, Any] = {"chance": float(np.mean(shares)), "chance_is": "the name's share of a unit's words"}
    about |= {"source": NAMES_SOURCE, "unit": "units with a planted name", "detail": more}
    return proportion("attack.pdtp_on_name", hits, len(spans), over="units", **about)


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
