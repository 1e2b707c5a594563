"""What a reader with context gets back of notes obfuscated at the defaults of `release`, beside the one-draw figure.

Usage: python benchmarks/context_attack.py NOTES [--id COL] [--text COL] [--source 577] [-n 3-14] [--memo patient]

Some of the notes are the source: word vectors, channel and obfuscated words are made of them as `release` makes them
(PHI replacement left out, so that the truth of each word is known). The attacker has other notes only, those of which
less than a tenth of the 8-word runs stand in the source: for their word and word-pair counts, and in the last row for
vectors of their own. With context they weigh all readings of a note at once (forward-backward over the channel's
inputs, bigrams by absolute discounting). It is not the best attack there could be: longer contexts, and counting the
own reading in, read more. Writes a Markdown table to stdout; intervals draw notes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from clinveil import Key, open_corpus
from clinveil.channel.apply import Obfuscator
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.settings import ChannelSettings
from clinveil.core.settings import NotesSettings
from clinveil.core.tokens import words
from clinveil.corpus.corpus import TEXT, memory_corpus
from clinveil.stats import share_by_patient
from clinveil.vectors.count import count_words
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.train import train

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
RARE = 20
DISCOUNT = 0.75
FREQUENT = 150  # words that stand for the function words


def parts(notes: Sequence[list[str]], n: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Rows of the source, and of notes that share less than a tenth of their 8-word runs with it."""
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


class Bigrams:
    """Word and word-pair counts of notes over the channel's words, as interpolated probabilities."""

    def __init__(self, n_words: int) -> None:
        self.single = np.zeros(n_words)
        self.pairs = csr_matrix((n_words, n_words))

    def add(self, notes: Iterable[Ids]) -> None:
        """Count notes; -1 is a word that the channel does not know."""
        for note in notes:
            self.single += np.bincount(note[note >= 0], minlength=self.single.size)
        before = np.concatenate([note[:-1] for note in notes])
        after = np.concatenate([note[1:] for note in notes])
        known = (before >= 0) & (after >= 0)
        shape = self.pairs.shape
        self.pairs = self.pairs + csr_matrix((np.ones(known.sum()), (before[known], after[known])), shape=shape)
        self.pairs.sort_indices()

    def tables(self) -> tuple[Floats, Floats, Ids, Ids, Floats]:
        """Unigram probabilities, weight of the unigram after each word, and the discounted pairs as CSR."""
        unigram = (self.single + 0.1) / (self.single + 0.1).sum()
        totals = np.asarray(self.pairs.sum(axis=1)).ravel()
        kinds = np.diff(self.pairs.indptr)
        seen = np.maximum(totals, 1.0)
        backoff = np.where(totals > 0, DISCOUNT * kinds / seen, 1.0)
        rows = np.repeat(np.arange(totals.size), kinds)
        discounted = np.maximum(self.pairs.data - DISCOUNT, 0.0) / seen[rows]
        return unigram, backoff, self.pairs.indptr.astype(np.int64), self.pairs.indices.astype(np.int64), discounted


@njit(cache=False)
def _pair(x, y, indptr, indices, pairs):  # type: ignore[no-untyped-def]
    """The discounted probability of y after x; 0 where the pair was never seen."""
    row = indices[indptr[x] : indptr[x + 1]]
    place = np.searchsorted(row, y)
    return pairs[indptr[x] + place] if place < row.size and row[place] == y else 0.0


@njit(cache=False)
def decode(outputs, starts, inputs, weights, unigram, backoff, indptr, indices, pairs):  # type: ignore[no-untyped-def]
    """The likeliest input of each output of one note, all other outputs taken into account (forward-backward).

    starts, inputs, weights: the channel by output: its inputs, and C(output | input).
    """
    n = outputs.size
    begin = np.zeros(n + 1, dtype=np.int64)
    begin[1:] = np.cumsum(starts[outputs + 1] - starts[outputs])
    forward, backward = np.zeros(begin[n]), np.ones(begin[n])
    for t in range(n):
        own, low = forward[begin[t] : begin[t + 1]], starts[outputs[t]]
        before = starts[outputs[t - 1]]
        for j in range(own.size):
            x = inputs[low + j]
            mass = 0.0 if t else unigram[x]
            for i in range(begin[t] - begin[t - 1] if t else 0):
                w = inputs[before + i]
                after_w = backoff[w] * unigram[x] + _pair(w, x, indptr, indices, pairs)
                mass += forward[begin[t - 1] + i] * after_w
            own[j] = mass * weights[low + j]
        own /= own.sum()
    for t in range(n - 2, -1, -1):
        own, low, after = backward[begin[t] : begin[t + 1]], starts[outputs[t]], starts[outputs[t + 1]]
        ahead = backward[begin[t + 1] : begin[t + 2]]
        for i in range(own.size):
            w, mass = inputs[low + i], 0.0
            for j in range(ahead.size):
                x = inputs[after + j]
                after_w = backoff[w] * unigram[x] + _pair(w, x, indptr, indices, pairs)
                mass += after_w * weights[after + j] * ahead[j]
            own[i] = mass
        own /= own.sum()
    best = np.empty(n, dtype=np.int64)
    for t in range(n):
        place = slice(begin[t], begin[t + 1])
        best[t] = inputs[starts[outputs[t]] + np.argmax(forward[place] * backward[place])]
    return best


def read_with_context(channel: Channel, released: Sequence[Ids], known: Bigrams) -> list[Ids]:
    """Of each note the likeliest word at each place, given all its outputs."""
    by_output = channel.matrix()[: len(channel.words)].tocsc()
    by_output.sort_indices()
    starts, inputs = by_output.indptr.astype(np.int64), by_output.indices.astype(np.int64)
    tables = known.tables()
    return [decode(note, starts, inputs, by_output.data, *tables) for note in released]


def read_one_by_one(channel: Channel, unigram: Floats) -> Ids:
    """(n_words,) the likeliest input of each output without context; -1 where nothing gives it."""
    joint = channel.matrix()[: len(channel.words)].multiply(unigram[:, None]).tocsc()
    best = np.full(len(channel.words), -1, dtype=np.int64)
    for y in range(len(channel.words)):
        low, high = joint.indptr[y], joint.indptr[y + 1]
        if high > low:
            best[y] = joint.indices[low + np.argmax(joint.data[low:high])]
    return best


def row(name: str, read: Sequence[Ids], truth: Sequence[Ids], counts: Ids, rng: np.random.Generator) -> str:
    """One row of the table: all tokens with an interval over notes, words below `RARE`, words that are not frequent."""
    right = [r == t for r, t in zip(read, truth, strict=True)]
    by_note = np.array([[hits.sum(), hits.size] for hits in right])
    low, high = share_by_patient(by_note)
    hits, words_ = np.concatenate(right), np.concatenate(truth)
    frequent = np.zeros(counts.size, dtype=bool)
    frequent[np.argsort(-counts)[:FREQUENT]] = True
    known = words_ >= 0
    rare, content = known & (counts[words_] < RARE), known & ~frequent[words_]
    every = f"{hits.mean():.3f} ({low:.3f} to {high:.3f})"
    return f"| {name} | {every} | {hits[content].mean():.3f} | {hits[rare].mean():.3f} |"


def main() -> None:
    """Read the notes, obfuscate some, attack them, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--id")
    parser.add_argument("--text")
    parser.add_argument("--source", type=int, default=577)
    parser.add_argument("-n", default="3-14")
    parser.add_argument("--memo", default="patient")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    corpus = open_corpus(options.notes, NotesSettings(id=options.id, text=options.text))
    texts = [text for batch in corpus.batches() for text in batch.column(TEXT).to_pylist() if text]
    notes = [words(text) for text in texts]
    source, others = parts(notes, options.source, rng)
    with tempfile.TemporaryDirectory() as scratch:
        channel, released, truth = obfuscated([texts[i] for i in source], options, Path(scratch))
        counts = np.bincount(np.concatenate(truth) + 1, minlength=len(channel.words) + 1)[1:]
        theirs = [texts[i] for i in others]
        own = own_vectors(theirs, channel, options, Path(scratch))
    known = Bigrams(len(channel.words))
    known.add([np.array([channel.ids.get(w, -1) for w in notes[i]], dtype=np.int64) for i in others])
    unigram = known.tables()[0]
    exact = (counts + 1e-9) / (counts + 1e-9).sum()
    top = int(np.argmax(counts))
    print(f"{len(source)} notes, {sum(map(len, truth)):,} words obfuscated; the attacker's {len(others)} other notes")
    print(f"have {int(known.single.sum()):,} words. N {options.n}, memo {options.memo}, seed {options.seed}.\n")
    print(f"| the attacker | all words | all but the {FREQUENT} most frequent | below {RARE} occurrences |")
    print("| --- | --- | ---: | ---: |")
    rows: list[tuple[str, list[Ids]]] = [("always names the most frequent word", [np.full_like(t, top) for t in truth])]
    one = read_one_by_one(channel, exact)
    rows.append(("channel, word counts of the source (what the report prints)", [one[y] for y in released]))
    one = read_one_by_one(channel, unigram)
    rows.append(("channel, word counts of other notes", [one[y] for y in released]))
    rows.append(("channel, word pairs of other notes", read_with_context(channel, released, known)))
    rows.append(("no channel: vectors of their own from the other notes, one draw", [own[y] for y in released]))
    for name, read in rows:
        print(row(name, read, truth, counts, rng), flush=True)


def obfuscated(
    texts: Sequence[str], options: argparse.Namespace, scratch: Path
) -> tuple[Channel, list[Ids], list[Ids]]:
    """The channel, and of each note the words that came out and those that went in, as rows of the channel."""
    corpus = memory_corpus([(str(i), str(i), text) for i, text in enumerate(texts)])
    counted = count_words(corpus, scratch)
    vectors = train(
        corpus,
        VectorSettings(algorithm="cbow", window=5, epochs=5),
        seed=options.seed,
        workers=1,
        scratch=scratch,
        counts=counted,
    )
    key = Key.generate()
    settings = ChannelSettings(n=options.n, memo=options.memo)
    channel, _ = build_channel(vectors, settings, key=key, threads=1, counts=counted)
    obfuscate = Obfuscator(channel.under(memo=options.memo, layout="plain", numbers="drop"), key)
    released = [text for batch in corpus.batches() for text in obfuscate(batch).batch.column(TEXT).to_pylist() if text]
    out = [np.array([channel.ids[w] for w in text.split()], dtype=np.int64) for text in released]
    put_in = [np.array([channel.ids.get(w, -1) for w in words(text)], dtype=np.int64) for text in texts]
    if [len(o) for o in out] != [len(i) for i in put_in]:
        raise SystemExit("a note came out with another number of words")
    return channel, out, put_in


def own_vectors(texts: Sequence[str], channel: Channel, options: argparse.Namespace, scratch: Path) -> Ids:
    """(n_words,) what an attacker without the channel names at each output, by a channel of their own notes."""
    corpus = memory_corpus([(str(i), str(i), text) for i, text in enumerate(texts)])
    (scratch / "theirs").mkdir()
    counted = count_words(corpus, scratch / "theirs")
    vectors = train(
        corpus,
        VectorSettings(algorithm="cbow", window=5, epochs=5),
        seed=options.seed + 1,
        workers=1,
        scratch=scratch / "theirs",
    )
    theirs, _ = build_channel(vectors, ChannelSettings(n=options.n), key=Key.generate(), threads=1, counts=counted)
    counts = Counter(dict(zip(counted.words, counted.counts.tolist(), strict=True)))
    unigram = np.array([counts[word] for word in theirs.words], dtype=np.float64)
    best = read_one_by_one(theirs, unigram / unigram.sum())
    named = np.full(len(channel.words), -2, dtype=np.int64)
    for row_, word in enumerate(channel.words):
        place = theirs.ids.get(word, -1)
        if place >= 0 and best[place] >= 0:
            named[row_] = channel.ids.get(theirs.words[best[place]], -2)
    return named


if __name__ == "__main__":
    main()
