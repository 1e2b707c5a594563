"""Array and callback types that most packages use, and read-only views of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Mask = NDArray[np.bool_]
Say = Callable[[str], None]
"""Takes one line of progress for people, printed to stderr."""

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only_view(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only view of the same memory; the array itself is unchanged."""
    view = array.view()
    view.setflags(write=False)
    return view


def hold_read_only(owner: Any, *names: str) -> None:
    """Replace array fields of a frozen dataclass with read-only views; a field that is None stays
    None.
    """
    for name in names:
        array = getattr(owner, name)
        if array is not None:
            object.__setattr__(owner, name, read_only_view(array))
