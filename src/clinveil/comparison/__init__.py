"""`clinveil compare`: every kind of release, and named settings, measured on the same notes and
shown in one table.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
