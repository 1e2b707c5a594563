"""Co-occurrence counts of word pairs, and their blocks, in which concurrent threads never update the same vector.

Two words at distance d in one note (d up to the window) add 1/d to their pair; windows do not cross notes. Words
without an id are removed first and do not count towards the distance, as in the programs of word2vec and GloVe. Weights
are summed as integers, so the counts do not depend on workers or order.

Words are assigned to `PARTS` parts, and pairs to blocks by the parts of their two words. A round is a set of blocks
without a common part, so training them concurrently gives the same result as training them one after the other. The
result depends on the seed, not on the number of workers (distributed SGD of Gemulla et al., KDD 2011). Within a block,
pairs are ordered in tiles of `TILE` by `TILE` words, so that the vectors fit into a core's cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from clinveil.core.types import Doubles, Ints, SmallInts
from clinveil.scale.local import threads
from clinveil.vectors.algorithms._adagrad import Pairs, tiled_order
from clinveil.vectors.sentences import END, Ids

PARTS, TILE = 16, 256
Block = tuple[int, int]
Step = Callable[[Pairs, SmallInts], float]
Counts = tuple[Ints, Ints]  # distinct pairs, row << 32 | column, ascending; and their weights
_LARGEST_UNIT = 1 << 30


def unit_of(window: int) -> int:
    """Return the units of a weight of 1: up to window 22, every 1/d is a whole number of units."""
    return min(math.lcm(*range(1, window + 1)), _LARGEST_UNIT)


def count_pairs(
    batches: Iterable[Ids], window: int, *, symmetric: bool, workers: int = 1
) -> tuple[SmallInts, SmallInts, Doubles]:
    """Return rows, columns and counts X of all pairs, each once, in order of row and column.

    A symmetric X(i, j) = X(j, i) is returned once, with i <= j, and X(i, i) counts each co-occurrence twice, once per
    direction. Otherwise j follows i in the text. Memory: 16 bytes for each distinct pair, up to three times.

    Args:
        batches: word ids with `END` after each note, from `sentences.encode`. workers: threads.
    """
    total: Counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    waiting: list[Counts] = []
    for counts in threads(workers)(partial(_counted, window, symmetric), batches):
        waiting.append(counts)
        if sum(keys.size for keys, _ in waiting) > total[0].size:
            total, waiting = _summed([total, *waiting]), []
    keys, units = _summed([total, *waiting])
    rows, columns = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
    values = units / unit_of(window)
    return rows, columns, np.where(symmetric & (rows == columns), 2 * values, values)


def _counted(window: int, symmetric: bool, ids: Ids) -> Counts:
    """Count the pairs of whole notes."""
    notes, words, found = np.cumsum(ids == END), ids.astype(np.int64), list[Counts]()
    for distance in range(1, min(window, ids.size - 1) + 1):
        same = (notes[distance:] == notes[:-distance]) & (words[:-distance] != END)  # an `END` begins a number
        first, second = words[:-distance][same], words[distance:][same]
        if symmetric:
            first, second = np.minimum(first, second), np.maximum(first, second)
        weight = round(unit_of(window) / distance)
        found.append((first << 32 | second, np.full(first.size, weight, dtype=np.int64)))
    return _summed(found)


def _summed(parts: list[Counts]) -> Counts:
    """Add the weights of equal pairs."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys, units = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    keys, units = keys[order], units[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    return keys[firsts], np.add.reduceat(units, firsts) if firsts.size else units


def part_of(words: SmallInts) -> SmallInts:
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
    """Pairs by block; `shared`: see `rounds`."""

    blocks: dict[Block, Pairs] = field(repr=False)
    shared: bool

    @classmethod
    def of(cls, pairs: Pairs, *, shared: bool) -> Strata:
        """Assign pairs to their blocks, in order."""
        rows, columns = part_of(pairs["row"]), part_of(pairs["column"])
        if shared:
            rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
        block = rows * PARTS + columns
        order, ends = np.argsort(block, kind="stable"), np.cumsum(np.bincount(block, minlength=PARTS * PARTS))
        parts = np.split(pairs[order], ends[:-1])
        return cls({divmod(name, PARTS): part for name, part in enumerate(parts) if part.size}, shared)

    def epoch(self, step: Step, *, seed: int, epoch: int, workers: int) -> float:
        """Train on all pairs once, with rounds, tiles and pairs in random order; return the sum of losses.

        Args:
            step: trains on pairs in an order and returns their loss; must release the GIL.
            seed, epoch: seed of the random order.
            workers: threads; they do not change the result.
        """

        def train(block: Block) -> float:
            pairs = self.blocks.get(block)
            return 0.0 if pairs is None else step(pairs, _order(pairs, np.random.default_rng([seed, epoch, *block])))

        schedule = rounds(shared=self.shared)
        turns: Iterable[int] = np.random.default_rng([seed, epoch]).permutation(len(schedule)).tolist()
        # Each map over threads ends before the next one begins, which separates the rounds.
        return sum(sum(threads(workers)(train, schedule[turn])) for turn in turns)


def _order(pairs: Pairs, rng: np.random.Generator) -> NDArray[np.int32]:
    rows, columns = (pairs[name].astype(np.int64) // (PARTS * TILE) for name in ("row", "column"))
    across = int(columns.max()) + 1
    return np.asarray(tiled_order(rows * across + columns, across * (int(rows.max()) + 1), rng))
