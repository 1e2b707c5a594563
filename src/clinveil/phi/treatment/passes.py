"""Process a corpus with a `NoteDeidentifier`, batch by batch, on the workers of a `Map`.

A file is treated by the workers of a map, a part file by one worker (`part_passes.py`), with the
same tasks. If names found in one note are searched for in others, there are two passes. Detection
takes nearly all the time and is in the first pass only. For each batch it returns the spans
(without text) and the names found. The second pass adds the spans that follow from all names and
treats the text. The collected names are sets, so the result does not depend on order, batch size
or number of workers. Spans are kept compressed in memory and, beyond `HELD` bytes, in an unnamed
temporary file. The name index is on disk too (`phi/name_index_store.py`), so memory does not grow
with the corpus.
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import takewhile
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import pyarrow as pa

from clinveil.core import InputError, InputWarning, Say, Span, track, uncollected
from clinveil.corpus import NOTE_ID, PATIENT_ID, Corpus, Note, rows
from clinveil.phi.detection.finder import Finder
from clinveil.phi.name_index import NameIndex, names_in, staff_in, unlisted
from clinveil.phi.name_index_store import COMMON, NameIndexStore
from clinveil.phi.name_variants import Name
from clinveil.phi.treatment.dates import order_shown
from clinveil.phi.treatment.deidentifier import NULL_TEXT, NoteDeidentifier, TreatedBatch
from clinveil.scale import Map

HELD = 8 << 20
ROWS = 500  # per piece
_DIGEST = 16  # bytes


def deidentify_corpus(
    corpus: Corpus,
    deidentifier: NoteDeidentifier,
    map: Map,
    *,
    on_index: Callable[[NameIndex], None] | None = None,
    say: Say = lambda _: None,
    apart: frozenset[str] = frozenset(),
    memory: SpanMemory | None = None,
) -> Iterator[TreatedBatch]:
    """Yield the treated pieces of a corpus, in order; each worker receives only the known patients
    of its notes.

    Args:
        on_index: called with the name index of all notes after the first pass. say: receives its
            progress.
        apart: patients with notes that must not change the treatment of others.
        memory: spans that the same detectors returned on the same notes; it receives those of this
            pass.

    Raises:
        InputError: the second pass reads other notes than the first one.
    """
    if not deidentifier.finder.uses_other_notes:
        yield from map(run_pass, treatment_tasks(corpus, deidentifier))
        return
    store = NameIndexStore()
    received = 0
    with SpooledTemporaryFile(max_size=HELD) as file:

        def tasks() -> Iterator[PassTask | None]:
            """Yield the tasks of both passes: one map starts its worker processes once."""
            sent = 0
            known = memory.get if memory is not None else None
            for task in detection_tasks(corpus, deidentifier.finder, apart=apart, known=known):
                yield task
                sent += 1
            # the map returns one result per task and reads some tasks ahead of the results
            yield None
            while received < sent:
                yield None
            index = store.index()
            if on_index is not None:
                on_index(index)
            file.seek(0)
            yield from treatment_tasks(corpus, deidentifier.with_names(index), file)

        results = map(run_pass, tasks())
        first = takewhile(lambda result: isinstance(result, PassResult), results)
        for result in track(first, "notes searched", say, size=lambda result: result.rows):
            result.spans.write(file)
            if memory is not None:
                memory[result.spans.digest] = result.spans
            store.add(result.name_index, result.lower_case)
            received += 1
        yield from (result for result in results if result is not None)


def detection_tasks(
    corpus: Corpus,
    finder: Finder,
    stored: IO[bytes] | None = None,
    apart: AbstractSet[str] = frozenset(),
    known: Callable[[bytes], BatchSpans | None] | None = None,
) -> Iterator[PassTask]:
    """Yield the tasks of the first pass.

    Args:
        stored: file of the spans of an earlier run, used instead of the detectors.
        apart: patients with notes that must not change the treatment of others.
        known: returns the spans of a batch by its digest, if another run of this process has them.
    """
    for piece in pieces(corpus):
        patients = patients_of(piece)
        spans = None if stored is None else BatchSpans.read(stored)
        if known is not None:
            spans = known(_digest(piece))
        arguments = (piece, finder.for_patients(patients), spans, apart & patients)
        yield PassTask(detect_batch, arguments)


def treatment_tasks(
    corpus: Corpus, deidentifier: NoteDeidentifier, stored: IO[bytes] | None = None
) -> Iterator[PassTask]:
    """Yield the tasks that treat the notes, with the spans that the first pass stored in a file.

    Raises InputError if the notes have changed since then.
    """
    for piece in pieces(corpus):
        spans = None if stored is None else BatchSpans.read(stored)
        known = deidentifier.for_patients(patients_of(piece))
        yield PassTask(treat_batch, (piece, known, spans))
    if stored is not None and stored.read(1):
        raise changed()


def found_spans(
    corpus: Corpus, deidentifier: NoteDeidentifier, map: Map
) -> Iterator[tuple[Note, list[Span]]]:
    """Yield each note with the spans that `deidentify_corpus` treats; `deidentifier` must keep
    them.

    Raises InputError if the detectors failed on a note.
    """
    notes = rows(corpus)
    for done in deidentify_corpus(corpus, deidentifier, map):
        if sum(done.skipped.values()) > done.skipped[NULL_TEXT]:
            raise InputError(
                "the detectors failed on a note",
                hint="please report this without the text of the note",
            )
        spans: dict[str, list[Span]] = {}
        for detected in done.spans or ():
            spans.setdefault(detected.note_id, []).append(detected.span)
        for _ in range(done.batch.num_rows):
            note = next(notes)
            yield note, spans.get(note.note_id, [])


def check_known_patients(known: AbstractSet[str], of_notes: AbstractSet[str]) -> None:
    """Check that the known patients occur in the notes.

    Args:
        known, of_notes: patient ids of `--patients` and of the notes.

    Warns with InputWarning if some known patients have no note. Raises InputError if none has one.
    """
    absent = len(known - of_notes)
    if known and absent == len(known):
        hint = (
            "use the same patient ids in both files, or choose the column of the notes with"
            " --patient"
        )
        raise InputError(
            f"none of its {absent} patients has a note here", where="--patients", hint=hint
        )
    if absent:
        message = f"--patients: {absent} of {len(known)} known patients have no note here"
        warnings.warn(message, InputWarning, stacklevel=2)


def pieces(corpus: Corpus) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a corpus, split for workers.

    Spans and records take several times the memory of a batch, and few batches would leave workers
    without work.
    """
    for batch in corpus.batches():
        if batch.num_rows <= ROWS:
            yield batch
            continue
        # Copies: pickling a slice would send the entire batch.
        for start in range(0, batch.num_rows, ROWS):
            yield batch.take(pa.array(range(start, min(start + ROWS, batch.num_rows))))


def patients_of(batch: pa.RecordBatch) -> set[str]:
    """Return the patient ids of a batch; a note without one is a patient of its own."""
    ids, patients = (batch.column(name).to_pylist() for name in (NOTE_ID, PATIENT_ID))
    return {
        note if patient is None else patient for note, patient in zip(ids, patients, strict=True)
    }


@dataclass(frozen=True)
class BatchSpans:
    """Detected spans of a batch, by row and without text, as compressed JSON, with a digest of the
    batch.
    """

    spans: bytes = field(repr=False)
    digest: bytes

    @classmethod
    def of(cls, batch: pa.RecordBatch, spans: list[list[Span] | None]) -> BatchSpans:
        """Return the record of a batch; None for a note on which the detectors failed."""
        return cls(zlib.compress(json.dumps(spans).encode(), 1), _digest(batch))

    def by_row(self, batch: pa.RecordBatch) -> list[list[Span] | None]:
        """Return what `of` was given. Raises InputError if the batch has changed."""
        if _digest(batch) != self.digest:
            raise changed()
        stored = json.loads(zlib.decompress(self.spans))
        return [None if spans is None else [Span(*span) for span in spans] for spans in stored]

    def write(self, file: IO[bytes]) -> None:
        """Append the record to a file."""
        file.write(len(self.spans).to_bytes(8, "little") + self.digest + self.spans)

    @classmethod
    def read(cls, file: IO[bytes]) -> BatchSpans:
        """Read the next record. Raises InputError at the end of the file: notes were added since
        the first pass.
        """
        head = file.read(8 + _DIGEST)
        if len(head) < 8 + _DIGEST:
            raise changed()
        return cls(file.read(int.from_bytes(head[:8], "little")), head[8:])


SpanMemory = dict[bytes, BatchSpans]
"""Detected spans of batches by their digests, without text, for runs that detect alike."""


@dataclass(frozen=True)
class PassTask:
    """A call of a function on a batch; its repr contains no text."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)


def run_pass(task: PassTask | None) -> Any:
    """Return the result of a task; None for None."""
    return task and task.function(*task.arguments)


@dataclass(frozen=True)
class PassResult:
    """Result of the first pass for one batch.

    Attributes:
        rows: number of notes. spans: the detected spans. name_index: the names found.
        lower_case: word that the notes write in lower case -> ids of patients with such a note.
    """

    rows: int
    spans: BatchSpans = field(repr=False)
    name_index: NameIndex = field(repr=False)
    lower_case: dict[str, frozenset[str]] = field(repr=False)


@uncollected
def detect_batch(
    batch: pa.RecordBatch,
    finder: Finder,
    stored: BatchSpans | None = None,
    apart: AbstractSet[str] = frozenset(),
) -> PassResult:
    """Run the detectors on each note of a batch, and collect its names and lower-case words.

    Args:
        stored: spans of an earlier run, used instead of the detectors.
        apart: patients of which only their own names are collected.

    Raises InputError if the batch is not that of the stored spans.
    """
    names = defaultdict[str, set[Name]](set)
    staff = set[str]()
    lower = defaultdict[str, set[str]](set)
    orders = defaultdict[str, int](int)
    known = stored.by_row(batch) if stored else None
    detected = list[list[Span] | None]()
    for row, note in enumerate(rows([batch])):
        view = finder.view(note.text, note.patient_id, note.note_id)
        try:
            detected.append(known[row] if known is not None else finder.detect(view))
        # Fail closed: the second pass fails too, and counts the note.
        except Exception:  # noqa: BLE001
            detected.append(None)
        spans = detected[-1] or ()
        text, within = view.within(spans)
        names[note.patient_id] |= names_in(text, within)
        dates = (text[span.start : span.end] for span in within if span.label == "DATE")
        orders[note.patient_id] |= order_shown(dates)
        if note.patient_id in apart:
            continue
        staff |= staff_in(text, within)
        for word in unlisted(view, spans, acronyms=finder.recall_first):
            lower[word].add(note.patient_id)
    index = NameIndex(
        {
            patient: frozenset(names_of_patient)
            for patient, names_of_patient in names.items()
            if names_of_patient
        },
        frozenset(staff),
        date_orders={patient: shown for patient, shown in orders.items() if shown},
    )
    lower_case = {word: frozenset(sorted(patients)[:COMMON]) for word, patients in lower.items()}
    return PassResult(batch.num_rows, stored or BatchSpans.of(batch, detected), index, lower_case)


def treat_batch(
    batch: pa.RecordBatch, deidentifier: NoteDeidentifier, stored: BatchSpans | None = None
) -> TreatedBatch:
    """Treat a batch, with the spans of the first pass if there was one. Raises InputError if the
    batch has changed.
    """
    return deidentifier(batch, stored.by_row(batch) if stored else None)


def changed() -> InputError:
    """Return the error for notes that differ from those of the first pass."""
    return InputError(
        "the notes changed while they were read",
        hint="do not modify the notes during a run; run again",
    )


def _digest(batch: pa.RecordBatch) -> bytes:
    """Return a digest of the ids and texts of a batch."""
    digest = blake2b(digest_size=_DIGEST)
    for note in rows([batch]):
        for part in note:
            raw = str(part).encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()
