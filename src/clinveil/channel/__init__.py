"""Replace words by draws from a `Channel`; `apply.py` is the hot loop."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
