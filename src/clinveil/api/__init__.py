"""The public Python API: functions, two transformers, attacks and evaluations for files, frames and
lists.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
