"""Tokens per second of training and writing, compared with plain PyTorch; and the copy scan of 10^6
by 10^6 words.

Usage: language_models.py train [SIZE ...]     (LSTM of these sizes, one thread; default: tiny
small)
       language_models.py write [SIZE ...]     (1, 16 and 128 notes at once, compared with one note
       in plain PyTorch) language_models.py copies [WORDS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from clinveil.attacks import copies
from clinveil.core import Key, seeded
from clinveil.corpus import memory_corpus
from clinveil.lm import (
    END,
    EncodedNotes,
    Lstm,
    ModelSettings,
    NeuralModel,
    Recipe,
    SamplingConfig,
    Training,
    WordVocabulary,
    build,
    generate,
    plan_of,
)

WORDS = 8_000
NOTE = 400
STEPS = 12
TURNS = 5
CPU = torch.device("cpu")


def notes_of(n: int) -> EncodedNotes:
    """Random notes of 400 tokens, words by Zipf's law."""
    rng = np.random.default_rng(1)
    chance = 1 / np.arange(1, WORDS)
    rows = 1 + rng.choice(WORDS - 1, size=(n, NOTE), p=chance / chance.sum())
    rows[:, -1] = END
    return EncodedNotes(
        rows.astype(np.int32).ravel(), np.arange(n + 1) * NOTE, np.full(n, 5 * NOTE)
    )


def seconds(work: Callable[[], object]) -> float:
    """Seconds of processor time: one thread, so the load of the machine matters less."""
    start = time.process_time()
    work()
    return time.process_time() - start


def train(sizes: list[str]) -> None:
    """Ours and a plain loop over one text in columns, in turns."""
    encoded = notes_of(400)
    for size in sizes:
        recipe = ModelSettings(size=size).recipe()  # type: ignore[arg-type]
        plan = plan_of(encoded, recipe, 1)
        with seeded(1):
            ours = Training(WORDS, recipe, plan, seed=1, device=CPU)
            plain = Plain(encoded, recipe)
            rates = [_turn(ours, plain, recipe) for _ in range(1 + TURNS)][
                1:
            ]  # the first turn warms up
        mine, theirs = (np.array(column) for column in zip(*rates, strict=True))
        ratio = mine / theirs
        line = (
            f"lstm {size}: {np.median(mine):,.0f} tokens a second; plain PyTorch"
            f" {np.median(theirs):,.0f}, "
        )
        line += (
            f"ours {np.median(ratio):.2f} times ({ratio.min():.2f} to {ratio.max():.2f} in"
            f" {TURNS} turns)"
        )
        print(line, flush=True)


def _turn(ours: Training, plain: Plain, recipe: Recipe) -> tuple[float, float]:
    """Tokens a second of some steps of ours, then of as many of the plain loop."""
    start = ours.progress.step
    tokens = sum(ours.plan.batch(step).normaliser for step in range(start, start + STEPS))
    mine = tokens / seconds(lambda: ours.fit(start + STEPS))
    theirs = STEPS * recipe.window * recipe.lanes / seconds(lambda: plain.run(STEPS))
    return mine, theirs


class Plain:
    """The training loop of PyTorch's word language model: one text in columns, clipping, SGD."""

    def __init__(self, encoded: EncodedNotes, recipe: Recipe) -> None:
        self.recipe = recipe
        self.network = build(WORDS, recipe)
        length = encoded.ids.size // recipe.lanes
        columns = (
            encoded.ids[: length * recipe.lanes].reshape(recipe.lanes, length).T.astype(np.int64)
        )
        self.text = torch.from_numpy(columns.copy())
        self.at = 0
        self.state = self.network.start(recipe.lanes)

    def run(self, steps: int) -> None:
        """So many windows."""
        net = self.network
        window = self.recipe.window
        for _ in range(steps):
            piece = self.text[self.at : self.at + window + 1]
            self.at = (self.at + window) % (len(self.text) - window)
            net.zero_grad()
            below = self.hidden(piece[:-1])
            loss = nn.functional.cross_entropy(net.scores(below).flatten(0, 1), piece[1:].flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), self.recipe.clip)
            with torch.no_grad():
                for weight in net.parameters():
                    weight -= self.recipe.rate * weight.grad

    def hidden(self, inputs: Tensor) -> Tensor:
        """The hidden values of a window."""
        below, self.state = self.network(inputs, tuple(part.detach() for part in self.state))
        return below


def write(sizes: list[str]) -> None:
    """Ours at several lanes, and one note at a time with nn.LSTM and torch.multinomial (the
    generator of paper C).
    """
    vocabulary = WordVocabulary([f"w{i}" for i in range(WORDS - 3)])
    for size in sizes:
        recipe = ModelSettings(size=size).recipe()  # type: ignore[arg-type]
        with seeded(1):
            network = build(WORDS, recipe).eval()
            rates = {
                lanes: _written(NeuralModel(vocabulary, network), lanes) for lanes in (1, 16, 128)
            }
            plain = _one_by_one(network, 200)
        said = ", ".join(f"{rate:,.0f} at {lanes}" for lanes, rate in rates.items())
        line = (
            f"lstm {size}: tokens a second by notes at once: {said};"
            f" {rates[128] / rates[1]:.0f} times one"
        )
        print(line + f"; plain PyTorch, one: {plain:,.0f}")


def _written(model: NeuralModel, lanes: int) -> float:
    """Untrained models seldom end a note: all are cut at the same length, so that no lane is
    idle.
    """
    length = 200 if lanes == 1 else 100
    notes = generate(
        model, Key.from_seed(1), SamplingConfig(batch_size=lanes, max_new_tokens=length)
    )
    n = sum(note.ids.size for note in islice(notes, max(1, lanes // 4)))  # compiles and warms up
    start = time.process_time()
    n = sum(note.ids.size for note in islice(notes, lanes))
    return n / (time.process_time() - start)


def _one_by_one(network: Lstm, tokens: int) -> float:
    state = network.start(1)
    word = torch.tensor([[END]])
    with torch.inference_mode():
        start = time.process_time()
        for _ in range(tokens):
            below, state = network(word, state)
            word = torch.multinomial(torch.softmax(network.scores(below)[0], dim=-1), 1)
        return tokens / (time.process_time() - start)


def copy_scan(words: int) -> None:
    """Synthetic and training notes of so many words each, held-out ones of a tenth."""
    rng = np.random.default_rng(1)
    chance = 1 / np.arange(1, 50_000)
    names = np.array([_spelled(i) for i in range(49_999)], dtype=object)

    def corpus(n: int, head: str) -> object:
        rows = names[rng.choice(49_999, size=n, p=chance / chance.sum())].reshape(-1, 1_000)
        return memory_corpus(
            [(f"{head}{i}", f"{head}{i}", " ".join(row)) for i, row in enumerate(rows)]
        )

    sides = corpus(words, "s"), corpus(words, "t"), corpus(words // 10, "h")
    for _ in range(2):  # the first one compiles
        start = time.perf_counter()
        copies(*sides, np.random.default_rng(1))  # type: ignore[arg-type]
        print(f"copy scan, {words:,} by {words:,} words: {time.perf_counter() - start:.1f} s")


def _spelled(number: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return "w" + "".join(letters[number // 26**i % 26] for i in range(4))


if __name__ == "__main__":
    kind, *rest = sys.argv[1:] or ["train"]
    if kind == "copies":
        copy_scan(int(rest[0]) if rest else 1_000_000)
    else:
        {"train": train, "write": write}[kind](rest or ["tiny", "small"])
