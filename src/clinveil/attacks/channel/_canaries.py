"""Names planted in copies of notes, to measure whether attackers recover them; the release itself never holds one.

A copy goes through the same channel and policy, under a key that is drawn for it and forgotten. Where each word has
one replacement in all notes (memo `corpus`), the attacker's pairs and the rest of the release are written again under
that key too, because they would tell nothing of another code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import AdversaryView, AlignedNote
from clinveil.attacks.channel._view import Halves, Noted, seen_of, word_starts, written
from clinveil.core.keys import Key
from clinveil.core.types import Ints, Mask

EACH = 100
LOW, HIGH = 3, 10
_SHORTEST = 40  # words of a patient's notes
_AROUND = 8  # released words on either side of a planted name that attackers get, where words keep their order


def planted(
    found: Halves, cases: Sequence[AdversaryView], names: Mask, patients: int, rng: Generator
) -> list[tuple[AdversaryView, Mask]]:
    """Scenes of copies with a name in them, and the released words, (n_words_of_all_notes,), that come from it.

    Each of at most `patients` patients gets one name of the channel's words, 3 to 10 times.

    Args:
        names: (n_words + 1,) the words that are names.
    """
    rows = np.flatnonzero(names[:-1])
    if not (rows.size and patients):
        return []
    key, made = Key.from_seed(int(rng.integers(2**31))), []
    for view in cases:
        numbers = [note.patient for note in view.notes]
        ordered = view.channel.policy.keeps_order  # only then is it enough to attack what surrounds a name
        own = (found.held if ordered else found.attacked)[numbers[0] % 2]
        drawn = sorted({note.patient for note in own}) if ordered else list(dict.fromkeys(numbers))
        chosen = set(drawn[: -(-patients // len(cases))])
        texts = [note for note in own if note.patient in chosen]
        one = _planted(view, texts, rows, found, key, rng)
        made += [one] if one else []
    return made


def _planted(
    view: AdversaryView, notes: Sequence[Noted], rows: Ints, found: Halves, key: Key, rng: Generator
) -> tuple[AdversaryView, Mask] | None:
    by_patient: dict[int, list[Noted]] = {}
    for note in notes:
        by_patient.setdefault(note.patient, []).append(note)
    copies: list[tuple[Noted, int]] = []
    for own in by_patient.values():
        if sum(word_starts(note.entered).size for note in own) >= _SHORTEST:
            row = int(rng.choice(rows))
            copies += [(note, row) for note in _with_name(own, view.channel.words[row], rng)]
    made_of = written([note for note, _ in copies], view.channel, key)
    both = ((seen_of(note, view.channel), row) for note, (_, row) in zip(made_of, copies, strict=True))
    whole = [(one, row) for one, row in both if one is not None and (one.truth == row).any()]
    if not whole:
        return None
    ordered = view.channel.policy.keeps_order
    seen = [(_near(one, row) if ordered else one, row) for one, row in whole]
    where = np.concatenate([one.truth == row for one, row in seen])
    base = _under(key, view, found) if view.channel.policy.scope == "corpus" else view
    released = [*base.released, *(one.outputs for one, _ in whole)]
    return replace(base, notes=[one for one, _ in seen], released=released), where


def _near(note: AlignedNote, row: int) -> AlignedNote:
    """The surroundings of a planted name: words further away tell nothing of it, and cost time."""
    distance = np.abs(np.arange(len(note))[:, None] - np.flatnonzero(note.truth == row))
    near = distance.min(axis=1) <= _AROUND
    return AlignedNote(note.outputs[near], note.truth[near], note.places[near], note.patient)


def _under(key: Key, view: AdversaryView, found: Halves) -> AdversaryView:
    """The same attack input where the whole release was written under another key."""
    half = view.notes[0].patient % 2
    sides = [written(notes, view.channel, key) for notes in (*found.held, found.pairs[1 - half])]
    one, other, pairs = ([made for note in side if (made := seen_of(note, view.channel))] for side in sides)
    return replace(view, pairs=pairs, released=[note.outputs for note in (*one, *other)], memory={})


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
