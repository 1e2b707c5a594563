"""Letter-case restoration with a character language model (paper C, section 3.3): reading, model, search, score."""

from __future__ import annotations

from collections.abc import Callable

SIZES = {"tiny": (1, 64), "small": (2, 300), "large": (3, 700)}  # layers, units; tiny is ours, for tests
OnLook = Callable[[int, float, float], None]  # (steps, passes, dev loss) at each look at the dev lines
