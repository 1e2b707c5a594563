"""Split word pairs into blocks so that concurrent threads never update the same vector.

Words are assigned to `PARTS` parts, and pairs to blocks by the parts of their two words. A round is a set of blocks
without a common part, so training them concurrently gives the same result as training them one after the other. The
result depends on the seed, not on the number of workers (distributed SGD of Gemulla et al., KDD 2011). Blocks are
stored in scratch files and read one at a time.

Within a block, pairs are ordered in tiles of `TILE` by `TILE` words, so that the vectors fit into a core's cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clinveil.core.files import write_array
from clinveil.scale.local import threads
from clinveil.vectors.glove.adagrad import PAIR, Pairs, tiled_order

PARTS = 16
TILE = 256
Block = tuple[int, int]
Step = Callable[[Pairs, NDArray[np.int32]], float]


def part_of(words: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the part of each word: alternating by frequency, so that all parts have about the same work."""
    turn = words % (2 * PARTS)
    return np.minimum(turn, 2 * PARTS - 1 - turn)


def rounds(*, shared: bool) -> list[list[Block]]:
    """Return all blocks in rounds; blocks of one round have no parameter in common.

    Args:
        shared: rows and columns share their vectors, so a block (a, b) with a <= b contains pairs of both orders and
            uses both parts; otherwise it uses row part a and column part b.
    """
    if not shared:
        return [[(a, (a + shift) % PARTS) for a in range(PARTS)] for shift in range(PARTS)]
    # The circle method of round-robin tournaments: one part is fixed, the others rotate.
    turning = PARTS - 1
    schedule: list[list[Block]] = [[(a, a) for a in range(PARTS)]]
    for shift in range(turning):
        pairs = [(shift, turning)]
        pairs += [((shift + k) % turning, (shift - k) % turning) for k in range(1, PARTS // 2)]
        schedule.append([(min(pair), max(pair)) for pair in pairs])
    return schedule


@dataclass(frozen=True)
class Strata:
    """Blocks of pairs in a folder, one file per block.

    Attributes:
        folder: a private folder.
        shared: see `rounds`.
    """

    folder: Path
    shared: bool

    def _path(self, block: Block) -> Path:
        return self.folder / f"{block[0]}-{block[1]}.pairs"

    def add(self, pairs: Pairs) -> None:
        """Append pairs to the files of their blocks."""
        rows, columns = part_of(pairs["row"]), part_of(pairs["column"])
        if self.shared:
            rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
        block = rows * PARTS + columns
        order = np.argsort(block, kind="stable")
        ends = np.cumsum(np.bincount(block, minlength=PARTS * PARTS))
        for name, members in enumerate(np.split(order, ends[:-1])):
            if not members.size:
                continue
            path = self._path(divmod(name, PARTS))
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                write_array(file, pairs[members])

    def epoch(self, step: Step, *, seed: int, epoch: int, workers: int) -> float:
        """Train on all pairs once, with rounds, tiles and pairs in random order; return the sum of losses.

        Args:
            step: trains on pairs in an order and returns their loss; must release the GIL.
            seed, epoch: seed of the random order.
            workers: threads; they do not change the result.
        """

        def train(block: Block) -> float:
            path = self._path(block)
            if not path.exists():
                return 0.0
            pairs = np.fromfile(path, PAIR)
            return step(pairs, _order(pairs, np.random.default_rng([seed, epoch, *block])))

        schedule = rounds(shared=self.shared)
        turns: Iterable[int] = np.random.default_rng([seed, epoch]).permutation(len(schedule)).tolist()
        # Each map over threads ends before the next one begins, which separates the rounds.
        return sum(sum(threads(workers)(train, schedule[turn])) for turn in turns)


def _order(pairs: Pairs, rng: np.random.Generator) -> NDArray[np.int32]:
    rows, columns = (pairs[name].astype(np.int64) // (PARTS * TILE) for name in ("row", "column"))
    across = int(columns.max()) + 1
    return np.asarray(tiled_order(rows * across + columns, across * (int(rows.max()) + 1), rng))
