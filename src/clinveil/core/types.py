"""Names for the array types and callbacks that most rooms use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Mask = NDArray[np.bool_]
Say = Callable[[str], None]
"""Takes one line for people, for stderr."""
