"""From notes to the data of an audit."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from clinveil.attacks.models.leaveout.data import AuditData, keep_aside, pick_units
from clinveil.attacks.models.leaveout.planted import Planted, plant
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.lm.notes import PlainNotes, encode
from clinveil.lm.train import make_vocabulary
from clinveil.lm.vocabulary import Vocabulary


def prepare(
    notes: PlainNotes,
    settings: LeaveOutSettings,
    rng: Generator,
    *,
    also: PlainNotes | None = None,
    vocabulary: Vocabulary | None = None,
    validation: PlainNotes | None = None,
) -> AuditData:
    """Pick who is left out, plant names if asked to, and encode; the vocabulary is that of all notes, as in paper C.

    Args:
        also: public notes whose words the vocabulary must hold too (`--pretrain`).
        vocabulary: instead of one made of the notes.
        validation: of an annealed schedule, instead of a tenth of the patients, who are then not trained on.

    Raises:
        InputError: too few patients. MissingExtra: byte pairs without `tokenizers`.
    """
    units = pick_units(notes, settings.units, rng, by_note=settings.unit == "note")
    planted: list[Planted | None] = []
    if settings.plant_names:
        notes, planted = plant(notes, units, rng)
    recipe = settings.audit_recipe()
    annealed = recipe is not None and recipe.schedule == "annealed"
    aside = keep_aside(notes, units, rng) if annealed and validation is None else []
    if vocabulary is None:
        every = [word for one in planted if one for word in one.name]
        vocabulary = make_vocabulary(_joined(notes, also), settings.lm, always=every)
    kept = sorted(set(range(len(notes))) - set(aside))
    place = {row: new for new, row in enumerate(kept)}
    return AuditData(
        encode(notes.rows(kept).texts, vocabulary),
        vocabulary,
        tuple(np.array([place[row] for row in rows], dtype=np.int64) for rows in units),
        encode((validation or notes.rows(aside)).texts, vocabulary) if annealed else None,
        tuple(one.place(vocabulary) if one else () for one in planted),
    )


def _joined(notes: PlainNotes, also: PlainNotes | None) -> PlainNotes:
    if also is None:
        return notes
    patients = tuple(f"public {patient}" for patient in also.patients)
    return PlainNotes(notes.texts + also.texts, notes.note_ids + also.note_ids, notes.patients + patients)
