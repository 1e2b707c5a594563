"""Share a large value among the workers of a machine: its arrays are mapped into memory from one file."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def shared(value: T, path: Path) -> Callable[[], T]:
    """Write a value to a file that all workers can read; return a function that returns it in any process."""
    import joblib  # type: ignore[import-untyped]  # of scikit-learn

    path.unlink(missing_ok=True)  # a process may still map an older file
    joblib.dump(value, path)
    return partial(_loaded, path.absolute(), path.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _loaded(path: Path, stamp: int) -> Any:
    import joblib

    return joblib.load(path, mmap_mode="r")
