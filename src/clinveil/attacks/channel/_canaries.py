"""Names planted in copies of notes, to see whether readers find them; the release itself never holds one.

A copy goes through the same channel and policy, under a key that is drawn for it and forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from clinveil.attacks.channel._scene import Halves, Noted, seen_of, word_starts, written
from clinveil.attacks.reader import Scene
from clinveil.core.keys import Key
from clinveil.core.types import Ints, Mask

EACH = 100
LOW, HIGH = 3, 10
_SHORTEST = 40  # words of a patient's notes


def planted(
    found: Halves, cases: Sequence[Scene], names: Mask, patients: int, rng: Generator
) -> list[tuple[Scene, Mask]]:
    """Scenes of copies with a name in them, and the released words, (n_words_of_all_notes,), that come from it.

    Each of at most `patients` patients gets one name of the channel's words, 3 to 10 times.

    Args:
        names: (n_words + 1,) the words that are names.
    """
    rows = np.flatnonzero(names[:-1])
    if not (rows.size and patients):
        return []
    key, made = Key.from_seed(int(rng.integers(2**31))), []
    for scene in cases:
        numbers = [note.patient for note in scene.notes]
        chosen = list(dict.fromkeys(numbers))[: -(-patients // len(cases))]
        texts = [note for note in found.attacked[numbers[0] % 2] if note.patient in set(chosen)]
        one = _planted(scene, texts, rows, key, rng)
        made += [one] if one else []
    return made


def _planted(scene: Scene, notes: Sequence[Noted], rows: Ints, key: Key, rng: Generator) -> tuple[Scene, Mask] | None:
    by_patient: dict[int, list[Noted]] = {}
    for note in notes:
        by_patient.setdefault(note.patient, []).append(note)
    copies: list[tuple[Noted, int]] = []
    for own in by_patient.values():
        if sum(word_starts(note.entered).size for note in own) >= _SHORTEST:
            row = int(rng.choice(rows))
            copies += [(note, row) for note in _with_name(own, scene.channel.words[row], rng)]
    made_of = written([note for note, _ in copies], scene.channel, key)
    both = ((seen_of(note, scene.channel), row) for note, (_, row) in zip(made_of, copies, strict=True))
    # Notes without the name say nothing of it: who is spared them reads no worse.
    seen = [(one, row) for one, row in both if one is not None and (one.truth == row).any()]
    where = [one.truth == row for one, row in seen]
    if not where:
        return None
    made = [one for one, _ in seen]
    return replace(scene, notes=made, again=(), released=[note.outputs for note in made]), np.concatenate(where)


def _with_name(notes: Sequence[Noted], name: str, rng: Generator) -> list[Noted]:
    """Copies of a patient's notes with a name before 3 to 10 of their words."""
    starts = [word_starts(note.entered) for note in notes]
    of_note = np.repeat(np.arange(len(notes)), [own.size for own in starts])
    picked = rng.choice(of_note.size, size=int(rng.integers(LOW, HIGH + 1)), replace=False)
    flat = np.concatenate(starts)
    copies = []
    for number, note in enumerate(notes):
        text = note.entered
        for start in sorted(flat[picked[of_note[picked] == number]].tolist(), reverse=True):
            text = f"{text[:start]}{name} {text[start:]}"
        copies.append(replace(note, entered=text))
    return copies
