"""Labelled notes for classification: the original, the released texts in the same order, and one split for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.types import Ints
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, rows
from clinveil.corpus.sample import KeySample
from clinveil.utility.split import PARTS, group_folds, splits

NOTES, MIN_CLASS = 20_000, 50
OTHER, MERGED_PATIENTS = "all other classes", 5  # as many patients as folds
VALIDATION_PARTS = 5  # one of these of what is not for testing


class WrongNotes(InputError):
    """The notes are not those that were meant: another column, or another release's vault."""


@dataclass(frozen=True)
class Labelled:
    """Notes with their classes (names ascending), and what was left out and why, in counts.

    `targets`: (n_notes,) int64 classes, or with several labels a note (n_notes, n_classes) bool.
    """

    note_ids: list[str] = field(repr=False)
    patients: list[str] = field(repr=False)
    texts: list[str] = field(repr=False)
    classes: tuple[str, ...] = field(repr=False)
    targets: NDArray[Any] = field(repr=False)
    detail: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def multi(self) -> bool:
        """Whether a note may have several classes, or none."""
        return self.targets.ndim == 2

    def only(self, rows: Sequence[int], **detail: Any) -> Labelled:
        """Some of the notes, in this order."""
        ids, patients, texts = ([c[i] for i in rows] for c in (self.note_ids, self.patients, self.texts))
        kept = self.targets[np.asarray(rows, dtype=np.int64)]
        return Labelled(ids, patients, texts, self.classes, kept, {**self.detail, **detail, "notes": len(ids)})


@dataclass(frozen=True)
class Parts:
    """Row numbers for training, for choosing (settings, epochs, thresholds), and for testing; ascending."""

    train: Ints = field(repr=False)
    valid: Ints = field(repr=False)
    test: Ints = field(repr=False)
    duplicates: int = 0

    @property
    def learn(self) -> Ints:
        """Everything that is not for testing."""
        return np.sort(np.concatenate([self.train, self.valid]))


@dataclass
class _Row:
    patient: str
    labels: tuple[str, ...]
    text: str


def read_labelled(
    batches: Iterable[pa.RecordBatch],
    label: str,
    rng: Generator,
    *,
    limit: int = NOTES,
    min_class: int = MIN_CLASS,
    separator: str | None = None,
    merge: bool = False,
) -> Labelled:
    """The notes that have a label; classes of few notes or patients are left out. What is left out is counted.

    Args:
        label: the column.
        limit: at most so many labelled notes, a random sample by id.
        separator: what stands between several labels of one note; None: one label a note.
        merge: small classes, and those of fewer than `MERGED_PATIENTS` patients, become one class if together they are
            large enough; with one label a note only.

    Raises WrongNotes: no such column. InputError: fewer than two classes left.
    """
    sample: KeySample[_Row] = KeySample(limit, rng)
    without = 0
    for batch in batches:
        if label not in batch.schema.names:
            raise WrongNotes(f"there is no column {label!r} in the notes", hint="keep it with --label")
        columns = (batch[name].to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT, label))
        for note, patient, text, value in zip(*columns, strict=True):
            labels = _labels(value, separator)
            if text is None or not labels:
                without += text is not None
                continue
            row = _Row(patient if patient is not None else note, labels, text)
            sample.offer(note, lambda row=row: row)  # type: ignore[misc]
    rows = sample.values
    detail = {"label": label, "sampled": sample.left_out, "without_label": without}
    if merge and separator is None:
        detail |= _merge(list(rows.values()), min_class)
    return _classed(list(rows), list(rows.values()), min_class, separator is not None, detail)


def _merge(rows: Sequence[_Row], min_class: int) -> dict[str, Any]:
    """Give the notes of small classes one label, in place; how many classes there were, and how many were merged."""
    sizes, patients = _sizes(rows)
    small = {n for n, size in sizes.items() if size < min_class or len(patients[n]) < MERGED_PATIENTS}
    for row in rows:
        row.labels = tuple(OTHER if name in small else name for name in row.labels)
    return {"classes_in_notes": len(sizes), "classes_merged": len(small)}


def _sizes(rows: Sequence[_Row]) -> tuple[Counter[str], dict[str, set[str]]]:
    """Notes and patients of each class."""
    patients: dict[str, set[str]] = {}
    for row in rows:
        for name in row.labels:
            patients.setdefault(name, set()).add(row.patient)
    return Counter(name for row in rows for name in row.labels), patients


def _labels(value: Any, separator: str | None) -> tuple[str, ...]:
    """The labels of a cell; NaN and blanks are none."""
    if value is None or value != value:
        return ()
    parts = [str(value)] if separator is None else str(value).split(separator)
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _classed(ids: list[str], rows: list[_Row], min_class: int, multi: bool, detail: dict[str, Any]) -> Labelled:
    sizes, patients_of = _sizes(rows)
    large = [name for name, size in sizes.items() if size >= min_class]
    classes = tuple(sorted(name for name in large if len(patients_of[name]) > 1))
    place = {name: i for i, name in enumerate(classes)}
    kept = [i for i, row in enumerate(rows) if any(name in place for name in row.labels)]
    detail |= {"classes": len(classes), "classes_too_small": len(sizes) - len(large), "min_class": min_class}
    detail |= {"classes_of_one_patient": len(large) - len(classes), "several_labels": multi}
    detail |= {"notes": len(kept), "notes_of_small_classes": len(rows) - len(kept)}
    detail["notes_share"] = len(kept) / max(1, len(rows))
    if len(classes) < 2:
        raise InputError(f"{len(classes)} classes of {min_class} notes or more, of two patients; two are needed")
    targets = np.zeros((len(kept), len(classes)), dtype=np.bool_)
    for at, i in enumerate(kept):
        targets[at, [place[name] for name in rows[i].labels if name in place]] = True
    chosen = targets if multi else targets.argmax(axis=1).astype(np.int64)
    texts, patients = [rows[i].text for i in kept], [rows[i].patient for i in kept]
    return Labelled([ids[i] for i in kept], patients, texts, classes, chosen, detail)


def texts_of(
    labelled: Labelled, released: Iterable[pa.RecordBatch], crosswalk: Mapping[str, str] | None = None
) -> list[str | None]:
    """The released texts in the order of the labelled notes; None for a note that was not released.

    `crosswalk`: source note id of each released one; None where they are equal.
    Raises WrongNotes: a released id that the crosswalk does not know. InputError: no note in common.
    """
    place = {note: i for i, note in enumerate(labelled.note_ids)}
    texts: list[str | None] = [None] * len(place)
    for batch in released:
        for note, _, text in rows([batch]):
            if crosswalk is not None and note not in crosswalk:
                raise WrongNotes("a released id is not in the crosswalk", hint="name the vault of this release")
            row = place.get(crosswalk[note] if crosswalk is not None else note)
            if row is not None:
                texts[row] = text
    if all(text is None for text in texts):
        raise InputError("original and released have no note id in common", hint="name the vault with --vault")
    return texts


def paired(labelled: Labelled, released: Sequence[str | None]) -> tuple[Labelled, list[str]]:
    """The notes that were released, and their released texts; the others are counted."""
    rows = [i for i, text in enumerate(released) if text is not None]
    kept = labelled if len(rows) == len(labelled) else labelled.only(rows)
    detail = {**kept.detail, "not_released": len(labelled) - len(rows)}
    return replace(kept, detail=detail), [text for text in released if text is not None]


def parts_of(labelled: Labelled, rng: Generator) -> Parts:
    """A quarter for testing, a fifth of the rest for choosing; no patient and no near-duplicate text on two sides.

    Raises InputError where there are too few independent notes, or all notes to train on are of one class.
    """
    return next(_parts(labelled, rng, PARTS))


def folds_of(labelled: Labelled, rng: Generator, folds: int) -> list[Parts]:
    """As `parts_of` with each patient in the test notes of exactly one of the folds. Raises InputError as it does."""
    return list(_parts(labelled, rng, folds))


def _parts(labelled: Labelled, rng: Generator, folds: int) -> Iterator[Parts]:
    keys, few = _strata(labelled), InputError("too few independent notes to choose settings on")
    for outer in splits(labelled.patients, labelled.texts, keys, rng, parts=folds):
        labels = [keys[row] for row in outer.train]
        rows = next(group_folds(labels, outer.group[outer.train], VALIDATION_PARTS, rng, few))
        train, valid = (outer.train[part] for part in rows)
        seen = labelled.targets[train]
        if (seen.any(axis=0).sum() if labelled.multi else len(np.unique(seen))) < 2:
            raise InputError("all notes to train on are of one class")
        yield Parts(train, valid, outer.test, outer.duplicates)


def _strata(labelled: Labelled) -> list[str]:
    """What the split keeps in proportion: the class, and of several the rarest."""
    if not labelled.multi:
        return [str(i) for i in labelled.targets.tolist()]
    size = labelled.targets.sum(axis=0)
    return [str(min(np.flatnonzero(row).tolist(), key=lambda i: int(size[i]))) for row in labelled.targets]
