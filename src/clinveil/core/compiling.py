"""Helpers for speed: loops compiled with numba, cached on disk and run without the GIL; cores; a
paused collector.

numba caches machine code (never data, so no text and no key) next to the source, as Python does in
`__pycache__`, or in the user's cache folder if the package folder is read-only. It checks for
changes only in the file of the function. Therefore **a kernel uses only helpers and constants of
its own file** (tested); others would stay compiled in.

An older version of this package may have left a cache that names types which no longer exist. Such
a cache is emptied and the kernel compiled again.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
INLINED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, "forceinline": True}
ANY_ORDER = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp", "nsz"}}


def compiled(*, any_order: bool = False, inlined: bool = False) -> Callable[[F], F]:
    """Return a decorator like `kernel`, with options.

    Args:
        any_order: sums may be reordered, so that loops over dimensions compile to vector
            instructions; NaN is still handled.
        inlined: for functions that only kernels call, see `helper`.
    """

    def compile(function: F) -> F:
        from numba import njit

        options: dict[str, Any] = {"nogil": True}
        if any_order:
            options |= ANY_ORDER
        if inlined:
            options |= INLINED
        decorate = partial(njit, **options)
        try:
            return _recompiled_if_unreadable(decorate(cache=True)(function))
        except RuntimeError:  # neither cache folder is writable
            return decorate()(function)

    return compile


def _recompiled_if_unreadable(function: F) -> F:
    """Make a cached function empty its cache when that cannot be read, instead of raising.

    numba reads the index of a cache before it compares the source: an index with a removed type
    raises AttributeError, a damaged one any error of `pickle`.
    """
    cache = getattr(function, "_cache", None)
    if cache is None:  # not compiled: NUMBA_DISABLE_JIT
        return function
    load = cache.load_overload

    def load_or_empty(signature: Any, target: Any) -> Any:
        try:
            return load(signature, target)
        except Exception:  # noqa: BLE001  any error of unpickling; None compiles again
            cache.flush()
            return None

    cache.load_overload = load_or_empty
    return function


def kernel(function: F) -> F:
    """Compile a function of NumPy arrays and numbers when it is first called from Python."""
    return compiled()(function)


def helper(function: F) -> F:
    """Compile a function that only kernels call into those kernels, and cache it with them.

    It must not allocate arrays. numba can then skip counting references to its arguments, which
    would dominate the cost.
    """
    from numba import njit

    return njit(nogil=True, **INLINED)(function)


def at_most_cores(workers: int) -> int:
    """Return `workers`, or the number of cores that this process may use if there are fewer."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(workers, cores)


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with garbage collection paused while it runs.

    For short work that creates many small objects and few cycles: the collector would scan all
    loaded word lists repeatedly and free almost nothing. Young cycles are collected at the end, so
    that they do not accumulate over batches. The collector's previous state is restored, also after
    an error.
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
