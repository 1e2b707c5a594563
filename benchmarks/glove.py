"""GloVe compared with gensim's skip-gram on the same notes, in one run: tokens per second.

Usage: python benchmarks/glove.py [--window 5] [--epochs 5] [--workers 2] FILE:COLUMN ...

Each FILE is a CSV (or .csv.gz) of public text with the notes in COLUMN. Both learn 100 dimensions
for the same words from the same number of passes; word counts are made once and given to both.
Writes a Markdown table to stdout.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from clinveil.core import NotesSettings
from clinveil.corpus import ROLE_FIELDS, Corpus, MemoryCorpus, memory_corpus, open_corpus
from clinveil.vectors import (
    Glove,
    Notes,
    VectorSettings,
    WordCounts,
    count_pairs,
    count_words,
    encode,
    train,
)


def read(files: list[str]) -> Corpus:
    notes = []
    for name in files:
        path, _, column = name.rpartition(":")
        corpus = open_corpus(Path(path), NotesSettings(text=column))
        notes += [batch.select([f.name for f in ROLE_FIELDS]) for batch in corpus.batches()]
    table = pa.Table.from_batches(
        [pa.record_batch(b.columns, schema=pa.schema(ROLE_FIELDS)) for b in notes]
    )
    return MemoryCorpus(table.combine_chunks().to_batches(max_chunksize=2000))


class StageTimer:
    """Seconds between the ends of passes: the first interval holds all that comes before the second
    pass.
    """

    def __init__(self) -> None:
        self.times = [time.perf_counter()]

    def tick(self, *_: int) -> None:
        self.times.append(time.perf_counter())

    @property
    def total(self) -> float:
        return self.times[-1] - self.times[0]

    @property
    def epoch(self) -> float:
        later = [b - a for a, b in zip(self.times[1:], self.times[2:], strict=False)]
        return sorted(later)[len(later) // 2]


def compile_everything(scratch: Path) -> None:
    """Compile both kernels before the clock runs, as the cache on disk does from the second use
    on.
    """
    tiny = memory_corpus([("1", "1", "a b c d e f")])
    for variant in ("pair", "single"):
        Glove(variant=variant, epochs=1).train(
            Notes(tiny, count_words(tiny, scratch), 0, 1, scratch)
        )


def counting(corpus: Corpus, counts: WordCounts, options: argparse.Namespace) -> float:
    ids = {word: i for i, word in enumerate(counts.words) if counts.counts[i] >= options.min_count}
    start = time.perf_counter()
    count_pairs(encode(corpus, ids), options.window, workers=options.workers)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="FILE:COLUMN")
    for name, default in (
        ("window", 5),
        ("epochs", 5),
        ("workers", 2),
        ("min_count", 5),
        ("dim", 100),
    ):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    options = parser.parse_args()
    shared = {name: getattr(options, name) for name in ("window", "epochs", "min_count", "dim")}
    corpus = read(options.files)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        compile_everything(scratch)
        counts = count_words(corpus, scratch)
        run = {"seed": 0, "workers": options.workers, "scratch": scratch, "counts": counts}
        rows = []
        gensim = StageTimer()
        train(corpus, VectorSettings(algorithm="skipgram", **shared), on_epoch=gensim.tick, **run)
        rows.append(("gensim skip-gram, 5 negatives", None, gensim))
        seconds = counting(corpus, counts, options)
        for variant in ("pair", "single"):
            clock = StageTimer()
            vectors = Glove(variant=variant, **shared).train(
                Notes(corpus, on_epoch=clock.tick, **run)
            )
            rows.append((f"GloVe, {variant} ({vectors.meta['n_pairs']:,} pairs)", seconds, clock))
    report(rows, counts.n_tokens, options, gensim)


def report(rows: list, n_tokens: int, options: argparse.Namespace, gensim: StageTimer) -> None:
    print(
        f"{n_tokens:,} tokens, {options.epochs} passes, window {options.window}, {options.dim}"
        f" dimensions, {options.workers} threads, min_count {options.min_count}\n"
    )
    print(
        "| | counting pairs, tokens/s | one pass, tokens/s | all, seconds | all, tokens/s a pass |"
        " ratio |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, seconds, clock in rows:
        cells = [
            name,
            f"{n_tokens / seconds:,.0f}" if seconds else "",
            f"{n_tokens / clock.epoch:,.0f}",
            f"{clock.total:.1f}",
            f"{n_tokens * options.epochs / clock.total:,.0f}",
            f"{gensim.total / clock.total:.2f}",
        ]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
