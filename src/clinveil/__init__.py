"""clinveil makes free-text clinical notes shareable, and measures how safe and how useful the
result is.
"""

from importlib.metadata import version
from typing import Any

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

_exported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    return version("clinveil") if name == "__version__" else _exported(name)
