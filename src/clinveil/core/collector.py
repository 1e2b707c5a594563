"""Pause Python's garbage collector during work that creates few cycles."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with garbage collection paused while it runs.

    For short work that creates many small objects and few cycles: the collector would scan all loaded word lists
    repeatedly and free almost nothing. Young cycles are collected at the end, so that they do not accumulate over
    batches. The collector's previous state is restored, also after an error.
    """

    @wraps(function)
    def run(*args: P.args, **named: P.kwargs) -> R:
        enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **named)
        finally:
            if enabled:
                gc.enable()
                gc.collect(1)

    return run
