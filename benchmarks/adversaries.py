"""Print the adversary table of one channel setting: what each adversary recovers and links, by what
they hold.

Usage: python benchmarks/adversaries.py NOTES [--id COL] [--text COL] [--patient COL] [--set
NAME=VALUE ...]
       [--vectors FOLDER] [--train NAME=VALUE ...] [--public TEXTS --match COL] [--tokens 40000]
       [--seed 1] [--all]

Trains word vectors on the notes (or takes those of --vectors), builds the channel of `clinveil
obfuscate` with the settings of --set, obfuscates the notes under a random key, and runs the attacks
that every release is measured by. Identifiers are not replaced first. Writes a Markdown table to
stdout; with --all also every finding behind it. Seconds are of processor time, all threads.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks import AdversaryRow, AdversarySuite, Context, Linkage, adversary_table
from clinveil.channel import ChannelSettings, WordObfuscator, build_channel, with_context
from clinveil.core import Finding, Key, NotesSettings
from clinveil.corpus import Corpus, MemoryCorpus, open_corpus
from clinveil.vectors import Vectors, VectorSettings, WordCounts, count_words, load_vectors, train


def pairs(given: list[str]) -> dict[str, str]:
    """NAME=VALUE arguments as a dictionary."""
    return dict(one.split("=", 1) for one in given)


def kept(options: argparse.Namespace) -> tuple[str, ...]:
    """The column that pairs notes with public texts, where it is not the patient's."""
    return (options.match,) if options.match not in (None, "patient") else ()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notes", type=Path)
    for name in ("--id", "--text", "--patient", "--match"):
        parser.add_argument(name)
    for name in ("--vectors", "--public"):
        parser.add_argument(name, type=Path)
    for name in ("--set", "--train"):
        parser.add_argument(name, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    return parser.parse_args()


def released(corpus: Corpus, options: argparse.Namespace, scratch: Path) -> Context:
    """The notes obfuscated under a random key, and everything that the attacks need."""
    counts = count_words(corpus, scratch)
    if options.vectors:
        vectors = load_vectors(options.vectors)
    else:
        how = VectorSettings.model_validate(pairs(options.train))
        vectors = train(
            corpus, how, seed=options.seed, workers=options.workers, scratch=scratch, counts=counts
        )
    settings = ChannelSettings.model_validate({"allow_small": True, **pairs(options.set)})
    public = (
        open_corpus(options.public, NotesSettings(), keep=kept(options)) if options.public else None
    )
    context = context_of(
        corpus, Learned(corpus, counts, vectors), settings, Key.generate(), scratch
    )
    return replace(
        context, public=public, workers=options.workers, say=lambda line: print(line, flush=True)
    )


@dataclass(frozen=True, eq=False)
class Learned:
    """What a release learned, and the notes it learned from."""

    notes: Corpus
    counts: WordCounts
    vectors: Vectors


def context_of(
    corpus: Corpus, learned: Learned, settings: ChannelSettings, key: Key, scratch: Path
) -> Context:
    """Return notes obfuscated under a key, and what attacks and utility tasks need of them."""
    channel, _ = build_channel(learned.vectors, settings, threads=2, counts=learned.counts)
    if settings.uses_model:
        channel = with_context(
            channel,
            learned.notes,
            ngram_patients=settings.ngram_patients,
            label=next(iter(corpus.columns.labels), None),
            workers=2,
            scratch=scratch,
        )
    made = [WordObfuscator(channel, key)(batch) for batch in corpus.batches()]
    return Context(
        channel=channel,
        counts=learned.counts,
        original=corpus,
        entered=corpus,
        released=MemoryCorpus(tuple(one.batch for one in made), corpus.columns),
        scratch=scratch,
        workers=2,
    )


def share(value: float | None) -> str:
    """A share, or a dash."""
    return "–" if value is None else f"{value:.3f}"


def line(row: AdversaryRow) -> str:
    """One row of the Markdown table."""
    f = row.finding
    value, low, high, chance = map(share, (f.value, f.low, f.high, f.chance))
    measured = f"{value} ({low} to {high}) | {chance} | {f.n:,} | {'yes' if row.gated else 'no'}"
    return f"| {row.label} | {row.cell.target} | {measured} | {row.attack or f.why} |"


def show(findings: list[Finding]) -> None:
    """Every measured share by attack, and the positive controls."""
    for one in findings:
        who = one.attack or ", ".join(one.labels)
        if one.value is not None and one.cell is not None:
            place = f"{one.cell.holding:15} {who:32} {one.cell.target:36}"
            print(f"{place} {one.value:.3f}  chance {share(one.chance)}  n {one.n}")
        elif one.measure.endswith("unprotected"):
            print(f"{'control':15} {who:32} {share(one.value)}")


def main() -> None:
    """Obfuscate, attack, print."""
    options = arguments()
    roles = NotesSettings(id=options.id, text=options.text, patient=options.patient)
    corpus = open_corpus(options.notes, roles, keep=kept(options))
    with tempfile.TemporaryDirectory() as scratch:
        context = released(corpus, options, Path(scratch))
        rng = np.random.default_rng(options.seed)
        findings = list[Finding]()
        attacks: tuple[Any, ...] = (
            AdversarySuite(tokens=options.tokens),
            Linkage(public_match=options.match or "patient"),
        )
        for attack in attacks:
            begun = time.process_time()
            clock = time.perf_counter()
            findings += attack(context, rng)
            spent = (
                f"{time.process_time() - begun:.0f} s of processor time,"
                f" {time.perf_counter() - clock:.0f} s"
            )
            print(f"{type(attack).__name__}: {spent}", flush=True)
    if options.all:
        show(findings)
    print(
        "\n| adversary | target | recovered or linked (95 %) | chance | cases | gated | strongest"
        " attack |"
    )
    print("| --- | --- | --- | ---: | ---: | --- | --- |")
    print("\n".join(line(row) for row in adversary_table(findings).values()))


if __name__ == "__main__":
    main()
