"""A model made ready to write or to score many notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clinveil.lm.model import LanguageModel


@contextmanager
def ready(model: LanguageModel, *, double: bool = False, threads: int = 1) -> Iterator[None]:
    """A block in which a network runs on so many threads: its steps are small, and more threads only wait.

    `double`: in double precision, and so it stays; then notes are the same for any number of lanes.
    """
    if model.kind not in ("lstm", "gpt"):
        yield
        return
    from clinveil.core.neural import seeded
    from clinveil.lm.neural_model import NeuralModel

    assert isinstance(model, NeuralModel)
    if double:
        model.network.double()
    with seeded(0, threads=threads):
        yield
