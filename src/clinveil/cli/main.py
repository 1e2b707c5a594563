"""`clinveil`: the command line, and how a failure becomes one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn, TextIO

import typer

from clinveil.cli.groups import COMMANDS, group_class
from clinveil.core.errors import ClinveilError, InputWarning, check_interrupt, install_signal_handlers

app = typer.Typer(
    cls=group_class(COMMANDS),
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Make free-text clinical notes shareable, and measure how safe and how useful the result is.",
)


@app.callback()
def _root(version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True)) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("clinveil"))
        raise typer.Exit


def run() -> NoReturn:
    """The console script: run the command, and exit with the code that the design names."""
    install_signal_handlers()
    for stream in (sys.stdout, sys.stderr):  # what a terminal cannot show is spelt out
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Run one command line and return its exit code; every failure becomes one line on stderr.

    Files that are being written are for their owner only.
    """
    os.umask(0o077)
    warnings.showwarning = _warn
    warnings.simplefilter("once", InputWarning)
    try:
        result = typer.main.get_command(app).main(arguments, prog_name="clinveil", standalone_mode=False)
        check_interrupt()
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except ClinveilError as error:
        return _say(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__cause__, EOFError):  # the command-line parser takes a cut file for an interruption
            return _internal(error.__cause__)
        return _say("interrupted", 130)
    except (BrokenPipeError, SystemExit):  # the libraries that print make the first into the second
        return _nobody_reads()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            return _say("no space is left on the disk (free some, and run the same command again)", 5)
        return _say(f"the system refused a file operation: {error.strerror} (look at the places that you named)", 2)
    except Exception as error:  # noqa: BLE001  its message may hold note text, so only its place is shown
        if hasattr(error, "format_message"):  # the command-line parser's own: a wrong flag
            return _say(" ".join(error.format_message().split()), 2)
        return _internal(error)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One line for a warning of ours; others are about our libraries, for developers."""
    if issubclass(category, InputWarning):
        typer.echo(f"clinveil: {message}", err=True)


def _nobody_reads() -> int:
    """Who read the output has stopped, as `head` does: nothing is left to say, not even as the interpreter ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _internal(error: BaseException) -> int:
    frames = traceback.extract_tb(error.__traceback__)
    place = next((f for f in reversed(frames) if "clinveil" in f.filename), frames[-1])
    at = f"{place.filename.rpartition('clinveil')[2].lstrip('/')}:{place.lineno}"
    return _say(f"internal error: {type(error).__name__} at {at}; please report it, without any note text", 1)


def _say(line: str, code: int) -> int:
    typer.echo(f"clinveil: {line}", err=True)
    return code
