"""Labelled notes for classification, the released texts in the same order, and their splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core import InputError, Ints, Numbers
from clinveil.corpus import NOTE_ID, PATIENT_ID, TEXT, KeySample, rows
from clinveil.utility.split import PARTS, group_folds, splits

NOTES = 20_000
MIN_CLASS = 50
# classes with fewer patients than folds are merged
OTHER = "all other classes"
MERGED_PATIENTS = 5
VALIDATION_PARTS = 5  # a fifth of the notes that are not for testing is for validation


class WrongNotes(InputError):
    """The notes do not match: a column is missing, or the vault belongs to another release."""


@dataclass(frozen=True)
class ClassifiedNotes:
    """Notes with their classes (names ascending), and counts of the notes that were left out.

    `targets`: (n_notes,) int64 classes, or with several labels per note (n_notes, n_classes) bool.
    """

    note_ids: list[str] = field(repr=False)
    patients: list[str] = field(repr=False)
    texts: list[str] = field(repr=False)
    classes: tuple[str, ...] = field(repr=False)
    targets: NDArray[Any] = field(repr=False)
    label: str  # the column
    numbers: Numbers

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def multi(self) -> bool:
        """Whether a note may have several classes, or none."""
        return self.targets.ndim == 2

    def only(self, rows: Sequence[int]) -> ClassifiedNotes:
        """Return some of the notes, in the given order."""
        ids, patients, texts = (
            [c[i] for i in rows] for c in (self.note_ids, self.patients, self.texts)
        )
        kept = self.targets[np.asarray(rows, dtype=np.int64)]
        numbers = {**self.numbers, "notes": len(ids)}
        return ClassifiedNotes(ids, patients, texts, self.classes, kept, self.label, numbers)


@dataclass(frozen=True)
class RowsOfSplit:
    """Rows for training, validation (of settings, epochs, thresholds) and testing; ascending."""

    train: Ints = field(repr=False)
    valid: Ints = field(repr=False)
    test: Ints = field(repr=False)
    duplicates: int = 0

    @property
    def learn(self) -> Ints:
        """Rows of training and validation."""
        return np.sort(np.concatenate([self.train, self.valid]))


@dataclass
class _LabelledNote:
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
    tested: frozenset[str] | None = None,
) -> ClassifiedNotes:
    """Return the notes that have a label, without small classes and classes of one patient, and
    count the others.

    Args:
        label: the column.
        limit: maximum number of labelled notes, sampled at random by id.
        separator: separator of several labels of one note; None: one label per note.
        merge: merge classes of fewer than `min_class` notes or `MERGED_PATIENTS` patients into one
            class (with one label per note only).
        tested: test patients. Then the classes that are merged, or left out if they are still too
            small, are those of fewer than `MERGED_PATIENTS` test patients or other patients.

    Raises WrongNotes: no such column. InputError: fewer than two classes are left.
    """
    sample: KeySample[_LabelledNote] = KeySample(limit, rng)
    without = 0
    for batch in batches:
        if label not in batch.schema.names:
            raise WrongNotes(
                f"the notes have no column {label!r}", hint="pass one of their columns as --label"
            )
        columns = (batch[name].to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT, label))
        for note, patient, text, value in zip(*columns, strict=True):
            labels = _labels(value, separator)
            if text is None or not labels:
                without += text is not None
                continue
            row = _LabelledNote(patient if patient is not None else note, labels, text)
            sample.offer(note, lambda row=row: row)  # type: ignore[misc]
    rows = sample.values
    numbers = {"sampled": sample.left_out, "without_label": without}
    if tested is not None:
        numbers |= _merge(list(rows.values()), lambda classed: _few(classed, tested))
        left_out = _few(rows.values(), tested)
        rows = {note: row for note, row in rows.items() if left_out.isdisjoint(row.labels)}
        min_class = 1
    elif merge and separator is None:
        numbers |= _merge(list(rows.values()), lambda classed: _small(classed, min_class))
    classified = _classed(list(rows), list(rows.values()), min_class, separator is not None)
    return replace(classified, label=label, numbers={**numbers, **classified.numbers})


def _merge(
    rows: Sequence[_LabelledNote], small_of: Callable[[Sequence[_LabelledNote]], set[str]]
) -> dict[str, int]:
    """Give the notes of small classes one label, in place; return the counts of classes and of
    merged classes.
    """
    small = small_of(rows)
    n_classes = len({name for row in rows for name in row.labels})
    for row in rows:
        row.labels = tuple(OTHER if name in small else name for name in row.labels)
    return {"classes_in_notes": n_classes, "classes_merged": len(small)}


def _small(rows: Iterable[_LabelledNote], min_class: int) -> set[str]:
    """Return the classes of few notes or patients."""
    sizes, patients = _sizes(rows)
    return {
        name
        for name, size in sizes.items()
        if size < min_class or len(patients[name]) < MERGED_PATIENTS
    }


def _few(rows: Iterable[_LabelledNote], tested: frozenset[str]) -> set[str]:
    """Return the classes of few test patients or of few other patients."""
    _, patients = _sizes(rows)
    return {
        name
        for name, owners in patients.items()
        if min(len(owners & tested), len(owners - tested)) < MERGED_PATIENTS
    }


def _sizes(rows: Iterable[_LabelledNote]) -> tuple[Counter[str], dict[str, set[str]]]:
    """Return the number of notes and the patients of each class."""
    rows = list(rows)
    patients: dict[str, set[str]] = {}
    for row in rows:
        for name in row.labels:
            patients.setdefault(name, set()).add(row.patient)
    return Counter(name for row in rows for name in row.labels), patients


def _labels(value: Any, separator: str | None) -> tuple[str, ...]:
    """Return the labels of a cell; NaN and blanks are no labels."""
    if value is None or value != value:
        return ()
    parts = [str(value)] if separator is None else str(value).split(separator)
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _classed(
    ids: list[str], rows: list[_LabelledNote], min_class: int, multi: bool
) -> ClassifiedNotes:
    sizes, patients_of = _sizes(rows)
    large = [name for name, size in sizes.items() if size >= min_class]
    classes = tuple(sorted(name for name in large if len(patients_of[name]) > 1))
    class_ids = {name: i for i, name in enumerate(classes)}
    kept = [i for i, row in enumerate(rows) if any(name in class_ids for name in row.labels)]
    numbers: Numbers = {
        "classes": len(classes),
        "classes_too_small": len(sizes) - len(large),
        "min_class": min_class,
        "classes_of_one_patient": len(large) - len(classes),
        "several_labels": multi,
        "notes": len(kept),
        "notes_of_small_classes": len(rows) - len(kept),
        "notes_share": len(kept) / max(1, len(rows)),
    }
    if len(classes) < 2:
        raise InputError(
            f"{len(classes)} classes have {min_class} notes and two patients or more; two are"
            " required"
        )
    targets = np.zeros((len(kept), len(classes)), dtype=np.bool_)
    for at, i in enumerate(kept):
        targets[at, [class_ids[name] for name in rows[i].labels if name in class_ids]] = True
    chosen = targets if multi else targets.argmax(axis=1).astype(np.int64)
    texts = [rows[i].text for i in kept]
    patients = [rows[i].patient for i in kept]
    kept_ids = [ids[i] for i in kept]
    return ClassifiedNotes(kept_ids, patients, texts, classes, chosen, "", numbers)


def texts_of(
    labelled: ClassifiedNotes,
    released: Iterable[pa.RecordBatch],
    crosswalk: Mapping[str, str] | None = None,
) -> list[str | None]:
    """Return the released texts in the order of the labelled notes; None for a note that was not
    released.

    `crosswalk`: released note id -> source id; None if the ids are equal.
    Raises WrongNotes: a released id is not in the crosswalk. InputError: no note in common.
    """
    texts: dict[str, str | None] = dict.fromkeys(labelled.note_ids)
    texts |= {source: text for source, text in by_source(released, crosswalk) if source in texts}
    if all(text is None for text in texts.values()):
        raise InputError(
            "original and released notes have no note id in common",
            hint="pass the vault with --vault",
        )
    return list(texts.values())


def by_source(
    released: Iterable[pa.RecordBatch], crosswalk: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield source id and text of released notes. Raises WrongNotes for an id that is not in the
    crosswalk.
    """
    for note in rows(released):
        if crosswalk is not None and note.note_id not in crosswalk:
            raise WrongNotes(
                "a released id is not in the crosswalk", hint="pass the vault of this release"
            )
        yield note.note_id if crosswalk is None else crosswalk[note.note_id], note.text


def paired(
    labelled: ClassifiedNotes, released: Sequence[str | None]
) -> tuple[ClassifiedNotes, list[str]]:
    """Return the notes that were released and their released texts, and count the others."""
    rows = [i for i, text in enumerate(released) if text is not None]
    kept = labelled if len(rows) == len(labelled) else labelled.only(rows)
    numbers = {**kept.numbers, "not_released": len(labelled) - len(rows)}
    return replace(kept, numbers=numbers), [text for text in released if text is not None]


def parts_of(labelled: ClassifiedNotes, rng: Generator) -> RowsOfSplit:
    """Return a split: a quarter for testing, a fifth of the rest for validation; patients and
    near-duplicates together.

    Raises InputError if there are too few independent notes, or all training notes have one class.
    """
    return next(_parts(labelled, rng, PARTS))


def held_out_parts(
    labelled: ClassifiedNotes, tested: frozenset[str], rng: Generator
) -> RowsOfSplit:
    """Return the split by test patients; a fifth of the other notes is for validation, patients
    together.

    Raises InputError if there are too few training patients, or all training notes have one class.
    """
    test = np.array([patient in tested for patient in labelled.patients], dtype=np.bool_)
    learn = np.flatnonzero(~test)
    group = np.unique(np.array(labelled.patients, dtype=object)[learn], return_inverse=True)[
        1
    ].astype(np.int64)
    keys = _strata(labelled)
    few = InputError("too few training patients for a validation set")
    train, valid = next(
        group_folds([keys[row] for row in learn], group, VALIDATION_PARTS, rng, few)
    )
    if len(np.unique(labelled.targets[learn[train]])) < 2:
        raise InputError("all training notes have one class")
    return RowsOfSplit(learn[train], learn[valid], np.flatnonzero(test))


def folds_of(labelled: ClassifiedNotes, rng: Generator, folds: int) -> list[RowsOfSplit]:
    """Return splits like `parts_of` for cross-validation: each patient is tested in one fold.
    Raises InputError.
    """
    return list(_parts(labelled, rng, folds))


def _parts(labelled: ClassifiedNotes, rng: Generator, folds: int) -> Iterator[RowsOfSplit]:
    keys = _strata(labelled)
    few = InputError("too few independent notes for a validation set")
    for outer in splits(labelled.patients, labelled.texts, keys, rng, parts=folds):
        labels = [keys[row] for row in outer.train]
        rows = next(group_folds(labels, outer.group[outer.train], VALIDATION_PARTS, rng, few))
        train, valid = (outer.train[part] for part in rows)
        seen = labelled.targets[train]
        if (seen.any(axis=0).sum() if labelled.multi else len(np.unique(seen))) < 2:
            raise InputError("all training notes have one class")
        yield RowsOfSplit(train, valid, outer.test, outer.duplicates)


def _strata(labelled: ClassifiedNotes) -> list[str]:
    """Return the stratum of each note: its class, or the rarest one of several."""
    if not labelled.multi:
        return [str(i) for i in labelled.targets.tolist()]
    size = labelled.targets.sum(axis=0)
    return [
        str(min(np.flatnonzero(row).tolist(), key=lambda i: int(size[i])))
        for row in labelled.targets
    ]
