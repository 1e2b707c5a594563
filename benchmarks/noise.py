"""Noise mechanisms compared with neighbours on the same vectors: unchanged words, recovered words, cost of compiling.

Usage: python benchmarks/noise.py VECTORS [--unchanged 0.1 0.5 0.9] [--draws 200] [--threads 2] [--names FILE]
           [--noise laplace gaussian]

VECTORS is a folder made by `clinveil embed`. Noise is calibrated to the wanted shares of unchanged tokens. Writes
Markdown tables to stdout.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from clinveil.attacks.channel.inversion import inversion
from clinveil.attacks.channel.name_outputs import name_outputs, unchanged_by_distance
from clinveil.channel.build import output_floor
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.noise import calibrate, cast_rays
from clinveil.corpus.people import read_names
from clinveil.vectors.files import load_vectors
from clinveil.vectors.neighbours import neighbours
from clinveil.vectors.search import nearest_distances
from clinveil.vectors.table import Vectors


def compared(vectors: Vectors, eligible: np.ndarray, options: argparse.Namespace) -> Iterator[tuple[str, Mechanism]]:
    for n in ("5", "3-14"):
        yield f"N = {n}", mechanisms.get("neighbours")(n=n)
    rays = cast_rays(vectors, eligible, np.random.default_rng(0))
    for share in options.unchanged:
        for name in options.noise:
            size = calibrate(name, rays, share)
            kind = mechanisms.get(name)
            yield f"{name}, {kind.size_name} = {size:.2f}", kind(**{kind.size_name: size})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--unchanged", type=float, nargs="*", default=[0.1, 0.5, 0.9])
    parser.add_argument("--noise", nargs="+", choices=["laplace", "gaussian"], default=["laplace", "gaussian"])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--min-patients", type=int, default=5)
    parser.add_argument("--names", type=Path)
    options = parser.parse_args()
    vectors = load_vectors(options.vectors)
    eligible = output_floor(vectors, options.min_patients, need=15, allow_small=True)
    table = neighbours(vectors, 14, eligible=eligible, threads=options.threads)
    nearest = nearest_distances(vectors.matrix, eligible, threads=options.threads)
    names = [" ".join(name) for name in read_names(options.names)] if options.names else []
    print(f"{len(vectors):,} words of {vectors.dim} dimensions, {int(eligible.sum()):,} may come out\n")
    print("| mechanism | unchanged, tokens | recovered | of rare words | candidates | missing mass | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    tenths, of_names = [], []
    material = Material(vectors, eligible, table=table, draws=options.draws, threads=options.threads)
    for name, mechanism in compared(vectors, eligible, options):
        began = time.perf_counter()
        channel = mechanism.compile(material)
        seconds = time.perf_counter() - began
        found = {f.measure: f for f in inversion(channel, vectors.counts)}
        every, *parts = unchanged_by_distance(channel, vectors.counts, nearest)
        print(
            f"| {name} | {every.value:.3f} | {found['attack.inversion'].value:.3f} "
            f"| {found['attack.inversion_rare'].value:.4f} | {found['attack.inversion_candidates'].value:,.1f} "
            f"| {channel.parameters.get('mc_missing_mass', 0.0):.3f} | {seconds:.0f} |",
            flush=True,
        )
        tenths.append(f"| {name} | " + " | ".join(f"{p.detail['by_word']:.3f}" for p in parts) + " |")
        rows = {
            f.measure: f for f in name_outputs(channel, names, vectors.counts) if f.detail.get("label") == "all names"
        }
        if rows:
            cells = (rows[f"attack.{m}"] for m in ("name_unchanged", "name_to_name", "name_near"))
            of_names.append(f"| {name} | " + " | ".join(f"{f.value:.4f} ({f.chance:.4f})" for f in cells) + " |")
    print("\nP(unchanged) over words, by tenth of the words by distance to the nearest other word (Euclidean):\n")
    print("| mechanism | " + " | ".join(f"{p.detail['distance']:.2f}" for p in parts) + " |")
    print("| --- |" + " ---: |" * len(parts))
    print("\n".join(tenths))
    if of_names:
        print(
            "\n| name tokens | unchanged (chance) | another name | within two letters |\n| --- | ---: | ---: | ---: |"
        )
        print("\n".join(of_names))
    print(
        f"\nPeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB, {options.draws} draws a word."
    )


if __name__ == "__main__":
    main()
