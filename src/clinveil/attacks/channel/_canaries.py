"""Names planted in copies of notes, to measure whether attackers recover them; releases never contain these names.

A copy uses the same channel and policy under a new key, which is then discarded. Where each word has one replacement in
all notes (scope `corpus`), the attacker's pairs and the rest of the release are obfuscated again under that key too,
because pairs under another key would contain no information.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import AdversaryView, AlignedNote
from clinveil.attacks.channel._view import Halves, NotePair, aligned, obfuscated, word_starts
from clinveil.core.keys import Key
from clinveil.core.types import Ints, Mask

EACH = 100
LOW, HIGH = 3, 10
_SHORTEST = 40  # minimum words of a patient's notes
_AROUND = 8  # released words on either side of a planted name that attackers get, if words keep their order


def planted(
    found: Halves, views: Sequence[AdversaryView], names: Mask, patients: int, rng: Generator
) -> list[tuple[AdversaryView, Mask]]:
    """Return views of copies with planted names, and masks of the released words that come from them.

    Each of at most `patients` patients gets one name of the channel's words, 3 to 10 times.

    Args:
        names: (n_words + 1,) the words that are names.
    """
    rows = np.flatnonzero(names[:-1])
    if not (rows.size and patients):
        return []
    key, planted_views = Key.from_seed(int(rng.integers(2**31))), []
    for view in views:
        numbers = [note.patient for note in view.notes]
        ordered = view.channel.policy.keeps_order  # only then is the context of a name sufficient
        notes_of_half = (found.held if ordered else found.attacked)[numbers[0] % 2]
        drawn = sorted({note.patient for note in notes_of_half}) if ordered else list(dict.fromkeys(numbers))
        chosen = set(drawn[: -(-patients // len(views))])
        texts = [note for note in notes_of_half if note.patient in chosen]
        one = _planted(view, texts, rows, found, key, rng)
        planted_views += [one] if one else []
    return planted_views


def _planted(
    view: AdversaryView, notes: Sequence[NotePair], rows: Ints, found: Halves, key: Key, rng: Generator
) -> tuple[AdversaryView, Mask] | None:
    by_patient: dict[int, list[NotePair]] = {}
    for note in notes:
        by_patient.setdefault(note.patient, []).append(note)
    copies: list[tuple[NotePair, int]] = []
    for notes_of_half in by_patient.values():
        if sum(word_starts(note.entered).size for note in notes_of_half) >= _SHORTEST:
            row = int(rng.choice(rows))
            copies += [(note, row) for note in _with_name(notes_of_half, view.channel.words[row], rng)]
    copies_out = obfuscated([note for note, _ in copies], view.channel, key)
    both = ((aligned(note, view.channel), row) for note, (_, row) in zip(copies_out, copies, strict=True))
    complete = [(one, row) for one, row in both if one is not None and (one.truth == row).any()]
    if not complete:
        return None
    ordered = view.channel.policy.keeps_order
    shown = [(_near(one, row) if ordered else one, row) for one, row in complete]
    where = np.concatenate([one.truth == row for one, row in shown])
    base = _under(key, view, found) if view.channel.policy.scope == "corpus" else view
    released = [*base.released, *(one.outputs for one, _ in complete)]
    return replace(base, notes=[one for one, _ in shown], released=released), where


def _near(note: AlignedNote, row: int) -> AlignedNote:
    """Keep the context of a planted name; more distant words carry no information and cost time."""
    distance = np.abs(np.arange(len(note))[:, None] - np.flatnonzero(note.truth == row))
    near = distance.min(axis=1) <= _AROUND
    return AlignedNote(note.outputs[near], note.truth[near], note.positions[near], note.patient)


def _under(key: Key, view: AdversaryView, found: Halves) -> AdversaryView:
    """Return the view of a release that was obfuscated entirely under another key."""
    half = view.notes[0].patient % 2
    sides = [obfuscated(notes, view.channel, key) for notes in (*found.held, found.pairs[1 - half])]
    one, other, pairs = (
        [planted_views for note in side if (planted_views := aligned(note, view.channel))] for side in sides
    )
    return replace(view, pairs=pairs, released=[note.outputs for note in (*one, *other)], cache={})


def _with_name(notes: Sequence[NotePair], name: str, rng: Generator) -> list[NotePair]:
    """Copy a patient's notes and insert a name before 3 to 10 of their words."""
    starts = [word_starts(note.entered) for note in notes]
    of_note = np.repeat(np.arange(len(notes)), [notes_of_half.size for notes_of_half in starts])
    picked = rng.choice(of_note.size, size=int(rng.integers(LOW, HIGH + 1)), replace=False)
    flat = np.concatenate(starts)
    copies = []
    for number, note in enumerate(notes):
        text = note.entered
        for start in sorted(flat[picked[of_note[picked] == number]].tolist(), reverse=True):
            text = f"{text[:start]}{name} {text[start:]}"
        copies.append(replace(note, entered=text))
    return copies
