"""Process a corpus with a `Deidentifier`, batch by batch, on the workers of a `Map`.

If names found in one note are searched for in others, there are two passes. The detectors take nearly all the time and
run in the first pass only. For each batch it returns the spans (without text) and the names found; the second pass adds
the spans that follow from all names and treats the text. The collected names are sets, so the result does not depend on
order, batch size or number of workers. Spans are kept as compressed Arrow in memory and, beyond `HELD` bytes, in an
unnamed temporary file. The name index is on disk too (`phi/name_index_store.py`), so memory does not grow with the
corpus.
"""

from __future__ import annotations

import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import takewhile
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import pyarrow as pa

from clinveil.core.compiled import uncollected
from clinveil.core.errors import InputError, InputWarning
from clinveil.core.progress import track
from clinveil.core.spans import Span
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, Corpus, Note, rows
from clinveil.phi.detection.finder import Finder
from clinveil.phi.detection.note import NoteView
from clinveil.phi.name_index import NameIndex, names_in, staff_in, unlisted
from clinveil.phi.name_index_store import COMMON, NameIndexStore
from clinveil.phi.name_variants import Name
from clinveil.phi.treatment.deidentifier import Deidentified, Deidentifier
from clinveil.scale import Map

HELD = 8 << 20
ROWS = 500  # per piece
_DIGEST = 16  # bytes
RAISED = -1  # start offset of the row that records a failure of the detectors
_FAILED = ((RAISED, RAISED, "", "", 0.0, ""),)
_WORDS = pa.dictionary(pa.int16(), pa.string())
_SPANS = pa.schema(
    {
        **dict.fromkeys(("row", "start", "end"), pa.int32()),
        **dict.fromkeys(("label", "detector"), _WORDS),
        "score": pa.float64(),
        "why": _WORDS,
    }
)


def deidentify_corpus(
    corpus: Corpus,
    deidentifier: Deidentifier,
    map: Map,
    *,
    on_index: Callable[[NameIndex], None] | None = None,
    say: Say = lambda _: None,
    whole: bool = True,
) -> Iterator[Deidentified]:
    """Treat a corpus batch by batch, in order; each worker receives only the known patients of its notes.

    Args:
        on_index: called with the name index of all notes after the first pass. say: receives its progress.
        whole: yield one result per batch of the corpus; if False, one per piece of a batch, which needs less memory.

    Raises:
        InputError: the second pass reads other notes than the first one.
    """
    pieces = Pieces()
    if deidentifier.finder.uses_other_notes:
        results = _TwoPasses(corpus, deidentifier, pieces, on_index, say).over(map)
    else:
        results = map(_perform, _one_pass(corpus, deidentifier, pieces))
    yield from pieces.joined(results) if whole else results


def check_known_patients(known: AbstractSet[str], found: AbstractSet[str]) -> None:
    """Check that the known patients occur in the notes.

    Args:
        known, found: patient ids of `--patients` and of the notes.

    Warns with InputWarning if some known patients have no note. Raises InputError if none has one.
    """
    absent = len(known - found)
    if known and absent == len(known):
        hint = "use the same patient ids in both files, or choose the column of the notes with --patient"
        raise InputError(f"none of its {absent} patients has a note here", where="--patients", hint=hint)
    if absent:
        message = f"--patients: {absent} of {len(known)} known patients have no note here"
        warnings.warn(message, InputWarning, stacklevel=2)


def _one_pass(corpus: Corpus, deidentifier: Deidentifier, pieces: Pieces) -> Iterator[_Task]:
    for batch in corpus.batches():
        for piece in pieces.of(batch):
            yield _Task(_treat, (piece, deidentifier.for_patients(patients_of(piece))))


def _treat(batch: pa.RecordBatch, deidentifier: Deidentifier) -> Deidentified:
    return deidentifier(batch)


def patients_of(batch: pa.RecordBatch) -> set[str]:
    """Return the patient ids of a batch; a note without one is a patient of its own."""
    ids, patients = (batch.column(name).to_pylist() for name in (NOTE_ID, PATIENT_ID))
    return {note if patient is None else patient for note, patient in zip(ids, patients, strict=True)}


@dataclass(frozen=True)
class BatchSpans:
    """Detected spans of a batch, by row and without text, with a digest of the batch."""

    spans: bytes = field(repr=False)
    digest: bytes

    def write(self, file: IO[bytes]) -> None:
        """Append the record to a file."""
        file.write(len(self.spans).to_bytes(8, "little") + self.digest + self.spans)

    @classmethod
    def read(cls, file: IO[bytes]) -> BatchSpans:
        """Read the next record. Raises InputError at the end of the file: notes were added since the first pass."""
        head = file.read(8 + _DIGEST)
        if len(head) < 8 + _DIGEST:
            raise changed()
        return cls(file.read(int.from_bytes(head[:8], "little")), head[8:])


@dataclass(frozen=True)
class _Task:
    """A call of a function on a batch; its repr contains no text."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)


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


class _TwoPasses:
    """Both passes over one corpus, as tasks of a single map, so that worker processes are started once."""

    def __init__(
        self,
        corpus: Corpus,
        deidentifier: Deidentifier,
        pieces: Pieces,
        on_index: Callable[[NameIndex], None] | None,
        say: Say,
    ) -> None:
        self.corpus, self.deidentifier, self.pieces = corpus, deidentifier, pieces
        self.on_index, self.say = on_index, say
        self.store, self.received = NameIndexStore(), 0

    def over(self, map: Map) -> Iterator[Deidentified]:
        with SpooledTemporaryFile(max_size=HELD) as self.file:
            results = map(_perform, self._tasks())
            first = track(self._first_pass(results), "notes searched", self.say, size=lambda result: result.rows)
            for result in first:
                result.spans.write(self.file)
                self.store.add(result.name_index, result.lower_case)
                self.received += 1
            yield from (result for result in results if isinstance(result, Deidentified))

    def _first_pass(self, results: Iterator[PassResult | Deidentified | None]) -> Iterator[PassResult]:
        """Yield the results of the first pass; the one further result that is consumed is None."""
        return takewhile(lambda result: isinstance(result, PassResult), results)  # type: ignore[arg-type]

    def _tasks(self) -> Iterator[_Task | None]:
        sent = 0
        for sent, batch in enumerate(self._batches(Pieces()), 1):  # noqa: B007
            yield _Task(detect_batch, (batch, self.deidentifier.finder.for_patients(patients_of(batch))))
        yield None  # the map returns one result per task and reads some tasks ahead of the results
        while self.received < sent:
            yield None
        deidentifier = self.deidentifier.with_finder(self.deidentifier.finder.with_context(self._name_index()))
        self.file.seek(0)
        count = 0
        for count, batch in enumerate(self._batches(self.pieces), 1):
            if count > sent:
                raise changed()
            known = deidentifier.for_patients(patients_of(batch))
            yield _Task(treat_batch, (batch, known, BatchSpans.read(self.file)))
        if count < sent:
            raise changed()

    def _batches(self, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        return (piece for batch in self.corpus.batches() for piece in pieces.of(batch))

    def _name_index(self) -> NameIndex:
        index = self.store.index()
        if self.on_index is not None:
            self.on_index(index)
        return index


def _perform(task: _Task | None) -> Any:
    return task and task.function(*task.arguments)


@uncollected
def detect_batch(batch: pa.RecordBatch, finder: Finder) -> PassResult:
    """Run the detectors on each note of a batch, and collect its names and lower-case words."""
    collector, detected = _NameCollector(finder), list[list[Span] | None]()
    for note in rows([batch]):
        view = finder.view(note.text, note.patient_id, note.note_id)
        detected.append(_detected(finder, view))
        collector.add(note, view, detected[-1] or ())
    return PassResult(batch.num_rows, BatchSpans(_packed(detected), _digest(batch)), *collector.collected())


@uncollected
def index_batch(batch: pa.RecordBatch, finder: Finder, detected: BatchSpans) -> PassResult:
    """Return the result of `detect_batch` from stored spans. Raises InputError if the batch has changed."""
    _refuse_changed(batch, detected)
    collector, spans = _NameCollector(finder), _unpacked(detected.spans)
    for row, note in enumerate(rows([batch])):
        collector.add(note, finder.view(note.text, note.patient_id, note.note_id), spans.get(row, ()))
    return PassResult(batch.num_rows, detected, *collector.collected())


class _NameCollector:
    """Collects the names in the notes of a batch, and the words that they write in lower case."""

    def __init__(self, finder: Finder) -> None:
        self.acronyms = finder.recall_first
        self.names: defaultdict[str, set[Name]] = defaultdict(set)
        self.staff: set[str] = set()
        self.lower: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, note: Note, view: NoteView, spans: Sequence[Span]) -> None:
        self.names[note.patient_id] |= names_in(note.text, spans)
        self.staff |= staff_in(note.text, spans)
        for word in unlisted(view, spans, acronyms=self.acronyms):
            self.lower[word].add(note.patient_id)

    def collected(self) -> tuple[NameIndex, dict[str, frozenset[str]]]:
        names = {patient_id: frozenset(found) for patient_id, found in self.names.items() if found}
        lower = {word: frozenset(sorted(patients)[:COMMON]) for word, patients in self.lower.items()}
        return NameIndex(names, frozenset(self.staff)), lower


def _detected(finder: Finder, view: NoteView) -> list[Span] | None:
    """Return None if the detectors fail: the second pass runs them again, fails too, and counts the note."""
    try:
        return finder.detect(view)
    except Exception:  # noqa: BLE001  fail closed: the message may contain text of the note
        return None


@uncollected
def treat_batch(batch: pa.RecordBatch, deidentifier: Deidentifier, detected: BatchSpans) -> Deidentified:
    """Treat a batch with the spans of the first pass. Raises InputError if the batch has changed."""
    _refuse_changed(batch, detected)
    by_row = _unpacked(detected.spans)
    notes = [(note.note_id, note.patient_id, note.text) for note in rows([batch])]
    spans = {note: by_row.get(row, []) for row, note in enumerate(notes)}
    failed = {notes[row] for row, found in by_row.items() if not found}
    finder = deidentifier.finder.with_context(detected={note: spans[note] for note in spans if note not in failed})
    return deidentifier.with_finder(finder)(batch)


def _refuse_changed(batch: pa.RecordBatch, detected: BatchSpans) -> None:
    if _digest(batch) != detected.digest:
        raise changed()


def changed() -> InputError:
    """Return the error for notes that differ from those of the first pass."""
    return InputError("the notes changed while they were read", hint="do not modify the notes during a run; run again")


def _digest(batch: pa.RecordBatch) -> bytes:
    """Return a digest of the ids and texts of a batch."""
    digest = blake2b(digest_size=_DIGEST)
    for note in rows([batch]):
        for part in note:
            raw = str(part).encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def _packed(detected: list[list[Span] | None]) -> bytes:
    """Return the spans as a compressed Arrow stream; a note with None has one row that marks the failure."""
    flat = [(row, *span) for row, spans in enumerate(detected) for span in (_FAILED if spans is None else spans)]
    columns = list(zip(*flat, strict=True)) or [()] * len(_SPANS)
    arrays = [_array(values, column.type) for values, column in zip(columns, _SPANS, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SPANS, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=_SPANS))
    return bytes(sink.getvalue())


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def _unpacked(packed: bytes) -> dict[int, list[Span]]:
    """Return row -> its spans; an empty list if the detectors failed."""
    batch = pa.ipc.open_stream(packed).read_next_batch()
    rows, *fields = map(_values, batch.columns)
    spans: dict[int, list[Span]] = {}
    for row, values in zip(rows, zip(*fields, strict=True), strict=True):
        of_row = spans.setdefault(row, [])
        if values[0] != RAISED:
            of_row.append(Span(*values))
    return spans


def _values(array: pa.Array) -> list[Any]:
    if not pa.types.is_dictionary(array.type):
        return list(array.to_numpy(zero_copy_only=False).tolist())
    words = array.dictionary.to_pylist()
    return [words[number] for number in array.indices.to_numpy().tolist()]


class Pieces:
    """Splits batches for workers and joins the results, both in the order of the batches.

    Spans and records take several times the memory of a batch, and few batches would leave workers without work.
    """

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()

    def of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the pieces of the next batch as copies: pickling a slice would send the entire batch."""
        starts = range(0, max(1, batch.num_rows), ROWS)
        self._sizes.append(len(starts))
        for start in starts if len(starts) > 1 else ():
            yield batch.take(pa.array(range(start, min(start + ROWS, batch.num_rows))))
        if len(starts) == 1:
            yield batch

    def joined(self, results: Iterator[Deidentified]) -> Iterator[Deidentified]:
        """Yield one result per batch."""
        for first in results:
            yield _joined([first, *(next(results) for _ in range(self._sizes.popleft() - 1))])


def _joined(parts: Sequence[Deidentified]) -> Deidentified:
    if len(parts) == 1:
        return parts[0]
    batches = pa.Table.from_batches([part.batch for part in parts]).combine_chunks().to_batches()
    joined = Deidentified(batches[0] if batches else parts[0].batch, spans=None)
    for part in parts:
        for name in ("counts", "by_detector", "skipped", "tagged"):
            getattr(joined, name).update(getattr(part, name))
        joined.audit += part.audit
        joined.crosswalk += part.crosswalk
        if part.spans is not None:
            joined.spans = [*(joined.spans or ()), *part.spans]
    return joined
