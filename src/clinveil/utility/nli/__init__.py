"""Natural language inference with frozen word vectors (paper C, section 3.3): reading, splitting, model, measure."""

from __future__ import annotations

FEATURES = ("paper", "difference")
