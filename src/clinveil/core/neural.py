"""What all PyTorch code shares: is it there, on which device, and the same result for the same seed.

PyTorch comes with the extra `[neural]` and is imported in few files (listed in `pyproject.toml`), when they are needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from clinveil.core.errors import MissingExtra, UsageError
from clinveil.core.registry import Registry

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


def need_torch() -> None:
    """Raise MissingExtra, with the pip line, where PyTorch is not installed. Call it before importing code of it."""
    if find_spec("torch") is None:
        raise MissingExtra("PyTorch", "neural")


def found_in(registry: Registry[T], name: str) -> T:
    """What stands for a name. Raises UsageError for an unknown one, MissingExtra where its file needs PyTorch."""
    try:
        return registry.get(name)
    except ModuleNotFoundError:
        need_torch()
        raise


def device_named(name: str) -> torch.device:
    """The device of `--device`: `cpu`, `cuda` or `cuda:1`. Raises UsageError where it is unknown or not there."""
    need_torch()
    import torch

    kind = name.partition(":")[0]
    if kind not in ("cpu", "cuda"):
        raise UsageError(f"--device {name}: there is no such device", hint="cpu, cuda or cuda:1")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"--device {name}: PyTorch sees no GPU here", hint="--device cpu")
    try:
        found = torch.device(name)
    except RuntimeError:
        raise UsageError(f"--device {name}: there is no such device", hint="cpu, cuda or cuda:1") from None
    if found.index is not None and kind == "cuda" and found.index >= torch.cuda.device_count():
        raise UsageError(f"--device {name}: there are {torch.cuda.device_count()} GPUs, counted from 0")
    return found


@contextmanager
def seeded(seed: int, *, threads: int = 1) -> Iterator[None]:
    """A block in which PyTorch's own generator starts at `seed` and its algorithms are deterministic.

    What was there before comes back at the end: the generators' states, the number of threads, the settings. With one
    thread on a CPU the same seed gives the same bits. Numbers below 1e-38 are 0 in it: the gradients of an LSTM that
    fade over a long text get there, and processors take up to ten times as long for them.
    """
    need_torch()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic with a fixed workspace only
    import torch

    before, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    flushed = not bool(torch.full((), 1e-39) * 1)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(True)
        # It would write NaN into every new tensor first: a twelfth of the time of an LSTM, for bugs of others.
        memory.fill_uninitialized_memory = False
        torch.set_flush_denormal(True)
        try:
            yield
        finally:
            torch.set_num_threads(before)
            torch.use_deterministic_algorithms(strict)
            memory.fill_uninitialized_memory = filled
            torch.set_flush_denormal(flushed)
