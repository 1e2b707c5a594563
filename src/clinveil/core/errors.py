"""Errors with exit codes, and interruption by signals.

Every error has a one-line message for people and an exit code for programs; it never contains note
text. An interrupt is recorded as well as raised, because libraries swallow an exception raised
inside their callbacks.
"""

from __future__ import annotations

import signal
import sys
from threading import Event
from types import FrameType
from typing import Any, NoReturn

_INTERRUPTED = Event()


class ClinveilError(Exception):
    """An error that the user can act on: one line with what is wrong, where, and how to fix it.

    Messages may contain file names, row numbers, offsets and counts; never note text, not even one
    word.
    """

    exit_code = 1

    def __init__(self, problem: str, *, where: str = "", hint: str = "") -> None:
        self.problem = problem
        self.where = where
        self.hint = hint
        prefix = f"{where}: " if where else ""
        suggestion = f" ({hint})" if hint else ""
        super().__init__(" ".join(f"{prefix}{problem}{suggestion}".split()))

    def __reduce__(self) -> tuple[Any, ...]:
        # The constructor of a subclass may take other arguments.
        return _restored, (
            type(self),
            self.args,
            vars(self),
        )


def _restored(
    kind: type[ClinveilError], args: tuple[str, ...], state: dict[str, Any]
) -> ClinveilError:
    """Rebuild an error that another process sent."""
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class InputWarning(UserWarning):
    """A property of the input that cannot be checked; the command line prints it to stderr."""


class UsageError(ClinveilError):
    """The command or the configuration is invalid (exit 2)."""

    exit_code = 2


class InputError(ClinveilError):
    """The input is unusable: missing column, damaged file, too few patients (exit 3)."""

    exit_code = 3


class GateError(ClinveilError):
    """A gate failed, so no release was written (exit 4)."""

    exit_code = 4


class DiskError(ClinveilError):
    """The output cannot be written (disk full or no permission); the run can be resumed (exit
    5).
    """

    exit_code = 5


class Incomplete(ClinveilError):
    """Some parts of the input are damaged. The others are done, and the same command resumes the
    run (exit 5).
    """

    exit_code = 5


class LostWorkers(ClinveilError):
    """Worker processes were killed repeatedly; the run can be resumed (exit 5)."""

    exit_code = 5

    def __init__(self) -> None:
        hint = "give them more memory or use fewer --workers, then run the same command again"
        super().__init__("worker processes were killed repeatedly", hint=hint)


class MissingExtra(ClinveilError):
    """An optional library, or one of its requirements, is not installed (exit 6); the message
    contains the pip line.

    `other_software`: other software to install, in words.
    """

    exit_code = 6

    def __init__(
        self, library: str, extra: str, *, pip: str = "", other_software: str = ""
    ) -> None:
        line = pip or f"pip install 'clinveil[{extra}]'"
        super().__init__(
            f"{library} is not installed",
            hint=f"{line}; {other_software}" if other_software else line,
        )


def install_signal_handlers() -> None:
    """Treat SIGINT, SIGTERM and SIGHUP as an interrupt, so that scratch files are removed."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _interrupted)
    default_hook = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            default_hook(unraisable)

    sys.unraisablehook = hook


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if a signal arrived earlier; call it before an output becomes
    final.
    """
    if _INTERRUPTED.is_set():
        raise KeyboardInterrupt


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    _INTERRUPTED.set()
    raise KeyboardInterrupt
