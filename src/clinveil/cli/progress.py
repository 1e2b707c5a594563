"""Progress for people: lines on stderr, or none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import typer


def say(line: str) -> None:
    """A line on stderr; who reads it may stop reading, the work goes on all the same."""
    with suppress(BrokenPipeError):
        typer.echo(line, err=True)


def say_unless(quiet: bool) -> Callable[[str], None]:
    """`say`, or nothing for `--quiet`."""
    return _nothing if quiet else say


def _nothing(line: str) -> None:
    pass
