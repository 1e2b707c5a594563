"""A corpus through a `Deidentifier`, batch by batch, over the workers of a `Map`.

Where a name found in one note is looked for in others, there are two passes over the notes, and the detectors, which
are what takes time, run in the first only. It gives of each batch the spans, without text, and the names heard; the
second looks up what all notes gave, and treats. What was heard are sets, so that no order, batch or number of workers
changes a byte. Spans wait as compressed Arrow in memory, and beyond `HELD` bytes in a file without a name that is the
owner's alone; what was heard of a patient stays in memory.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import Any

import pyarrow as pa

from clinveil.core.errors import InputError, InputWarning
from clinveil.core.spans import Span
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, Corpus, rows
from clinveil.phi.deidentifier import Deidentified, Deidentifier
from clinveil.phi.finder import Finder
from clinveil.phi.forms import Name
from clinveil.phi.heard import Heard, names_in, staff_in, unlisted
from clinveil.phi.note import NoteView
from clinveil.scale import Map

HELD = 64 << 20
# Patients in whose notes an unlisted word has no capital: then it is no name; then an include-list lets it through.
USUAL, COMMON = 3, 4
RAISED = -1  # in place of a start: the detectors failed on this note
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
    corpus: Corpus, deidentifier: Deidentifier, map: Map, *, heard: Callable[[Heard], None] | None = None
) -> Iterator[Deidentified]:
    """Treat a corpus batch by batch, in order; each worker gets only what is known of the patients of its batch.

    Args:
        heard: takes what the notes said of one another, once it is known.

    Raises InputError where the second pass does not read what the first one did.
    """
    if deidentifier.finder.listens:
        yield from _TwoPasses(corpus, deidentifier, heard).over(map)
    else:
        yield from map(_treat, _with_patients(corpus, deidentifier))


def refuse_strangers(known: AbstractSet[str], met: AbstractSet[str]) -> None:
    """Look whether the known patients are those of the notes.

    Warns with InputWarning where some of them have no note; raises InputError where none has.
    """
    absent = len(known - met)
    if known and absent == len(known):
        remedy = "patient ids must be written alike; --patient names the column of the notes"
        raise InputError(f"none of its {absent} patients has a note here", where="--patients", remedy=remedy)
    if absent:
        said = f"--patients: {absent} of {len(known)} known patients have no note here"
        warnings.warn(said, InputWarning, stacklevel=2)


def _with_patients(corpus: Corpus, deidentifier: Deidentifier) -> Iterator[tuple[pa.RecordBatch, Deidentifier]]:
    for batch in corpus.batches():
        yield batch, deidentifier.with_finder(deidentifier.finder.about(_patients(batch)))


def _patients(batch: pa.RecordBatch) -> set[str]:
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
    seen: _Seen = field(repr=False)


@dataclass(frozen=True)
class _Seen:
    """What was found in a batch, row by row and without text, and a digest of the batch."""

    spans: bytes = field(repr=False)
    digest: bytes


@dataclass(frozen=True)
class _Looked:
    """What the first pass says of a batch."""

    seen: _Seen = field(repr=False)
    heard: Heard = field(repr=False)
    lower: dict[str, frozenset[str]] = field(repr=False)


_Item = _Look | _Again | None


class _TwoPasses:
    """One corpus on its way; what is made of it goes through one map, so that the workers stay as they are."""

    def __init__(self, corpus: Corpus, deidentifier: Deidentifier, told: Callable[[Heard], None] | None) -> None:
        self.corpus, self.deidentifier, self.told = corpus, deidentifier, told
        self.names: defaultdict[str, set[Name]] = defaultdict(set)
        self.staff: set[str] = set()
        self.lower: defaultdict[str, set[str]] = defaultdict(set)
        self.sizes: list[tuple[int, bytes]] = []  # of each batch: bytes of its spans, its digest

    def over(self, map: Map) -> Iterator[Deidentified]:
        with SpooledTemporaryFile(max_size=HELD) as self.file:
            for result in map(_do, self._items()):
                if isinstance(result, _Looked):
                    self._take(result)
                elif result is not None:
                    yield result

    def _items(self) -> Iterator[_Item]:
        sent = 0
        for sent, batch in enumerate(self.corpus.batches(), 1):  # noqa: B007
            yield _Look(batch, self.deidentifier.finder.about(_patients(batch)))
        while len(self.sizes) < sent:
            yield None  # the map gives a result for each item, and reads some items ahead of the results
        knowing = self.deidentifier.finder.having(self._heard())
        self.file.seek(0)
        again = 0
        for again, batch in enumerate(self.corpus.batches(), 1):
            if again > sent:
                raise _changed()
            size, digest = self.sizes[again - 1]
            treats = self.deidentifier.with_finder(knowing.about(_patients(batch)))
            yield _Again(batch, treats, _Seen(self.file.read(size), digest))
        if again < sent:
            raise _changed()

    def _words_of(self, count: int) -> frozenset[str]:
        return frozenset(word for word, patients in self.lower.items() if len(patients) >= count)

    def _take(self, looked: _Looked) -> None:
        self.file.write(looked.seen.spans)
        self.sizes.append((len(looked.seen.spans), looked.seen.digest))
        for patient_id, names in looked.heard.patients.items():
            self.names[patient_id] |= names
        self.staff |= looked.heard.staff
        for word, patients in looked.lower.items():
            if len(self.lower[word]) < COMMON:
                self.lower[word] |= patients

    def _heard(self) -> Heard:
        """What all notes say; a word that some patients' notes write in lower case was no unlisted name."""
        words = {count: self._words_of(count) for count in (USUAL, COMMON)}
        names = {patient_id: frozenset(names) for patient_id, names in self.names.items()}
        heard = Heard(names, frozenset(self.staff), frozenset(map(str.lower, words[COMMON]))).without(words[USUAL])
        if self.told is not None:
            self.told(heard)
        return heard


def _do(item: _Item) -> _Looked | Deidentified | None:
    if item is None:
        return None
    return _look(item) if isinstance(item, _Look) else _treat_again(item)


def _look(item: _Look) -> _Looked:
    """What the detectors find in each note of a batch, and what the batch says of names and words."""
    finder, found = item.finder, list[list[Span] | None]()
    names: defaultdict[str, set[Name]] = defaultdict(set)
    staff: set[str] = set()
    lower: defaultdict[str, set[str]] = defaultdict(set)
    for note in rows([item.batch]):
        view = finder.view(note.text, note.patient_id, note.note_id)
        spans = _detected(finder, view)
        found.append(spans)
        names[note.patient_id] |= names_in(note.text, spans or ())
        staff |= staff_in(note.text, spans or ())
        for word in unlisted(view, spans or (), acronyms=finder.combine == "recall-first"):
            lower[word].add(note.patient_id)
    said = {patient_id: frozenset(heard) for patient_id, heard in names.items() if heard}
    counted = {word: frozenset(sorted(patients)[:COMMON]) for word, patients in lower.items()}
    return _Looked(_Seen(_packed(found), _digest(item.batch)), Heard(said, frozenset(staff)), counted)


def _detected(finder: Finder, view: NoteView) -> list[Span] | None:
    """None where the detectors fail: the second pass looks again, fails too, and counts the note."""
    try:
        return finder.detect(view)
    except Exception:  # noqa: BLE001  fail closed: the message may hold the note's text
        return None


def _treat_again(item: _Again) -> Deidentified:
    if _digest(item.batch) != item.seen.digest:
        raise _changed()
    notes = list(rows([item.batch]))
    spans = _unpacked(item.seen.spans)
    seen = {(note.note_id, note.patient_id, note.text): spans.get(row, []) for row, note in enumerate(notes)}
    failed = {(notes[row].note_id, notes[row].patient_id, notes[row].text) for row, found in spans.items() if not found}
    knowing = item.deidentifier.finder.having(seen={key: found for key, found in seen.items() if key not in failed})
    return item.deidentifier.with_finder(knowing)(item.batch)


def _changed() -> InputError:
    return InputError("the notes changed while they were read", remedy="leave them alone during a run, and run again")


def _digest(batch: pa.RecordBatch) -> bytes:
    """A digest of the ids and texts of a batch."""
    digest = blake2b(digest_size=16)
    for note in rows([batch]):
        for part in note:
            raw = str(part).encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def _packed(found: list[list[Span] | None]) -> bytes:
    """Spans as Arrow's stream format, compressed; a note that raised has one row that is no span."""
    flat: list[tuple[int, Span | None]] = []
    for row, spans in enumerate(found):
        flat += [(row, None)] if spans is None else [(row, span) for span in spans]
    columns: list[list[Any]] = [
        [row for row, _ in flat],
        *([RAISED if span is None else getattr(span, name) for _, span in flat] for name in ("start", "end")),
        *(["" if span is None else getattr(span, name) for _, span in flat] for name in ("label", "detector")),
        [0.0 if span is None else span.score for _, span in flat],
        ["" if span is None else span.why for _, span in flat],
    ]
    arrays = [_array(values, column.type) for values, column in zip(columns, _SPANS, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SPANS, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=_SPANS))
    return bytes(sink.getvalue())


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def _unpacked(packed: bytes) -> dict[int, list[Span]]:
    """Row -> its spans; an empty list where the detectors failed."""
    table = pa.ipc.open_stream(packed).read_all()
    found: dict[int, list[Span]] = {}
    for row, start, end, *rest in zip(*(column.to_pylist() for column in table.columns), strict=True):
        spans = found.setdefault(row, [])
        if start != RAISED:
            spans.append(Span(start, end, *rest))
    return found
