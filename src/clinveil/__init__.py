"""clinveil makes free-text clinical notes shareable, and measures how safe and how useful the
result is.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clinveil.api import (
        Deidentifier,
        Obfuscator,
        attack,
        compare,
        embed,
        evaluate,
        release,
        to_frame,
        verify,
    )
    from clinveil.channel import Channel
    from clinveil.core import (
        ClinveilError,
        Finding,
        GateError,
        InputError,
        Key,
        Span,
        UsageError,
        read_findings,
    )
    from clinveil.corpus import Columns, Corpus, Patient, demo_corpus, open_corpus
    from clinveil.vectors import Neighbours, Vectors, load_vectors, save_vectors

# Public names and their modules, which are imported on first access.
_MODULES = {
    "Channel": "clinveil.channel.channel",
    "ClinveilError": "clinveil.core.errors",
    "Columns": "clinveil.corpus.corpus",
    "Corpus": "clinveil.corpus.corpus",
    "Deidentifier": "clinveil.api.transformers",
    "Finding": "clinveil.core.finding",
    "GateError": "clinveil.core.errors",
    "InputError": "clinveil.core.errors",
    "Key": "clinveil.core.keys",
    "Neighbours": "clinveil.vectors.table",
    "Obfuscator": "clinveil.api.transformers",
    "Span": "clinveil.core.spans",
    "Patient": "clinveil.corpus.people",
    "UsageError": "clinveil.core.errors",
    "Vectors": "clinveil.vectors.table",
    "compare": "clinveil.api.verbs",
    "demo_corpus": "clinveil.corpus.demo",
    "embed": "clinveil.api.verbs",
    "load_vectors": "clinveil.vectors.files",
    "open_corpus": "clinveil.corpus.open",
    "read_findings": "clinveil.core.finding",
    "release": "clinveil.api.verbs",
    "save_vectors": "clinveil.vectors.files",
    "to_frame": "clinveil.api.frames",
    "verify": "clinveil.api.verbs",
}
__all__ = [
    "Channel",
    "ClinveilError",
    "Columns",
    "Corpus",
    "Deidentifier",
    "Finding",
    "GateError",
    "InputError",
    "Key",
    "Neighbours",
    "Obfuscator",
    "Patient",
    "Span",
    "UsageError",
    "Vectors",
    "attack",
    "compare",
    "demo_corpus",
    "embed",
    "evaluate",
    "load_vectors",
    "open_corpus",
    "read_findings",
    "release",
    "save_vectors",
    "to_frame",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("clinveil")
    if name in ("attack", "evaluate"):
        return import_module(f"clinveil.api.{name}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'clinveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
