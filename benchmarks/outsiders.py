"""Share of words that adversaries recover without the channel, or with known pairs.

Usage: python benchmarks/outsiders.py NOTES [--id COL] [--text COL] [--source 577] [--held 200]
[--scope patient]
    [--set NAME=VALUE ...] [--vectors NAME=VALUE ...] [--shuffle] [--only READER ...]

The notes are split as in `context_attack.py`: some are the source; others, which share less than a
tenth of their 8-word runs with the source, belong to the attacker. Of the source, `--held` notes
are known pairs; the rest is attacked. `--set` gives settings of the channel (`--set
mechanism=clusters`), `--vectors` of its vectors and of the attackers' vectors; `--shuffle` shuffles
the words of each note. Writes a Markdown table to stdout; intervals draw notes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from context_attack import arguments, released, shared_out

from clinveil import Key
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Recovery, adversaries
from clinveil.attacks.channel._view import rows_of
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.settings import ChannelSettings
from clinveil.core.types import Ints, Mask
from clinveil.corpus.corpus import Corpus, corpus_of_texts
from clinveil.stats.intervals import share_by_patient
from clinveil.vectors.count import count_words
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.train import train

# words that stand for the function words; occurrences below which a word is rare
FREQUENT = 150
RARE = 20
LADDER: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("own-vectors", "own vectors of other notes", {}),
    ("decipher", "decipherment, from own vectors and ranks", {}),
    ("decipher", "decipherment, from ranks alone", {"vectors": False}),
    ("known-pairs", "10 notes in both forms", {"notes": 10}),
    ("known-pairs", "50 notes in both forms", {"notes": 50}),
    ("known-pairs", "200 notes in both forms", {"notes": 200}),
)


@dataclass
class Tool:
    """Our own tool with the settings of the release: who releases has it, and so has every
    attacker.
    """

    options: argparse.Namespace
    scratch: Path

    def channel(self, corpus: Corpus) -> Channel:
        """A channel of word vectors that are trained on these notes."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        vectors, own = (_settings(given) for given in (self.options.vectors, self.options.set))
        counted = count_words(corpus, folder)
        seed = self.options.seed
        how = VectorSettings.model_validate(vectors)
        trained = train(corpus, how, seed=seed, workers=1, scratch=folder, counts=counted)
        settings = ChannelSettings.model_validate(
            {"scope": self.options.scope, "allow_small": True, **own}
        )
        return build_channel(trained, settings, key=Key.generate(), threads=1, counts=counted)[0]

    def release(self, texts: Sequence[str]) -> tuple[Channel, list[AlignedNote]]:
        """A channel of texts, each of a patient of its own, and a release of them."""
        channel = self.channel(corpus_of_texts(texts))
        channel = channel.under(shuffle="note") if self.options.shuffle else channel
        return channel, released(texts, channel, Key.generate())


def _settings(given: Sequence[str]) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in given)


def scene_of(
    texts: Sequence[str], others: Sequence[str], options: argparse.Namespace, scratch: Path
) -> AdversaryView:
    """A release of the texts, and what the readers have."""
    tool = Tool(options, scratch)
    held = options.held
    channel, first = tool.release(texts)
    notes = [rows_of(text, channel) for text in others]
    counts = np.bincount(
        np.concatenate([note.truth for note in first]), minlength=len(channel.words) + 1
    )[:-1]
    return AdversaryView(
        channel,
        first[held:],
        [note.outputs for note in first],
        notes,
        first[:held],
        counts=counts.astype(np.int64),
        scratch=scratch,
    )


def _rng(options: argparse.Namespace) -> np.random.Generator:
    return np.random.default_rng(options.seed + 1)


def first_choices(readings: Sequence[Recovery]) -> list[Ints]:
    """The likeliest candidate at each place; -2 where there is none."""
    return [
        np.array([_best(reading, t) for t in range(reading.starts.size - 1)], dtype=np.int64)
        for reading in readings
    ]


def _best(reading: Recovery, t: int) -> int:
    place = slice(reading.starts[t], reading.starts[t + 1])
    return (
        int(reading.rows[place][np.argmax(reading.chances[place])])
        if place.stop > place.start
        else -2
    )


def row(name: str, read: Sequence[Ints], truth: Sequence[Ints], counts: Ints) -> str:
    """One row of the table: all tokens with an interval over notes, words that are not frequent,
    words below `RARE`.
    """
    right = [r == t for r, t in zip(read, truth, strict=True)]
    low, high = share_by_patient(np.array([[hits.sum(), hits.size] for hits in right]))
    hits = np.concatenate(right)
    inputs = np.concatenate(truth)
    frequent = np.zeros(counts.size, dtype=np.bool_)
    frequent[np.argsort(-counts, kind="stable")[:FREQUENT]] = True
    known = inputs >= 0

    def share(some: Mask) -> str:
        return f"{hits[some].mean():.3f}"

    every = f"{hits.mean():.3f} ({low:.3f} to {high:.3f})"
    return (
        f"| {name} | {every} | {share(known & ~frequent[inputs])} |"
        f" {share(known & (counts[inputs] < RARE))} |"
    )


def main() -> None:
    """Read the notes, release some, let everybody read, print."""
    parser = arguments(__doc__)
    parser.add_argument("--held", type=int, default=200)
    parser.add_argument("--scope", default="patient")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--vectors", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    source, others = shared_out(options, np.random.default_rng(options.seed))
    with tempfile.TemporaryDirectory() as scratch:
        view = scene_of(source, others, options, Path(scratch))
        report(view, options)


def report(view: AdversaryView, options: argparse.Namespace) -> None:
    """The table, a row as soon as it is there."""
    assert view.counts is not None
    truth = [np.where(note.truth < len(view.channel.words), note.truth, -1) for note in view.notes]
    print(
        f"{len(view.notes)} notes read, {sum(map(len, truth)):,} words; {len(view.others)} other"
        " notes of"
    )
    said = " ".join([*options.set, *options.vectors]) or "the defaults of obfuscate"
    print(f"{sum(map(len, view.others)):,} words. {said}, memo {options.scope},")
    print(f"shuffle {options.shuffle}, seed {options.seed}.\n")
    print(
        f"| the attacker | all words | all but the {FREQUENT} most frequent | below {RARE}"
        " occurrences | seconds |"
    )
    print("| --- | --- | ---: | ---: | ---: |")
    top = int(np.argmax(view.prior))
    blind = row(
        "always names the most frequent word",
        [np.full_like(t, top) for t in truth],
        truth,
        view.counts,
    )
    print(f"{blind} |", flush=True)
    for name, said, settings in LADDER:
        if options.only and name not in options.only:
            continue
        begun = time.perf_counter()
        reader = adversaries.get(name)(**settings)
        read = first_choices(_read(reader, view, options))
        line = row(said, read, truth, view.counts)
        print(f"{line} {time.perf_counter() - begun:.0f} |", flush=True)


def _read(reader: Adversary, view: AdversaryView, options: argparse.Namespace) -> list[Recovery]:
    if not reader.is_applicable(view):
        raise SystemExit("a reader lacks something")
    return list(reader.recover(view, _rng(options)))


if __name__ == "__main__":
    main()
