"""clinveil makes free-text clinical notes shareable, and measures how safe and how useful the
result is.
"""

from importlib.metadata import version
from typing import Any

import lazy_loader

_exported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    return version("clinveil") if name == "__version__" else _exported(name)
