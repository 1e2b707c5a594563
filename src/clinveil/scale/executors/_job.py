"""Shared by Ray and Spark: apply a function in a remote worker and return its result or error.

An error of the function is returned as a value. Otherwise Ray and Spark would put it into their own reports, which
quote rows, and retry a task that always fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError
from clinveil.core.files import owner_only
from clinveil.core.runfolder import code_version

TRIES = 4  # attempts per item before LostWorkers
SAME = "install the same clinveil, with the same Python and libraries, on every node"
NOWHERE = "http://127.0.0.1:9"  # an unreachable proxy: see ray.py


@dataclass(frozen=True)
class Outcome:
    """The outcome of one item: a result, or the error that the function raised."""

    result: Any = field(default=None, repr=False)
    error: Exception | None = field(default=None, repr=False)

    def get(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result


@dataclass(frozen=True)
class Job:
    """A function for remote workers: checks the code version, sets the working folder, and writes private files.

    Attributes:
        code: the driver's `code_version`, which must match the worker's. folder: base of relative paths.
    """

    function: Callable[[Any], Any] = field(repr=False)
    code: str = field(default_factory=code_version)
    folder: Path = field(default_factory=Path.cwd)

    def __call__(self, item: Any) -> Outcome:
        """Apply the function; an exception becomes an `Outcome`."""
        try:
            self._settle()
            with owner_only():
                return Outcome(self.function(item))
        except Exception as error:  # noqa: BLE001  it is raised when the result is fetched
            return Outcome(error=_sendable(error))

    def _settle(self) -> None:
        if code_version() != self.code:
            raise InputError("a worker has another version of clinveil", where="--on", hint=SAME)
        with suppress(OSError):
            os.chdir(self.folder)
        for name in ("http_proxy", "HTTP_PROXY"):
            if os.environ.get(name) == NOWHERE:
                del os.environ[name]


def _sendable(error: Exception) -> Exception:
    """Return the error, or one with only its type name if it cannot be copied."""
    try:
        return deepcopy(error)
    except Exception:  # noqa: BLE001  copying a library's exception may fail in any way
        return RuntimeError(type(error).__name__)


def foreign() -> InputError:
    """Return the error for a worker that cannot load the function or an item."""
    return InputError("a worker cannot load this command's code or items", where="--on", hint=SAME)
