"""A corpus through a `Deidentifier`, batch by batch, over the workers of a `Map`.

Where a name found in one note is looked for in others, there are two passes over the notes, and the detectors, which
are what takes time, run in the first only. It gives of each batch the spans, without text, and the names heard; the
second looks up what all notes gave, and treats. What was heard are sets, so that no order, batch or number of workers
changes a byte. Spans wait as compressed Arrow in memory, and beyond `HELD` bytes in a file without a name that is the
owner's alone; the name index waits on disk too (`phi/name_index_store.py`). So memory does not grow with the notes.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import takewhile
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import pyarrow as pa

from clinveil.core.collector import uncollected
from clinveil.core.errors import InputError, InputWarning
from clinveil.core.progress import track
from clinveil.core.spans import Span
from clinveil.core.types import Say
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, Corpus, Note, rows
from clinveil.phi.deidentifier import Deidentified, Deidentifier
from clinveil.phi.finder import Finder
from clinveil.phi.name_index import NameIndex, names_in, staff_in, unlisted
from clinveil.phi.name_index_store import COMMON, NameIndexStore
from clinveil.phi.name_variants import Name
from clinveil.phi.note import NoteView
from clinveil.phi.pieces import Pieces
from clinveil.scale import Map

HELD = 8 << 20
_DIGEST = 16  # bytes
RAISED = -1  # in place of a start: the detectors failed on this note
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
    heard: Callable[[NameIndex], None] | None = None,
    say: Say = lambda _: None,
    whole: bool = True,
) -> Iterator[Deidentified]:
    """Treat a corpus batch by batch, in order; each worker gets only what is known of the patients of its notes.

    Args:
        heard: takes what the notes said of one another, once it is known. say: is shown how far the first pass is.
        whole: a result for each batch of the corpus; else one for each piece of a batch, so that less is held.

    Raises InputError where the second pass does not read what the first one did.
    """
    pieces = Pieces()
    if deidentifier.finder.listens:
        done = _TwoPasses(corpus, deidentifier, pieces, heard, say).over(map)
    else:
        done = iter(map(_treat, _with_patients(corpus, deidentifier, pieces)))
    yield from pieces.joined(done) if whole else done


def refuse_strangers(known: AbstractSet[str], met: AbstractSet[str]) -> None:
    """Look whether the known patients are those of the notes.

    Warns with InputWarning where some of them have no note; raises InputError where none has.
    """
    absent = len(known - met)
    if known and absent == len(known):
        hint = "patient ids must be written alike; --patient names the column of the notes"
        raise InputError(f"none of its {absent} patients has a note here", where="--patients", hint=hint)
    if absent:
        said = f"--patients: {absent} of {len(known)} known patients have no note here"
        warnings.warn(said, InputWarning, stacklevel=2)


def _with_patients(
    corpus: Corpus, deidentifier: Deidentifier, pieces: Pieces
) -> Iterator[tuple[pa.RecordBatch, Deidentifier]]:
    for batch in corpus.batches():
        for piece in pieces.of(batch):
            yield piece, deidentifier.with_finder(deidentifier.finder.about(patients_of(piece)))


def patients_of(batch: pa.RecordBatch) -> set[str]:
    """The patients of a batch; a note without one is its own."""
    ids, patients = (batch.column(name).to_pylist() for name in (NOTE_ID, PATIENT_ID))
    return {note if patient is None else patient for note, patient in zip(ids, patients, strict=True)}


def _treat(item: tuple[pa.RecordBatch, Deidentifier]) -> Deidentified:
    batch, deidentifier = item
    return deidentifier(batch)


@dataclass(frozen=True)
class _Look:
    """A batch to be looked through."""

    batch: pa.RecordBatch = field(repr=False)
    finder: Finder = field(repr=False)


@dataclass(frozen=True)
class _Again:
    """A batch to be treated, with what was seen in it."""

    batch: pa.RecordBatch = field(repr=False)
    deidentifier: Deidentifier = field(repr=False)
    seen: Seen = field(repr=False)


@dataclass(frozen=True)
class Seen:
    """What was found in a batch, row by row and without text, and a digest of the batch."""

    spans: bytes = field(repr=False)
    digest: bytes

    def write(self, file: IO[bytes]) -> None:
        """Append it to a file."""
        file.write(len(self.spans).to_bytes(8, "little") + self.digest + self.spans)

    @classmethod
    def read(cls, file: IO[bytes]) -> Seen:
        """The next one of a file. Raises InputError at its end: the notes are more than they were."""
        head = file.read(8 + _DIGEST)
        if len(head) < 8 + _DIGEST:
            raise changed()
        return cls(file.read(int.from_bytes(head[:8], "little")), head[8:])


@dataclass(frozen=True)
class PassResult:
    """What the first pass says of a batch: what it found, the names in it, and who writes which word in lower case."""

    rows: int
    seen: Seen = field(repr=False)
    heard: NameIndex = field(repr=False)
    lower: dict[str, frozenset[str]] = field(repr=False)


_Item = _Look | _Again | None


class _TwoPasses:
    """One corpus on its way; what is made of it goes through one map, so that the workers stay as they are."""

    def __init__(
        self,
        corpus: Corpus,
        deidentifier: Deidentifier,
        pieces: Pieces,
        told: Callable[[NameIndex], None] | None,
        say: Say,
    ) -> None:
        self.corpus, self.deidentifier, self.pieces, self.told, self.say = corpus, deidentifier, pieces, told, say
        self.store, self.looked = NameIndexStore(), 0

    def over(self, map: Map) -> Iterator[Deidentified]:
        with SpooledTemporaryFile(max_size=HELD) as self.file:
            results = map(_do, self._items())
            for looked in track(self._first(results), "notes looked through", self.say, size=lambda one: one.rows):
                looked.seen.write(self.file)
                self.store.add(looked.heard, looked.lower)
                self.looked += 1
            yield from (result for result in results if isinstance(result, Deidentified))

    def _first(self, results: Iterator[PassResult | Deidentified | None]) -> Iterator[PassResult]:
        """What the first pass gives; the one result more that is read stands for nothing."""
        return takewhile(lambda result: isinstance(result, PassResult), results)  # type: ignore[arg-type]

    def _items(self) -> Iterator[_Item]:
        sent = 0
        for sent, batch in enumerate(self._batches(Pieces()), 1):  # noqa: B007
            yield _Look(batch, self.deidentifier.finder.about(patients_of(batch)))
        yield None  # the map gives a result for each item, and reads some items ahead of the results
        while self.looked < sent:
            yield None
        knowing = self.deidentifier.finder.having(self._heard())
        self.file.seek(0)
        again = 0
        for again, batch in enumerate(self._batches(self.pieces), 1):
            if again > sent:
                raise changed()
            treats = self.deidentifier.with_finder(knowing.about(patients_of(batch)))
            yield _Again(batch, treats, Seen.read(self.file))
        if again < sent:
            raise changed()

    def _batches(self, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        return (piece for batch in self.corpus.batches() for piece in pieces.of(batch))

    def _heard(self) -> NameIndex:
        """What all notes say."""
        heard = self.store.heard()
        if self.told is not None:
            self.told(heard)
        return heard


def _do(item: _Item) -> PassResult | Deidentified | None:
    if item is None:
        return None
    if isinstance(item, _Look):
        return look(item.batch, item.finder)
    return treat_again(item.batch, item.deidentifier, item.seen)


@uncollected
def look(batch: pa.RecordBatch, finder: Finder) -> PassResult:
    """What the detectors find in each note of a batch, and what the batch says of names and words."""
    ear, found = _Ear(finder), list[list[Span] | None]()
    for note in rows([batch]):
        view = finder.view(note.text, note.patient_id, note.note_id)
        found.append(_detected(finder, view))
        ear.hear(note, view, found[-1] or ())
    return PassResult(batch.num_rows, Seen(_packed(found), _digest(batch)), *ear.heard())


@uncollected
def hear_again(batch: pa.RecordBatch, finder: Finder, seen: Seen) -> PassResult:
    """As `look`, with what was seen in the batch before. Raises InputError if it is another batch."""
    _refuse_changed(batch, seen)
    ear, spans = _Ear(finder), _unpacked(seen.spans)
    for row, note in enumerate(rows([batch])):
        ear.hear(note, finder.view(note.text, note.patient_id, note.note_id), spans.get(row, ()))
    return PassResult(batch.num_rows, seen, *ear.heard())


class _Ear:
    """Gathers what the notes of a batch say of names, and which words they write in lower case."""

    def __init__(self, finder: Finder) -> None:
        self.acronyms = finder.combine == "recall-first"
        self.names: defaultdict[str, set[Name]] = defaultdict(set)
        self.staff: set[str] = set()
        self.lower: defaultdict[str, set[str]] = defaultdict(set)

    def hear(self, note: Note, view: NoteView, spans: Sequence[Span]) -> None:
        self.names[note.patient_id] |= names_in(note.text, spans)
        self.staff |= staff_in(note.text, spans)
        for word in unlisted(view, spans, acronyms=self.acronyms):
            self.lower[word].add(note.patient_id)

    def heard(self) -> tuple[NameIndex, dict[str, frozenset[str]]]:
        said = {patient_id: frozenset(heard) for patient_id, heard in self.names.items() if heard}
        counted = {word: frozenset(sorted(patients)[:COMMON]) for word, patients in self.lower.items()}
        return NameIndex(said, frozenset(self.staff)), counted


def _detected(finder: Finder, view: NoteView) -> list[Span] | None:
    """None where the detectors fail: the second pass looks again, fails too, and counts the note."""
    try:
        return finder.detect(view)
    except Exception:  # noqa: BLE001  fail closed: the message may hold the note's text
        return None


@uncollected
def treat_again(batch: pa.RecordBatch, deidentifier: Deidentifier, seen: Seen) -> Deidentified:
    """Treat a batch in which the detectors have looked before. Raises InputError if it is another batch."""
    _refuse_changed(batch, seen)
    notes = list(rows([batch]))
    spans = _unpacked(seen.spans)
    known = {(note.note_id, note.patient_id, note.text): spans.get(row, []) for row, note in enumerate(notes)}
    failed = {(notes[row].note_id, notes[row].patient_id, notes[row].text) for row, found in spans.items() if not found}
    knowing = deidentifier.finder.having(seen={key: found for key, found in known.items() if key not in failed})
    return deidentifier.with_finder(knowing)(batch)


def _refuse_changed(batch: pa.RecordBatch, seen: Seen) -> None:
    if _digest(batch) != seen.digest:
        raise changed()


def changed() -> InputError:
    """The error of notes that are not what they were at the first pass."""
    return InputError("the notes changed while they were read", hint="leave them alone during a run, and run again")


def _digest(batch: pa.RecordBatch) -> bytes:
    """A digest of the ids and texts of a batch."""
    digest = blake2b(digest_size=_DIGEST)
    for note in rows([batch]):
        for part in note:
            raw = str(part).encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def _packed(found: list[list[Span] | None]) -> bytes:
    """Spans as Arrow's stream format, compressed; a note that raised has one row that is no span."""
    flat = [(row, *span) for row, spans in enumerate(found) for span in (_FAILED if spans is None else spans)]
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
    """Row -> its spans; an empty list where the detectors failed."""
    batch = pa.ipc.open_stream(packed).read_next_batch()
    rows, *places = map(_values, batch.columns)
    found: dict[int, list[Span]] = {}
    for row, place in zip(rows, zip(*places, strict=True), strict=True):
        spans = found.setdefault(row, [])
        if place[0] != RAISED:
            spans.append(Span(*place))
    return found


def _values(array: pa.Array) -> list[Any]:
    if not pa.types.is_dictionary(array.type):
        return list(array.to_numpy(zero_copy_only=False).tolist())
    words = array.dictionary.to_pylist()
    return [words[number] for number in array.indices.to_numpy().tolist()]
