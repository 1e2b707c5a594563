"""Progress for people: lines on stderr, and on a terminal a count with its rate and the time that is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import Progress, Task
    from rich.text import Text


def say(line: str) -> None:
    """A line on stderr; who reads it may stop reading, the work goes on all the same."""
    with suppress(BrokenPipeError):
        typer.echo(line, err=True)


class Speaker:
    """What a command says while it works; quiet, it says nothing. It counts where stderr is a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._bar: Progress | None = None

    def __call__(self, line: str) -> None:
        """Say a line, above the count if there is one."""
        if self.quiet:
            return
        if self._bar is None:
            say(line)
        else:
            self._bar.console.print(line, markup=False, highlight=False)

    @contextmanager
    def count(self, what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Show how much of something is done, its rate, and how long the rest will take."""
        if self.quiet or self._bar is not None or not sys.stderr.isatty():
            yield lambda done: None
            return
        with _bar() as self._bar:
            task = self._bar.add_task(what, total=total)
            try:
                yield lambda done: self._show(task, done)
            finally:
                self._bar = None

    def _show(self, task: int, done: int) -> None:
        if self._bar is not None:
            self._bar.update(task, completed=done)  # type: ignore[arg-type]


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class Done(ProgressColumn):
        """`1,200 of 5,000 notes, 310/s`."""

        def render(self, task: Task) -> Text:
            of = "" if task.total is None else f" of {task.total:,.0f}"
            rate = f", {task.speed:,.0f}/s" if task.speed and task.speed >= 1 else ""
            return Text(f"{task.completed:,.0f}{of} {task.description}{rate}")

    left = (TextColumn("left"), TimeRemainingColumn())
    return Progress(Done(), TimeElapsedColumn(), *left, console=Console(stderr=True), transient=True)
