"""What lies before the readers: some patients' released notes, and other patients' notes as their knowledge.

Patients are split in two by chance. Those of one half are attacked by who holds the notes of the other half, and the
other way round, so that nobody is attacked with their own notes; or with notes of another place (`Context.others`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from clinveil.attacks.adversary import AdversaryView, AlignedNote
from clinveil.attacks.attack import Context, source_id
from clinveil.attacks.channel._inputs import channel_and_counts
from clinveil.channel.apply import Obfuscator
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.core.tokens import lookup_form, word_spans, words
from clinveil.core.types import Ints
from clinveil.corpus.corpus import NOTE_ID, Corpus, memory_corpus, rows

ALIGNED, FOREIGN = "not laid beside its source", "no word of the channel"
PAIRS = 200
FEW = 0.05
_STRAY = 0.01  # share of words that no channel could have made so


@dataclass(frozen=True)
class Noted:
    """One note on both sides: the text that entered the channel, what was released, and where its words stood."""

    patient: int
    entered: str = field(repr=False)
    released: str = field(repr=False)
    places: tuple[Sequence[int], Sequence[int]] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Halves:
    """The notes of two halves of the patients.

    Attributes:
        attacked: of each half the notes that are attacked. held: of each half all that the other's attackers hold.
        pairs: of each half the notes that the other's attackers hold in both forms, drawn at random.
        left_out: notes that could not be used, by reason.
    """

    attacked: tuple[list[Noted], list[Noted]]
    held: tuple[list[Noted], list[Noted]]
    pairs: tuple[list[Noted], list[Noted]] = field(default=([], []), repr=False)
    left_out: Counter[str] = field(default_factory=Counter)


def halves(context: Context, tokens: int, others: int, rng: Generator) -> Halves:
    """Draw whole patients: about `tokens` words to attack, and about `others` words of each half to be held.

    Raises InputError for fewer than two patients, or a released note that the crosswalk does not know.
    """
    assert context.released is not None and context.entered is not None
    patients: dict[str, list[str]] = {}
    lengths: Counter[str] = Counter()
    for note in rows(context.released):
        patients.setdefault(note.patient_id, []).append(note.note_id)
        lengths[note.patient_id] += note.text.count(" ") + 1
    if len(patients) < 2:
        raise InputError("has notes of fewer than two patients", where="the release", hint="bring more patients")
    names = sorted(patients)
    order = [names[i] for i in rng.permutation(len(names))]
    chosen: dict[str, tuple[int, bool]] = {}  # source note -> number of the patient, whether it is attacked
    in_all, in_half = 0, [0, 0]
    for number, patient in enumerate(order):
        if in_all >= tokens and number > 1 and in_half[number % 2] >= others:
            continue
        for note_id in patients[patient]:
            chosen[source_id(note_id, context.notes)] = number, in_all < tokens or number < 2
        in_all, in_half[number % 2] = in_all + lengths[patient], in_half[number % 2] + lengths[patient]
    found = _gathered(context, chosen)
    one, two = ([held[i] for i in rng.permutation(len(held))[:PAIRS]] for held in found.held)
    return replace(found, pairs=(one, two))


def _gathered(context: Context, chosen: Mapping[str, tuple[int, bool]]) -> Halves:
    """The texts of the chosen notes, one pass over each side."""
    assert context.released is not None and context.entered is not None
    released = {}
    for note in rows(context.released):
        source = source_id(note.note_id, context.notes)
        if source in chosen:
            released[source] = note.text
    places = _places(context.alignment, chosen)
    found = Halves(([], []), ([], []))
    for note in rows(context.entered):
        if note.note_id not in released:
            continue
        number, attacked = chosen[note.note_id]
        both = Noted(number, note.text, released.pop(note.note_id), places.get(note.note_id))
        found.held[number % 2].append(both)
        if attacked:
            found.attacked[number % 2].append(both)
    found.left_out["without a source note"] += len(released)
    return found


Alignment = Callable[[], Iterator[pa.RecordBatch]]


def _places(alignment: Alignment | None, chosen: Mapping[str, object]) -> dict[str, tuple[list[int], list[int]]]:
    found = {}
    for batch in alignment() if alignment else ():
        for row, note_id in enumerate(batch.column(NOTE_ID).to_pylist()):
            if note_id in chosen:
                found[note_id] = batch.column("start")[row].as_py(), batch.column("end")[row].as_py()
    return found


def seen_of(note: Noted, channel: Channel) -> AlignedNote | None:
    """A note as readers see it; None where the two sides cannot be laid beside each other."""
    outputs, starts = words(note.released), word_starts(note.entered)
    if note.places is None:
        own, ends = starts, np.array([end for _, end in word_spans(note.entered)], dtype=np.int64)
    else:
        own, ends = np.array(note.places[0], dtype=np.int64), np.array(note.places[1], dtype=np.int64)
    if len(outputs) != own.size:
        return None
    sources = [lookup_form(note.entered[a:b]) for a, b in zip(own.tolist(), ends.tolist(), strict=True)]
    came, unknown = [channel.ids.get(word, -1) for word in outputs], channel.unknown
    truth = np.array([channel.ids.get(word, unknown) for word in sources], dtype=np.int64)
    known, place = np.array(came, dtype=np.int64), np.searchsorted(starts, own)
    return AlignedNote(known[known >= 0], truth[known >= 0], place[known >= 0], note.patient)


def written(notes: Sequence[Noted], channel: Channel, key: Key) -> list[Noted]:
    """The notes as the channel and its policy release them under a key."""
    if not notes:
        return []
    texts = [(str(i), str(note.patient), note.entered) for i, note in enumerate(notes)]
    obfuscate = Obfuscator(channel, key, align=True)
    made = [one for batch in memory_corpus(texts).batches() for one in obfuscate(batch).beside()]
    return [replace(note, released=text, places=(a, b)) for note, (text, a, b) in zip(notes, made, strict=True)]


def word_starts(text: str) -> Ints:
    """Where the words of a text begin, in code points."""
    return np.array([start for start, _ in word_spans(text)], dtype=np.int64)


def rows_of(text: str, channel: Channel) -> Ints:
    """The words of a text as rows of the channel."""
    get, unknown = channel.ids.get, channel.unknown
    return np.array([get(word, unknown) for word in words(text)], dtype=np.int64)


def scenes(context: Context, found: Halves, rng: Generator) -> list[AdversaryView]:
    """A scene for each half of the patients, with the other half's notes, or those of `Context.others`, as knowledge.

    Raises InputError where notes and channel do not belong together.
    """
    channel, counts, _ = channel_and_counts(context)
    rng.integers(2**31)  # not used; without it, all later draws would differ from those of earlier versions
    sides = [_aligned(notes, channel, found.left_out) for notes in found.attacked]
    _refuse_strangers([*sides[0], *sides[1]], channel, found)
    prior = None if context.others is None else _prior(context.others, channel)
    released = [known for side in found.held for known in _released(side, channel)]
    made, memory = list[AdversaryView](), dict[Any, Any]()
    for half in (0, 1):
        held = found.held[1 - half]
        others = [rows_of(note.entered, channel) for note in held] if prior is None else prior
        pairs = _aligned(found.pairs[1 - half], channel, Counter())
        known: Any = {"others": others, "pairs": pairs, "counts": counts, "memory": memory}
        view = AdversaryView(channel, sides[half], released, **known, threads=context.workers, scratch=context.scratch)
        made += [view] if sides[half] else []
    return made


def _aligned(notes: Sequence[Noted], channel: Channel, left_out: Counter[str]) -> list[AlignedNote]:
    found = [seen_of(note, channel) for note in notes]
    left_out[ALIGNED] += found.count(None)
    return [one for one in found if one is not None and len(one)]


def _released(notes: Sequence[Noted], channel: Channel) -> list[Ints]:
    return [rows[rows < channel.unknown] for rows in (rows_of(note.released, channel) for note in notes)]


def _refuse_strangers(notes: Sequence[AlignedNote], channel: Channel, found: Halves) -> None:
    """Raise InputError where little could be laid side by side, or much of it is impossible."""
    hint = "name the release, its own vault (OUT/vault) and the notes that it was made of"
    if not notes or found.left_out[ALIGNED] > len(notes):
        raise InputError("release and original cannot be laid side by side", hint=hint)
    source = np.concatenate([note.truth for note in notes])
    output = np.concatenate([note.outputs for note in notes])
    possible = np.asarray(channel.matrix()[source, output]).ravel() > 0
    if channel.policy.background:
        possible |= channel.pool[output] > 0
    if (~possible).mean() > _STRAY:
        share = f"{(~possible).mean():.0%} of the released words"
        raise InputError(f"{share} cannot have come from what stood in their place", hint=hint)


def _prior(corpus: Corpus, channel: Channel) -> list[Ints]:
    """Notes of another place. Raises InputError where few of their words are words of the channel."""
    notes = [rows_of(note.text, channel) for note in rows(corpus)]
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *notes])
    known = float((flat < channel.unknown).mean()) if flat.size else 0.0
    if known < FEW:
        hint = "bring notes of the same language and kind"
        raise InputError(f"--prior has {known:.1%} of its words in common with the release", hint=hint)
    return notes
