"""Attack inputs: released notes of some patients, and notes of other patients as the attacker's
knowledge.

Patients are split at random into two halves. Each half is attacked with the notes of the other
half, so that no patient is attacked with their own notes; or with external notes
(`Context.others`).

`planted` puts names into copies of notes, to measure whether attackers recover them; no release
contains these names. A copy uses the same channel and policy under a new key, which is then
discarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import AdversaryView, NoteRows
from clinveil.attacks.attack import Context, channel_and_counts, source_id
from clinveil.channel import Channel, WordObfuscator, label_rows, released_notes
from clinveil.core import InputError, Ints, Key, Mask, lookup_form, word_spans, words
from clinveil.corpus import TEXT, Corpus, Note, memory_corpus, rows, rows_with

NOT_ALIGNED = "not aligned with its source"
PAIRS = 200
MIN_KNOWN = 0.05
EACH = 100
LOW = 3
HIGH = 10
_SHORTEST = 40  # minimum words of a patient's notes
# released words on either side of a planted name that attackers get
_AROUND = 8
_MAX_IMPOSSIBLE = 0.01  # share of words that the channel cannot have produced


@dataclass(frozen=True)
class NotePair:
    """One note before and after the channel."""

    patient: int
    entered: str = field(repr=False)
    released: str = field(repr=False)
    label: str | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Halves:
    """The notes of the two halves of the patients.

    Attributes:
        attacked: per half, the notes to attack. held: per half, all notes that attackers of the
            other half have.
        pairs: per half, a random sample of notes that attackers of the other half have in both
            forms.
        left_out: number of unusable notes, by reason.
    """

    attacked: tuple[list[NotePair], list[NotePair]]
    held: tuple[list[NotePair], list[NotePair]]
    pairs: tuple[list[NotePair], list[NotePair]] = field(default=([], []), repr=False)
    left_out: Counter[str] = field(default_factory=Counter)


def halves(context: Context, tokens: int, others: int, rng: Generator) -> Halves:
    """Sample entire patients: about `tokens` words to attack, and about `others` words of each half
    as knowledge.

    Raises InputError for fewer than two patients, or a released note that is not in the crosswalk.
    """
    assert context.released is not None and context.entered is not None
    patients: dict[str, list[str]] = {}
    lengths: Counter[str] = Counter()
    for note in rows(context.released):
        patients.setdefault(note.patient_id, []).append(note.note_id)
        lengths[note.patient_id] += note.text.count(" ") + 1
    if len(patients) < 2:
        raise InputError(
            "contains notes of fewer than two patients",
            where="the release",
            hint="provide notes of more patients",
        )
    names = sorted(patients)
    order = [names[i] for i in rng.permutation(len(names))]
    chosen: dict[
        str, tuple[int, bool]
    ] = {}  # source note -> number of the patient, whether to attack it
    in_all = 0
    in_half = [0, 0]
    for number, patient in enumerate(order):
        if in_all >= tokens and number > 1 and in_half[number % 2] >= others:
            continue
        for note_id in patients[patient]:
            chosen[source_id(note_id, context.notes)] = number, in_all < tokens or number < 2
        in_all = in_all + lengths[patient]
        in_half[number % 2] = in_half[number % 2] + lengths[patient]
    found = _collected(context, chosen)
    first, second = found.held
    first_pairs = [first[i] for i in rng.permutation(len(first))[:PAIRS]]
    second_pairs = [second[i] for i in rng.permutation(len(second))[:PAIRS]]
    return replace(found, pairs=(first_pairs, second_pairs))


def _collected(context: Context, chosen: Mapping[str, tuple[int, bool]]) -> Halves:
    """Collect the texts of the chosen notes, in one pass over each side."""
    assert context.released is not None and context.entered is not None
    released = {}
    for note, label in _with_labels(context.released, context.channel):
        source = source_id(note.note_id, context.notes)
        if source in chosen:
            released[source] = note.text, label
    found = Halves(([], []), ([], []))
    for note in rows(context.entered):
        if note.note_id not in released:
            continue
        number, attacked = chosen[note.note_id]
        both = NotePair(number, note.text, *released.pop(note.note_id))
        found.held[number % 2].append(both)
        if attacked:
            found.attacked[number % 2].append(both)
    found.left_out["without a source note"] += len(released)
    return found


def _with_labels(released: Corpus, channel: Channel | None) -> Iterator[tuple[Note, str | None]]:
    """Yield the released notes with the label that steers the channel's context model, if any."""
    label = channel.context.label if channel and channel.context else ""
    if label not in released.columns.keep:
        yield from ((note, None) for note in rows(released))
        return
    for note, (value,) in rows_with(released, label):
        yield note, None if value is None else str(value).strip()


def aligned(note: NotePair, channel: Channel) -> NoteRows | None:
    """Align a released note with its source; None if the two cannot be aligned."""
    outputs = rows_of(note.released, channel)
    spans = channel.released_spans(note.entered)
    if outputs.size != len(spans):
        return None
    forms = (lookup_form(note.entered[start:end]) for start, end in spans)
    truth = np.array([channel.ids.get(form, channel.unknown) for form in forms], dtype=np.int64)
    known = outputs < channel.unknown
    written = None
    if channel.in_context and channel.context is not None:
        label = label_rows(channel.context, [note.label])
        written = next(released_notes(channel, [note.released], label.tolist()))
    places = np.flatnonzero(known)
    return NoteRows(outputs[known], truth[known], note.patient, written, places)


def obfuscated(notes: Sequence[NotePair], channel: Channel, key: Key) -> list[NotePair]:
    """Obfuscate notes with the channel and its policy under a key."""
    if not notes:
        return []
    texts = [(str(i), str(note.patient), note.entered) for i, note in enumerate(notes)]
    obfuscate = WordObfuscator(channel, key)
    released = [
        text
        for batch in memory_corpus(texts).batches()
        for text in obfuscate(batch).batch.column(TEXT).to_pylist()
    ]
    # The copies were drawn without a label.
    return [
        replace(note, released=text, label=None) for note, text in zip(notes, released, strict=True)
    ]


def word_starts(text: str) -> Ints:
    """Return the offsets of the words of a text, in code points."""
    return np.array([start for start, _ in word_spans(text)], dtype=np.int64)


def rows_of(text: str, channel: Channel) -> Ints:
    """Return the words of a text as rows of the channel."""
    get = channel.ids.get
    unknown = channel.unknown
    return np.array([get(word, unknown) for word in words(text)], dtype=np.int64)


def adversary_views(context: Context, both_halves: Halves) -> list[AdversaryView]:
    """Return a view per half of the patients; the other half's notes, or `Context.others`, are the
    knowledge.

    Raises InputError if notes and channel do not match.
    """
    channel, counts, _ = channel_and_counts(context)
    sides = [_all_aligned(notes, channel, both_halves.left_out) for notes in both_halves.attacked]
    _check_match([*sides[0], *sides[1]], channel, both_halves)
    prior = None if context.others is None else _prior(context.others, channel)
    released = [known for side in both_halves.held for known in _released(side, channel)]
    views = list[AdversaryView]()
    cache = dict[Any, Any]()
    for half in (0, 1):
        held = both_halves.held[1 - half]
        others = [rows_of(note.entered, channel) for note in held] if prior is None else prior
        pairs = _all_aligned(both_halves.pairs[1 - half], channel, Counter())
        view = AdversaryView(
            channel,
            sides[half],
            released,
            others=others,
            pairs=pairs,
            counts=counts,
            release=context.released if channel.in_context else None,
            cache=cache,
            threads=context.workers,
            scratch=context.scratch,
        )
        views += [view] if sides[half] else []
    return views


def _all_aligned(
    notes: Sequence[NotePair], channel: Channel, left_out: Counter[str]
) -> list[NoteRows]:
    found = [aligned(note, channel) for note in notes]
    left_out[NOT_ALIGNED] += found.count(None)
    return [one for one in found if one is not None and len(one)]


def _released(notes: Sequence[NotePair], channel: Channel) -> list[Ints]:
    return [
        rows[rows < channel.unknown] for rows in (rows_of(note.released, channel) for note in notes)
    ]


def _check_match(notes: Sequence[NoteRows], channel: Channel, found: Halves) -> None:
    """Raise InputError if few notes can be aligned, or many aligned words are impossible."""
    hint = "pass the release, its own vault (OUT/vault) and its source notes"
    if not notes or found.left_out[NOT_ALIGNED] > len(notes):
        raise InputError("release and original notes cannot be aligned", hint=hint)
    source = np.concatenate([note.truth for note in notes])
    output = np.concatenate([note.outputs for note in notes])
    possible = np.asarray(channel.matrix()[source, output]).ravel() > 0
    if channel.in_context and channel.context is not None:
        from_model = (source == channel.unknown) | (channel.policy.background > 0)
        possible |= from_model & np.isin(output, channel.context.rows)
    elif channel.policy.background:
        possible |= channel.pool[output] > 0
    if (~possible).mean() > _MAX_IMPOSSIBLE:
        share = f"{(~possible).mean():.0%} of the released words"
        raise InputError(f"{share} cannot come from their aligned source words", hint=hint)


def _prior(corpus: Corpus, channel: Channel) -> list[Ints]:
    """Read external notes. Raises InputError if few of their words are in the channel's
    vocabulary.
    """
    notes = [rows_of(note.text, channel) for note in rows(corpus)]
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *notes])
    known = float((flat < channel.unknown).mean()) if flat.size else 0.0
    if known < MIN_KNOWN:
        hint = "provide notes of the same language and kind"
        raise InputError(
            f"only {known:.1%} of the words of --prior are in the release's vocabulary", hint=hint
        )
    return notes


def planted(
    found: Halves, views: Sequence[AdversaryView], names: Mask, patients: int, rng: Generator
) -> list[tuple[AdversaryView, Mask]]:
    """Return views of copies with planted names, and masks of the released words that come from
    them.

    Each of at most `patients` patients gets one name of the channel's words, 3 to 10 times.

    Args:
        names: (n_words + 1,) the words that are names.
    """
    rows = np.flatnonzero(names[:-1])
    if not (rows.size and patients):
        return []
    key = Key.from_seed(int(rng.integers(2**31)))
    planted_views = []
    for view in views:
        numbers = [note.patient for note in view.notes]
        notes_of_half = found.held[numbers[0] % 2]
        drawn = sorted({note.patient for note in notes_of_half})
        chosen = set(drawn[: -(-patients // len(views))])
        texts = [note for note in notes_of_half if note.patient in chosen]
        one = _planted(view, texts, rows, key, rng)
        planted_views += [one] if one else []
    return planted_views


def _planted(
    view: AdversaryView,
    notes: Sequence[NotePair],
    rows: Ints,
    key: Key,
    rng: Generator,
) -> tuple[AdversaryView, Mask] | None:
    by_patient: dict[int, list[NotePair]] = {}
    for note in notes:
        by_patient.setdefault(note.patient, []).append(note)
    copies: list[tuple[NotePair, int]] = []
    for notes_of_half in by_patient.values():
        if sum(word_starts(note.entered).size for note in notes_of_half) >= _SHORTEST:
            row = int(rng.choice(rows))
            copies += [
                (note, row) for note in _with_name(notes_of_half, view.channel.words[row], rng)
            ]
    copies_out = obfuscated([note for note, _ in copies], view.channel, key)
    both = (
        (aligned(note, view.channel), row)
        for note, (_, row) in zip(copies_out, copies, strict=True)
    )
    complete = [(one, row) for one, row in both if one is not None and (one.truth == row).any()]
    if not complete:
        return None
    shown = [(_near(one, row), row) for one, row in complete]
    where = np.concatenate([one.truth == row for one, row in shown])
    released = [*view.released, *(one.outputs for one, _ in complete)]
    return replace(view, notes=[one for one, _ in shown], released=released), where


def _near(note: NoteRows, row: int) -> NoteRows:
    """Keep the context of a planted name; more distant words carry no information and cost time."""
    distance = np.abs(np.arange(len(note))[:, None] - np.flatnonzero(note.truth == row))
    near = distance.min(axis=1) <= _AROUND
    places = None if note.places is None else note.places[near]
    return NoteRows(note.outputs[near], note.truth[near], note.patient, note.written, places)


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
