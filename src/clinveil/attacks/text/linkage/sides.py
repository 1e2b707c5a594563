"""The two sides of a linkage: released notes, and known texts about the same people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries.own_vectors import channel_like, shadow_context, shadow_settings
from clinveil.attacks.attack import source_id
from clinveil.channel import NEIGHBOURS, Channel, ChannelSettings, build_channel
from clinveil.core import InputError, Ints, Mask, words
from clinveil.corpus import (
    NOTE_ID,
    PATIENT_ID,
    Corpus,
    KeySample,
    Note,
    corpus_of_texts,
    rows,
    rows_with,
)
from clinveil.vectors import Vectors, VectorSettings, train

T = TypeVar("T")
CHARACTERS = 200_000
_LETTER = re.compile(r"[^\W\d_]")
CHANNEL = ChannelSettings(min_patients=1, allow_small=True)


@dataclass(frozen=True, eq=False)
class LinkageSides:
    """Released notes, known texts, and which of them belong together.

    Attributes:
        released, known: texts that contain words. truth: (n_released,) the known text of each note.
        people: (n_released,) number of the note's person; intervals are by person.
        left_out: number of unusable notes: without words, or of a person without a known text.
        wholes: (n_known,) the entire texts, if `known` are fragments of them.
        ids: (n_known,) the key of each known text.
        sources: (n_released,) source id of each released note; empty if unknown. labels: the label
            of each released note, None for none; empty if unknown. starts: (n_known,) first word of
            each fragment in its entire text.
    """

    released: Sequence[str] = field(repr=False)
    known: Sequence[str] = field(repr=False)
    truth: Ints = field(repr=False)
    people: Ints = field(repr=False)
    left_out: int = 0
    wholes: Sequence[str] | None = field(default=None, repr=False)
    ids: Sequence[str] = field(default=(), repr=False)
    sources: Sequence[str] = field(default=(), repr=False)
    labels: Sequence[str | None] = field(default=(), repr=False)
    starts: Sequence[int] = ()

    @property
    def whole(self) -> Sequence[str]:
        """Return the entire known texts."""
        return self.known if self.wholes is None else self.wholes

    @cached_property
    def released_words(self) -> list[list[str]]:
        """Return the words of each released note."""
        return [words(text) for text in self.released]

    @cached_property
    def known_words(self) -> list[list[str]]:
        """Return the words of each known text."""
        return [words(text) for text in self.known]

    @cached_property
    def rarest(self) -> Mask:
        """Return a mask of notes of the tenth of the people whose known texts have the rarest words
        on average.
        """
        texts = [set(words(text)) for text in self.whole]
        texts_held = Counter(word for text in texts for word in text)
        rarity = np.array(
            [
                np.mean([-np.log(texts_held[word]) for word in text]) if text else -np.inf
                for text in texts
            ]
        )
        of_people = np.full(int(self.people.max()) + 1, -np.inf)
        np.maximum.at(of_people, self.people, rarity[self.truth])
        present = np.unique(self.people)
        tenth = present[np.argsort(-of_people[present], kind="stable")[: -(-len(present) // 10)]]
        return np.isin(self.people, tenth)

    def fragments(self, length: int, rng: Generator) -> LinkageSides:
        """Return one released note per known text, with a random run of `length` words of the text
        as known text.
        """
        first = np.unique(self.truth, return_index=True)[1]
        known = [self.known_words[j] for j in self.truth[first]]
        starts = [int(rng.integers(max(1, len(text) - length + 1))) for text in known]
        runs = [" ".join(text[at : at + length]) for text, at in zip(known, starts, strict=True)]
        released = [self.released[i] for i in first]
        whole = [self.known[j] for j in self.truth[first]]
        labels = [self.labels[i] for i in first] if self.labels else ()
        return LinkageSides(
            released,
            runs,
            np.arange(len(first)),
            self.people[first],
            self.left_out,
            whole,
            labels=labels,
            starts=starts,
        )

    def labelled(self, released: Corpus, label: str, crosswalk: Mapping[str, str] | None) -> Self:
        """Return the same sides with the labels of the released notes."""
        if not label or label not in released.columns.keep or not self.sources:
            return self
        values = {
            source_id(note.note_id, crosswalk): None if value is None else str(value).strip()
            for note, (value,) in rows_with(released, label)
        }
        return replace(self, labels=[values[source] for source in self.sources])


def paired(
    released: Corpus,
    known: Corpus,
    rng: Generator,
    *,
    match: str | None = None,
    crosswalk: Mapping[str, str] | None = None,
    limit: int,
) -> LinkageSides:
    """Pair released notes with known texts of the same id; texts with the same id are joined.
    Streams both.

    Args:
        match: the column that pairs both; `patient` for the patient ids; None: the note ids.
        crosswalk: released note (or patient) id -> the id of the known text; None if they are
            equal.
        limit: maximum released notes, a random sample; with fewer notes, texts of other people are
            added up to it.

    Raises InputError for a missing column, no common id, or fewer than two people.
    """
    column = {None: NOTE_ID, "patient": PATIENT_ID}.get(match, match or NOTE_ID)
    keys = {key for key, note in _keyed(known, column) if _has_words(note.text)}
    sample: KeySample[tuple[str, str, str]] = KeySample(limit, rng)
    left_out = 0
    for released_key, note in _keyed(released, column):
        key = source_id(released_key, None if column not in (NOTE_ID, PATIENT_ID) else crosswalk)
        fits = key in keys and _has_words(note.text)
        left_out += not fits
        if fits:
            keyed_note = (key, note.patient_id, note.text)
            sample.offer(note.note_id, partial(_same, keyed_note))
    if not sample.values:
        hint = "pass the pairing column with attack.match, or the vault of the release with --vault"
        raise InputError("no released note has the id of a known text", hint=hint)
    texts_of = _texts(known, column, {key for key, _, _ in sample.values.values()}, limit, rng)
    notes = list(sample.values.values())
    sources = [key for key, _, _ in notes] if column == NOTE_ID else []
    return _sides(notes, texts_of, left_out, sources)


def _texts(
    known: Corpus, column: str, wanted: AbstractSet[str], limit: int, rng: Generator
) -> dict[str, list[str]]:
    """Return the texts of the wanted keys, then a random sample of others, up to `limit` keys in
    all.
    """
    texts_of = dict[str, list[str]]()
    others = KeySample[list[str]](max(1, limit - len(wanted)), rng)
    for key, note in _keyed(known, column):
        if _has_words(note.text):
            texts_held = texts_of.setdefault(key, []) if key in wanted else others.offer(key, list)
            if texts_held is not None:
                texts_held.append(note.text)
    return texts_of | (others.values if len(wanted) < limit else {})


def _sides(
    notes: list[tuple[str, str, str]],
    texts_of: Mapping[str, list[str]],
    left_out: int,
    sources: Sequence[str],
) -> LinkageSides:
    """Build the sides from notes (key, patient, text), the texts of each key, and source ids."""
    place = {key: j for j, key in enumerate(texts_of)}
    truth = np.array([place[key] for key, _, _ in notes], dtype=np.int64)
    if (people := len(np.unique(truth))) < 2:
        raise InputError(
            f"linkage requires two people, found {people}",
            hint="provide notes and texts of more people",
        )
    people_numbers = np.unique(
        np.array([patient for _, patient, _ in notes], dtype=object), return_inverse=True
    )[1]
    known = ["\n".join(texts)[:CHARACTERS] for texts in texts_of.values()]
    released = [text[:CHARACTERS] for *_, text in notes]
    return LinkageSides(
        released,
        known,
        truth,
        people_numbers.astype(np.int64),
        left_out,
        ids=list(texts_of),
        sources=sources,
    )


def unsampled(corpus: Corpus, sides: LinkageSides, limit: int, rng: Generator) -> list[str]:
    """Return the texts of at most `limit` notes, a random sample, that are not among the known
    texts of a linkage.

    Empty if they are fewer than the known texts, which is too few to train on.
    """
    known = set(sides.ids)
    sample = KeySample[str](limit, rng)
    for note in rows(corpus):
        if note.note_id not in known:
            sample.offer(note.note_id, partial(_same, note.text))
    return list(sample.values.values()) if len(sample.values) >= len(sides.known) else []


def other_notes(
    released: Corpus,
    original: Corpus,
    rng: Generator,
    *,
    crosswalk: Mapping[str, str] | None,
    limit: int,
) -> LinkageSides | None:
    """Pair one released note of each patient with the patient's other source notes; None for fewer
    than two patients.

    Args:
        crosswalk: released note id -> source id. limit: maximum patients, a random sample.
    """
    sample: KeySample[list[tuple[str, str]]] = KeySample(limit, rng)
    for note_id, patient, text in rows(released):
        texts_held = sample.offer(patient, list)
        if texts_held is not None and _has_words(text):
            texts_held.append((source_id(note_id, crosswalk), text))
    several = {
        patient: texts_held for patient, texts_held in sample.values.items() if len(texts_held) > 1
    }
    chosen = {
        patient: texts_held[int(rng.integers(len(texts_held)))]
        for patient, texts_held in several.items()
    }
    owner = {source: patient for patient, texts_held in several.items() for source, _ in texts_held}
    released_sources = {source for source, _ in chosen.values()}
    texts_of: dict[str, list[str]] = {}
    for note_id, _, text in rows(original):
        if note_id in owner and note_id not in released_sources and _has_words(text):
            texts_of.setdefault(owner[note_id], []).append(text)
    notes = [
        (patient, patient, text) for patient, (_, text) in chosen.items() if patient in texts_of
    ]
    if len(notes) < 2:
        return None
    sources = [chosen[patient][0] for patient, _, _ in notes]
    return _sides(notes, texts_of, len(sample.values) - len(notes), sources)


def _same(value: T) -> T:
    return value


def _keyed(corpus: Corpus, column: str) -> Iterator[tuple[str, Note]]:
    """Yield each note of a corpus and its pairing key."""
    if column == NOTE_ID:
        yield from ((note.note_id, note) for note in rows(corpus))
    elif column == PATIENT_ID:
        yield from ((note.patient_id, note) for note in rows(corpus))
    else:
        try:
            yield from (
                (str(value), note)
                for note, (value,) in rows_with(corpus, column)
                if value is not None
            )
        except KeyError:
            raise InputError(
                "the column to match by does not exist",
                hint="pass a column of both files with attack.match",
            ) from None


def _has_words(text: str) -> bool:
    return _LETTER.search(text) is not None


@dataclass(frozen=True, eq=False)
class Own:
    """Vectors that an attacker trained, and channels built from them; the settings of the release
    are public.
    """

    vectors: Vectors = field(repr=False)
    channels: tuple[Channel, ...]

    @classmethod
    def of(
        cls,
        sides: LinkageSides,
        rng: Generator,
        scratch: Path,
        *,
        vectors: VectorSettings | None = None,
        channels: tuple[ChannelSettings, ...] = (CHANNEL,),
        like: Channel | None = None,
        released: Corpus | None = None,
        texts: Sequence[str] = (),
        threads: int = 1,
    ) -> Own:
        """Train on the known texts.

        Args:
            vectors: training settings (default: those of all shadow vectors).
            channels: settings of the channels. like: the channel of the release, whose settings are
                used instead, with the released words as outputs; its matrix and words are not used.
            released: the release; where the channel draws in context, the attacker's language model
                is trained on it.
            texts: texts to train on instead of the known texts.

        Raises:
            InputError: the texts have too few words.
        """
        corpus = corpus_of_texts(texts or sides.known)
        settings = vectors or shadow_settings(
            sum(len(text.split()) for text in texts or sides.known)
        )
        trained = train(
            corpus, settings, seed=int(rng.integers(2**31)), workers=threads, scratch=scratch
        )
        if like is not None and like.mechanism == NEIGHBOURS:
            outputs = {word for note in sides.released_words for word in note}
            shadow = channel_like(like, trained, outputs, threads)
            if like.in_context and released is not None:
                shadow = shadow_context(shadow, like, released, threads, scratch)
            return cls(trained, (shadow,))
        built = [build_channel(trained, one, threads=threads)[0] for one in channels]
        return cls(trained, tuple(built))
