"""Seconds for each exact figure of a channel.

Usage: python benchmarks/channel_figures.py [--words 100000] [--n 14]

The channel is made up: each word has N different outputs, the more frequent a word the more often, as likely as N
drawn from 3 to N makes them; counts fall as Zipf's. Writes a Markdown table to stdout.
"""

from __future__ import annotations

import argparse
import time
from types import SimpleNamespace

import numpy as np

from clinveil.attacks.attack import Context
from clinveil.attacks.channel._strata import word_strata
from clinveil.attacks.channel.channel_figures import ChannelFigures
from clinveil.channel.channel import Channel
from clinveil.vectors.table import Neighbours


def made_up(n_words: int, n: int) -> tuple[Channel, np.ndarray, Neighbours]:
    rng = np.random.default_rng(0)
    frequent = (n_words * rng.random((n_words, 4 * n)) ** 1.5).astype(np.int32)
    outputs = np.empty((n_words, n), dtype=np.int32)
    for word, drawn in enumerate(frequent):
        others = np.array(list(dict.fromkeys(drawn[drawn != word].tolist()))[:n])
        outputs[word] = others if others.size == n else (word + 1 + np.arange(n)) % n_words
    ranks = np.arange(1, n + 1)
    chances = np.array([np.mean([1 / m if rank <= m else 0 for m in range(3, n + 1)]) for rank in ranks])
    indptr = np.append(np.arange(n_words + 1), n_words) * n
    words = [f"{'abcdefghij'[i % 10]}{i}" for i in range(n_words)]
    channel = Channel(words, indptr, outputs.ravel(), np.tile(chances, n_words), np.ones(n_words, dtype=np.bool_))
    counts = np.maximum(1, (n_words * 20 / np.arange(1, n_words + 1))).astype(np.int64)
    table = Neighbours(outputs, np.ones(outputs.shape, dtype=np.float32), np.ones(n_words, dtype=np.bool_))
    return channel, counts, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--n", type=int, default=14)
    options = parser.parse_args()
    small, counts, table = made_up(50, 3)
    small.deltas(table.ids[:, 0], table.ids[:, 1], np.ones(1))  # these three compile
    small.epsilons(table.ids[:, 0], table.ids[:, 1])
    small.spread()
    channel, counts, table = made_up(options.words, options.n)
    one = np.arange(options.words)
    context = Context(
        channel=channel,
        counts=SimpleNamespace(words=channel.words, counts=counts),  # type: ignore[arg-type]
        prior=SimpleNamespace(words=channel.words, counts=np.random.default_rng(1).poisson(counts)),  # type: ignore[arg-type]
        near=table,
    )
    near = np.repeat(one, options.n), table.ids.astype(np.int64).ravel()
    profile = np.array([0.0, 0.5, 1, 2, 4, 8])
    steps = {
        "sorted rows (once)": channel.matrix,
        "posterior: vulnerability, leakage, P(read), single inputs": lambda: (
            (post := channel.posterior(counts)).vulnerability, post.leakage, post.read, post.single()
        ),
        "capacity": channel.capacity,
        "mutual information": lambda: channel.mutual_information(counts),
        "in-degree, N_w, S_w": lambda: (channel.in_degree, channel.unchanged, channel.spread(0.05)),
        "total variation and delta at 5 epsilons, nearest words": lambda: channel.deltas(one, table.ids[:, 0], profile),
        f"the same, all {options.n} near words": lambda: channel.deltas(*near, profile),
        "strata of words (lexicons of names)": lambda: word_strata(channel, counts),
        "**`attack channel`: all figures, five strata, two priors**": lambda: ChannelFigures()(
            context, np.random.default_rng(0)
        ),
    }  # fmt: skip
    print(f"{options.words:,} words, N = {options.n}, {channel.indices.size:,} entries\n")
    print("| figure | clock (s) | CPU (s) |\n| --- | ---: | ---: |")
    for name, step in steps.items():
        clock, cpu = time.perf_counter(), time.process_time()
        step()
        print(f"| {name} | {time.perf_counter() - clock:.2f} | {time.process_time() - cpu:.2f} |")


if __name__ == "__main__":
    main()
