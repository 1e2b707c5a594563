"""`clinveil`: the command line; every failure becomes one line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from contextlib import suppress
from io import TextIOWrapper
from typing import Any, NoReturn

import typer

from clinveil.cli.groups import COMMANDS, group_class
from clinveil.cli.refusals import wrong_value
from clinveil.core import ClinveilError, InputWarning, check_interrupt, install_signal_handlers

_COMPLETION = "_CLINVEIL_COMPLETE"  # set by the shell while it completes a command line

app = typer.Typer(
    cls=group_class(COMMANDS),
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    help=(
        "Make free-text clinical notes shareable, and measure how safe and how useful the"
        " result is."
    ),
)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True),
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("clinveil"))
        raise typer.Exit


def run() -> NoReturn:
    """Run the console script and exit with the code of the command."""
    install_signal_handlers()
    for stream in (sys.stdout, sys.stderr):  # characters that a terminal cannot show are escaped
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Run one command line and return its exit code.

    New files are readable by their owner only.
    """
    os.umask(0o077)
    warnings.showwarning = _print_warning
    warnings.simplefilter("once", InputWarning)
    try:
        result = typer.main.get_command(app).main(
            arguments, prog_name="clinveil", standalone_mode=False
        )
        check_interrupt()
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except ClinveilError as error:
        return _failed(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt) as error:
        # The parser reports a truncated file as an interruption.
        if isinstance(error.__cause__, EOFError):
            return _internal(error.__cause__)
        return _failed("interrupted", 130)
    except SystemExit as error:
        if _COMPLETION in os.environ:
            return error.code if isinstance(error.code, int) else 0
        return _closed_output()  # libraries that print end the process if the output is closed
    except BrokenPipeError:
        return _closed_output()
    except OSError as error:
        full = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        # Arrow has no numbers.
        if error.errno in full or any(os.strerror(code) in str(error) for code in full):
            return _failed(
                "no space left on the disk (free some, then run the same command again)", 5
            )
        why = error.strerror or "Input/output error"
        return _failed(f"a file operation failed: {why} (check the paths of the command)", 2)
    except Exception as error:  # noqa: BLE001
        # The message may contain note text, so only the location is shown.
        if hasattr(error, "format_message"):  # raised by the parser: a wrong option
            if not error.format_message().strip():  # the help page was printed instead
                return 2
            return _failed(wrong_value(" ".join(error.format_message().split())), 2)
        return _internal(error)


def _print_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print our own warnings in one line; ignore those of libraries."""
    if issubclass(category, InputWarning):
        typer.echo(f"clinveil: {message}", err=True)


def _closed_output() -> int:
    """Return the exit code for an output closed by its reader, as `head` does; discard what is
    still buffered.
    """
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _internal(error: BaseException) -> int:
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((f for f in reversed(frames) if "clinveil" in f.filename), frames[-1])
    location = f"{frame.filename.rpartition('clinveil')[2].lstrip('/')}:{frame.lineno}"
    return _failed(
        f"internal error: {type(error).__name__} at {location}; please report it, without note"
        " text",
        1,
    )


def _failed(line: str, code: int) -> int:
    typer.echo(f"clinveil: {line}", err=True)
    return code
