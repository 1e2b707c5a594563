"""All training algorithms, one per file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinveil.core import Members

if TYPE_CHECKING:
    from clinveil.vectors.algorithm import Algorithm

ALGORITHMS: Members[type[Algorithm]] = Members(
    "vector algorithm",
    {
        "cbow": "clinveil.vectors.algorithms.cbow:Cbow",
        "skipgram": "clinveil.vectors.algorithms.skipgram:Skipgram",
        "fasttext": "clinveil.vectors.algorithms.fasttext:FastText",
        "glove": "clinveil.vectors.algorithms.glove:Glove",
    },
)
"""All algorithms by name, as in `vectors.algorithm` and in the meta data of vectors."""
