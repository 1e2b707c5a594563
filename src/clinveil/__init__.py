"""clinveil makes free-text clinical notes shareable, and measures how safe and how useful the result is."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clinveil.channel.channel import Channel
    from clinveil.core.finding import Finding
    from clinveil.core.keys import Key
    from clinveil.core.spans import Span
    from clinveil.corpus.corpus import Columns, Corpus
    from clinveil.corpus.open import open_corpus
    from clinveil.vectors.table import Neighbours, Vectors

# The shop window: each public name and the file it lives in; nothing heavy is imported before it is asked for.
_WINDOW = {
    "Channel": "clinveil.channel.channel",
    "Columns": "clinveil.corpus.corpus",
    "Corpus": "clinveil.corpus.corpus",
    "Finding": "clinveil.core.finding",
    "Key": "clinveil.core.keys",
    "Neighbours": "clinveil.vectors.table",
    "Span": "clinveil.core.spans",
    "Vectors": "clinveil.vectors.table",
    "open_corpus": "clinveil.corpus.open",
}
__all__ = ["Channel", "Columns", "Corpus", "Finding", "Key", "Neighbours", "Span", "Vectors", "open_corpus"]


def __getattr__(name: str) -> Any:
    if name in _WINDOW:
        return getattr(import_module(_WINDOW[name]), name)
    raise AttributeError(f"module 'clinveil' has no attribute {name!r}")
