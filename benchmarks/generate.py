"""Speed of the generator of invented notes, and growth of its memory.

`python benchmarks/generate.py [PATIENTS] [WORKERS]`.

Tokens are WORD, NUMBER and PUNCT tokens of `clinveil.core.tokens`; words are separated by white space. Faker, the
usual generator of invented text, runs on the same machine for comparison; it writes no annotations.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from faker import Faker

from clinveil.core.tokens import Kind, tokenize
from clinveil.corpus.demo.stream import demo_chunks, write_demo

COUNTED = (Kind.WORD, Kind.NUMBER, Kind.PUNCT)


def rates(patients: int) -> tuple[float, float]:
    """Tokens and words per second of one core, spans included, compilation of the language left out."""
    list(demo_chunks(20, 1))
    start = time.process_time()
    chunks = list(demo_chunks(patients, 2))
    seconds = time.process_time() - start
    texts = [text for chunk in chunks for text in chunk.notes.column("text").to_pylist()]
    words = sum(len(text.split()) for text in texts)
    sample = texts[:: max(1, len(texts) // 300)]
    tokens = sum(token.kind in COUNTED for text in sample for token in tokenize(text))
    share = tokens / sum(len(text.split()) for text in sample)
    return words * share / seconds, words / seconds


def faker_rate(paragraphs: int) -> float:
    """Words per second of Faker's paragraphs."""
    fake = Faker("en_US")
    Faker.seed(1)
    start = time.process_time()
    words = sum(len(fake.paragraph(nb_sentences=20).split()) for _ in range(paragraphs))
    return words / (time.process_time() - start)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(patients: int, workers: int) -> None:
    tokens, words = rates(800)
    print(f"one core: {tokens:,.0f} tokens/s, {words:,.0f} words/s; Faker paragraphs: {faker_rate(2000):,.0f} words/s")
    for size in (patients // 4, patients):
        with TemporaryDirectory() as folder:
            start = time.perf_counter()
            made = write_demo(Path(folder) / "demo", size, 1, workers=workers)
            seconds = time.perf_counter() - start
            megabytes = (made.folder / "notes.parquet").stat().st_size / 1e6
            rows = pq.read_metadata(made.folder / "notes.parquet").num_rows
        print(f"{size} patients, {workers} workers: {rows} notes, {made.spans} spans, {seconds:.1f} s, "
              f"{megabytes:.1f} MB, peak {peak_mib():.0f} MiB in the parent")  # fmt: skip


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*(given + [8000, 2][len(given) :]))
