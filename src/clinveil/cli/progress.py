"""Progress on stderr: messages, and the running stage, its count, elapsed and remaining time.

A terminal shows them in one line that changes. A log has a line per minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING

import typer

from clinveil.core import Countdown

if TYPE_CHECKING:
    from rich.progress import Progress, Task
    from rich.text import Text


MINUTE = 60.0  # seconds


def say(line: str) -> None:
    """Write a line to stderr; a closed stderr does not stop the work."""
    with suppress(BrokenPipeError):
        typer.echo(line, err=True)


def duration(seconds: float) -> str:
    """Return `0:01:05` for 65 seconds."""
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


@dataclass
class ShownWork:
    """State of the progress line: a stage, a count, or a count within a stage.

    Attributes:
        time: of the stage, or of the count if there is no stage.
        label: of the stage.
        unit: the unit of the count.
        count: progress of the count.
    """

    time: Countdown
    label: str = ""
    unit: str = ""
    count: Countdown | None = None

    def line(self) -> str:
        """Return `stage 3/7, vectors: 4 of 20 passes, 0:01:00 elapsed, about 0:04:00 left`."""
        left = self.count.left if self.count else None
        parts = [
            f"{duration(self.time.elapsed)} elapsed",
            *([f"about {duration(left)} left"] if left else []),
        ]
        if self.count:
            of = "" if self.count.total is None else f" of {self.count.total:,}"
            rate = (
                f" ({self.count.rate:,.0f}/s)"
                if not self.label and (self.count.rate or 0) >= 1
                else ""
            )
            parts.insert(0, f"{self.count.done:,}{of} {self.unit}{rate}")
        return (f"{self.label}: " if self.label else "") + ", ".join(parts)


@dataclass
class Speaker:
    """Writes the messages of a command, and its progress.

    Attributes:
        quiet: write nothing.
    """

    quiet: bool = False
    _bar: Progress | None = field(default=None, init=False, repr=False)
    _work: ShownWork | None = field(default=None, init=False, repr=False)

    def __call__(self, line: str) -> None:
        """Write a line, above the progress line if there is one."""
        if self.quiet:
            return
        if self._bar is None:
            say(line)
        else:
            self._bar.console.print(line, markup=False, highlight=False)

    @contextmanager
    def stage(self, name: str, number: int, n_stages: int) -> Iterator[None]:
        """Show the running stage: its number and elapsed time."""
        work = ShownWork(Countdown(), f"stage {number}/{n_stages}, {name}")
        with self._showing(work):
            yield

    @contextmanager
    def count(self, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Show the number of finished items, their rate and the remaining time."""
        stage = self._work
        count = Countdown(total)
        if stage is None:
            with self._showing(ShownWork(count, unit=unit, count=count)):
                yield count.update
            return
        # Shown again after a count within a count, as of a first pass.
        outer = (
            stage.unit,
            stage.count,
        )
        stage.unit = unit
        stage.count = count
        try:
            yield count.update
        finally:
            stage.unit, stage.count = outer

    @contextmanager
    def _showing(self, work: ShownWork) -> Iterator[None]:
        if self.quiet or self._work is not None:
            yield
            return
        self._work = work
        try:
            with _bar(work) if sys.stderr.isatty() else _minutes(work) as self._bar:
                yield
        finally:
            self._bar = self._work = None


@contextmanager
def _minutes(work: ShownWork) -> Iterator[None]:
    """Write the state of some work once per minute while it runs."""
    ended = Event()

    def write() -> None:
        while not ended.wait(MINUTE):
            say(work.line())

    thread = Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _bar(work: ShownWork) -> Progress:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn
    from rich.table import Column
    from rich.text import Text

    class ProgressLine(ProgressColumn):
        """The line of the work, written again ten times per second."""

        def render(self, task: Task) -> Text:
            return Text(work.line())

    bar = Progress(ProgressLine(Column(no_wrap=True)), console=Console(stderr=True), transient=True)
    bar.add_task("")
    return bar
