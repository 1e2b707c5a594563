"""Skip-gram with negative samples, trained to the same bits by any number of workers.

The learning rate, the windows, the samples and the words left out are as in the program of Mikolov et al. (2013) and
in gensim; three things differ (`steps.py`): the samples of a centre are drawn once for all words around it, one that is
drawn twice there counts once, and lines are read in another order in each pass. Against gensim: benchmarks/vectors.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.types import Floats, Ints
from clinveil.vectors.algorithm import OnEpoch
from clinveil.vectors.encoded import END, IdFile, Ids, words_in
from clinveil.vectors.skipgram.steps import Model, Rule, add_changes, new_lane, thin_lines, walk_lane

LANES = 4  # stretches of text that are walked side by side; part of the result, so not a setting
FIRST_RATE, LAST_RATE = 0.025, 0.0001
SAMPLE = 1e-3  # more frequent words are left out at random
POWER = 0.75  # of a word's count, by which samples are drawn
# Lanes do not see what the others change until they add it up: at most about so many steps of one row. Three times as
# many lost nothing on MTSamples, OHSUMED and invented notes; twelve times as many ran away on the last.
UNSEEN = 500
FEWER = 8  # where training runs away, it begins again with so many times fewer unseen, and then once more
_MOST_CENTRES = 512
_CHUNK = 1 << 20  # words that are thinned and walked at a time


@dataclass(frozen=True)
class Plan:
    """How long and how wide training is."""

    window: int
    negative: int
    epochs: int
    workers: int
    seed: int


def train_skipgram(ids: Ids | IdFile, counts: Ints, inputs: Floats, plan: Plan, on_epoch: OnEpoch | None) -> Floats:
    """Train the vectors in place; the same seed gives the same bits on the same machine, for any number of workers.

    Args:
        ids: words of the notes by row, `END` after each line.
        counts: (n_words,) occurrences in all notes, by which words are left out and samples are drawn.
        inputs: (n_words, dim) the first vectors.
        on_epoch: called with (done, all) after each pass.

    Returns: (n_words, dim) the vectors of words as centres and samples, with which `inputs` tell them apart.

    Raises InputError where training runs away.
    """
    words, first, centres = words_in(ids), inputs.copy(), stretch(counts, plan.window, plan.negative)
    for unseen in (centres, centres // FEWER, centres // FEWER**2):
        inputs[:] = first
        with ThreadPoolExecutor(LANES) as pool:
            training = _Training(counts, inputs, plan, pool, max(1, unseen))
            if all(training.one_pass(ids, words, epoch, on_epoch) for epoch in range(plan.epochs)):
                return training.model.outputs
    raise InputError("skip-gram training ran away", hint="give a smaller --window or fewer --negative")


class _Training:
    """A model and the lanes that walk beside each other."""

    def __init__(self, counts: Ints, inputs: Floats, plan: Plan, pool: ThreadPoolExecutor, centres: int) -> None:
        self.plan, self.pool, self.centres = plan, pool, centres
        self.model = Model(inputs, np.zeros_like(inputs), *_samples(counts))
        self.keep = _keep(counts)
        how = {"centres": centres, "window": plan.window, "negative": plan.negative}
        self.lanes = [new_lane(*inputs.shape, **how) for _ in range(LANES)]

    def one_pass(self, ids: Ids | IdFile, words: int, epoch: int, on_epoch: OnEpoch | None) -> bool:
        """Train once on all lines, of so many words together; whether all numbers are finite."""
        before = 0
        for number, chunk in enumerate(chunks(ids, _CHUNK)):
            size = int(np.count_nonzero(chunk != END))
            done, then = ((epoch + part / max(1, words)) / self.plan.epochs for part in (before, before + size))
            self.chunk(chunk, done, then, [self.plan.seed, epoch, number])
            before += size
        if on_epoch:
            on_epoch(epoch + 1, self.plan.epochs)
        return bool(np.isfinite(self.model.inputs).all())

    def chunk(self, ids: Ids, done: float, then: float, seed: list[int]) -> None:
        """Train on some lines once, while the share of all words that is done grows from `done` to `then`."""
        rngs = [np.random.default_rng([*seed, lane]) for lane in range(LANES + 1)]
        kept = self._thinned(ids, rngs.pop())
        share = -(-kept.size // LANES)  # each lane has its own part of the lines
        for first in range(0, share, self.centres):
            alpha = np.float32(rate(done + (then - done) * first / share))
            rule = Rule(self.plan.window, self.plan.negative, alpha)
            ends = min(first + self.centres, share)

            def walk(lane: int, first: int = first, ends: int = ends, rule: Rule = rule) -> None:
                start, end = (min(lane * share + place, kept.size) for place in (first, ends))
                walk_lane(kept, start, end, self.model, self.lanes[lane], rule, rngs[lane])

            self._side_by_side(walk)

    def _thinned(self, ids: Ids, rng: np.random.Generator) -> Ids:
        """The words that are trained on, lines in random order."""
        ends = np.flatnonzero(ids == END)
        starts = np.concatenate([[0], ends[:-1] + 1])
        kept = np.empty_like(ids)
        return kept[: thin_lines(ids, starts, rng.permutation(len(starts)), self.keep, rng, kept)]

    def _side_by_side(self, walk: Callable[[int], None]) -> None:
        """Walk all lanes, some in this thread, and put together what they changed."""
        workers = max(1, min(self.plan.workers, LANES))
        sent = [self.pool.submit(_each, walk, range(first, LANES, workers)) for first in range(1, workers)]
        _each(walk, range(0, LANES, workers))
        for one in sent:
            one.result()
        for lane in self.lanes:
            add_changes(lane.inputs, self.model.inputs)
            add_changes(lane.outputs, self.model.outputs)


def _each(walk: Callable[[int], None], lanes: range) -> None:
    for lane in lanes:
        walk(lane)


def chunks(ids: Ids | IdFile, size: int) -> Iterator[Ids]:
    """Whole lines of about so many words at a time; only a longer line is cut, and ends where it is cut."""
    first = 0
    while first < ids.size:
        part = ids[first : first + size]
        ends = np.flatnonzero(part == END)
        part = part[: ends[-1] + 1] if len(ends) else part
        first += part.size
        yield part if len(ends) else np.append(part, np.int32(END))


def stretch(counts: Ints, window: int, negative: int) -> int:
    """The centres that a lane walks before all lanes put their changes together: 1 to 512."""
    share = counts.max() / counts.sum()
    met = min(1.0, negative * float((counts**POWER).max() / (counts**POWER).sum())) + share * float(_keep(counts).min())
    return max(1, min(_MOST_CENTRES, int(UNSEEN / (LANES * met * (window + 1)))))


def rate(done: float) -> float:
    """The learning rate after this share of all words, from 0 to 1."""
    return FIRST_RATE - (FIRST_RATE - LAST_RATE) * done


def _keep(counts: Ints) -> Floats:
    """The chance of an occurrence to be trained on, by word (Mikolov et al. 2013, as in their program)."""
    share = np.maximum(counts, 1) / max(1, counts.sum()) / SAMPLE
    return np.minimum(1.0, (np.sqrt(share) + 1) / share).astype(np.float32)


def _samples(counts: Ints) -> tuple[NDArray[np.float64], Ids]:
    """Cumulative chances of the words to be drawn as samples, and where to begin to look for a draw."""
    cumulative = np.cumsum(counts.astype(np.float64) ** POWER)
    cumulative /= cumulative[-1]
    cumulative[-1] = 1.0
    places = np.arange(len(counts)) / len(counts)
    return cumulative, np.searchsorted(cumulative, places).astype(np.int32)
