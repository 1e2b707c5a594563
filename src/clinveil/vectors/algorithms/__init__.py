"""One algorithm that trains word vectors a file; to add one see `vectors/algorithm.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinveil.core.registry import Registry

if TYPE_CHECKING:
    from clinveil.vectors.algorithm import Algorithm

OURS = ("cbow", "skipgram", "fasttext", "glove")
algorithms: Registry[type[Algorithm]] = Registry("vector algorithm", __name__, first=OURS)
"""All algorithms by the name that the command line and the vectors' description know them by."""
