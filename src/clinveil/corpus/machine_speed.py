"""Measure how fast this machine is now, in about 0.9 s, for the time estimates of `estimate.py`.

Three probes run one after the other without a pause, because the scheduler of a busy machine favours threads that have
slept: tokenizing in Python, float32 matrix products, and hashing in as many threads as there are workers. Each result
is relative to the reference machine.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from clinveil.core.tokens import tokenize

# Processor seconds of one turn of each probe on the reference machine (2 hyperthreads of an AMD EPYC, November 2026).
REFERENCE = {"python": 0.0018, "product": 0.0018, "threads": 0.0030}
BUDGET = {"python": 0.1, "product": 0.1, "threads": 0.3}  # seconds per run of a probe
PYTHON_RUNS = 4  # the probe in Python is repeated, to see how steady the machine is
_COMPILED = 20  # files of machine code that a release leaves; with fewer, kernels are compiled first
_NOTE = "The 54-year-old patient was seen on 03/04/2019 for chest pain, and denies dyspnea; BP 120/80. Plan: aspirin. "
_NUMBER = re.compile(r"\d+(?:[/.-]\d+)*")

Timer = Callable[[], float]


@dataclass(frozen=True)
class Speed:
    """How slow a machine is, relative to the reference machine without other work: 2.0 takes twice as long.

    Attributes:
        python: one process that runs Python and scalar loops. product: matrix products in one thread.
        threads: each of the workers while all of them run.
        spread: relative standard deviation of repeated probes: how unsteady the machine is.
        cold: whether compiled kernels are missing, as before the first release.
    """

    python: float = 1.0
    product: float = 1.0
    threads: float = 1.0
    spread: float = 0.0
    cold: bool = False


@cache
def machine_speed(workers: int = 2) -> Speed:
    """Return the speed of this machine for this number of workers, measured once per process."""
    return measured_speed(workers, time.perf_counter)


def measured_speed(workers: int, timer: Timer) -> Speed:
    """Run the probes and return the speed; `timer` returns seconds."""
    note, square, block = _NOTE * 20, np.ones((64, 64), np.float32), bytes(1 << 21)
    probes: dict[str, Callable[[], object]] = {
        "python": lambda: (Counter(token.kind for token in tokenize(note)), _NUMBER.findall(note)),
        "product": lambda: [square @ square for _ in range(200)],  # too small for threads of its own
        "threads": lambda: hashlib.blake2b(block),
    }

    def slowness(name: str, _: int = 0) -> float:
        return turn_seconds(probes[name], BUDGET[name], timer) / REFERENCE[name]

    python = [slowness("python") for _ in range(PYTHON_RUNS)]
    product = slowness("product")
    with ThreadPoolExecutor(workers) as pool:
        threads = float(np.mean(list(pool.map(slowness, ["threads"] * workers, range(workers)))))
    return Speed(
        python=max(float(np.mean(python)), threads / workers),  # the scheduler also favours a young process
        product=product,
        threads=threads,
        spread=float(np.std(python) / np.mean(python)),
        cold=not _has_compiled_kernels(),
    )


def turn_seconds(probe: Callable[[], object], budget: float, timer: Timer) -> float:
    """Repeat a probe without a pause until the budget of seconds is spent; return the mean seconds of a turn."""
    probe()  # fills caches
    began, turns, spent = timer(), 0, 0.0
    while spent < budget:
        probe()
        turns += 1
        spent = timer() - began
    return spent / turns


def _has_compiled_kernels() -> bool:
    """Return whether the package folder or numba's cache contains the machine code that a release needs."""
    from numba import config

    spec = find_spec("clinveil")
    folders = [Path(place) for place in (spec.submodule_search_locations or () if spec else ())]
    folders += [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    return any(sum(1 for _ in folder.rglob("*.nbi")) >= _COMPILED for folder in folders)
