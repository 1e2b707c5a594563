"""Registry of training algorithms, one per file; `vectors/algorithm.py` shows how to add one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinveil.core import Registry

if TYPE_CHECKING:
    from clinveil.vectors.algorithm import Algorithm

OURS = ("cbow", "skipgram", "fasttext", "glove")
algorithms: Registry[type[Algorithm]] = Registry("vector algorithm", __name__, first=OURS)
"""All algorithms by name, as in `--algorithm` and in the meta data of vectors."""
