"""The whole audit, as the command runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from clinveil.attacks.models.leaveout.data import AuditData
from clinveil.attacks.models.leaveout.folder import hash_of
from clinveil.attacks.models.leaveout.prepare import prepare
from clinveil.attacks.models.leaveout.run import Audit, arms_of, audit_of, initial_of, measure, perform_audits
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.files import private_text
from clinveil.core.finding import Finding
from clinveil.lm.notes import PlainNotes, encode
from clinveil.scale.local import Map, processes
from clinveil.scale.tasks import Store, perform_all

Say = Callable[[str], None]
AHEAD = 1_000


def audit_notes(
    notes: PlainNotes,
    settings: LeaveOutSettings,
    seed: int,
    store: Store,
    out: Path,
    say: Say,
    *,
    public: PlainNotes | None = None,
    over: Map | None = None,
) -> list[Finding]:
    """Pick the units, train what is missing, compare; writes `units-*.csv` (numbers only) to `out`.

    Args:
        public: notes to pretrain on. over: how tasks are spread (default: one process a worker).

    Raises:
        InputError, UsageError: as the steps do; what is done stays done.
    """
    data = prepare(notes, settings, np.random.default_rng(seed), also=public)
    folder = kept(store, data)
    say(f"{len(data.encoded)} notes, {data.encoded.ids.size:,} tokens, {data.vocabulary.size:,} in the vocabulary")
    over = over or processes(settings.workers, ahead=AHEAD)
    audits = _audits(folder, settings, seed, store, over, say, public)
    perform_audits(store, audits, over, say, workers=settings.workers, most_hours=settings.max_hours)
    patients = [f"unit {unit}" for unit in range(len(data.units))]
    if settings.unit == "note":
        patients = _owners(notes, settings, seed, public, patients)
    found: list[Finding] = []
    for audit in audits:
        for text in (False, True) if settings.from_text else (False,):
            measured = measure(store, audit, np.random.default_rng(seed), patients, text=text)
            found += measured.findings
            name = "-".join(["units", audit.name.replace(" ", "-") or "random", "text" if text else "model"])
            private_text(out / f"{name}.csv", measured.table)
    return found


def kept(store: Store, data: AuditData) -> Path:
    """The folder of the data, written unless it is there."""
    folder = store.root / data.digest
    data.save(folder)
    return folder


def _audits(
    folder: Path, settings: LeaveOutSettings, seed: int, store: Store, over: Map, say: Say, public: PlainNotes | None
) -> list[Audit]:
    from clinveil.attacks.models.leaveout.data import load_data

    words = load_data(folder).encoded.ids.size if settings.from_text else 0
    place = None
    if public is not None:
        vocabulary = load_data(folder).vocabulary
        place = kept(store, AuditData(encode(public.texts, vocabulary), vocabulary, ()))
    hashed = hash_of(settings.init_vectors) if settings.init_vectors else ""
    arms = arms_of(folder, settings, seed=seed, words=words, public=place, vectors_sha256=hashed)
    perform_all(store, [work for work, _ in arms if work is not None], over, say)
    return [
        audit_of(folder, settings, seed=seed, words=words, initial=initial_of(store, work), name=name)
        for work, name in arms
    ]


def _owners(
    notes: PlainNotes, settings: LeaveOutSettings, seed: int, public: PlainNotes | None, unknown: Sequence[str]
) -> list[str]:
    """Whose note each unit is: the draw of `prepare` once more."""
    from clinveil.attacks.models.leaveout.data import pick_units

    units = pick_units(notes, settings.units, np.random.default_rng(seed), by_note=True)
    return [notes.patients[rows[0]] for rows in units] if len(units) == len(unknown) else list(unknown)
