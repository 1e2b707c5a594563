"""The one way to compile a loop: numba, without the interpreter's lock, kept for the next run.

numba keeps machine code (never data, so no text and no key) beside the source like Python's own `__pycache__`, or in
the user's cache folder where the package cannot be written. It looks for changes in the file of the function alone:
so **a kernel uses only helpers and constants of its own file** (a test holds this), or old ones stay compiled in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[F], F]:
    """A decorator like `kernel`, with options of `numba.njit`."""

    def kept(function: F) -> F:
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # neither folder can be written
            return njit(nogil=True, **options)(function)

    return kept


def kernel(function: F) -> F:
    """Compile a function of NumPy arrays and numbers when it is first called from Python."""
    return compiled()(function)


def helper(function: F) -> F:
    """A function that only kernels call: compiled into them, and kept with them.

    It may not allocate arrays: so numba need not count references to its arguments, which costs more than the work.
    """
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, forceinline=True)(function)
