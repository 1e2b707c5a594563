"""The ways a run ends early.

A failure has one line for people, one exit code for machines, and never note text. Being told to stop is noted as well
as raised, for an interruption within a foreign library's callback is swallowed.
"""

from __future__ import annotations

import signal
import sys
from threading import Event
from types import FrameType
from typing import Any, NoReturn

_ASKED = Event()


class ClinveilError(Exception):
    """A failure that the user can act on: what, where, and how to mend it, in one line.

    Messages carry ids of files, row numbers, offsets and counts; never note text, never a word of a note.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        place = f"{where}: " if where else ""
        mend = f" ({hint})" if hint else ""
        super().__init__(" ".join(f"{place}{what}{mend}".split()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_it_was, (type(self), self.args, vars(self))  # a subclass may take other arguments


def _as_it_was(kind: type[ClinveilError], said: tuple[str, ...], state: dict[str, Any]) -> ClinveilError:
    """An error that comes from another process."""
    error = kind.__new__(kind, *said)
    vars(error).update(state)
    return error


class InputWarning(UserWarning):
    """What cannot be checked of an input, in one line; the command line says it on stderr."""


class UsageError(ClinveilError):
    """The command or the configuration does not make sense (exit 2)."""

    exit_code = 2


class InputError(ClinveilError):
    """The input does not fit: missing column, broken file, too few patients (exit 3)."""

    exit_code = 3


class GateError(ClinveilError):
    """A gate failed, so no release was made (exit 4)."""

    exit_code = 4


class DiskError(ClinveilError):
    """What is made cannot be written, for want of space or of leave; the run can be gone on with (exit 5)."""

    exit_code = 5


class Incomplete(ClinveilError):
    """Some parts of the input are broken; the others are done, and the same command goes on from there (exit 5)."""

    exit_code = 5


class LostWorkers(ClinveilError):
    """Whoever did the work was killed, and again when it was tried again; the run can be gone on with (exit 5)."""

    exit_code = 5

    def __init__(self) -> None:
        hint = "look at their memory, or take fewer --workers, and run the same command again"
        super().__init__("workers were killed again and again", hint=hint)


class MissingExtra(ClinveilError):
    """An optional library, or what it needs, is not installed (exit 6); the message holds the pip line.

    `more`: what else has to be installed, in words.
    """

    exit_code = 6

    def __init__(self, library: str, extra: str, *, pip: str = "", more: str = "") -> None:
        line = pip or f"pip install 'clinveil[{extra}]'"
        super().__init__(f"{library} is not installed", hint=f"{line}; {more}" if more else line)


def install_signal_handlers() -> None:
    """Take a polite signal to end (the keyboard's, a scheduler's) for an interruption, so that scratch is removed."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _interrupted)
    usual = sys.unraisablehook

    def hook(seen: Any) -> None:
        if not issubclass(seen.exc_type, KeyboardInterrupt):
            usual(seen)

    sys.unraisablehook = hook


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if somebody asked to stop; to be called before anything becomes final."""
    if _ASKED.is_set():
        raise KeyboardInterrupt


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    _ASKED.set()
    raise KeyboardInterrupt
