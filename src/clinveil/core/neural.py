"""Helpers for all PyTorch code: availability, device, reproducible seeding.

PyTorch is in the extra `[neural]`. Only the files listed in `pyproject.toml` import it, and only
when needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from clinveil.core.compiling import at_most_cores
from clinveil.core.errors import MissingExtra, UsageError
from clinveil.core.registry import Members

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


def need_torch() -> None:
    """Raise MissingExtra, with the pip line, if PyTorch is not installed. Call it before importing
    PyTorch code.
    """
    if find_spec("torch") is None:
        raise MissingExtra("PyTorch", "neural")


def found_in(members: Members[T], name: str) -> T:
    """Return a member. Raises UsageError for an unknown name, MissingExtra if its file
    needs PyTorch.
    """
    try:
        return members.get(name)
    except ModuleNotFoundError:
        need_torch()
        raise


def device_named(name: str) -> torch.device:
    """Return a PyTorch device: `cpu`, `cuda` or `cuda:1`. Raises UsageError if it is
    unknown or not present.
    """
    need_torch()
    import torch

    kind = name.partition(":")[0]
    if kind not in ("cpu", "cuda"):
        raise UsageError(f"device={name}: unknown device", hint="use cpu, cuda or cuda:1")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            f"device={name}: PyTorch finds no GPU on this machine", hint="use device=cpu"
        )
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"device={name}: unknown device", hint="use cpu, cuda or cuda:1") from None
    if device.index is not None and kind == "cuda" and device.index >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise UsageError(
            f"device={name}: this machine has {count} GPUs, numbered from 0",
            hint="use a lower number",
        )
    return device


@contextmanager
def seeded(seed: int, *, threads: int = 1) -> Iterator[None]:
    """Run a block with PyTorch's generator seeded and deterministic algorithms.

    The generators' states, the number of threads and the settings are restored at the end. With one
    thread on a CPU the same seed gives the same bits. Numbers below 1e-38 (denormals) are flushed
    to 0: vanishing gradients of an LSTM reach that range, where processors are up to ten times
    slower.
    """
    need_torch()
    # cuBLAS is deterministic only with a fixed workspace.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    threads_before = torch.get_num_threads()
    deterministic_before = torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    filled_before = memory.fill_uninitialized_memory
    flushed_before = not bool(torch.full((), 1e-39) * 1)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        torch.set_num_threads(at_most_cores(threads))
        torch.use_deterministic_algorithms(True)
        # Filling every new tensor with NaN, a debugging aid, costs a twelfth of an LSTM's training
        # time.
        memory.fill_uninitialized_memory = False
        torch.set_flush_denormal(True)
        try:
            yield
        finally:
            torch.set_num_threads(threads_before)
            torch.use_deterministic_algorithms(deterministic_before)
            memory.fill_uninitialized_memory = filled_before
            torch.set_flush_denormal(flushed_before)
