"""Natural language inference with frozen word vectors (paper C, section 3.3): reading, splitting, model, measure."""

from __future__ import annotations

from typing import Literal

from clinveil.core.settings import Settings, flag


class NliSettings(Settings):
    """The bag-of-words model of Romanov & Shivade 2018 (jgc128/mednli), and how often it is trained."""

    features: Literal["paper", "difference"] = flag(
        "paper", "Both sentences side by side (paper), or also |u-v| and u*v (difference)."
    )
    seeds: int = flag(5, "Models trained, each with a seed of its own; the score is their mean.", ge=1, le=100)
    hidden: int = flag(300, "Units of a sentence; the layers above have twice as many.", ge=1, le=4096)
    max_tokens: int = flag(50, "Tokens of a sentence; of a longer one the last ones count.", ge=1, le=10_000)
    dropout: float = flag(0.5, "Dropout.", ge=0, lt=1)
    batch: int = flag(512, "Pairs in a batch.", ge=2, le=65_536)
    epochs: int = flag(40, "Most passes over the training pairs.", ge=1, le=10_000)
    patience: int = flag(5, "Stop after so many passes without a lower loss on the dev pairs.", ge=1)
    device: str = flag("cpu", "cpu, cuda or cuda:1.")
