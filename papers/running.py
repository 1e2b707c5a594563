"""What the scripts of all papers share: their command line, settings, and cache of finished steps.

A step is a plain function of inputs, settings and the cache, by which it calls other steps.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from joblib import Memory  # type: ignore[import-untyped]  # of scikit-learn
from threadpoolctl import threadpool_limits

from clinveil import ClinveilError, Corpus
from clinveil.core import Settings, load_settings, owner_only, private_folder

T = TypeVar("T")
P = ParamSpec("P")
SettingsOfPaper = TypeVar("SettingsOfPaper", bound=Settings)
StoredFindings = list[dict[str, Any]]  # what a step returns: findings cannot be pickled


class Cache:
    """Results of steps, stored by the arguments of a call and the step's code.

    They are in `cache/` of a private folder. A step uses one thread for linear algebra, so that its
    numbers do not depend on the machine.
    """

    def __init__(self, folder: Path) -> None:
        with owner_only():
            self.memory = Memory(private_folder(folder) / "cache", verbose=0)

    def run(self, step: Callable[Concatenate[Cache, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a step, from an earlier call with the same arguments if there is
        one.
        """
        with owner_only(), threadpool_limits(1):
            cached = self.memory.cache(step, ignore=["cache"])
            result: T = cached(self, *args, **kwargs)
        return result


def command_line(description: str, default_settings: Path) -> argparse.ArgumentParser:
    """Return the parser of the arguments that all papers have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("notes", type=Path, help="notes: a file or a folder")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, help="folder of the results, all of it secret"
    )
    parser.add_argument(
        "--settings", type=Path, default=default_settings, help="a copy of settings.toml"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change one setting"
    )
    return parser


def settings_of(model: type[SettingsOfPaper], arguments: argparse.Namespace) -> SettingsOfPaper:
    """Return the settings that the arguments of `command_line` name. Raises UsageError."""
    return load_settings(model, {}, arguments.settings, arguments.set)


def say(line: str) -> None:
    """Print a line of progress to stderr."""
    print(line, file=sys.stderr)


def exit_code_of(main: Callable[[], None]) -> int:
    """Run a script; print an expected error as one line and return its exit code."""
    try:
        main()
    except ClinveilError as error:
        say(str(error))
        return error.exit_code
    return 0


def digest_of(corpus: Corpus) -> str:
    """Return a hash of all rows of the notes, in order."""
    digest = blake2b(digest_size=16)
    for batch in corpus.batches():
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
