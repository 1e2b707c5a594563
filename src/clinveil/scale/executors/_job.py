"""What Ray and Spark share: a function as a worker of another process or machine applies it, and how it fails.

An error of the function comes back as a value, so that neither Ray nor Spark puts it into a report of its own, which
would quote rows, nor tries again what fails each time.
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

TRIES = 4  # of one item, before the workers are held to be lost
SAME = "install the same clinveil, with the same Python and libraries, on every node"
NOWHERE = "http://127.0.0.1:9"  # a proxy that is none: see ray.py


@dataclass(frozen=True)
class Outcome:
    """What became of an item: a result, or the error that the function raised."""

    result: Any = field(default=None, repr=False)
    error: Exception | None = field(default=None, repr=False)

    def get(self) -> Any:
        """The result; raises the error."""
        if self.error is not None:
            raise self.error
        return self.result


@dataclass(frozen=True)
class Job:
    """A function for workers elsewhere: with our code, in the driver's folder if it is there, files for the owner only.

    Attributes:
        code: the driver's `code_version`, which a worker's must be. folder: where relative paths begin.
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
        except Exception as error:  # noqa: BLE001  it is raised where the result is waited for
            return Outcome(error=_sendable(error))

    def _settle(self) -> None:
        if code_version() != self.code:
            raise InputError("a worker has another clinveil than this one", where="--on", hint=SAME)
        with suppress(OSError):
            os.chdir(self.folder)
        for name in ("http_proxy", "HTTP_PROXY"):
            if os.environ.get(name) == NOWHERE:
                del os.environ[name]


def _sendable(error: Exception) -> Exception:
    """The error, or one that tells its kind where it cannot be sent."""
    try:
        return deepcopy(error)
    except Exception:  # noqa: BLE001  whatever a library's own exception does when it is copied
        return RuntimeError(type(error).__name__)


def foreign() -> InputError:
    """A worker cannot load what it was sent."""
    return InputError("a worker cannot load this command's code or items", where="--on", hint=SAME)
