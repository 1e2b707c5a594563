"""Notes of a few patients, and settings of an audit that takes a second."""

from __future__ import annotations

import numpy as np

from clinveil.attacks import LeaveOutSettings, pick_units, prepare
from clinveil.lm import ModelSettings, PlainNotes

WORDS = [f"w{i}" for i in range(25)]
TINY = {
    "width": 8,
    "layers": 1,
    "window": 5,
    "lanes": 3,
    "epochs": 2,
    "vocabulary": "words",
    "min_count": 1,
}


def notes_of(patients=8, each=2, seed=0):
    """Notes of a few lines; patient k's are about k times as long as patient 0's, and hold a word
    of their own.
    """
    rng = np.random.default_rng(seed)
    texts = []
    owners = []
    for patient in range(patients):
        for note in range(each):
            lines = [" ".join(rng.choice(WORDS, 3 + patient)) for _ in range(1 + note)]
            texts.append("\n".join([*lines, f"own{patient} ."]))
            owners.append(f"p{patient}")
    return PlainNotes(tuple(texts), tuple(f"n{i}" for i in range(len(texts))), tuple(owners))


def settings_of(**how):
    values = {"units": 3, "reseeds": 1, "workers": 1, "max_hours": 1.0, **TINY, **how}
    lm = {name: values.pop(name) for name in [*values] if name in ModelSettings.model_fields}
    return LeaveOutSettings.model_validate({**values, "lm": lm})


def data_of(notes, settings, rng, **given):
    """The data of an audit, its units drawn first."""
    units = pick_units(notes, settings.units, rng)
    return prepare(notes, units, settings, rng, **given)
