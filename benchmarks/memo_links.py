"""Linkage of two released notes of one patient by their shared words, by substitution scope (attack `memo-links`).

Usage: python benchmarks/memo_links.py NOTES [--id COL] [--text COL] [--source 577] [--set NAME=VALUE ...]
    [--vectors NAME=VALUE ...]

The notes are sampled as in `context_attack.py`. Each is cut in two halves, which are two notes of one patient, and
released under every scope with one channel. Writes a Markdown table to stdout.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.append(sys.path.pop(sys.path.index(str(Path(__file__).resolve().parent))))  # names.py hides a package
from context_attack import arguments, shared_out
from outsiders import Tool

from clinveil import Key
from clinveil.attacks.attack import Context
from clinveil.attacks.text.memo_links import MemoLinks
from clinveil.channel.apply import Obfuscator
from clinveil.channel.build import scoped
from clinveil.channel.channel import Channel
from clinveil.core.tokens import words
from clinveil.corpus.corpus import Corpus, MemoryCorpus, memory_corpus

SCOPES = ("occurrence", "note", "rare", "patient", "corpus")


def line(channel: Channel, source: Corpus, seed: int) -> str:
    """One row of the table: a release under the channel's memo, attacked."""
    obfuscate = Obfuscator(channel, Key.generate())
    released = MemoryCorpus(tuple(obfuscate(batch).batch for batch in source.batches()))
    ids = [note for batch in source.batches() for note in batch.column(0).to_pylist()]
    context = Context(channel=channel, entered=source, released=released, notes={note: note for note in ids})
    top, area = MemoLinks()(context, np.random.default_rng(seed))
    cells = [f"{f.value:.3f} ({f.low:.3f} to {f.high:.3f}) | {f.control:.3f} | {f.chance:.3f}" for f in (top, area)]
    return f"| {channel.policy.scope} | {' | '.join(cells)} |"


def main() -> None:
    """Read the notes, cut them, release them under every memo, attack, print."""
    parser = arguments(__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--vectors", action="append", default=[], metavar="NAME=VALUE")
    parser.set_defaults(scope="occurrence", window=0)
    options = parser.parse_args()
    chosen, _ = shared_out(options, np.random.default_rng(options.seed))
    halves = []
    for number, text in enumerate(chosen):
        note = words(text)
        cut = len(note) // 2
        halves += [(f"{number}a", str(number), " ".join(note[:cut])), (f"{number}b", str(number), " ".join(note[cut:]))]
    source = memory_corpus(halves)
    with tempfile.TemporaryDirectory() as scratch:
        channel = Tool(options, Path(scratch)).channel(source)
    times = Counter(word for _, _, text in halves for word in text.split())
    counts = np.array([times[word] for word in channel.words], dtype=np.int64)
    print(f"{len(halves)} halves of notes. {' '.join([*options.set, *options.vectors])}, seed {options.seed}.\n")
    print("| scope | nearest is of the patient | fresh draws | chance | area | fresh draws | chance |")
    print("| --- | --- | ---: | ---: | --- | ---: | ---: |")
    for scope in SCOPES:
        print(line(scoped(channel.under(scope=scope), counts), source, options.seed), flush=True)


if __name__ == "__main__":
    main()
