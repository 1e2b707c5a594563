"""Share of words that adversaries with the channel recover from obfuscated notes.

Usage: python benchmarks/context_attack.py NOTES [--id COL] [--text COL] [--source 577] [-n 3-14]
[--scope patient]
       [--shuffle window] [--tokens 280000] [--reader NAME …]

Some of the notes are the source: word vectors, channel and released words are made from them, as in
a release without replacement of identifiers. The attackers have other notes only, which share less
than a tenth of their 8-word runs with the source. Writes a Markdown table to stdout; intervals
resample notes, speed is of processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from clinveil import Key, open_corpus
from clinveil.attacks.adversary import AdversaryView, AlignedNote, adversaries
from clinveil.attacks.channel._view import NotePair, aligned, obfuscated, rows_of
from clinveil.attacks.channel.adversary_suite import scored
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.settings import ChannelSettings
from clinveil.core.settings import NotesSettings
from clinveil.core.tokens import words
from clinveil.corpus.corpus import TEXT, corpus_of_texts
from clinveil.stats.intervals import share_by_patient
from clinveil.vectors.count import count_words
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.train import train

READERS = ("unigram", "bigram")


def parts(
    notes: Sequence[list[str]], n: int, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Rows of the source, and of notes that share less than a tenth of their 8-word runs with
    it.
    """
    order = rng.permutation(len(notes)).tolist()
    source = order[:n]
    runs = {run for row in source for run in _runs(notes[row])}
    others = [row for row in order[n:] if _share(notes[row], runs) < 0.1]
    return source, others


def _runs(note: list[str]) -> Iterable[tuple[str, ...]]:
    return zip(*(note[i:] for i in range(8)), strict=False)


def _share(note: list[str], runs: set[tuple[str, ...]]) -> float:
    own = list(_runs(note))
    return sum(run in runs for run in own) / max(1, len(own))


def arguments(said: str | None) -> argparse.ArgumentParser:
    """Of every benchmark that shares notes out so."""
    parser = argparse.ArgumentParser(
        description=said, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notes", type=Path)
    parser.add_argument("--id")
    parser.add_argument("--text")
    parser.add_argument("--source", type=int, default=577)
    parser.add_argument("--seed", type=int, default=1)
    return parser


def shared_out(
    options: argparse.Namespace, rng: np.random.Generator
) -> tuple[list[str], list[str]]:
    """The texts of the source, and of the attackers."""
    corpus = open_corpus(options.notes, NotesSettings(id=options.id, text=options.text))
    texts = [text for batch in corpus.batches() for text in batch.column(TEXT).to_pylist() if text]
    source, others = parts([words(text) for text in texts], options.source, rng)
    return [texts[i] for i in source], [texts[i] for i in others]


def main() -> None:
    """Read the notes, obfuscate some, attack them, print."""
    parser = arguments(__doc__)
    parser.add_argument("-n", default="3-14")
    parser.add_argument("--scope", default="patient")
    parser.add_argument("--shuffle", default="none")
    parser.add_argument("--algorithm", default="cbow")
    parser.add_argument(
        "--tokens", type=int, default=10**9, help="words that are attacked, in whole notes"
    )
    parser.add_argument("--reader", action="append", help="default: all who hold the channel alone")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    source, others = shared_out(options, rng)
    with tempfile.TemporaryDirectory() as scratch:
        channel, notes = protected(source, options, Path(scratch))
    some = int(np.searchsorted(np.cumsum([len(note) for note in notes]), options.tokens)) + 1
    view = AdversaryView(
        channel,
        notes[:some],
        [n.outputs for n in notes],
        [rows_of(text, channel) for text in others],
    )
    flat = np.concatenate([note.truth for note in notes])
    counts = np.bincount(flat, minlength=channel.unknown + 1)
    content = np.ones(counts.size, dtype=bool)
    content[np.argsort(-counts[:-1], kind="stable")[:150]] = False
    strata = {"content": content, "rare": np.append(counts[:-1] < 20, True)}
    known = sum(map(len, view.others))
    attacked = sum(map(len, view.notes))
    print(
        f"{len(source)} notes, {flat.size:,} words obfuscated, {attacked:,} of them attacked; the"
        " attackers'"
    )
    print(
        f"{len(others)} other notes have {known:,} words. N {options.n}, memo {options.scope}, ",
        end="",
    )
    print(f"{options.algorithm}, shuffle {options.shuffle}, seed {options.seed}.\n")
    print("| reader | all words | all but the 150 most frequent | below 20 occurrences | words/s |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name in options.reader or READERS:
        print(row(name, view, strata, rng), flush=True)


def row(
    name: str, view: AdversaryView, strata: dict[str, np.ndarray], rng: np.random.Generator
) -> str:
    """One row of the table."""
    reader = adversaries.get(name)()
    first = AdversaryView(view.channel, view.notes[:1], view.released, view.others[:1])
    list(reader.recover(first, rng))  # compiles
    began = time.process_time()
    readings = list(reader.recover(view, rng))
    seconds = time.process_time() - began
    got = scored(view.notes, readings)
    low, high = share_by_patient(got.by_patient)
    content, rare = (
        got.at(strata[kind][got.truth]).is_right.mean() for kind in ("content", "rare")
    )
    every = f"{got.is_right.mean():.3f} ({low:.3f} to {high:.3f})"
    figures = f"{content:.3f} | {rare:.3f} | {got.truth.size / seconds:,.0f}"
    return f"| {name} | {every} | {figures} |"


def protected(
    texts: Sequence[str], options: argparse.Namespace, scratch: Path
) -> tuple[Channel, list[AlignedNote]]:
    """The channel, and each note as readers see it, a patient a note."""
    corpus = corpus_of_texts(texts)
    counted = count_words(corpus, scratch)
    how = VectorSettings(algorithm=options.algorithm)
    vectors = train(corpus, how, seed=options.seed, workers=1, scratch=scratch, counts=counted)
    key = Key.generate()
    settings = ChannelSettings(n=options.n, scope=options.scope, shuffle=options.shuffle)
    channel, _ = build_channel(vectors, settings, key=key, threads=1, counts=counted)
    return channel, [note for note in released(texts, channel, key) if len(note)]


def released(texts: Sequence[str], channel: Channel, key: Key) -> list[AlignedNote]:
    """Texts as the channel and its policy release them, as readers see them, a patient a note."""
    notes = obfuscated([NotePair(i, text, "") for i, text in enumerate(texts)], channel, key)
    seen = [aligned(note, channel) for note in notes]
    if None in seen:
        raise SystemExit("a note came out with another number of words")
    return [note for note in seen if note is not None]


if __name__ == "__main__":
    main()
