"""Letter-case restoration with a character language model (paper C, section 3.3): reading, model, score, measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from clinveil.core.settings import Settings, flag

SIZES = {"tiny": (1, 64), "small": (2, 300), "large": (3, 700)}  # layers, units; tiny is ours, for tests
OnLook = Callable[[int, float, float], None]  # (steps, passes, dev loss) at each look at the dev lines


class CasingSettings(Settings):
    """The character LSTM of Susanto et al. 2016 (raymondhs/char-rnn-truecase), its training and its search."""

    size: Literal["tiny", "small", "large"] = flag(
        "small", "2 layers of 300 (small), 3 of 700 (large), 1 of 64 (tiny)."
    )
    layers: int | None = flag(None, "Layers, if not those of --size.", ge=1, le=12)
    hidden: int | None = flag(None, "Units of a layer, if not those of --size.", ge=1, le=8192)
    dropout: float = flag(0.25, "Dropout between layers and before the output.", ge=0, lt=1)
    batch: int = flag(100, "Columns that the training text is cut into.", ge=1, le=65_536)
    sequence: int = flag(50, "Characters of back-propagation.", ge=1, le=10_000)
    epochs: int = flag(30, "Most passes over the training text.", ge=1, le=10_000)
    learning_rate: float = flag(0.002, "RMSprop's learning rate.", gt=0, allow_inf_nan=False)
    decay: float = flag(0.97, "It is multiplied by this after each pass, from --decay-after on.", gt=0, le=1)
    decay_after: int = flag(10, "The first pass after which it falls.", ge=1)
    evaluate_every: int = flag(1_000, "Steps between looks at the dev text; also after each pass.", ge=1)
    max_minutes: float | None = flag(None, "Stop training after so many minutes, and say so.", gt=0)
    beam: int = flag(10, "Hypotheses kept by the search.", ge=1, le=1000)
    state: Literal["document", "line"] = flag("document", "Carry the state from line to line, or start each line anew.")
    streams: int = flag(1, "Parts of the test text that are searched side by side (document; faster).", ge=1, le=10_000)
    device: str = flag("cpu", "cpu, cuda or cuda:1.")

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and units."""
        layers, hidden = SIZES[self.size]
        return self.layers or layers, self.hidden or hidden
