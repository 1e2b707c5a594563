"""Being told to stop: noted as well as raised, for an interruption within a foreign library's callback is swallowed."""

from __future__ import annotations

import signal
import sys
from threading import Event
from types import FrameType
from typing import Any, NoReturn

_ASKED = Event()


def listen() -> None:
    """Take a polite signal to end (the keyboard's, a scheduler's) for an interruption, so that scratch is removed."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _interrupted)
    usual = sys.unraisablehook

    def hook(seen: Any) -> None:
        if not issubclass(seen.exc_type, KeyboardInterrupt):
            usual(seen)

    sys.unraisablehook = hook


def heed() -> None:
    """Raise KeyboardInterrupt if somebody asked to stop; to be called before anything becomes final."""
    if _ASKED.is_set():
        raise KeyboardInterrupt


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    _ASKED.set()
    raise KeyboardInterrupt
