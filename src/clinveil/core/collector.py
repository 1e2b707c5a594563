"""Python's collector of cycles, kept from work that makes none."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: nothing is collected while the function runs.

    For short work that makes many small objects and leaves no cycles: the collector would go through all word lists
    that are loaded again and again, and find nothing. What it is set to holds again afterwards, also after an error.
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

    return run
