"""Arrays that cannot be changed through the object that holds them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only_view(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only view of the same memory; the array itself stays as writable as it was."""
    view = array.view()
    view.setflags(write=False)
    return view


def hold_read_only(owner: Any, *names: str) -> None:
    """Replace these array fields of a frozen dataclass by read-only views; a field that is None stays None."""
    for name in names:
        array = getattr(owner, name)
        if array is not None:
            object.__setattr__(owner, name, read_only_view(array))
