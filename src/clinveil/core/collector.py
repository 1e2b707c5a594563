"""Python's collector of cycles, kept from work that makes few."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: nothing is collected while the function runs.

    For short work that makes many small objects and few cycles: the collector would go through all loaded word lists
    again and again, and find next to nothing. Young cycles are collected at the end, or they would add up over the
    batches, and what the collector was set to holds again, also after an error.
    """

    @wraps(function)
    def run(*args: P.args, **named: P.kwargs) -> R:
        was = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **named)
        finally:
            if was:
                gc.enable()
                gc.collect(1)

    return run
