"""The rows of a corpus of notes."""

from __future__ import annotations

from collections.abc import Iterator

from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus


def rows(corpus: Corpus) -> Iterator[tuple[str, str | None, str]]:
    """(note id, patient id, text) of every note that has a text, in order."""
    for batch in corpus.batches():
        columns = (batch[name].to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT))
        yield from ((note, patient, text) for note, patient, text in zip(*columns, strict=True) if text is not None)
