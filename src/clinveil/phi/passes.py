"""A corpus through a `Deidentifier`, batch by batch, over the workers of a `Map`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from clinveil.corpus.corpus import PATIENT_ID, Corpus
from clinveil.phi.deidentifier import Deidentified, Deidentifier
from clinveil.scale import Map


def deidentify_corpus(corpus: Corpus, deidentifier: Deidentifier, map: Map) -> Iterator[Deidentified]:
    """Treat a corpus batch by batch, in order; each worker gets only the known patients of its batch."""
    yield from map(_treat, _with_patients(corpus, deidentifier))


def _with_patients(corpus: Corpus, deidentifier: Deidentifier) -> Iterator[tuple[pa.RecordBatch, Deidentifier]]:
    for batch in corpus.batches():
        ids = set(batch.column(PATIENT_ID).to_pylist()) if deidentifier.patients else set()
        yield batch, deidentifier.with_finder(deidentifier.finder.about(ids))


def _treat(item: tuple[pa.RecordBatch, Deidentifier]) -> Deidentified:
    batch, deidentifier = item
    return deidentifier(batch)
