"""The language model of a synthetic release: training, storage, and drawing notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.core import PLACEHOLDER, InputError, Key, Say, UsageError
from clinveil.corpus import HeldOutPatients
from clinveil.lm import (
    RARE,
    Conditions,
    EncodedNotes,
    GeneratedNote,
    Ids,
    LanguageModel,
    LayoutVocabulary,
    PlainNotes,
    PlannedNote,
    PublicModel,
    SamplingConfig,
    SyntheticNote,
    Vocabulary,
    encode,
    fingerprint,
    generate,
    load_model,
    save_model,
    train_layout,
    train_model,
)
from clinveil.phi import Invented
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.synthesis_rows import LabelColumns

MODEL = "model"
STATE = "training.safetensors"
FEWEST = 2  # patients per side


NO_NOTES = PlainNotes((), (), ())
VALIDATION = 0.1  # of the training patients


@dataclass(frozen=True)
class TrainHoldoutSplit:
    """Training notes, notes of test patients, and notes of further patients that validate the
    training of a network.
    """

    training: PlainNotes = field(repr=False)
    held_out: PlainNotes = field(repr=False)
    validation: PlainNotes = field(default=NO_NOTES, repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the training notes with their patients, independent of order."""
        hashed = sha256()
        for row in sorted(zip(self.training.patients, self.training.texts, strict=True)):
            hashed.update(repr(row).encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()


def sides_of(
    notes: PlainNotes, held_out: HeldOutPatients, seed: int = 0, *, validate: bool = False
) -> TrainHoldoutSplit:
    """Return the notes of training and of test patients.

    Args:
        seed: of the draw of validation patients. validate: take a tenth of the training patients to
            validate a network.

    Raises InputError if a side has fewer than two patients.
    """
    everyone = {*notes.patients}
    training = sorted(everyone - held_out.patients, key=lambda patient: _draw(patient, seed))
    tested = everyone & held_out.patients
    if min(len(training), len(tested)) < FEWEST:
        what = (
            f"{len(training)} training and {len(tested)} test patients with words in their notes"
            " are too few"
        )
        hint = "pass more patients, or a larger test_share"
        raise InputError(what, where=f"{len(everyone)} patients", hint=hint)
    n_validation = (
        max(1, round(VALIDATION * len(training))) if validate and len(training) > FEWEST else 0
    )
    return _sides(notes, tested, frozenset(training[:n_validation]))


def _sides(
    notes: PlainNotes, aside: AbstractSet[str], validation: AbstractSet[str]
) -> TrainHoldoutSplit:
    rows: dict[str, list[int]] = {"training": [], "held out": [], "validation": []}
    for row, patient in enumerate(notes.patients):
        if patient in aside:
            rows["held out"].append(row)
        elif patient in validation:
            rows["validation"].append(row)
        else:
            rows["training"].append(row)
    return TrainHoldoutSplit(
        training=notes.rows(rows["training"]),
        held_out=notes.rows(rows["held out"]),
        validation=notes.rows(rows["validation"]),
    )


def refuse_few(patients: int) -> None:
    """Raise InputError for fewer than four patients: each side needs two."""
    if patients < 2 * FEWEST:
        raise InputError(f"{patients} patients are too few for training and test patients")


def split_as_before(notes: PlainNotes, split: Any, name: str) -> TrainHoldoutSplit:
    """Return the split of a trained model, verified: with other notes, floor and gates would be
    wrong.
    """
    unknown = UsageError(
        "has no record of its split", where=name, hint="pass the model of a synthetic release"
    )
    if (
        not isinstance(split, dict)
        or not {"seed", "notes_sha256", "held_out", "validation"} <= split.keys()
    ):
        raise unknown
    try:
        seed = int(split["seed"])
        held_out = {*map(str, split["held_out"])}
        validation = {*map(str, split["validation"])}
        if not 0 <= seed < 2**63:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise unknown from None
    drawn = {patient: _draw(patient, seed).hex() for patient in {*notes.patients}}
    aside = {patient for patient, draw in drawn.items() if draw in held_out}
    sides = _sides(notes, aside, {patient for patient, draw in drawn.items() if draw in validation})
    if sides.digest != split["notes_sha256"]:
        hint = "pass the notes that it was trained on, with --set phi=false if that run used it"
        raise InputError("was trained on other notes", where=name, hint=hint)
    return sides


def _draw(patient: str, seed: int) -> bytes:
    return blake2b(
        patient.encode("utf-8", "surrogatepass"), key=b"split %d" % seed, digest_size=16
    ).digest()


@dataclass(frozen=True)
class Trained:
    """A trained model and its split.

    Attributes:
        seed: of validation patients and training; secret unless `public_seed`. before: trained by
            an earlier run.
    """

    model: LanguageModel = field(repr=False)
    sides: TrainHoldoutSplit
    seed: int = field(repr=False)
    public_seed: bool
    before: bool

    @property
    def recipe(self) -> dict[str, Any] | None:
        """Architecture and training settings, without note content; None for a unigram model."""
        network = getattr(self.model, "network", None)  # importing the class requires PyTorch
        return None if network is None else dict(network.recipe.as_dict())


def load_trained(
    folder: Path,
    notes: PlainNotes,
    settings: ReleaseSettings,
    labels: LabelColumns,
    *,
    before: bool,
) -> Trained:
    """Load a model. Raises InputError or UsageError if it was trained on other notes or labels, or
    has no split.
    """
    model, about = load_model(folder, device=settings.lm.device)
    split: Any = about.get("split")
    sides = split_as_before(notes, split, folder.name)
    if split.get("labels") != labels.digest:
        raise InputError(
            "was trained with other labels", where=folder.name, hint="pass the same --label columns"
        )
    # A model without this entry counts as publicly seeded, which is the safe assumption.
    public = about.get("public_seed") is not False
    return Trained(model, sides, int(split["seed"]), public, before)


def train_new(
    sides: TrainHoldoutSplit,
    settings: ReleaseSettings,
    seed: int,
    vault: Path,
    say: Say,
    labels: LabelColumns,
    public: PublicModel | None = None,
) -> Trained:
    """Train (or resume from the state in the vault), and store the model in the vault.

    public: the model to start from; with one, the text of the labels is put before the notes.
    """
    prefixes = labels.prefixes if public else ()
    say(f"{len(sides.training)} training notes, {len(sides.held_out)} notes of test patients")
    entered = labelled(sides.training, prefixes)
    vocabulary = train_layout(entered.texts, entered.patients, settings.channel.floor)
    model, went = train_model(
        encoded_training(entered, vocabulary, settings),
        vocabulary,
        settings.lm,
        seed=seed,
        threads=settings.synthetic.threads,
        validation=encode(sides.validation.texts, vocabulary) if len(sides.validation) else None,
        state=vault / STATE,
        say=say,
        public=public,
        prefixes=[vocabulary.encode(prefix).tolist()[:-1] for prefix in prefixes],
    )
    split: dict[str, Any] = {"seed": seed, "notes_sha256": sides.digest, "labels": labels.digest}
    for name, side in (("held_out", sides.held_out), ("validation", sides.validation)):
        split[name] = sorted(_draw(patient, seed).hex() for patient in {*side.patients})
    known_seed = settings.seed is not None
    seen = {"fingerprints": sorted({*map(fingerprint, sides.training.texts)})}
    save_model(
        model,
        vault / MODEL,
        {"split": split, "public_seed": known_seed, "training": went, "notes": seen},
    )
    return Trained(model, sides, seed, known_seed, before=False)


def labelled(notes: PlainNotes, prefixes: Sequence[str]) -> PlainNotes:
    """Return the notes with the text of their labels in front."""
    if not prefixes:
        return notes
    pairs = zip(notes.labels, notes.texts, strict=True)
    return replace(
        notes,
        texts=tuple(text if label == RARE else prefixes[label] + text for label, text in pairs),
    )


def encoded_training(
    notes: PlainNotes, vocabulary: Vocabulary, settings: ReleaseSettings
) -> EncodedNotes:
    """Return the encoded training notes with patients and labels."""
    return encode(notes.texts, vocabulary, Conditions.of(notes, settings.channel.floor))


MOST_EMPTY = 1_000  # notes in a row without a word


@dataclass
class WrittenCounts:
    """Counts of generated notes: notes and words written, truncated notes, empty notes (left
    out).
    """

    notes: int = 0
    words: int = 0
    truncated: int = 0
    empty: int = 0

    @property
    def description(self) -> str:
        """The counts in a line."""
        return (
            f"{self.notes} notes, {self.words:,} words; {self.truncated} truncated at the maximum"
            " length"
        )


@dataclass(frozen=True)
class Checked:
    """What the gates need of each written note.

    drawn: its text before rare words were replaced and placeholders filled, as `shared_text`
    returns it. invented: the words of its surrogates.
    """

    drawn: list[str] = field(default_factory=list, repr=False)
    invented: list[frozenset[str]] = field(default_factory=list, repr=False)


def draw_notes(
    model: LanguageModel,
    key: Key,
    drawing: SamplingConfig,
    enough: Callable[[], bool],
    counts: WrittenCounts,
    plan: Iterable[PlannedNote],
    named: Callable[[int], dict[str, str]],
    checked: Checked | None = None,
    *,
    marked: bool = False,
) -> Iterator[SyntheticNote]:
    """Yield the planned notes, without empty ones, until `enough` is true; update `counts` and
    `checked`.

    marked: write tags around the surrogates that fill placeholders.

    Raises:
        InputError: the model writes only empty notes.
    """
    in_a_row = 0
    planned_notes, for_labels = tee(plan)
    notes = generate(model, key, drawing, labels=(planned.label for planned in for_labels))
    for note, planned in zip(notes, planned_notes, strict=False):
        text = _text(model, note, key)
        in_a_row = 0 if text else in_a_row + 1
        if in_a_row >= MOST_EMPTY:
            raise InputError("the model writes only empty notes", hint="train it longer")
        if not text:
            counts.empty += 1
            continue
        counts.notes += 1
        counts.words += len(text.split())
        counts.truncated += note.truncated
        text, invented = Invented(key, planned.patient).filled(
            text, planned.position, marked=marked
        )
        if checked is not None:
            checked.drawn.append(_shared(model.vocabulary, note.drawn))
            checked.invented.append(invented)
        yield SyntheticNote(planned.patient, planned.position, named(planned.label), text)
        if enough():
            return


def _text(model: LanguageModel, note: GeneratedNote, key: Key) -> str:
    """Return the text of a note, with digits drawn under the key."""
    ids = note.ids.tolist()
    if not isinstance(model.vocabulary, LayoutVocabulary):
        return model.vocabulary.decode(ids)
    seed = key.stream("synthetic digits", str(note.number))
    return model.vocabulary.decode(
        ids, np.random.Generator(np.random.Philox(key=[seed.uint64(), seed.uint64()]))
    )


def shared_text(notes: PlainNotes, vocabulary: Vocabulary) -> PlainNotes:
    """Return notes as a model with a perfect memory would write them.

    They have no rare words and no placeholders, which keep nothing of a patient, and digits of rare
    numbers are 0.
    """
    return replace(
        notes, texts=tuple(_shared(vocabulary, vocabulary.encode(text)) for text in notes.texts)
    )


def _shared(vocabulary: Vocabulary, ids: Ids) -> str:
    return PLACEHOLDER.sub(" ", vocabulary.decode(ids.tolist()))
